"""What runs in one operator although Flink's plan cuts it, in the form that suits one operator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from flowsql_planner.physical.nodes import IncrementalGroupAggregate, Physical


def run_together(roots: Sequence[Physical], parallelism: int) -> list[Physical]:
    """The plan to be translated; nodes that several consumers share stay shared, and nodes that do not change the same.

    EXPLAIN shows the plan before, and says what runs inside of what.
    """
    done: dict[int, Physical] = {}

    def visit(node: Physical) -> Physical:
        if id(node) not in done:
            inputs = tuple(visit(child) for child in node.inputs)
            made = node
            if any(new is not old for new, old in zip(inputs, node.inputs, strict=True)):
                made = replace(node, inputs=inputs)
            if isinstance(made, IncrementalGroupAggregate) and not made.runs_in_phases(parallelism):
                made = made.together()
            done[id(node)] = made
        return done[id(node)]

    return [visit(root) for root in roots]
