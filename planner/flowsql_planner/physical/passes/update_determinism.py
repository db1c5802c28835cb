"""Updates by values that change from call to call, which somebody would have to find again: refused, as in Flink."""

from __future__ import annotations

from flowsql_planner.physical.nodes import Physical
from flowsql_planner.traits.determinism import NONE, Columns


def check_update_determinism(tree: Physical) -> Physical:
    """The plan as it is.

    Raises:
        PlanError: a column or condition that an update depends on may be another one when it is computed again.
        NotSupportedYetError: Flink would keep what a lookup found.
    """
    _check(tree, NONE)
    return tree


def _check(node: Physical, required: Columns) -> None:
    for child, wanted in zip(node.inputs, node.determined(required), strict=True):
        _check(child, wanted)
