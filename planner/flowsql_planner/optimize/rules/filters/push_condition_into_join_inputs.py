"""Parts of a join condition that speak of one side only become filters of that side."""

from __future__ import annotations

from flowsql_core.expr import Expr, conjunction, conjuncts, input_refs, remap_inputs
from flowsql_core.graph.specs import JoinKind
from flowsql_planner.logical.nodes import Filter, Join, Rel
from flowsql_planner.logical.rewrite import make_join
from flowsql_planner.optimize.determinism import is_deterministic

_FILTERS_LEFT = (JoinKind.INNER, JoinKind.RIGHT, JoinKind.SEMI)
_FILTERS_RIGHT = (JoinKind.INNER, JoinKind.LEFT, JoinKind.SEMI)


def push_condition_into_join_inputs(rel: Rel) -> Rel | None:
    """Join(a, b, ON p(a) AND q(b) AND r(a, b))  =>  Join(Filter(a, p), Filter(b, q), ON r).

    Only on sides whose unmatched rows are not kept: there a row that fails ON would still be padded. As in Flink's
    plans, the condition of an anti join stays whole.
    """
    if not isinstance(rel, Join) or rel.condition is None:
        return None
    width = len(rel.left.schema)
    left: list[Expr] = []
    right: list[Expr] = []
    stay: list[Expr] = []
    for part in conjuncts(rel.condition):
        used = input_refs(part)
        if not used or not is_deterministic(part):
            stay.append(part)
        elif all(index < width for index in used) and rel.kind in _FILTERS_LEFT:
            left.append(part)
        elif all(index >= width for index in used) and rel.kind in _FILTERS_RIGHT:
            right.append(remap_inputs(part, lambda index: index - width))
        else:
            stay.append(part)
    if not left and not right:
        return None
    on_left, on_right = conjunction(tuple(left)), conjunction(tuple(right))
    return make_join(
        rel,
        rel.left if on_left is None else Filter(rel.left, on_left),
        rel.right if on_right is None else Filter(rel.right, on_right),
        conjunction(tuple(stay)),
    )
