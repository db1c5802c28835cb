"""Comparisons of TIMESTAMP(9) with constants outside of 1677 to 2262, as Flink 2.3 answers them."""

from __future__ import annotations

import pytest

from flowsql.table import TableEnvironment

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
