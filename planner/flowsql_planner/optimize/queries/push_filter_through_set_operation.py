"""Filters above INTERSECT and EXCEPT go to both sides."""

from __future__ import annotations

from dataclasses import replace

from flowsql_core.expr import conjunction, conjuncts
from flowsql_planner.logical.nodes import Filter, Rel, SetOperation
from flowsql_planner.logical.rewrite import retype_expr
from flowsql_planner.optimize.determinism import is_deterministic


def push_filter_through_set_operation(rel: Rel) -> Rel | None:
    """Filter(a INTERSECT b, p)  =>  Filter(a, p) INTERSECT Filter(b, p); EXCEPT alike.

    Equal rows pass or fail together, so that counts of rows that pass stay what they are.
    """
    match rel:
        case Filter(input=SetOperation(left=left, right=right) as operation, condition=condition):
            parts = conjuncts(condition)
            down = conjunction(tuple(part for part in parts if is_deterministic(part)))
            if down is None:
                return None
            made = replace(
                operation,
                left=Filter(left, retype_expr(down, left.schema), rel.span),
                right=Filter(right, retype_expr(down, right.schema), rel.span),
            )
            above = conjunction(tuple(part for part in parts if not is_deterministic(part)))
            return made if above is None else replace(rel, input=made, condition=above)
    return None
