"""Updates by values that change from call to call, which somebody would have to find again: kept or refused."""

from __future__ import annotations

from dataclasses import replace

from flowsql_planner.physical.nodes import Physical
from flowsql_planner.traits.determinism import NONE, Columns
from flowsql_planner.traits.keys import Keys


def resolve_update_determinism(tree: Physical) -> Physical:
    """The plan, in which lookups keep what they found for whoever takes it back.

    Raises:
        PlanError: a column or condition that an update depends on may be another one when it is computed again.
    """
    return _resolved(tree, NONE)


def _resolved(node: Physical, required: Columns) -> Physical:
    inputs = tuple(
        _resolved(child, _beside_key(wanted, child.upsert_keys()))
        for child, wanted in zip(node.inputs, node.determined(required), strict=True)
    )
    made = node.making_determined(required)
    if all(new is old for new, old in zip(inputs, made.inputs, strict=True)):
        return made
    return replace(made, inputs=inputs)


def _beside_key(required: Columns, keys: Keys) -> Columns:
    """What is asked for beside an upsert key, whose columns are always the same: the key that leaves least."""
    left = [required - key for key in keys]
    return min(left, key=lambda columns: (len(columns), sorted(columns)), default=required)
