"""Comparisons with constants of 7 to 9 fractional digits that lie outside of what 64 bits of nanoseconds hold.

No column holds such a moment, so that each value lies on the same side of it: before 2262, or after 1677.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Final

from flowsql_core.expr import Call, Case, Cast, Expr, Literal
from flowsql_core.types.arrow import timestamp_unit
from flowsql_core.types.logical import BOOLEAN, TimestampLtzType, TimestampType

_COMPARE: Final[dict[str, Callable[[int, int], bool]]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_LEAST: Final = -(2**63)
_END: Final = 2**63


def compared_by_range(expr: Expr) -> Expr:
    """``x < far``  =>  ``CASE WHEN x IS NULL THEN NULL ELSE TRUE END``, and so on; anything else as it is."""
    match expr:
        case Call(function=function, args=(left, right)) if function in _COMPARE:
            first, second = _nanos(left), _nanos(right)
            if first is not None and second is not None and (_far(first) or _far(second)):
                return Literal(_COMPARE[function](first, second), expr.type, expr.span)
            if second is not None and _far(second):
                # Every value is nearer than the constant: zero stands for any of them.
                return _unless_null(left, _COMPARE[function](0, second), expr)
            if first is not None and _far(first):
                return _unless_null(right, _COMPARE[function](first, 0), expr)
    return expr


def _nanos(expr: Expr) -> int | None:
    """The nanoseconds from the epoch of a constant whose type counts nanoseconds; None for anything else."""
    if isinstance(expr, Cast) and isinstance(expr.operand, Literal) and type(expr.operand.type) is type(expr.type):
        constant: Expr = expr.operand
    else:
        constant = expr
    match expr.type:
        case TimestampType(precision=precision) | TimestampLtzType(precision=precision):
            if timestamp_unit(precision) == "ns" and isinstance(constant, Literal) and constant.value is not None:
                return int(constant.value)
    return None


def _far(nanos: int) -> bool:
    return not _LEAST <= nanos < _END


def _unless_null(operand: Expr, answer: bool, comparison: Call) -> Expr:
    condition = Call("IS NULL", (operand,), BOOLEAN.as_nullable(False), (), comparison.span)
    nothing, told = Literal(None, BOOLEAN), Literal(answer, BOOLEAN)
    return Case((condition,), (nothing,), told, comparison.type, comparison.span)
