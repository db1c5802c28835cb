"""The conformance suite beside the checkout (``../shared/conformance``), run in this process.

Every script either gives Flink's answer or is refused with "not supported yet": never another answer. Scripts listed in
``passing.txt`` must give Flink's very changes, not only its final rows; ``pytest --update`` adds to the list.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from flowsql.cli.main import main
from flowsql_core.config import Configuration
from flowsql_runtime.spark.sessions.current import missing

SUITE = Path(__file__).resolve().parents[3] / "shared" / "conformance"
PASSING = Path(__file__).with_name("passing.txt")
TWIN = ".twin.sql"
LACK = missing(Configuration())

pytestmark = [
    pytest.mark.shared,
    pytest.mark.skipif(not SUITE.is_dir(), reason="the conformance suite is not beside the checkout"),
]


def names() -> list[str]:
    """``family/case`` of every script, twins left out."""
    paths = sorted((SUITE / "cases").rglob("*.sql")) if SUITE.is_dir() else []
    return [path.relative_to(SUITE / "cases").as_posix()[:-4] for path in paths if not path.name.endswith(TWIN)]


def recorded() -> frozenset[str]:
    """Cases that passed when the list was last written."""
    return frozenset(PASSING.read_text().split()) if PASSING.exists() else frozenset()


def load_judge() -> ModuleType:
    """The suite's own comparison."""
    spec = importlib.util.spec_from_file_location("conformance_run", SUITE / "run.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def judge() -> ModuleType:
    return load_judge()


def script_in(folder: Path, path: Path, text: str) -> Path:
    """A script with its data, as the suite gives it to an engine."""
    data = SUITE / "data"
    if "${DATA}/tmp_" in text:
        data = folder / f"data-{path.stem}"
        data.mkdir()
        for source in (SUITE / "data").iterdir():
            if not source.name.startswith("tmp_"):
                os.symlink(source, data / source.name)
    script = folder / path.name
    script.write_text(text.replace("${DATA}", str(data)), encoding="utf-8")
    return script


@pytest.fixture(scope="module")
def passed(request: pytest.FixtureRequest) -> Iterator[set[str]]:
    """Cases that pass in this run; written down at the end where asked."""
    found: set[str] = set()
    yield found
    if request.config.getoption("--update"):
        PASSING.write_text("".join(f"{name}\n" for name in sorted(recorded() | found)))


@dataclass(frozen=True)
class Verdict:
    """The first difference from Flink's final rows, from its changes (None: equal), and what was printed."""

    rows: str | None
    changes: str | None
    output: str


def run(path: Path, folder: Path, capsys: pytest.CaptureFixture[str], judge: ModuleType) -> Verdict:
    """Run a script as the suite does."""
    text = path.read_text(encoding="utf-8")
    script = script_in(folder, path, text)
    mode = ["-D", "execution.runtime-mode=batch"] if judge.is_batch(text) else []
    if mode:
        os.environ.setdefault("JAVA_TOOL_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
    capsys.readouterr()
    # The first case on Spark waits for Java.
    limit = ["--timeout", "300" if mode else "60"]
    main(["--format", "jsonl", *mode, "-D", "table.local-time-zone=UTC", "-f", str(script), *limit])
    output = capsys.readouterr().out
    expected = path.with_name(path.name[:-4] + ".expected.jsonl").read_text(encoding="utf-8")
    return Verdict(judge.compare(text, expected, output), judge.compare(text, expected, output, changes=True), output)


def parameters() -> list[Any]:
    """The cases; those in batch mode run on Spark, all in one process, where it can be started."""
    on_spark = [
        pytest.mark.xdist_group("spark"),
        pytest.mark.skipif(LACK is not None, reason=f"no Spark on this machine: {LACK}"),
    ]
    texts = {name: (SUITE / "cases" / f"{name}.sql").read_text(encoding="utf-8") for name in names()}
    return [pytest.param(name, marks=on_spark if text.startswith("-- batch") else []) for name, text in texts.items()]


@pytest.mark.parametrize("name", parameters())
def test_flinks_answer_or_none(
    name: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    judge: ModuleType,
    passed: set[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    path = SUITE / "cases" / f"{name}.sql"
    verdict = run(path, tmp_path, capsys, judge)
    twin = path.with_name(path.name[:-4] + TWIN)
    if verdict.rows is None and twin.exists():
        verdict = run(twin, tmp_path, capsys, judge)
    if verdict.changes is None:
        passed.add(name)
        return
    assert name not in recorded(), verdict.changes
    if verdict.rows is not None:
        assert "not supported yet" in verdict.output.rstrip().rpartition("\n")[2], verdict.rows
