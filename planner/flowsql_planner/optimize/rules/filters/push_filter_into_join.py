"""Filters above a join go to the side that they speak of, or into the condition of an inner join."""

from __future__ import annotations

from dataclasses import replace

from flowsql_core.expr import Expr, conjunction, conjuncts, input_refs, remap_inputs
from flowsql_core.graph.specs import JoinKind
from flowsql_planner.logical.nodes import Filter, Join, Rel
from flowsql_planner.logical.rewrite import make_join, retype_expr
from flowsql_planner.optimize.determinism import is_deterministic

_KEEPS_LEFT = (JoinKind.INNER, JoinKind.LEFT, JoinKind.SEMI, JoinKind.ANTI)
_KEEPS_RIGHT = (JoinKind.INNER, JoinKind.RIGHT)


def push_filter_into_join(rel: Rel) -> Rel | None:
    """Filter(Join(a, b), p(a) AND q(b) AND r(a, b))  =>  Join(Filter(a, p), Filter(b, q), ON ... AND r).

    A side that the join may pad with NULLs keeps its conditions above. A row that fails its own side's condition can
    only make joined rows that fail it, and retracts them alike.
    """
    match rel:
        case Filter(input=Join() as join, condition=condition):
            width = len(join.left.schema)
            left: list[Expr] = []
            right: list[Expr] = []
            both: list[Expr] = []
            stay: list[Expr] = []
            for part in conjuncts(condition):
                used = input_refs(part)
                if not is_deterministic(part) or not used:
                    stay.append(part)
                elif all(index < width for index in used) and join.kind in _KEEPS_LEFT:
                    left.append(retype_expr(part, join.left.schema))
                elif all(index >= width for index in used) and join.kind in _KEEPS_RIGHT:
                    right.append(retype_expr(remap_inputs(part, lambda index: index - width), join.right.schema))
                elif join.kind is JoinKind.INNER:
                    both.append(part)
                else:
                    stay.append(part)
            if not (left or right or both):
                return None
            on = conjunction((*conjuncts(join.condition), *both))
            made = make_join(join, _filtered(join.left, left), _filtered(join.right, right), on)
            above = conjunction(tuple(stay))
            return made if above is None else replace(rel, input=made, condition=above)
    return None


def _filtered(rel: Rel, parts: list[Expr]) -> Rel:
    condition = conjunction(tuple(parts))
    return rel if condition is None else Filter(rel, condition)
