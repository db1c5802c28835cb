"""Queries inside of queries that Flink has no plan for: refused where they stand, in words that say what would do."""

from __future__ import annotations

from pathlib import Path

import pytest

from flowsql_core.errors import PlanError
from flowsql_planner.bind import operations as op
from flowsql_planner.planner import Planner
from tests.planner.bind.bind_script import Session

#: Statements with Flink's verdict: "- " in front of what it refuses, "+ " in front of what it plans.
CORRELATED_VALUES = Path(__file__).with_name("correlated_values.txt")
CORRELATED_TABLES = """
CREATE TABLE l (a INT, b DECIMAL(2, 1), ar ARRAY<INT>) WITH ('connector' = 'datagen');
CREATE TABLE r (c INT, d DECIMAL(2, 1)) WITH ('connector' = 'datagen');
CREATE TABLE s (e INT, f DECIMAL(2, 1)) WITH ('connector' = 'datagen');
"""
TABLES = """
CREATE TABLE a (id INT, k STRING, v BIGINT) WITH ('connector' = 'datagen');
CREATE TABLE c (id INT, k STRING, v BIGINT) WITH ('connector' = 'datagen');
"""


@pytest.mark.parametrize(
    ("query", "code", "place"),
    [
        ("SELECT a.id FROM a, LATERAL (SELECT v FROM c WHERE c.k = a.k LIMIT 2) AS x", "correlated-subquery", "a.k"),
        ("SELECT id, (SELECT v FROM c WHERE c.k = a.k LIMIT 1) AS n FROM a", "correlated-subquery", "a.k"),
        (
            "SELECT id FROM a WHERE EXISTS (SELECT k FROM c WHERE c.k = a.k UNION ALL SELECT k FROM c)",
            "correlated-subquery",
            "a.k",
        ),
        (
            "SELECT a.id FROM a, LATERAL (SELECT c.v FROM c LEFT JOIN (SELECT * FROM c AS e WHERE e.k = a.k) AS d "
            "ON c.id = d.id) AS x",
            "correlated-subquery",
            "a.k",
        ),
        (
            "SELECT a.id FROM a LEFT JOIN c ON a.k = c.k AND a.id IN (SELECT id FROM c)",
            "subquery-in-on",
            "a.id IN (SELECT id FROM c)",
        ),
        (
            "SELECT id, (id, k) IN (SELECT id, k FROM c) AS f FROM a",
            "row-in-value",
            "(id, k) IN (SELECT id, k FROM c)",
        ),
    ],
)
def test_what_has_no_plan_is_refused_where_it_stands(query: str, code: str, place: str) -> None:
    session = Session()
    for _ in session.run(TABLES):
        pass
    operation = session.last(query)
    assert isinstance(operation, op.Query)
    with pytest.raises(PlanError) as caught:
        Planner(session.config).explain(operation)
    assert caught.value.code == code
    assert caught.value.at is not None
    assert query[caught.value.at.start : caught.value.at.end] == place
    assert caught.value.hint


def test_correlated_queries_over_values_have_flinks_verdict() -> None:
    session = Session()
    for _ in session.run(CORRELATED_TABLES):
        pass
    lines = [line for line in CORRELATED_VALUES.read_text(encoding="utf-8").splitlines() if line[0] in "+-"]
    wrong = [line for line in lines if _is_refused(session, line[2:]) != (line[0] == "-")]
    assert len(lines) > 150
    assert not wrong


def _is_refused(session: Session, query: str) -> bool:
    operation = session.last(query.replace("<V>", "(VALUES (2, 3.0), (3, 2.0))"))
    assert isinstance(operation, op.Query)
    try:
        Planner(session.config).explain(operation)
    except PlanError as error:
        return error.code == "correlated-values" and error.at is not None and error.hint is not None
    return False
