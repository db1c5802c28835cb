"""Queries over parquet files, asked of FlowSQL in batch mode and of DuckDB."""

from __future__ import annotations

import datetime
import decimal
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import duckdb

from flowsql.table.session.environment import TableEnvironment

Row = tuple[Any, ...]
_NUMBERS = (int, float, decimal.Decimal)


def environment_of(
    tables: Path, columns: Mapping[str, str], options: Mapping[str, str], format_: str = "parquet"
) -> TableEnvironment:
    """A session in batch mode with a table a file; ``columns``: of each table, in types that both know."""
    environment = TableEnvironment.create()
    for key, value in {"execution.runtime-mode": "batch", "execution.batch.engine": "local", **options}.items():
        environment.get_config().set(key, value)
    for name, declared in columns.items():
        environment.execute_sql(
            f"CREATE TABLE {name} ({declared.replace('VARCHAR', 'STRING')}) WITH ('connector' = 'filesystem', "
            f"'path' = '{tables}/{name}.{format_}', 'format' = '{format_}')"
        )
    return environment


def ours(environment: TableEnvironment, query: str) -> list[Row]:
    """FlowSQL's rows in their order."""
    rows: list[Row] = []
    for batch in environment.execute_sql(query).batches():
        columns: list[list[Any]] = [column.to_pylist() for column in batch.columns]
        rows.extend(zip(*columns, strict=True))
    return rows


def duckdbs(tables: Path, names: Iterable[str], query: str) -> list[Row]:
    """DuckDB's rows in their order, over the parquet files."""
    with duckdb.connect() as connection:
        # NULL is the smallest value, as in Flink.
        connection.execute("SET default_null_order = 'nulls_first_on_asc_last_on_desc'")
        for name in names:
            connection.execute(f"CREATE VIEW {name} AS SELECT * FROM read_parquet('{tables}/{name}.parquet')")
        return connection.sql(query).fetchall()


def same(one: Any, other: Any) -> bool:
    """Equal values; quotients and averages of DECIMAL have six digits behind the point at least, DuckDB has DOUBLE."""
    if isinstance(one, _NUMBERS) and isinstance(other, _NUMBERS):
        return math.isclose(float(one), float(other), rel_tol=1e-9, abs_tol=2e-6)
    if isinstance(one, datetime.datetime):
        one = one.date()
    return bool(one == other)


def compare(got: list[Row], wanted: list[Row]) -> None:
    """Fail where two answers differ, in their order."""
    assert len(got) == len(wanted)
    for one, other in zip(got, wanted, strict=True):
        assert len(one) == len(other)
        assert all(map(same, one, other)), f"{one} and {other}"
