"""What all branches of an OR ask stands beside it, where joins find their keys in it."""

from __future__ import annotations

from dataclasses import replace

from flowsql_core.expr import Call, Expr, conjunction, conjuncts
from flowsql_core.types.logical import BooleanType
from flowsql_planner.logical.nodes import Filter, Join, Rel
from flowsql_planner.optimize.determinism import is_deterministic


def pull_common_conjuncts(rel: Rel) -> Rel | None:
    """Filter(x, (a AND p) OR (a AND q))  =>  Filter(x, a AND (p OR q)); of joins the same.

    Safe everywhere: AND distributes over OR in three-valued logic, too. What draws its answer anew stays where it is.
    Source: Calcite, ``RexUtil.pullFactors``, as Flink's plans show it.
    """
    match rel:
        case Filter(condition=condition) | Join(condition=condition) if condition is not None:
            parts = conjuncts(condition)
            pulled = tuple(part for given in parts for part in _pulled(given))
            made = conjunction(pulled)
            return None if pulled == parts or made is None else replace(rel, condition=made)
    return None


def _pulled(expr: Expr) -> tuple[Expr, ...]:
    """An OR as what its branches share and an OR of the rest; anything else as it is."""
    branches = [conjuncts(branch) for branch in _branches(expr)]
    common = tuple(
        part
        for part in dict.fromkeys(branches[0])
        if is_deterministic(part) and all(part in own for own in branches[1:])
    )
    if len(branches) < 2 or not common:
        return (expr,)
    rests = [conjunction(tuple(part for part in own if part not in common)) for own in branches]
    left = tuple(rest for rest in rests if rest is not None)
    if len(left) < len(rests):
        # A branch asks nothing more.
        return common
    nullable = any(rest.type.nullable for rest in left)
    return (*common, Call("OR", left, BooleanType(nullable=nullable), (), expr.span))


def _branches(expr: Expr) -> tuple[Expr, ...]:
    if isinstance(expr, Call) and expr.function == "OR":
        return tuple(branch for arg in expr.args for branch in _branches(arg))
    return (expr,)
