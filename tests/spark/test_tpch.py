"""The 22 queries of TPC-H on Spark: DuckDB's answers; Spark reads the files itself, and plans the joins as it likes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.spark.spark_machine import ON_SPARK, hurry
from tests.sql.tpch.tables import write_tables
from tests.sql.tpch.test_tpch import QUERIES, SCALE, check

pytestmark = ON_SPARK


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tpch")
    write_tables(folder, SCALE)
    return folder


@pytest.mark.parametrize("name", QUERIES)
def test_answers_are_duckdbs(name: str, tables: Path, staged: list[str]) -> None:
    hurry()
    check(tables, name, {"execution.batch.engine": "spark", "table.local-time-zone": "UTC"})
    assert not staged, "rows went through FlowSQL's own readers"
