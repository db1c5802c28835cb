"""Between which numbers the values of a column lie, as far as a plan tells.

Source: Flink's ``FlinkRelMdColumnInterval``. What it does not follow is not followed here either (casts, functions,
CASE below a filter on the column that it hands on): strategies of rankings hang on it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import reduce
from typing import Final

from flowsql_core.expr import AggregateCall, Call, Case, Cast, Expr, InputRef, Literal
from flowsql_core.types.logical import NumericType

_REVERSED: Final = {"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


@dataclass(frozen=True)
class Interval:
    """Bounds, None where there is none; ``empty``: no value at all but NULL."""

    lower: Decimal | None = None
    upper: Decimal | None = None
    empty: bool = False

    @property
    def never_negative(self) -> bool:
        """Whether a sum of such values never falls."""
        return self.lower is not None and self.lower >= 0

    @property
    def never_positive(self) -> bool:
        """Whether a sum of such values never rises."""
        return self.lower is None and self.upper is not None and self.upper <= 0


#: None where nothing is known.
Bounds = Interval | None
#: The bounds of a column of an input.
ColumnBounds = Callable[[int], Bounds]

EMPTY: Final = Interval(empty=True)


def spanning(bounds: Iterable[Bounds]) -> Bounds:
    """The bounds of values of which each lies within one of these."""
    found: Bounds = EMPTY
    for one in bounds:
        found = _union(found, one)
    return found


def of_projected(expr: Expr, condition: Expr | None, below: ColumnBounds) -> Bounds:
    """The bounds of an expression over rows that fulfil a condition."""
    if isinstance(expr, InputRef):
        return filtered(expr.index, condition, below(expr.index))
    return _of_expression(expr, below)


def filtered(index: int, condition: Expr | None, bounds: Bounds) -> Bounds:
    """The bounds of a column where a condition holds."""
    known = None if condition is None else _of_condition(index, condition)
    return bounds if known is None else _intersection(bounds or Interval(), known)


def asserted(expr: Expr) -> Expr:
    """The condition within ``condition IS TRUE``, as FILTER of an aggregate is written."""
    match expr:
        case Call(function="IS TRUE", args=(inner,)):
            return inner
        case _:
            return expr


def of_sum(bounds: Bounds) -> Bounds:
    """The bounds of a sum of values."""
    if bounds is None or bounds.empty:
        return None
    if bounds.never_negative:
        return Interval(lower=bounds.lower)
    return Interval(upper=bounds.upper) if bounds.never_positive else None


def of_aggregate(column: int, grouping: Sequence[int], calls: Sequence[AggregateCall], below: ColumnBounds) -> Bounds:
    """The bounds of a column of an aggregate."""
    if column < len(grouping):
        return below(grouping[column])
    call = calls[column - len(grouping)]
    match call.function:
        case "COUNT":
            return Interval(lower=Decimal(0))
        case "SUM":
            return of_sum(below(call.args[0].index))
        case _:
            return None


def _union(one: Bounds, other: Bounds) -> Bounds:
    if one is None or other is None:
        return None
    if one.empty or other.empty:
        return other if one.empty else one
    lower = None if one.lower is None or other.lower is None else min(one.lower, other.lower)
    upper = None if one.upper is None or other.upper is None else max(one.upper, other.upper)
    return _bounded(lower, upper)


def _intersection(one: Interval, other: Interval) -> Interval:
    if one.empty or other.empty:
        return EMPTY
    lowers = [bound for bound in (one.lower, other.lower) if bound is not None]
    uppers = [bound for bound in (one.upper, other.upper) if bound is not None]
    lower, upper = max(lowers, default=None), min(uppers, default=None)
    return EMPTY if lower is not None and upper is not None and lower > upper else Interval(lower, upper)


def _bounded(lower: Decimal | None, upper: Decimal | None) -> Bounds:
    return None if lower is None and upper is None else Interval(lower, upper)


def _of_expression(expr: Expr, below: ColumnBounds) -> Bounds:
    match expr:
        case InputRef(index=index):
            return below(index)
        case Literal(value=None) | Cast(operand=Literal(value=None)):
            return EMPTY
        case Literal():
            value = _number(expr)
            return None if value is None else Interval(value, value)
        case Cast(implicit=True, operand=Literal() as operand):
            return _of_expression(operand, below)
        case Case(results=results, otherwise=otherwise, is_if=False):
            return spanning(_of_expression(result, below) for result in (*results, otherwise))
        case Call(function=("+" | "-" | "*") as name, args=(left, right)):
            return _of_arithmetic(name, _of_expression(left, below), _of_expression(right, below))
        case _:
            return None


def _of_arithmetic(name: str, left: Bounds, right: Bounds) -> Bounds:
    if left is None or right is None or left.empty or right.empty:
        return None
    if name == "*":
        corners = [_times(one, other) for one in (left.lower, left.upper) for other in (right.lower, right.upper)]
        known = [corner for corner in corners if corner is not None]
        return Interval(min(known), max(known)) if len(known) == len(corners) else None
    if name == "-":
        right = Interval(_negative(right.upper), _negative(right.lower))
    return _bounded(_plus(left.lower, right.lower), _plus(left.upper, right.upper))


def _times(one: Decimal | None, other: Decimal | None) -> Decimal | None:
    return None if one is None or other is None else one * other


def _plus(one: Decimal | None, other: Decimal | None) -> Decimal | None:
    return None if one is None or other is None else one + other


def _negative(value: Decimal | None) -> Decimal | None:
    return None if value is None else -value


def _of_condition(index: int, condition: Expr) -> Bounds:
    """What a condition says of a column; None for nothing, also where it says more of others than of this one."""
    match condition:
        case Call(function="AND", args=parts):
            known = [bounds for bounds in (_of_condition(index, part) for part in parts) if bounds is not None]
            return reduce(_intersection, known) if known else None
        case Call(function="OR", args=parts):
            return spanning(_of_condition(index, part) for part in parts)
        case Call(function="IN", args=(operand, *values)) if _is_column(operand, index):
            return spanning(_of_expression(value, _unknown) for value in values)
        case Call(function="BETWEEN", args=(operand, low, high)) if _is_column(operand, index):
            lower, upper = _number(low), _number(high)
            return None if lower is None or upper is None else Interval(lower, upper)
        case Call(function=name, args=(left, right)) if name in _REVERSED:
            if _is_column(left, index):
                return _compared(name, _number(right))
            return _compared(_REVERSED[name], _number(left)) if _is_column(right, index) else None
        case _:
            return None


def _unknown(index: int) -> Bounds:
    del index
    return None


def _compared(name: str, value: Decimal | None) -> Bounds:
    if value is None:
        return None
    return Interval(None if name in ("<", "<=") else value, None if name in (">", ">=") else value)


def _is_column(expr: Expr, index: int) -> bool:
    if isinstance(expr, Cast) and expr.implicit:
        expr = expr.operand
    return isinstance(expr, InputRef) and expr.index == index


def _number(expr: Expr) -> Decimal | None:
    match expr:
        case Cast(implicit=True, operand=Literal() as operand):
            return _number(operand)
        case Literal(value=bool()):
            return None
        case Literal(value=int() | float() | Decimal() as value, type=NumericType()):
            number = Decimal(str(value))
            return number if number.is_finite() else None
        case _:
            return None
