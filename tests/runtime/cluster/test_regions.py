"""Which tasks start again together."""

from __future__ import annotations

from collections.abc import Collection

import pytest

from flowsql_core.graph.job import JobGraph, ResultPartitionType, ShipStrategy
from flowsql_runtime.cluster.regions import Connection, Regions
from flowsql_runtime.task.task import TaskKey

from ..graphs import collect, edge, graph, values, vertex

BLOCKING = ResultPartitionType.BLOCKING


def line(strategy: ShipStrategy, senders: int, consumers: int) -> JobGraph:
    a, b = vertex(1, values([(1, "")]), parallelism=senders), vertex(2, collect(), parallelism=consumers)
    return graph([a, b], [edge(a, b, strategy)])


def together(regions: Regions) -> set[frozenset[TaskKey]]:
    return {regions.restarted_with(task, lambda connection: False) for task in regions.all}


@pytest.mark.parametrize(
    ("strategy", "senders", "consumers", "wanted"),
    [
        (ShipStrategy.FORWARD, 3, 3, 3),
        (ShipStrategy.RESCALE, 2, 4, 2),
        (ShipStrategy.RESCALE, 4, 2, 2),
        (ShipStrategy.RESCALE, 2, 3, 2),
        (ShipStrategy.RESCALE, 3, 2, 2),
        (ShipStrategy.HASH, 3, 3, 1),
        (ShipStrategy.REBALANCE, 2, 3, 1),
        (ShipStrategy.BROADCAST, 2, 2, 1),
        (ShipStrategy.GLOBAL, 3, 3, 1),
    ],
)
def test_a_region_is_what_channels_connect(strategy: ShipStrategy, senders: int, consumers: int, wanted: int) -> None:
    regions = Regions(line(strategy, senders, consumers), frozenset())
    assert len(regions) == wanted
    found = together(regions)
    assert len(found) == wanted
    assert sum(map(len, found)) == len(regions.all) == senders + consumers


def test_pipelines_that_share_nothing_are_regions() -> None:
    a, b = vertex(1, values([(1, "")]), collect()), vertex(2, values([(2, "")]), collect())
    assert together(Regions(graph([a, b]), frozenset())) == {frozenset({(1, 0)}), frozenset({(2, 0)})}


@pytest.mark.parametrize(
    ("failed", "there", "wanted"),
    [
        # What comes after a region that starts again starts again, too.
        (1, (), {1, 2, 3}),
        # What a region needs is made again, unless it is there.
        (2, (), {1, 2, 3}),
        (2, (1,), {2, 3}),
        (3, (1,), {1, 2, 3} - {1}),
        (3, (1, 2), {3}),
        (3, (2,), {3}),
    ],
)
def test_blocking_results_cut(failed: int, there: Collection[int], wanted: set[int]) -> None:
    one, two, three = vertex(1, values([(1, "")])), vertex(2, collect()), vertex(3, collect())
    edges = [edge(one, two, partition_type=BLOCKING), edge(two, three, partition_type=BLOCKING)]
    regions = Regions(graph([one, two, three], edges), frozenset({0, 1}))

    def intact(connection: Connection) -> bool:
        return connection.sender[0] in there

    assert len(regions) == 3
    assert {task for task, _ in regions.restarted_with((failed, 0), intact)} == wanted
