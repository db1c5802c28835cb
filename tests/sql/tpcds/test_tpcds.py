"""TPC-DS in batch mode, by FlowSQL's own runtime: DuckDB's answers. Queries in two parts are ``q14a`` and ``q14b``."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.nightly import by_night
from tests.sql.tpcds.tables import COLUMNS, write_tables
from tests.sql.tpch.beside_duckdb import compare, duckdbs, environment_of, ours

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


@pytest.fixture(scope="session")
def tpcds(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tpcds")
    write_tables(folder, SCALE)
    return folder


def check(tables: Path, name: str, options: dict[str, str]) -> None:
    """Rows in DuckDB's order: every ORDER BY decides it."""
    wanted = duckdbs(tables, COLUMNS, QUERIES[name])
    assert bool(wanted) is (name not in EMPTY)
    compare(ours(environment_of(tables, COLUMNS, options), QUERIES[name]), wanted)


@pytest.mark.parametrize(
    "name",
    by_night((name for name in QUERIES if name not in ONLY_REORDERED), lambda name: name in SHORT),
)
def test_answers_are_duckdbs(name: str, tpcds: Path) -> None:
    check(tpcds, name, {"parallelism.default": "2"})


def test_queries_are_found() -> None:
    assert len({name.rstrip("ab") for name in QUERIES}) == 99
