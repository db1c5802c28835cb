"""Batch scripts with Flink's answers, on Spark: what it has no exact plan for runs at home, all else in Spark."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conformance.suite import ASKED, CONFORMANCE, NEEDS_JUDGE, REPORTED, Suite
from tests.spark.spark_machine import ON_SPARK

pytestmark = [*NEEDS_JUDGE, *ON_SPARK, pytest.mark.nightly]

#: Every statement that waits for all rows of an input, however few they are.
OPTIONS = {"execution.batch.engine": "auto", "execution.batch.local-threshold": "0"}
#: Scripts whose answer on Spark may differ, and why.
DIFFERENT = {
    "asked/over/lag_offset_1_batch": "Spark refuses LAG with an offset that is no literal",
    "asked/over/lag_offset_5_batch": "Spark refuses LAG with an offset that is no literal",
    "reported/subqueries/u_not_in_corr": "Flink fails to plan it",
    "conformance/over_agg/009_batch_ranks": "rows that sort alike decide it",
}
SUITES = {"asked": ASKED, "reported": REPORTED, "conformance": CONFORMANCE}


def batch_cases() -> list[tuple[str, str]]:
    """Return suite and name of each script in batch mode."""
    return [
        (key, name)
        for key, suite in SUITES.items()
        for name in suite.names()
        if suite.path(name).read_text(encoding="utf-8").startswith("-- batch")
    ]


@pytest.mark.parametrize(("key", "name"), batch_cases(), ids=lambda part: part)
def test_flinks_answer_on_spark(
    key: str, name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    verdict = Suite(SUITES[key].folder, OPTIONS).judge(name, tmp_path, capsys)
    reason = DIFFERENT.get(f"{key}/{name}")
    if reason is not None and verdict.rows is not None:
        pytest.xfail(reason)
    assert verdict.rows is None, verdict.rows
