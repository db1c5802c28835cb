"""Delta joins ask tables by an index instead of keeping rows. No connector has one: forced ones fail."""

from __future__ import annotations

from flowsql_core.errors import PlanError
from flowsql_planner.physical.nodes import JoinNode, Physical


def refuse_forced_delta_joins(tree: Physical) -> Physical:
    """The plan as it is.

    Raises:
        PlanError: it has a join, which Flink, too, would have to plan otherwise than it is told.
    """
    if isinstance(tree, JoinNode):
        raise PlanError(
            "delta-join",
            "The current sql doesn't support to do delta join optimization.",
            tree.span,
            "SET 'table.optimizer.delta-join.strategy' = 'AUTO'",
        )
    for child in tree.inputs:
        refuse_forced_delta_joins(child)
    return tree
