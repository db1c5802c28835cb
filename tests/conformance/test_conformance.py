"""The conformance suite beside the checkout (``../shared/conformance``), run in this process.

Every script either gives Flink's answer or is refused with "not supported yet": never another answer. Scripts listed in
``passing.txt`` must give Flink's very changes, not only its final rows; ``pytest --update`` adds to the list.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conformance.suite import CONFORMANCE, NEEDS_JUDGE

PASSING = Path(__file__).with_name("passing.txt")

pytestmark = NEEDS_JUDGE


def recorded() -> frozenset[str]:
    """Cases that passed when the list was last written."""
    return frozenset(PASSING.read_text().split()) if PASSING.exists() else frozenset()


@pytest.fixture(scope="module")
def passed(request: pytest.FixtureRequest) -> Iterator[set[str]]:
    """Cases that pass in this run; written down at the end where asked."""
    found: set[str] = set()
    yield found
    if request.config.getoption("--update"):
        PASSING.write_text("".join(f"{name}\n" for name in sorted(recorded() | found)))


@pytest.mark.parametrize("name", CONFORMANCE.parameters())
def test_flinks_answer_or_none(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], passed: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    verdict = CONFORMANCE.judge(name, tmp_path, capsys)
    if verdict.changes is None:
        passed.add(name)
        return
    assert name not in recorded(), verdict.changes
    if verdict.rows is not None:
        assert "not supported yet" in verdict.output.rstrip().rpartition("\n")[2], verdict.rows
