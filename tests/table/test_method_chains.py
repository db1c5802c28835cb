"""A chain of methods is bound link by link: each method binds one query, whatever stands before it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from flowsql.table import Table, TableEnvironment
from flowsql.table.expressions import col
from flowsql_planner.bind.query import query as binding

LENGTH = 40


def filtered(table: Table, other: Table) -> Table:
    return table.where(col("n") > 0).select((col("n") + 1).alias("n"), col("s"))


def joined(table: Table, other: Table) -> Table:
    return table.join(other, col("n") == col("m")).select(col("n"), col("s"))


def united(table: Table, other: Table) -> Table:
    return table.union_all(other.select(col("m"), col("t")))


def grouped(table: Table, other: Table) -> Table:
    return table.group_by(col("s")).select(col("n").sum.alias("n"), col("s")).distinct()


def renamed(table: Table, other: Table) -> Table:
    return table.add_columns((col("n") + 1).alias("k")).drop_columns(col("n")).rename_columns(col("k").alias("n"))


@pytest.mark.parametrize("link", [filtered, joined, united, grouped, renamed])
def test_the_length_of_a_chain_costs_each_method_nothing(
    monkeypatch: pytest.MonkeyPatch, link: Callable[[Table, Table], Table]
) -> None:
    environment = TableEnvironment.create()
    other = environment.from_elements([(1, "a")], ["m", "t"])
    table = environment.from_elements([(1, "a")], ["n", "s"])
    bound = 0
    really = binding._bind_select

    def counted(*args: object, **named: object) -> object:
        nonlocal bound
        bound += 1
        return really(*args, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(binding, "_bind_select", counted)
    costs = []
    for _ in range(LENGTH):
        before = bound
        table = link(table, other)
        costs.append(bound - before)
    # The second link is the first that stands over another one.
    assert max(costs[1:]) == costs[1]


def test_a_chain_means_what_it_means_when_it_is_bound_anew() -> None:
    environment = TableEnvironment.create()
    environment.get_config().set("parallelism.default", "1")
    other = environment.from_elements([(2, "a"), (3, "b")], ["m", "t"])
    table = environment.from_elements([(1, "a"), (2, "b")], ["n", "s"])
    for link in (filtered, renamed, filtered, joined, united):
        table = link(table, other)
    wanted = [(str(column.name), str(column.type)) for column in table.get_resolved_schema().get_columns()]
    anew = environment.execute_sql(f"SELECT * FROM {table}")
    assert [(str(column.name), str(column.type)) for column in anew.get_resolved_schema().get_columns()] == wanted
    with anew.collect() as rows, table.execute().collect() as own:
        assert sorted(map(tuple, rows)) == sorted(map(tuple, own))


def test_columns_behind_an_order_keep_their_names() -> None:
    table = TableEnvironment.create().from_elements([(1, 2)], ["n", "m"]).order_by(col("n"))
    table = table.select((col("n") + 1).alias("x"), col("m")).select(col("m"), col("x"), col("x") + 1)
    assert table.get_resolved_schema().get_column_names() == ["m", "x", "_c2"]
    assert table.where(col("x") > 1).get_resolved_schema().get_column_names() == ["m", "x", "_c2"]


def test_expressions_behind_an_order_do_not_grow_without_end() -> None:
    table = TableEnvironment.create().from_elements([(1, 2)], ["n", "m"]).order_by(col("n").desc)
    for _ in range(40):
        # Written into each other these would be 2 ** 40 additions.
        table = table.select((col("n") + col("n")).alias("n"), col("m")).where(col("m") > 0)
    assert sum(1 for _ in table._query.walk()) < 40_000
    assert table.get_resolved_schema().get_column_names() == ["n", "m"]
    # The keys are those of the first order still.
    assert [item.descending for item in table._query.order_by] == [True]
