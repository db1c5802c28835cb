"""Aggregate functions of pandas over groups in batch mode: answers and refusals are Flink's (asked of 2.3.0)."""

from __future__ import annotations

from typing import Any

import pytest

from flowsql.table import TableEnvironment
from flowsql.table.udf import udaf
from flowsql_core.errors import FlowSqlError
from flowsql_runtime.operators.bounded import base

ROWS = """(1, 2, TIMESTAMP '2024-01-01 00:00:03'), (1, 3, TIMESTAMP '2024-01-01 00:00:01'),
(1, 7, TIMESTAMP '2024-01-01 00:00:02'), (2, 5, TIMESTAMP '2024-01-01 00:00:09')"""


def session(parallelism: str = "1") -> TableEnvironment:
    environment = TableEnvironment.create()
    options = {"execution.runtime-mode": "batch", "parallelism.default": parallelism}
    for key, value in options.items():
        environment.get_config().set(key, value)
    environment.execute_sql(
        f"CREATE TEMPORARY VIEW w AS SELECT k, n, CAST(t AS TIMESTAMP(3)) AS ts FROM (VALUES {ROWS}) AS v (k, n, t)"
    )
    mean = udaf(lambda v: float(v.mean()), result_type="DOUBLE", func_type="pandas")
    first = udaf(lambda v: int(v.iloc[0]), result_type="BIGINT", func_type="pandas")
    environment.create_temporary_function("pu", mean)
    environment.create_temporary_function("head_of", first)
    return environment


def rows(result: Any) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in result.collect())


QUERIES: list[tuple[str, list[tuple[Any, ...]]]] = [
    ("SELECT k, pu(n), pu(k + n) FROM w GROUP BY k", [(1, 4.0, 5.0), (2, 5.0, 7.0)]),
    ("SELECT pu(n) FROM w", [(4.25,)]),
    ("SELECT pu(n) FROM w WHERE k > 100", []),
    (
        "SELECT k, EXTRACT(SECOND FROM window_start), pu(n) FROM TABLE(TUMBLE(TABLE w, DESCRIPTOR(ts), "
        "INTERVAL '2' SECOND)) GROUP BY k, window_start, window_end",
        [(1, 0, 3.0), (1, 2, 4.5), (2, 8, 5.0)],
    ),
]


@pytest.mark.parametrize(("query", "answer"), QUERIES)
@pytest.mark.parametrize("parallelism", ["1", "3"])
def test_groups_are_seen_whole(query: str, answer: list[tuple[Any, ...]], parallelism: str) -> None:
    assert rows(session(parallelism).execute_sql(query)) == answer


def test_windows_see_rows_in_the_order_of_their_times() -> None:
    tumbling = "SELECT k, pu(n), head_of(n) FROM w GROUP BY k, TUMBLE(ts, INTERVAL '2' SECOND)"
    assert rows(session().execute_sql(tumbling)) == [(1, 3.0, 3), (1, 4.5, 7), (2, 5.0, 5)]
    sliding = "SELECT k, pu(n) FROM w GROUP BY k, HOP(ts, INTERVAL '1' SECOND, INTERVAL '2' SECOND)"
    found = rows(session().execute_sql(sliding))
    assert found == [(1, 2.0), (1, 3.0), (1, 4.5), (1, 5.0), (2, 5.0), (2, 5.0)]


def test_groups_larger_than_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    environment = session()
    environment.execute_sql(
        "CREATE TABLE g (n BIGINT) WITH ('connector' = 'datagen', 'number-of-rows' = '20000', "
        "'fields.n.kind' = 'sequence', 'fields.n.start' = '0', 'fields.n.end' = '19999')"
    )
    query = "SELECT MOD(n, 30), pu(n) FROM g GROUP BY MOD(n, 30)"
    whole = rows(environment.execute_sql(query))
    monkeypatch.setattr(base.BoundedOperator, "share_bytes", 20_000)
    assert rows(environment.execute_sql(query)) == whole
    assert len(whole) == 30


def test_what_flink_refuses() -> None:
    environment = session()
    with pytest.raises(FlowSqlError, match="Python UDAF and Java/Scala UDAF cannot be used together"):
        environment.explain_sql("SELECT k, pu(n), SUM(n) FROM w GROUP BY k")
    with pytest.raises(FlowSqlError, match="DISTINCT of pu, a function of pandas"):
        environment.explain_sql("SELECT k, pu(DISTINCT n) FROM w GROUP BY k")


def test_the_plan() -> None:
    plan = session().explain_sql("SELECT k, pu(n) FROM w GROUP BY k")
    assert "PythonGroupAggregate(groupBy=[k], select=[k, pu(n) AS EXPR$1])" in plan
