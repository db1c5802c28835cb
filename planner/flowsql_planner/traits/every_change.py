"""``needs_every_change``: whether somebody sees each change that leaves a node, or only the table they add up to.

Where nobody does, a stateful operator may emit one net change a key and batch although mini-batches are off.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from flowsql_connectors.datastream import IDENTIFIER as STREAM_CONNECTOR
from flowsql_planner.physical.aggregate_functions import order_sensitive
from flowsql_planner.physical.nodes import (
    GroupAggregate,
    Limit,
    Physical,
    SinkNode,
    SortLimit,
    WindowAggregate,
    walk,
)


def derive_every_change(roots: Sequence[Physical]) -> tuple[Physical, ...]:
    """The plans with ``every_change`` set on each node, from the sinks down; shared nodes stay shared.

    A node that several consumers share is observed as soon as one of them observes it.
    """
    observed: dict[int, bool] = {}
    consumers_first = _merged_walk(roots)[::-1]
    for root in roots:
        observed[id(root)] = True
    for node in consumers_first:
        below = _observes_input(node, observed[id(node)])
        for child in node.inputs:
            observed[id(child)] = observed.get(id(child), False) or below
    made: dict[int, Physical] = {}

    def rebuilt(node: Physical) -> Physical:
        if id(node) not in made:
            inputs = tuple(rebuilt(child) for child in node.inputs)
            made[id(node)] = replace(node, inputs=inputs, every_change=observed[id(node)])
        return made[id(node)]

    return tuple(rebuilt(root) for root in roots)


def _merged_walk(roots: Sequence[Physical]) -> list[Physical]:
    """All nodes of all plans, inputs before consumers, each once."""
    seen: set[int] = set()
    order: list[Physical] = []
    for root in roots:
        for node in walk(root):
            if id(node) not in seen:
                seen.add(id(node))
                order.append(node)
    return order


def _observes_input(node: Physical, observed: bool) -> bool:
    match node:
        case SinkNode(table=table):
            # A sink that takes upserts keeps a table; one that asks for -U, a collected answer and a stream of a
            # program show each change.
            mode = node.inputs[0].mode
            return table is None or mode is None or not mode.upsert or table.option("connector") == STREAM_CONNECTOR
        case WindowAggregate(calls=calls):
            # One final result a window hides how it came about, unless a function tells the order of its rows.
            return any(order_sensitive(call) for call in calls) and not _insert_only(node.inputs[0])
        case GroupAggregate(calls=calls):
            sensitive = any(order_sensitive(call) for call in calls) and not _insert_only(node.inputs[0])
            return observed or sensitive
        case Limit() | SortLimit():
            # Which rows come first is an order of changes.
            return True
        case _:
            return observed


def _insert_only(node: Physical) -> bool:
    return node.mode is not None and node.mode.insert_only
