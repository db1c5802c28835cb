"""What catalogs keep as SQL text means the same when it is read again, whatever strings and names it holds."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import example, given

from flowsql.table import EnvironmentSettings, TableEnvironment
from flowsql_core.catalog import CatalogTable, CatalogView, ObjectPath
from flowsql_core.config import Configuration
from flowsql_core.expr import Literal, walk
from flowsql_core.span import Source
from flowsql_grammar.script import parse_statement
from flowsql_planner.bind.context import BindContext
from flowsql_planner.bind.query.query import bind_query

#: Any text, and much of what has a meaning in SQL.
TEXTS = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=8),
    st.text(alphabet="\\'`\"uU&+0aé😀≠\n\t;-/*$_%{}", max_size=8),
)
NAMES = TEXTS.filter(bool)


@pytest.fixture(scope="module")
def tables() -> TableEnvironment:
    return TableEnvironment.create(EnvironmentSettings.in_streaming_mode())


def text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def name(value: str) -> str:
    return "`" + value.replace("`", "``") + "`"


def literals(tables: TableEnvironment, query: str) -> tuple[list[Any], tuple[str, ...]]:
    """Constants and column names of a bound query."""
    source = Source(query)
    statement: Any = parse_statement(source)
    rel = bind_query(BindContext(tables.catalogs, Configuration(), source), statement.query)
    found, waiting = [], [rel]
    while waiting:
        node: Any = waiting.pop()
        exprs = [expr for row in getattr(node, "rows", ()) for expr in row] + list(getattr(node, "exprs", ()))
        found += [part.value for expr in exprs for part in walk(expr) if isinstance(part, Literal)]
        waiting += [value for value in vars(node).values() if hasattr(value, "schema")]
    return found, tuple(column.name for column in rel.schema)


def shown(tables: TableEnvironment, statement: str) -> str:
    with tables.execute_sql(statement).collect() as rows:
        return str(next(iter(rows))[0])


@given(TEXTS, NAMES)
@example("a\\b≠", "é\\`")
@example("\\\\≠'", "x")
def test_views(tables: TableEnvironment, value: str, column: str) -> None:
    query = f"SELECT {text(value)} AS {name(column)} FROM (VALUES ({text(value + 'é')})) AS t({name(column)})"
    wanted = literals(tables, query)
    assert value in wanted[0]
    statement = f"CREATE TEMPORARY VIEW v COMMENT {text(value)} AS {query}"
    for _ in range(2):
        tables.execute_sql(statement)
        try:
            stored = tables.catalogs.lookup(ObjectPath("default_catalog", "default_database", "v"))
            assert stored is not None
            assert isinstance(stored.value, CatalogView)
            assert stored.value.comment == value
            assert literals(tables, stored.value.expanded_query) == wanted
            assert literals(tables, "SELECT * FROM v")[1] == (column,)
            statement = shown(tables, "SHOW CREATE VIEW v")
        finally:
            tables.execute_sql("DROP TEMPORARY VIEW v")


@given(TEXTS, NAMES)
@example("a\\b≠", "é\\`")
@example("'", "user")
def test_tables(tables: TableEnvironment, value: str, column: str) -> None:
    statement = (
        f"CREATE TEMPORARY TABLE s ({name(column)} STRING COMMENT {text(value)}, {name(column + 'x')} AS "
        f"{name(column)} || {text(value)} COMMENT {text(value)}, CONSTRAINT {name(column)} PRIMARY KEY "
        f"({name(column)}) NOT ENFORCED) COMMENT {text(value)} "
        f"WITH ('connector' = 'filesystem', 'format' = 'csv', 'path' = {text(value)})"
    )
    made = []
    # The first text of a literal may have another spelling.
    for _ in range(3):
        tables.execute_sql(statement)
        try:
            found = tables.catalogs.lookup(ObjectPath("default_catalog", "default_database", "s"))
            assert found is not None
            assert isinstance(found.value, CatalogTable)
            made.append(found.value)
            assert found.value.comment == value
            assert value in literals(tables, f"SELECT {found.value.columns[1].expression} AS x FROM s")[0]
            statement = shown(tables, "SHOW CREATE TABLE s")
        finally:
            tables.execute_sql("DROP TEMPORARY TABLE s")
    first, second = (replace(one, options=tuple(sorted(one.options))) for one in made[1:])
    assert first == second
