"""Whom an element belongs to: copies without object reuse, shared objects with it."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from flowsql.common.row import Row
from flowsql.datastream.plan.custom_partition import custom_assigner
from flowsql_core.batch import ChangelogBatch, LateColumns
from flowsql_core.errors import ExecutionError
from flowsql_core.graph import job as g
from flowsql_core.graph import stream_specs as ss
from flowsql_core.row import RowKind
from flowsql_runtime.stream.copies import copied, copied_batch
from flowsql_runtime.stream.emitter import object_column
from flowsql_runtime.testing.cut import run_whole
from flowsql_runtime.testing.harness import OperatorHarness

from .streams import collect, edge, graph, objects, values_of, vertex


@pytest.mark.parametrize(
    "value", [None, 1, "x", 1.5, b"x", Decimal("1.0"), dt.date(2024, 1, 1), (1, "x"), (), True, range(3)]
)
def test_what_cannot_change_is_not_copied(value: Any) -> None:
    assert copied(value) is value


@pytest.mark.parametrize(
    "value", [[1, 2], {"a": 1}, {1, 2}, [[1], [2]], {"a": [1]}, Row(1, "x"), Row(a=[1]), bytearray(b"x")]
)
def test_what_can_change_is_copied(value: Any) -> None:
    found = copied(value)
    assert found == value
    assert found is not value


def test_a_tuple_is_copied_where_something_in_it_can_change() -> None:
    inner = [1]
    found = copied((1, inner))
    assert found == (1, [1])
    assert found[1] is not inner


def test_a_copied_row_keeps_kind_and_names() -> None:
    row = Row.of_kind(RowKind.DELETE, a=1, b=[2])
    found = copied(row)
    assert (found.get_row_kind(), found.as_dict()) == (RowKind.DELETE, {"a": 1, "b": [2]})
    assert found.b is not row.b


def test_an_object_that_refuses_says_so() -> None:
    with pytest.raises(ExecutionError, match="an element of type generator cannot be copied"):
        copied(number for number in range(3))


def test_late_columns_stay_late_but_for_objects() -> None:
    given = [[1], [2], [3]]
    late = LateColumns.of((object_column(given), object_column(["a", "b", "c"])), np.array([2, 0]))
    batch = ChangelogBatch(late, 2)
    assert batch.holds_objects
    found = copied_batch(batch)
    assert found.columns[0].to_pylist() == [[3], [1]]
    assert found.columns[0].values[0] is not given[2]


# -- jobs


def append(value: list[Any]) -> list[Any]:
    value.append("changed")
    return value


def branches(reuse: bool, chained: bool, strategy: g.ShipStrategy = g.ShipStrategy.FORWARD) -> dict[str, list[Any]]:
    """One source, two consumers that both change what they get."""
    given = [[0], [1]]
    resources = {"in": given, "append": append, "itself": lambda value: value}
    change = ss.RowFunctionSpec("append", ss.RowCall.MAP)
    first, second = vertex(1, ss.CollectionSourceSpec("in"), change, collect("one")), vertex(2, change, collect("two"))
    if chained:
        nodes = (*first.operators, *second.operators)
        links = (g.ChainEdge(100, 101), g.ChainEdge(101, 102), g.ChainEdge(100, 200), g.ChainEdge(200, 201))
        job = graph([g.JobVertex(1, "v1", nodes, links, 1)], [], resources)
    else:
        source, third = vertex(3, ss.CollectionSourceSpec("in")), vertex(4, change, collect("one"))
        parallel = vertex(2, change, collect("two"), parallelism=2) if strategy is g.ShipStrategy.BROADCAST else second
        edges = [edge(source, third, strategy=g.ShipStrategy.FORWARD), edge(source, parallel, strategy=strategy)]
        job = graph([source, third, parallel], edges, resources)
    configuration = (*job.configuration, ("pipeline.object-reuse", str(reuse).lower()))
    found = run_whole(g.JobGraph(job.name, job.vertices, job.edges, configuration, job.resources))
    assert reuse or given == [[0], [1]], "the program's own list stays as it was"
    return {name: [value for _, value in rows] for name, rows in found.items()}


@pytest.mark.parametrize("chained", [True, False])
def test_two_consumers_do_not_see_each_others_changes(chained: bool) -> None:
    changed = [[0, "changed"], [1, "changed"]]
    assert branches(False, chained) == {"one": changed, "two": changed}


def test_with_object_reuse_a_chain_shares_objects() -> None:
    twice = [[0, "changed", "changed"], [1, "changed", "changed"]]
    assert branches(True, True) == {"one": twice, "two": twice}


def test_broadcast_elements_belong_to_each_receiver() -> None:
    found = branches(False, False, g.ShipStrategy.BROADCAST)
    assert sorted(found["two"]) == [[0, "changed"], [0, "changed"], [1, "changed"], [1, "changed"]]


@pytest.mark.parametrize("reuse", [False, True])
def test_object_reuse_hands_results_on_without_copies(reuse: bool) -> None:
    buffer: list[Any] = []

    def fill(value: Any) -> list[Any]:
        buffer.append(value)
        return [buffer]

    harness = OperatorHarness(
        ss.RowFunctionSpec("f", ss.RowCall.FLAT_MAP),
        parameters={"pipeline.object-reuse": str(reuse).lower()},
        resources={"f": fill},
    )
    harness.batch(objects([1, 2]))
    assert values_of(harness.batches) == ([[1, 2], [1, 2]] if reuse else [[1], [1, 2]])


def test_a_program_partitions_by_its_own_rule() -> None:
    partition = custom_assigner(lambda key, channels: key % channels, lambda value: value[0])
    assert partition(objects([(5, "a"), (6, "b"), (7, "c")]), 2).tolist() == [1, 0, 1]
