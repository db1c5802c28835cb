"""Sorting or hashing of groups: Flink's choice by accumulators, ``table.exec.disabled-operators``, equal answers."""

from __future__ import annotations

import pytest

from flowsql.table.session.environment import TableEnvironment
from flowsql_core.errors import FlowSqlError

ROWS = ", ".join(f"({k % 7 if k % 5 else 'CAST(NULL AS INT)'}, {k * 37 % 11}, 't{k % 3}')" for k in range(60))


def session(disabled: str = "", parallelism: str = "1") -> TableEnvironment:
    environment = TableEnvironment.create()
    options = {"execution.runtime-mode": "batch", "execution.batch.engine": "local"}
    for key, value in {
        **options,
        "parallelism.default": parallelism,
        "table.exec.disabled-operators": disabled,
    }.items():
        environment.get_config().set(key, value)
    environment.execute_sql(f"CREATE TEMPORARY VIEW v AS SELECT * FROM (VALUES {ROWS}) AS t (k, n, s)")
    return environment


@pytest.mark.parametrize(
    ("query", "disabled", "operator"),
    [
        ("SELECT k, SUM(n), MIN(n) FROM v GROUP BY k", "", "HashAggregate"),
        ("SELECT k, SUM(n) FROM v GROUP BY k", "HashAgg", "SortAggregate"),
        ("SELECT SUM(n) FROM v", "HashAgg", "SortAggregate"),
        ("SELECT k, MAX(s) FROM v GROUP BY k", "", "SortAggregate"),
        ("SELECT k, LISTAGG(s) FROM v GROUP BY k", "", "SortAggregate"),
        ("SELECT k, COLLECT(n) FROM v GROUP BY k", "", "SortAggregate"),
        ("SELECT k, AVG(n) FROM v GROUP BY k", "SortAgg", "HashAggregate"),
        ("SELECT DISTINCT s FROM v", "HashAgg", "SortAggregate"),
    ],
)
def test_the_plan_says_how_groups_are_made(query: str, disabled: str, operator: str) -> None:
    plan = session(disabled).explain_sql(query).partition("== Optimized Physical Plan ==")[2]
    assert f"{operator}(isMerge=[true]" in plan.partition("==")[0]


@pytest.mark.parametrize("disabled", ["SortAgg", "HashAgg,SortAgg"])
def test_an_aggregate_needs_an_operator(disabled: str) -> None:
    with pytest.raises(FlowSqlError, match="an aggregate has no operator"):
        session(disabled).explain_sql("SELECT k, MAX(s) FROM v GROUP BY k")


def test_another_name_is_refused() -> None:
    with pytest.raises(FlowSqlError, match=r"Could not parse value 'Nothing' for key"):
        session("Nothing").explain_sql("SELECT k, MAX(n) FROM v GROUP BY k")


@pytest.mark.parametrize(
    "query",
    [
        "SELECT k, s, SUM(n), COUNT(DISTINCT n), MIN(n) FROM v GROUP BY k, s",
        "SELECT s, COUNT(*), AVG(n) FROM v WHERE n > 100 GROUP BY s",
        "SELECT COUNT(*), SUM(n) FROM v WHERE n > 100",
        "SELECT SUM(n), COUNT(k) FROM v",
    ],
)
def test_sorting_answers_as_hashing_does(query: str) -> None:
    answers = {
        tuple(sorted(map(tuple, session(disabled, parallelism).execute_sql(query).collect()), key=repr))
        for disabled in ("", "HashAgg")
        for parallelism in ("1", "3")
    }
    assert len(answers) == 1
