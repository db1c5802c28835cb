"""TIMESTAMP(9) outside of 1677 to 2262: constants, and what is refused (answers: tests/sql/queries/far_moments.txt)."""

from __future__ import annotations

import pytest

from flowsql.table import TableEnvironment
from flowsql_core.errors import ExecutionError

FROM = "FROM (VALUES (1, TIMESTAMP '2020-01-01 00:00:00.123456789'), (2, CAST(NULL AS TIMESTAMP(9)))) AS t(id, a)"
LAST = "TIMESTAMP '9999-12-31 23:59:59.999999999'"
FIRST = "TIMESTAMP '0001-01-01 00:00:00.000000001'"


@pytest.mark.parametrize(
    ("condition", "answer"),
    [
        (f"a < {LAST}", True),
        (f"a <= {LAST}", True),
        (f"a > {LAST}", False),
        (f"a = {LAST}", False),
        (f"a <> {LAST}", True),
        (f"{LAST} > a", True),
        (f"{LAST} <= a", False),
        (f"a > {FIRST}", True),
        (f"a >= {FIRST}", True),
        (f"{FIRST} > a", False),
        (f"a BETWEEN {FIRST} AND {LAST}", True),
        # A constant of fewer digits is cast to those of the column.
        ("a < TIMESTAMP '9999-12-31 00:00:00'", True),
        ("a < TIMESTAMP '0001-01-01 00:00:00'", False),
    ],
)
def test_every_value_lies_on_one_side_of_a_far_constant(condition: str, answer: bool) -> None:
    made = TableEnvironment.create()
    with made.execute_sql(f"SELECT id, {condition} {FROM}").collect() as rows:
        assert [tuple(row) for row in rows] == [(1, answer), (2, None)]
    with made.execute_sql(f"SELECT id {FROM} WHERE {condition}").collect() as rows:
        assert [tuple(row) for row in rows] == ([(1,)] if answer else [])


def test_constants_among_themselves() -> None:
    query = f"SELECT {FIRST} < {LAST}, {LAST} = {LAST}, {FIRST} >= TIMESTAMP '2020-01-01 00:00:00.000000001'"
    with TableEnvironment.create().execute_sql(query).collect() as rows:
        assert [tuple(row) for row in rows] == [(True, True, False)]


TEXTS = "FROM (VALUES (1, '2020-01-01 00:00:00.123456789'), (2, '9999-12-31 23:59:59.999999999')) AS t(id, s)"


@pytest.mark.parametrize(
    "expression",
    [
        "TRY_CAST(s AS TIMESTAMP(9))",
        "CAST(s AS TIMESTAMP_LTZ(9))",
        "CAST(TRY_CAST(s AS TIMESTAMP(9)) AS TIMESTAMP(7))",
        "TRY_CAST(s AS TIMESTAMP(9)) + INTERVAL '1' DAY",
        "FLOOR(TRY_CAST(s AS TIMESTAMP(9)) TO DAY)",
        "COALESCE(TRY_CAST(s AS TIMESTAMP(9)), TIMESTAMP '2020-01-01 00:00:00')",
        "MAX(TRY_CAST(s AS TIMESTAMP(9)))",
        "COUNT(DISTINCT TRY_CAST(s AS TIMESTAMP(9)))",
        "CAST('2020-01-01 00:00:00.1' AS TIMESTAMP(9)) + INTERVAL '1000' YEAR(4)",
    ],
)
def test_what_a_column_must_hold_is_an_error_never_null(expression: str) -> None:
    with (
        pytest.raises(ExecutionError, match="must lie between the years 1678 and 2261"),
        TableEnvironment.create().execute_sql(f"SELECT {expression} {TEXTS}").collect() as rows,
    ):
        list(rows)


def test_branches_that_are_not_taken_hold_nothing() -> None:
    query = f"SELECT CASE WHEN id = 1 THEN TRY_CAST(s AS TIMESTAMP(9)) END {TEXTS}"
    with TableEnvironment.create().execute_sql(query).collect() as rows:
        assert [row[0] is None for row in rows] == [False, True]


def test_a_moment_that_comes_back_near_is_held() -> None:
    query = f"SELECT TRY_CAST(s AS TIMESTAMP(9)) - INTERVAL '7979' YEAR(4) {TEXTS} WHERE id = 2"
    with TableEnvironment.create().execute_sql(query).collect() as rows:
        assert str(next(row[0] for row in rows)).startswith("2020-12-31 23:59:59.999999")


def test_midnight_at_the_end_of_a_day_has_no_fraction() -> None:
    query = (
        "SELECT TRY_CAST(s AS TIMESTAMP(6)) IS NULL, TRY_CAST(s AS TIMESTAMP(9)) IS NULL "
        "FROM (VALUES ('2020-01-01 24:00:00.0000001'), ('2020-01-01 24:00:00')) AS t(s)"
    )
    with TableEnvironment.create().execute_sql(query).collect() as rows:
        assert [tuple(row) for row in rows] == [(True, True), (False, False)]
