"""TPC-DS on Spark: DuckDB's answers."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.nightly import by_night
from tests.spark.spark_machine import ON_SPARK, hurry
from tests.sql.tpcds.test_tpcds import QUERIES, check, tpcds  # noqa: F401 - a fixture

pytestmark = ON_SPARK

#: Those that do not wait for the night.
SHORT = ("q3", "q67")


@pytest.mark.parametrize("name", by_night(QUERIES, lambda name: name in SHORT))
def test_answers_are_duckdbs(name: str, tpcds: Path, staged: list[str]) -> None:  # noqa: F811 - the fixture
    hurry()
    check(tpcds, name, {"execution.batch.engine": "spark", "table.local-time-zone": "UTC"})
    assert not staged, "rows went through the driver"
