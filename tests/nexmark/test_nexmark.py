"""The Nexmark queries beside the checkout (``../shared/nexmark``) against the recorded answers, run in this process."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from flowsql.cli.main import main
from tests.nexmark import suite

PASSING = Path(__file__).with_name("passing.txt")

pytestmark = [
    pytest.mark.shared,
    pytest.mark.skipif(not suite.SUITE.is_dir(), reason="the Nexmark queries are not beside the checkout"),
]


def recorded() -> frozenset[str]:
    """Queries that must give Flink's answer."""
    return frozenset(PASSING.read_text().split())


@pytest.fixture(scope="module", params=[1, 2])
def events(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[int, Path]:
    """A parallelism and the events of the recorded answers, in as many files."""
    parallelism: int = request.param
    folder = tmp_path_factory.mktemp("nexmark")
    suite.generate(folder, "csv", parallelism)
    return parallelism, folder


@pytest.fixture(scope="module")
def passed(request: pytest.FixtureRequest) -> Iterator[set[str]]:
    """Queries that pass in this run at some parallelism; written down at the end where asked."""
    found: set[str] = set()
    yield found
    if request.config.getoption("--update"):
        names = sorted(recorded() | found, key=lambda name: int(name[1:]))
        PASSING.write_text("".join(f"{name}\n" for name in names))


@pytest.mark.parametrize("query", suite.queries())
def test_flinks_answer_or_none(
    query: str,
    events: tuple[int, Path],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    passed: set[str],
) -> None:
    parallelism, data = events
    path = tmp_path / f"{query}.sql"
    path.write_text(suite.script(query, data, tmp_path, "csv"))
    settings = ["-D", f"parallelism.default={parallelism}", "-D", "table.local-time-zone=UTC"]
    capsys.readouterr()
    code = main(["--format", "jsonl", *settings, "-f", str(path)])
    output = capsys.readouterr().out
    if code:
        error = json.loads(output.rstrip().rpartition("\n")[2])["error"]
        assert query not in recorded(), error
        assert "not supported yet" in error
        return
    suite.assert_answer(query, output, tmp_path)
    passed.add(query)
