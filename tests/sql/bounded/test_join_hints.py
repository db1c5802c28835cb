"""Hints for joins in batch mode: the plan is the hinted one, the answer is the same at any parallelism."""

from __future__ import annotations

import pytest

from flowsql.table.session.environment import TableEnvironment
from flowsql_core.errors import BindError

JOIN = "SELECT {} a.n, b.m FROM a {} JOIN b ON a.k = b.k AND a.n <> b.m"
HINTS = ("", "BROADCAST(a)", "BROADCAST(b)", "SHUFFLE_HASH(a)", "SHUFFLE_MERGE(b)", "NEST_LOOP(a)", "NEST_LOOP(b)")


def session(parallelism: int) -> TableEnvironment:
    environment = TableEnvironment.create()
    options = {"execution.runtime-mode": "batch", "execution.batch.engine": "local"}
    for key, value in {**options, "parallelism.default": str(parallelism)}.items():
        environment.get_config().set(key, value)
    for name, column, first in (("a", "n", 0), ("b", "m", 7)):
        rows = ", ".join(f"({k % 5 if k % 4 else 'CAST(NULL AS INT)'}, {k})" for k in range(first, first + 20))
        environment.execute_sql(f"CREATE TEMPORARY VIEW {name} AS SELECT * FROM (VALUES {rows}) AS t (k, {column})")
    return environment


def plan(environment: TableEnvironment, query: str) -> list[str]:
    """The join and its exchanges."""
    text = environment.explain_sql(query).partition("== Optimized Physical Plan ==")[2].partition("==")[0]
    lines = [line.lstrip(" :+-|") for line in text.splitlines()]
    return [line for line in lines if "Join(" in line or line.startswith("Exchange")]


@pytest.mark.parametrize(
    ("hint", "kind", "operator", "exchanges"),
    [
        ("", "", "HashJoin", ["hash[EXPR$0]", "hash[EXPR$0]"]),
        ("BROADCAST(a)", "", "HashJoin", ["broadcast"]),
        ("BROADCAST(b)", "LEFT", "HashJoin", ["broadcast"]),
        ("BROADCAST(a)", "LEFT", "HashJoin", ["hash[EXPR$0]", "hash[EXPR$0]"]),
        ("BROADCAST(b)", "FULL", "HashJoin", ["hash[EXPR$0]", "hash[EXPR$0]"]),
        ("SHUFFLE_HASH(a)", "", "HashJoin", ["hash[EXPR$0]", "hash[EXPR$0]"]),
        ("SHUFFLE_MERGE(a)", "FULL", "SortMergeJoin", ["hash[EXPR$0]", "hash[EXPR$0]"]),
        ("NEST_LOOP(b)", "", "NestedLoopJoin", ["broadcast"]),
    ],
)
def test_the_plan_is_the_hinted_one(hint: str, kind: str, operator: str, exchanges: list[str]) -> None:
    join, *rest = plan(session(2), JOIN.format(f"/*+ {hint} */" if hint else "", kind))
    assert join.startswith(f"{operator}(")
    assert rest == [f"Exchange(distribution=[{distribution}])" for distribution in exchanges]
    if hint.startswith("SHUFFLE_HASH(a)"):
        assert "build=[left]" in join
    assert ("isBroadcast=[true]" in join) is (exchanges == ["broadcast"] and operator == "HashJoin")


def test_the_first_hint_counts() -> None:
    join, *_ = plan(session(1), JOIN.format("/*+ SHUFFLE_MERGE(a), BROADCAST(a) */", ""))
    assert join.startswith("SortMergeJoin(")


@pytest.mark.parametrize("kind", ["", "LEFT", "RIGHT", "FULL"])
def test_the_answer_does_not_hang_on_hints_or_parallelism(kind: str) -> None:
    answers = set()
    for parallelism in (1, 3):
        environment = session(parallelism)
        for hint in HINTS:
            query = JOIN.format(f"/*+ {hint} */" if hint else "", kind)
            rows = [tuple(row) for row in environment.execute_sql(query).collect()]
            answers.add(tuple(sorted(rows, key=repr)))
    assert len(answers) == 1
    assert len(answers.pop()) > 20


@pytest.mark.parametrize("kind", ["", "LEFT"])
def test_joins_without_keys(kind: str) -> None:
    query = f"SELECT a.n, b.m FROM a {kind} JOIN b ON a.n > b.m + 10"
    answers = {tuple(sorted(map(tuple, session(p).execute_sql(query).collect()), key=repr)) for p in (1, 3)}
    assert len(answers) == 1


def test_a_hint_of_a_table_that_is_not_there_is_refused() -> None:
    with pytest.raises(BindError, match="cannot match the name of input tables or views: 'c' in 'BROADCAST'"):
        session(1).execute_sql(JOIN.format("/*+ BROADCAST(c) */", ""))
