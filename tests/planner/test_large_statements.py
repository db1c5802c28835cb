"""Statements and chains of views far larger than people write: no limit of Python's stack counts, and steps are few."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from flowsql.table import EnvironmentSettings, TableEnvironment
from flowsql.table.udf import udf
from flowsql_compute.eval.context import EvalContext
from flowsql_core.config import Configuration
from flowsql_core.errors import BindError, FlowSqlError
from flowsql_grammar import parse_statement
from flowsql_planner.bind.context import BindContext
from flowsql_planner.bind.operations import Query
from flowsql_planner.bind.statement import bind_statement
from flowsql_planner.catalog.manager import CatalogManager
from flowsql_planner.optimize.driver import Trace, optimize
from flowsql_planner.optimize.programs import streaming

DEEP = 1000


def nested(before: str, after: str, inner: str = "a") -> str:
    return before * DEEP + inner + after * DEEP


NESTED = {
    "parentheses": (f"SELECT {nested('(', ')')} FROM (VALUES (1)) AS t(a)", 1),
    "sums to the right": (f"SELECT {nested('a + (', ')')} FROM (VALUES (1)) AS t(a)", DEEP + 1),
    "sums to the left": (f"SELECT {'a + ' * DEEP}a FROM (VALUES (1)) AS t(a)", DEEP + 1),
    "functions": (f"SELECT {nested('ABS(', ')')} FROM (VALUES (1)) AS t(a)", 1),
    "negations": (f"SELECT {nested('NOT ', '')} FROM (VALUES (TRUE)) AS t(a)", True),
    "cases": (f"SELECT {nested('CASE WHEN a = 0 THEN 0 ELSE ', ' END')} FROM (VALUES (1)) AS t(a)", 1),
    "queries": (f"SELECT * FROM {nested('(SELECT * FROM ', ')', '(VALUES (1)) AS t(a)')}", 1),
}


@pytest.fixture
def session() -> TableEnvironment:
    return TableEnvironment.create(EnvironmentSettings.in_streaming_mode())


def answer(session: TableEnvironment, query: str) -> list[list[Any]]:
    with session.execute_sql(query).collect() as rows:
        return [list(row) for row in rows]


@pytest.mark.parametrize("name", NESTED)
def test_a_thousand_levels(session: TableEnvironment, name: str) -> None:
    query, expected = NESTED[name]
    assert answer(session, query) == [[expected]]


def chain(session: TableEnvironment, length: int, query: Callable[[str], str]) -> str:
    """Make views that each read the one before; return the last one's name."""
    session.execute_sql("CREATE TEMPORARY VIEW v0 AS SELECT a FROM (VALUES (1)) AS t(a)")
    for number in range(length):
        session.execute_sql(f"CREATE TEMPORARY VIEW v{number + 1} AS {query(f'v{number}')}")
    return f"v{length}"


def test_a_long_chain_of_views(session: TableEnvironment) -> None:
    last = chain(session, 300, lambda view: f"SELECT a + 1 AS a FROM {view}")
    assert answer(session, f"SELECT * FROM {last}") == [[301]]


def test_a_chain_of_views_that_doubles(session: TableEnvironment) -> None:
    last = chain(session, 40, lambda view: f"SELECT a + a AS a FROM {view}")
    assert answer(session, f"SELECT * FROM {last}") == [[0]]


class Nothing:
    """A source without abilities."""

    def __getattr__(self, name: str) -> object:
        return lambda *_: False


def fired(length: int) -> int:
    """Return how many rules fire for a chain of filters and projections."""
    text = "SELECT a FROM (VALUES (1)) AS t(a)"
    for _ in range(length):
        text = f"SELECT a + 1 AS a FROM ({text}) WHERE a < 1000000"
    bound = bind_statement(parse_statement(text), BindContext(CatalogManager(), Configuration()))
    assert isinstance(bound, Query)
    trace = Trace()
    optimize(bound.rel, streaming(Nothing(), EvalContext()), trace)  # type: ignore[arg-type]
    return len(trace.steps)


def test_rules_fire_in_proportion_to_the_chain() -> None:
    assert fired(80) < 2.5 * fired(40)


class TestViewsThatChange:
    """CREATE VIEW takes plans of views over from earlier statements: not after what they read has changed."""

    @pytest.fixture
    def session(self, session: TableEnvironment) -> TableEnvironment:
        session.execute_sql("CREATE TEMPORARY VIEW base AS SELECT 1 AS a")
        session.execute_sql("CREATE TEMPORARY VIEW middle AS SELECT a FROM base")
        session.execute_sql("CREATE TEMPORARY VIEW top AS SELECT a FROM middle")
        return session

    @staticmethod
    def type_of_next(session: TableEnvironment) -> str:
        session.execute_sql("CREATE TEMPORARY VIEW `next` AS SELECT a FROM top")
        return str(session.from_path("next").get_schema().get_field_data_type("a"))

    def test_nothing_changed(self, session: TableEnvironment) -> None:
        assert self.type_of_next(session) == "INT NOT NULL"

    def test_the_lowest_view_is_another_one(self, session: TableEnvironment) -> None:
        session.execute_sql("DROP TEMPORARY VIEW base")
        session.execute_sql("CREATE TEMPORARY VIEW base AS SELECT 'x' AS a")
        assert self.type_of_next(session) == "CHAR(1) NOT NULL"

    def test_the_lowest_view_is_gone(self, session: TableEnvironment) -> None:
        session.execute_sql("DROP TEMPORARY VIEW base")
        with pytest.raises(BindError, match="Object 'base' not found"):
            self.type_of_next(session)

    def test_a_temporary_table_hides_a_table(self, session: TableEnvironment) -> None:
        options = "WITH ('connector' = 'datagen')"
        session.execute_sql(f"CREATE TABLE shown (a INT) {options}")
        session.execute_sql("CREATE VIEW over_shown AS SELECT a FROM shown")
        session.execute_sql("CREATE VIEW above AS SELECT a FROM over_shown")
        session.execute_sql(f"CREATE TEMPORARY TABLE shown (a STRING) {options}")
        session.execute_sql("CREATE VIEW highest AS SELECT a FROM above")
        assert str(session.from_path("highest").get_schema().get_field_data_type("a")) == "STRING"

    def test_a_function_is_another_one(self, session: TableEnvironment) -> None:
        session.create_temporary_function("made", udf(lambda: 1, result_type="INT"))
        session.execute_sql("CREATE TEMPORARY VIEW made_by_call AS SELECT made() AS a")
        session.execute_sql("CREATE TEMPORARY VIEW top2 AS SELECT a FROM made_by_call")
        session.drop_temporary_function("made")
        session.create_temporary_function("made", udf(lambda: "x", result_type="STRING"))
        session.execute_sql("CREATE TEMPORARY VIEW top3 AS SELECT a FROM top2")
        assert str(session.from_path("top3").get_schema().get_field_data_type("a")) == "STRING"

    def test_the_mode_is_another_one(self, session: TableEnvironment) -> None:
        session.execute_sql(
            "CREATE TEMPORARY VIEW numbered AS SELECT a, ROW_NUMBER() OVER (ORDER BY a) AS n FROM middle"
        )
        session.execute_sql("CREATE TEMPORARY VIEW top2 AS SELECT * FROM numbered")
        session.execute_sql("SET 'execution.runtime-mode' = 'batch'")
        session.execute_sql("CREATE TEMPORARY VIEW top3 AS SELECT * FROM top2")

    def test_a_table_that_cannot_be_read_is_named_again(self, session: TableEnvironment) -> None:
        session.execute_sql("CREATE TABLE sink (a INT) WITH ('connector' = 'blackhole')")
        for _ in range(2):
            with pytest.raises(FlowSqlError, match="blackhole"):
                session.execute_sql("CREATE VIEW unreadable AS SELECT a FROM sink")
