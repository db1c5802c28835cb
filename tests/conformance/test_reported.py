"""Small inputs that FlowSQL once got wrong (``../shared/reported``), with the answers of Flink.

Cases in ``expected_failures.txt`` still fail, and must: who mends one takes its line out (``pytest --update`` does it).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conformance.suite import NEEDS_JUDGE, REPORTED

EXPECTED_FAILURES = Path(__file__).with_name("expected_failures.txt")

pytestmark = NEEDS_JUDGE


def failing() -> frozenset[str]:
    """Return the cases that are known to fail."""
    return frozenset(EXPECTED_FAILURES.read_text().split())


@pytest.fixture(scope="module")
def verdicts(request: pytest.FixtureRequest) -> Iterator[dict[str, bool]]:
    """Cases of this run and whether they pass; the list is written anew at the end where asked."""
    found: dict[str, bool] = {}
    yield found
    if request.config.getoption("--update"):
        names = {name for name, passes in found.items() if not passes} | (failing() - found.keys())
        EXPECTED_FAILURES.write_text("".join(f"{name}\n" for name in sorted(names)))


@pytest.mark.parametrize("name", REPORTED.parameters())
def test_flinks_answer(
    name: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    verdicts: dict[str, bool],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    verdict = REPORTED.judge(name, tmp_path, capsys)
    verdicts[name] = verdict.rows is None
    if name in failing():
        assert verdict.rows is not None, f"{name} passes: take it out of {EXPECTED_FAILURES.name}"
        pytest.xfail(verdict.rows)
    assert verdict.rows is None, verdict.rows


def test_expected_failures_are_cases() -> None:
    assert failing() <= set(REPORTED.names())
