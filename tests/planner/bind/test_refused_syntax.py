"""What Flink reads and FlowSQL does not execute yet: refused by name, with the place."""

from __future__ import annotations

import sys

import pytest

from flowsql.table.environment_settings import EnvironmentSettings
from flowsql.table.session.environment import TableEnvironment
from flowsql_core.errors import FlowSqlError, NotSupportedYetError
from flowsql_core.interpreter import large_stack as deep


@pytest.mark.parametrize(
    ("text", "construct"),
    [
        ("MERGE INTO t USING s ON TRUE WHEN MATCHED THEN UPDATE SET b = 1", "MERGE"),
        ("DESCRIBE SELECT 1", "DESCRIBE of a statement"),
        ("SELECT * FROM (SELECT 1 AS a) TABLESAMPLE SYSTEM(10)", "TABLESAMPLE of a part of the rows"),
        ("SELECT * FROM (SELECT 1 AS a) PIVOT (SUM(a) FOR a IN (1))", "PIVOT"),
        ("SELECT * FROM (SELECT 1 AS a) UNPIVOT (v FOR n IN (a))", "UNPIVOT"),
        ("SELECT FLOOR(CURRENT_TIMESTAMP TO WEEK(MONDAY))", "FLOOR(... TO WEEK(MONDAY))"),
        ("SELECT JSON_VALUE('{}', '$.a' PASSING 1 AS x)", "PASSING"),
        ("SELECT NEXT VALUE FOR s", "NEXT VALUE FOR"),
        ("SELECT CONVERT(INT, 1)", "CONVERT(INT, ...)"),
        ("SELECT NEW f(1)", "NEW"),
    ],
)
def test_it_is_refused_by_name_with_its_place(text: str, construct: str) -> None:
    with pytest.raises(NotSupportedYetError) as caught:
        session().execute_sql(text)
    assert caught.value.message == f"not supported yet: {construct}"
    assert caught.value.at is not None


def test_what_is_too_deep_to_plan_is_an_error_with_a_place(
    monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    monkeypatch.setattr(deep, "_CALLS", 1000)
    limit = sys.getrecursionlimit()
    request.addfinalizer(lambda: sys.setrecursionlimit(limit))
    sys.setrecursionlimit(1000)
    with pytest.raises(FlowSqlError) as caught:
        session().explain_sql("SELECT 1 FROM " + ", ".join(f"(VALUES (1), (2)) AS t{i}(a)" for i in range(300)))
    assert caught.value.code == "nested-too-deeply"
    assert caught.value.at is not None


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("SELECT " + " + ".join(["a"] * 3000) + " FROM (VALUES (1), (2)) AS t(a)", [3000, 6000]),
        ("SELECT " + " - ".join(["a"] * 3000) + " FROM (VALUES (1), (2)) AS t(a)", [-2998, -5996]),
        ("SELECT " + " || ".join(["a"] * 3000) + " FROM (VALUES ('x'), ('y')) AS t(a)", ["x" * 3000, "y" * 3000]),
        (
            "SELECT " + " + ".join(["a", "b"] * 1000) + " AS s FROM (VALUES (1, 1.5), (2, 2.5)) AS t(a, b) "
            "WHERE " + " + ".join(["a"] * 1500) + " > 1500",
            [4500],
        ),
    ],
    ids=["sums", "differences", "concatenations", "mixed"],
)
def test_chains_of_operators_may_be_long(text: str, answer: list[object]) -> None:
    assert [row[0] for row in session().execute_sql(text).collect()] == answer
    assert session().explain_sql(text)


def test_hundreds_of_tables_can_be_joined() -> None:
    plan = session().explain_sql("SELECT 1 FROM " + ", ".join(f"(VALUES (1), (2)) AS t{i}(a)" for i in range(200)))
    assert plan.count("LogicalJoin") == 199


def test_deep_work_is_repeated_with_more_room() -> None:
    def depth(levels: int) -> int:
        return 1 + max(depth(levels - 1) for _ in range(1)) if levels else 0

    assert deep.with_room(lambda: depth(5000)) == 5000
    with pytest.raises(RecursionError):
        deep.with_room(lambda: depth(50_000))
    with pytest.raises(ZeroDivisionError):
        deep.with_room(lambda: depth(5000) // 0)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT a FROM (VALUES (1), (2)) AS t(a) WHERE " + " OR ".join(f"a = {i}" for i in range(3000)),
        "SELECT a FROM (VALUES (1), (2)) AS t(a) WHERE " + " AND ".join(f"a <> {i + 9}" for i in range(3000)),
        "SELECT CASE "
        + " ".join(f"WHEN a = {i} THEN {i}" for i in range(1000))
        + " END FROM (VALUES (1), (2)) AS t(a)",
        "SELECT a FROM (VALUES (1), (2)) AS t(a) WHERE a IN (" + ", ".join(map(str, range(10000))) + ")",
        " UNION ALL ".join(f"SELECT {i}" for i in range(200)),
    ],
    ids=["or", "and", "case", "in", "union"],
)
def test_long_texts_are_planned(text: str) -> None:
    assert session().explain_sql(text)


def session() -> TableEnvironment:
    return TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
