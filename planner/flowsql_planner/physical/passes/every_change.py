"""``needs_every_change``: whether somebody sees each change that leaves a node, or only the table they add up to.

Where nobody does, a stateful operator may emit one net change a key and batch although mini-batches are off.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from flowsql_planner.physical.nodes import Connectors, Physical, walk


def derive_every_change(roots: Sequence[Physical], connectors: Connectors) -> tuple[Physical, ...]:
    """The plans with ``every_change`` set on each node, from the sinks down; shared nodes stay shared.

    A node that several consumers share is observed as soon as one of them observes it.
    """
    observed: dict[int, bool] = {}
    consumers_first = _merged_walk(roots)[::-1]
    for root in roots:
        observed[id(root)] = True
    for node in consumers_first:
        below = node.observes_input(observed[id(node)], connectors)
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
