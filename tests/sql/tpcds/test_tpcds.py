"""TPC-DS in batch mode, by FlowSQL's own runtime: DuckDB's answers. Queries in two parts are ``q14a`` and ``q14b``."""

from __future__ import annotations

import datetime
import decimal
import math
import re
from pathlib import Path
from typing import Any

import duckdb
import pytest

from flowsql.table.session.environment import TableEnvironment
from tests.sql.tpcds.tables import COLUMNS, write_tables

QUERIES = {
    name: text
    for path in sorted(Path(__file__).parent.glob("queries_*.sql"))
    for name, text in re.findall(r"-- (q\d+[ab]?)\n(.*?);\n", path.read_text(encoding="utf-8"), re.DOTALL)
}
#: Those that do not wait for the night.
SHORT = ("q5", "q27", "q36", "q47", "q51", "q97")
#: Sizes of the tables: 1 has 100,000 lines of sales in stores.
SCALE = 0.5
#: Their conditions leave nothing of tables that small.
EMPTY = frozenset({"q58", "q85", "q91"})
#: FlowSQL's runtime joins tables in the order of FROM, as Flink does unless told otherwise: here two calendars meet
#: before anything joins them, four million rows for each row of the rest.
ONLY_REORDERED = frozenset({"q64"})
_LIMIT = re.compile(r"\s+LIMIT 100$")
_NUMBERS = (int, float, decimal.Decimal)
Row = tuple[Any, ...]


@pytest.fixture(scope="session")
def tpcds(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tpcds")
    write_tables(folder, SCALE)
    return folder


def environment_of(tables: Path, options: dict[str, str]) -> TableEnvironment:
    environment = TableEnvironment.create()
    for key, value in {"execution.runtime-mode": "batch", **options}.items():
        environment.get_config().set(key, value)
    for name, columns in COLUMNS.items():
        environment.execute_sql(
            f"CREATE TABLE {name} ({columns}) WITH ('connector' = 'filesystem', 'path' = '{tables}/{name}.parquet', "
            "'format' = 'parquet')"
        )
    return environment


def ours(environment: TableEnvironment, query: str) -> list[Row]:
    rows: list[Row] = []
    for batch in environment.execute_sql(query).batches():
        columns: list[list[Any]] = [column.to_pylist() for column in batch.columns]
        rows.extend(zip(*columns, strict=True))
    return rows


def duckdbs(tables: Path, query: str) -> list[Row]:
    with duckdb.connect() as connection:
        for name in COLUMNS:
            connection.execute(f"CREATE VIEW {name} AS SELECT * FROM read_parquet('{tables}/{name}.parquet')")
        return connection.sql(query).fetchall()


def plain(value: Any) -> Any:
    """A text without the blanks of CHAR, a moment as its day."""
    if isinstance(value, datetime.datetime):
        return value.date()
    return value


def same(one: Any, other: Any) -> bool:
    """Equal values; quotients and averages of DECIMAL have six digits behind the point at least, DuckDB has DOUBLE."""
    if isinstance(one, _NUMBERS) and isinstance(other, _NUMBERS):
        return math.isclose(float(one), float(other), rel_tol=1e-6, abs_tol=2e-6)
    return bool(plain(one) == plain(other))


def equal(got: list[Row], wanted: list[Row]) -> str | None:
    """The first difference between two sets of rows."""
    if len(got) != len(wanted):
        return f"{len(got)} rows and not {len(wanted)}"
    for one, other in zip(sorted(got, key=_place), sorted(wanted, key=_place), strict=True):
        if len(one) != len(other) or not all(map(same, one, other)):
            return f"{one} and not {other}"
    return None


def _place(row: Row) -> tuple[Any, ...]:
    """Texts, days and whole numbers in front: of others the last digits may differ."""
    exact = [(value is not None, str(plain(value))) for value in row if not isinstance(value, float | decimal.Decimal)]
    inexact = [float(value) for value in row if isinstance(value, float | decimal.Decimal)]
    return tuple(exact), tuple(round(value, 3) for value in inexact)


def check(tables: Path, name: str, options: dict[str, str]) -> None:
    """Both have the same rows; where LIMIT cuts between rows of one place, both have the same rows without it."""
    environment = environment_of(tables, options)
    query = QUERIES[name]
    wanted = duckdbs(tables, query)
    assert bool(wanted) is (name not in EMPTY)
    difference = equal(ours(environment, query), wanted)
    if difference is not None and _LIMIT.search(query):
        query = _LIMIT.sub("", query)
        difference = equal(ours(environment, query), duckdbs(tables, query))
    assert difference is None, difference


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if name in SHORT else pytest.mark.nightly)
        for name in QUERIES
        if name not in ONLY_REORDERED
    ],
)
def test_answers_are_duckdbs(name: str, tpcds: Path) -> None:
    check(tpcds, name, {"execution.batch.engine": "local", "parallelism.default": "2"})


def test_queries_are_found() -> None:
    assert len({name.rstrip("ab") for name in QUERIES}) == 99
