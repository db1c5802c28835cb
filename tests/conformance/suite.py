"""Suites of SQL scripts with the answers that Flink gave, in the form of ``../shared/conformance/README.md``."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from flowsql.cli.main import main
from flowsql_core.config import Configuration
from flowsql_runtime.spark.sessions.current import missing

_SHARED = Path(__file__).resolve().parents[3] / "shared"
_TWIN = ".twin.sql"
#: How names of folders begin that scripts write.
_WRITTEN = ("tmp_", "out_")


@dataclass(frozen=True)
class Verdict:
    """The first difference from Flink's final rows, from its changes (None: equal), and what was printed."""

    rows: str | None
    changes: str | None
    output: str


@dataclass(frozen=True)
class Suite:
    """A folder with ``cases/<family>/<name>.sql``, their answers, and the folder ``data`` that scripts read.

    Attributes:
        options: every script begins with these.
    """

    folder: Path
    options: Mapping[str, str] = field(default_factory=dict)

    def names(self) -> list[str]:
        """Return ``family/case`` of every script; twins are no cases."""
        paths = sorted((self.folder / "cases").rglob("*.sql")) if self.folder.is_dir() else []
        return [
            path.relative_to(self.folder / "cases").as_posix()[:-4] for path in paths if not path.name.endswith(_TWIN)
        ]

    def path(self, name: str) -> Path:
        """Return the script of a case."""
        return self.folder / "cases" / f"{name}.sql"

    def parameters(self) -> list[Any]:
        """Return the cases for ``pytest.mark.parametrize``; those in batch mode run on Spark, all in one process."""
        lack = missing(Configuration())
        on_spark = [
            pytest.mark.xdist_group("spark"),
            pytest.mark.skipif(lack is not None, reason=f"no Spark on this machine: {lack}"),
        ]
        texts = {name: self.path(name).read_text(encoding="utf-8") for name in self.names()}
        return [
            pytest.param(name, marks=on_spark if text.startswith("-- batch") else []) for name, text in texts.items()
        ]

    def script_in(self, folder: Path, path: Path, text: str) -> Path:
        """Write a script with its data into a folder, as the suite gives it to an engine.

        A script that writes files gets a data folder of its own, without what earlier runs wrote.
        """
        data = self.folder / "data"
        if any(f"${{DATA}}/{start}" in text for start in _WRITTEN):
            data = folder / f"data-{path.stem}"
            data.mkdir()
            for source in (self.folder / "data").iterdir():
                if not source.name.startswith(_WRITTEN):
                    os.symlink(source, data / source.name)
        script = folder / path.name
        script.write_text(text.replace("${DATA}", str(data)), encoding="utf-8")
        return script

    def judge(self, name: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> Verdict:
        """Run a case and, where it has one and passes, its twin."""
        path = self.path(name)
        verdict = self._run(path, folder, capsys)
        twin = path.with_name(path.name[:-4] + _TWIN)
        return self._run(twin, folder, capsys) if verdict.rows is None and twin.exists() else verdict

    def _run(self, path: Path, folder: Path, capsys: pytest.CaptureFixture[str]) -> Verdict:
        judge = load_judge()
        text = path.read_text(encoding="utf-8")
        script = self.script_in(folder, path, text)
        mode = ["-D", "execution.runtime-mode=batch"] if judge.is_batch(text) else []
        if mode:
            os.environ.setdefault("JAVA_TOOL_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
        capsys.readouterr()
        # The first case on Spark waits for Java.
        limit = ["--timeout", "300" if mode else "60"]
        chosen = [word for key, value in self.options.items() for word in ("-D", f"{key}={value}")]
        main(["--format", "jsonl", *mode, *chosen, "-D", "table.local-time-zone=UTC", "-f", str(script), *limit])
        output = capsys.readouterr().out
        expected = path.with_name(path.name[:-4] + ".expected.jsonl").read_text(encoding="utf-8")
        return Verdict(
            judge.compare(text, expected, output), judge.compare(text, expected, output, changes=True), output
        )


#: The suite that everything is held against.
CONFORMANCE = Suite(_SHARED / "conformance")
#: Small inputs that FlowSQL once got wrong.
REPORTED = Suite(_SHARED / "reported")
#: Scripts of this project, with answers recorded from Flink by the suite's ``ask_flink.py``.
ASKED = Suite(Path(__file__).parent / "asked")

#: Marks of tests that need the comparison of the conformance suite.
NEEDS_JUDGE = [
    pytest.mark.shared,
    pytest.mark.skipif(not CONFORMANCE.folder.is_dir(), reason="the conformance suite is not beside the checkout"),
]


@cache
def load_judge() -> ModuleType:
    """Return the suite's own comparison, ``run.py``."""
    spec = importlib.util.spec_from_file_location("conformance_run", CONFORMANCE.folder / "run.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
