"""The 22 queries of TPC-H in batch mode, by FlowSQL's own runtime: DuckDB's answers, in memory and through files."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from flowsql_runtime.operators.bounded import base
from tests.sql.tpch.beside_duckdb import compare, duckdbs, environment_of, ours
from tests.sql.tpch.tables import COLUMNS, write_tables

QUERIES = dict(
    re.findall(r"-- (q\d+)\n(.*?);\n", Path(__file__).with_name("queries.sql").read_text(encoding="utf-8"), re.DOTALL)
)
#: Part of the benchmark's scale factor 1.
SCALE = 0.02


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tpch")
    write_tables(folder, SCALE)
    return folder


def check(tables: Path, name: str, options: dict[str, str], format_: str = "parquet", scale: float = SCALE) -> None:
    """Rows in DuckDB's order: every ORDER BY decides it. Whatever ``format_`` FlowSQL reads, DuckDB reads parquet."""
    # Query 11 asks for a share that hangs on the scale (clause 2.4.11.3).
    query = QUERIES[name].replace("* 0.005", f"* {0.0001 / scale:.4f}") if name == "q11" else QUERIES[name]
    wanted = duckdbs(tables, COLUMNS, query)
    got = ours(environment_of(tables, COLUMNS, options, format_), query)
    assert wanted
    assert any(value is not None for value in wanted[0]), "the tables have no row for the query"
    compare(got, wanted)


@pytest.mark.parametrize("name", QUERIES)
def test_answers_are_duckdbs(name: str, tables: Path) -> None:
    check(tables, name, {"parallelism.default": "2"})


@pytest.mark.parametrize("name", ["q1", "q3", "q9", "q13", "q16", "q18", "q21"])
def test_answers_through_files(name: str, tables: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base.BoundedOperator, "share_bytes", 100_000)
    disabled = "ShuffleHashJoin,BroadcastHashJoin,HashAgg" if name in ("q3", "q18") else ""
    check(tables, name, {"io.tmp.dirs": str(tmp_path), "table.exec.disabled-operators": disabled})
    assert not list(tmp_path.rglob("*.arrows")), "files are left"


def test_queries_are_found() -> None:
    assert len(QUERIES) == 22
