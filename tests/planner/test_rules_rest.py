"""The rules come to rest, whatever joins and predicates they are given."""

from __future__ import annotations

import functools
from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flowsql_planner.bind import operations as op
from flowsql_planner.logical.nodes import Filter, Rel, inputs
from flowsql_planner.physical.context import PlanContext
from flowsql_planner.planner import Planner
from tests.planner.bind.bind_script import Session

_TABLES = "".join(
    f"CREATE TABLE {name} (i INT, k BIGINT, s STRING) WITH ('connector' = 'datagen', 'number-of-rows' = '1');\n"
    for name in ("a", "b", "c")
)
_COLUMNS = ("i", "k")
_SOURCES: tuple[Callable[[str], str], ...] = (
    lambda table: table,
    lambda table: f"(SELECT i, k FROM {table} WHERE k < 9)",
    lambda table: f"(SELECT i, COUNT(*) AS k FROM {table} GROUP BY i)",
    lambda table: f"(SELECT i + 1 AS i, k FROM {table})",
    lambda table: f"(SELECT i, k FROM {table} UNION ALL SELECT i, k FROM a)",
    lambda table: f"(SELECT x.i, y.k FROM {table} x JOIN b y ON x.k = y.k)",
    lambda table: f"(SELECT x.i, y.k FROM {table} x LEFT JOIN b y ON x.i = y.i AND y.k > 2)",
)


@functools.cache
def session() -> Session:
    made = Session()
    for _ in made.run(_TABLES):
        pass
    return made


@st.composite
def queries(draw: st.DrawFn) -> str:
    """Two to five tables or subqueries, joined one after another, with conditions on keys, and a WHERE."""
    names = [f"t{place}" for place in range(draw(st.integers(2, 5)))]

    def text(pair: tuple[str, str]) -> str:
        return ".".join(pair)

    def predicate(known: list[str]) -> str:
        one = text(draw(st.tuples(st.sampled_from(known), st.sampled_from(_COLUMNS))))
        other = text(draw(st.tuples(st.sampled_from(known), st.sampled_from(_COLUMNS))))
        number = draw(st.integers(0, 3))
        return draw(
            st.sampled_from(
                (
                    f"{one} = {other}",
                    f"{one} > {number}",
                    f"{one} = {number}",
                    f"({one} = {number} OR {one} > 5)",
                    f"{one} IN (1, 2, {number})",
                    f"{one} + {other} > {number}",
                    f"{one} IS NOT NULL",
                    f"{one} < {other}",
                )
            )
        )

    from_ = ""
    for place, name in enumerate(names):
        source = draw(st.sampled_from(_SOURCES))(draw(st.sampled_from("abc")))
        if not place:
            from_ = f"{source} AS {name}"
            continue
        word = draw(st.sampled_from(("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN")))
        before = text((draw(st.sampled_from(names[:place])), draw(st.sampled_from(_COLUMNS))))
        on = [f"{before} = {name}.{draw(st.sampled_from(_COLUMNS))}"]
        on += [predicate(names[: place + 1]) for _ in range(draw(st.integers(0, 2)))]
        from_ += f" {word} {source} AS {name} ON {' AND '.join(on)}"
    wanted = text(draw(st.tuples(st.sampled_from(names), st.sampled_from(_COLUMNS))))
    where = " AND ".join(predicate(names) for _ in range(draw(st.integers(0, 4)))) or "TRUE"
    return f"SELECT {wanted} FROM {from_} WHERE {where}"


def optimized(sql: str) -> Rel:
    operation = session().last(sql)
    assert isinstance(operation, op.Query)
    config = session().config
    return Planner(config).optimized(operation.rel, PlanContext(config))


@given(queries())
def test_any_joins_and_predicates_rest(sql: str) -> None:
    optimized(sql)


def filters(rel: Rel) -> int:
    """How many filters a plan has."""
    count, waiting = 0, [rel]
    while waiting:
        node = waiting.pop()
        count += isinstance(node, Filter)
        waiting += inputs(node)
    return count


def test_predicates_of_a_chain_of_joins_travel_once() -> None:
    plan = optimized("SELECT u.i FROM a u JOIN b o ON u.k = o.k JOIN c p ON o.k = p.k WHERE o.k > 100 AND p.k > 100")
    assert filters(plan) == 3


@pytest.mark.parametrize("known", [0, 30, 59])
def test_long_chains_rest(known: int) -> None:
    names = [f"t{place}" for place in range(60)]
    joins = " ".join(f"JOIN b {name} ON {before}.k = {name}.k" for before, name in pairwise(names))
    plan = optimized(f"SELECT t0.i FROM a t0 {joins} WHERE t{known}.k = 7")
    assert filters(plan) == 60
