"""How rows travel between two operators: which partitioning, and why."""

from __future__ import annotations

from flowsql_core.errors import PlanError
from flowsql_core.graph.job import FORWARD, Partitioning, ShipStrategy
from flowsql_planner.physical.nodes import Exchange, Physical, SinkNode, TableSourceScan
from flowsql_planner.traits.keys import smallest

GLOBAL = Partitioning(ShipStrategy.GLOBAL)


def of_exchange(node: Exchange) -> Partitioning:
    """A planned exchange: by key, all rows to the first subtask, or to every one."""
    if node.broadcast:
        return Partitioning(ShipStrategy.BROADCAST)
    return Partitioning(ShipStrategy.HASH, node.keys) if node.keys else GLOBAL


def between(producer: Physical, consumer: Physical, from_parallelism: int, to_parallelism: int) -> Partitioning:
    """No exchange was planned: forward, unless the parallelism changes.

    Changes of one row must stay in order, so an updating changelog is then split by a key of its rows.

    Raises:
        PlanError: an updating changelog without a key would be torn apart.
    """
    if from_parallelism == to_parallelism:
        return FORWARD
    if to_parallelism == 1:
        return GLOBAL
    if not producer.retracts:
        return Partitioning(ShipStrategy.REBALANCE)
    own = consumer.primary_key() if isinstance(consumer, SinkNode) else ()
    key = own or smallest(producer.upsert_keys())
    if key:
        return Partitioning(ShipStrategy.HASH, key)
    what = "source" if isinstance(producer, TableSourceScan) else "sink"
    raise PlanError(
        "parallelism-tears-changelog",
        f"Configured parallelism {to_parallelism} of the {what}'s consumer differs from {from_parallelism}, and the "
        f"changelog {producer.mode} has no key to split it by.",
        consumer.span,
        "declare a PRIMARY KEY or give both the same parallelism",
    )
