"""The 22 queries of TPC-H on Spark: DuckDB's answers, over files that Spark reads itself and over those it cannot."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from flowsql_runtime.spark import parts
from tests.nightly import by_night
from tests.spark.spark_machine import ON_SPARK, hurry
from tests.sql.tpch.tables import COLUMNS, write_tables
from tests.sql.tpch.test_tpch import QUERIES, check

pytestmark = ON_SPARK

#: Part of the benchmark's scale factor 1.
SCALE = 0.1
#: Those that do not wait for the night, over parquet and over csv.
SHORT_PARQUET = ("q2", "q3", "q13", "q18", "q21")
SHORT_CSV = ("q3", "q11")
OPTIONS = {"execution.batch.engine": "spark", "table.local-time-zone": "UTC"}


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tpch")
    write_tables(folder, SCALE)
    with duckdb.connect() as connection:
        for name in COLUMNS:
            rows = f"SELECT * FROM read_parquet('{folder}/{name}.parquet')"
            connection.execute(f"COPY ({rows}) TO '{folder}/{name}.csv' (FORMAT csv, HEADER false)")
    return folder


@pytest.mark.parametrize("name", by_night(QUERIES, lambda name: name in SHORT_PARQUET))
def test_answers_over_parquet_are_duckdbs(name: str, tables: Path, staged: list[str]) -> None:
    hurry()
    check(tables, name, OPTIONS, scale=SCALE)
    assert not staged, "rows went through the driver"


@pytest.mark.parametrize("name", by_night(QUERIES, lambda name: name in SHORT_CSV))
def test_answers_over_csv_are_duckdbs(
    name: str, tables: Path, staged: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    hurry()
    monkeypatch.setattr(parts, "SMALL_BYTES", -1)
    check(tables, name, OPTIONS, "csv", SCALE)
    assert not staged, "rows went through the driver"
