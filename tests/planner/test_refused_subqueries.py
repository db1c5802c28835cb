"""Queries inside of queries that Flink has no plan for: refused where they stand, in words that say what would do."""

from __future__ import annotations

import pytest

from flowsql_core.errors import PlanError
from flowsql_planner.bind import operations as op
from flowsql_planner.planner import Planner
from tests.planner.bind.bind_script import Session

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
