"""An outer join whose padded rows a filter drops is an inner one (or pads one side less)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from flowsql_core.expr import Call, Cast, Expr, InputRef, Literal, conjuncts, input_refs
from flowsql_core.graph.specs import JoinKind
from flowsql_planner.logical.nodes import Filter, Join, Rel
from flowsql_planner.logical.rewrite import make_join, retype_expr

_COMPARISONS: Final = frozenset({"=", "<>", "<", "<=", ">", ">=", "LIKE"})
_STRICT: Final = frozenset({"+", "-", "*", "/", "%", "UPPER", "LOWER", "ABS", "MOD", "CHAR_LENGTH"}) | _COMPARISONS


def simplify_outer_join(rel: Rel) -> Rel | None:
    """Filter(LeftJoin(a, b), p) where p is never TRUE for a NULL b  =>  Filter(InnerJoin(a, b), p).

    It saves the padding and its retractions; what passes the filter is the same.
    """
    match rel:
        case Filter(input=Join() as join, condition=condition):
            width = len(join.left.schema)
            parts = conjuncts(condition)
            no_left_pads = any(_rejects_nulls(part, lambda index: index < width) for part in parts)
            no_right_pads = any(_rejects_nulls(part, lambda index: index >= width) for part in parts)
            kind = _simplified(join.kind, no_left_pads, no_right_pads)
            if kind is join.kind:
                return None
            made = make_join(join, join.left, join.right, join.condition, kind)
            return replace(rel, input=made, condition=retype_expr(condition, made.schema))
    return None


def _simplified(kind: JoinKind, no_left_pads: bool, no_right_pads: bool) -> JoinKind:
    match kind:
        case JoinKind.LEFT if no_right_pads:
            return JoinKind.INNER
        case JoinKind.RIGHT if no_left_pads:
            return JoinKind.INNER
        case JoinKind.FULL if no_left_pads and no_right_pads:
            return JoinKind.INNER
        case JoinKind.FULL if no_left_pads:
            return JoinKind.LEFT
        case JoinKind.FULL if no_right_pads:
            return JoinKind.RIGHT
        case _:
            return kind


def _rejects_nulls(part: Expr, padded: Callable[[int], bool]) -> bool:
    """Whether a condition is not TRUE once the padded columns that it reads are NULL."""
    match part:
        case Call(function=name, args=args) if name in _COMPARISONS:
            return any(_strict(arg) and any(padded(index) for index in input_refs(arg)) for arg in args)
        case Call(function="IS NOT NULL", args=(arg,)):
            return _strict(arg) and any(padded(index) for index in input_refs(arg))
        case Call(function="AND", args=args):
            return any(_rejects_nulls(arg, padded) for arg in args)
        case Call(function="OR", args=args):
            return all(_rejects_nulls(arg, padded) for arg in args)
        case _:
            return False


def _strict(expr: Expr) -> bool:
    """NULL as soon as one operand is NULL."""
    match expr:
        case InputRef() | Literal():
            return True
        case Cast(operand=operand):
            return _strict(operand)
        case Call(function=name, args=args) if name in _STRICT:
            return all(_strict(arg) for arg in args)
        case _:
            return False
