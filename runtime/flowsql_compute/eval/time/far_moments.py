"""Expressions over TIMESTAMP(7..9) and TIMESTAMP_LTZ(7..9) whose values may lie outside of 64-bit nanoseconds.

A column holds such moments in nanoseconds: 1677 to 2262. What an expression makes of a text, of a coarser moment or of
a constant and only looks at (compares, casts on, takes parts of) needs no such column: it is computed as microseconds
and the nanoseconds below them (``moment_parts``). What must be held is an ExecutionError where it lies outside, of
TRY_CAST too: such a moment is none that cannot be cast.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from flowsql_compute.eval.time import moment_parts
from flowsql_compute.functions.registry import find_definition
from flowsql_core.expr import Call, Case, Cast, Expr, Literal, walk
from flowsql_core.types import logical as t
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
_DISTINCT: Final = frozenset({"IS DISTINCT FROM", "IS NOT DISTINCT FROM"})
_ROUNDED: Final = frozenset({"FLOOR", "CEIL", "CEILING"})
#: By the place of the moment among the arguments.
_MOVED: Final = {"+": (0, 1), "-": (0,), "TIMESTAMPADD": (1,)}
#: Functions that look at milliseconds only, or at microseconds.
_COARSE: Final = frozenset({"EXTRACT", "TIMESTAMPDIFF", "-", "IS NULL", "IS NOT NULL", "DATE_FORMAT"})
_LEAST: Final = -(2**63)
_END: Final = 2**63
_NANOS: Final = t.INT
_Parts = tuple[Expr, Expr]


def without_far_moments(expr: Expr) -> Expr:
    """One node, whose operands were seen before, such that moments that are only looked at are held by no column."""
    match expr:
        case Call(function=function, args=(left, right)) if function in _COMPARE:
            compared = _compared_by_range(expr, left, right)
            return _compared(expr) if compared is None else compared
        case Call(function=function) if function in _DISTINCT:
            return _compared(expr)
        case Call(function="IN", args=(operand, *values)) if _is_fine(operand.type) and any(
            map(_may_be_far, expr.args)
        ):
            tests = [without_far_moments(Call("=", (operand, value), expr.type, (), expr.span)) for value in values]
            return tests[0] if len(tests) == 1 else Call("OR", tuple(tests), expr.type, (), expr.span)
        case Call(function=function) if moves_nanoseconds(expr) or (function in _ROUNDED and _is_fine(expr.type)):
            moved = [expr.args[place] for place in _MOVED.get(function, (0,)) if _is_fine(expr.args[place].type)]
            parts = _parts(expr) if moved and _may_be_far(moved[0]) else None
            return expr if parts is None else Call(moment_parts.JOIN, parts, expr.type, (("written", expr),), expr.span)
        case Call(function=function) if function in _COARSE and any(_is_far_moment(arg) for arg in expr.args):
            return _coarsely(expr)
        case Call(function="TYPEOF", args=(moment, *rest)) if _is_far_moment(moment):
            return replace(expr, args=(Literal(None, moment.type), *rest))
        case Cast(operand=operand, type=target) if _is_far_moment(operand) and not _is_fine(target):
            return _cast_on(expr)
    return expr


def may_overflow(source: t.LogicalType, target: t.LogicalType) -> bool:
    """Whether a cast may meet a moment that the target cannot hold, whatever TRY_CAST makes of other failures."""
    return t.is_nested(target) or (_is_fine(target) and not _is_fine(source))


def moves_nanoseconds(expr: Call) -> bool:
    """Whether a call moves a moment of nanoseconds, which may leave what they hold."""
    return expr.function in _MOVED and _is_fine(expr.type)


def _is_fine(type_: t.LogicalType) -> bool:
    match type_:
        case TimestampType(precision=precision) | TimestampLtzType(precision=precision):
            return timestamp_unit(precision) == "ns"
    return False


def _is_far_moment(expr: Expr) -> bool:
    return _is_fine(expr.type) and _may_be_far(expr)


def _may_be_far(expr: Expr) -> bool:
    """Whether a moment of nanoseconds may be one that no column holds; what a column or a function gives never is."""
    match expr:
        case Literal(value=value):
            return value is not None and _is_fine(expr.type) and _far(int(value))
        case Cast(operand=operand):
            return _may_be_far(operand) if _is_fine(operand.type) else True
        case Case(results=results, otherwise=otherwise):
            return any(_may_be_far(result) for result in (*results, otherwise))
        case Call(function="COALESCE", args=args):
            return any(_may_be_far(arg) for arg in args)
        case Call(function=function, args=args) if function in _ROUNDED:
            return _may_be_far(args[0])
        case Call(function=function):
            return function in _MOVED or function == moment_parts.JOIN
    return False


# Comparisons


def _compared_by_range(expr: Call, left: Expr, right: Expr) -> Expr | None:
    """``x < far``  =>  ``CASE WHEN x IS NULL THEN NULL ELSE TRUE END`` where no value of x is as far, and so on."""
    compare = _COMPARE[expr.function]
    first, second = _nanos(left), _nanos(right)
    if first is not None and second is not None and (_far(first) or _far(second)):
        return Literal(compare(first, second), expr.type, expr.span)
    if second is not None and _far(second) and not _may_be_far(left):
        # Every value is nearer than the constant: zero stands for any of them.
        return _unless_null(left, compare(0, second), expr)
    if first is not None and _far(first) and not _may_be_far(right):
        return _unless_null(right, compare(first, 0), expr)
    return None


def _nanos(expr: Expr) -> int | None:
    """The nanoseconds from the epoch of a constant whose type counts nanoseconds; None for anything else."""
    if isinstance(expr, Cast) and isinstance(expr.operand, Literal) and type(expr.operand.type) is type(expr.type):
        constant: Expr = expr.operand
    else:
        constant = expr
    if _is_fine(expr.type) and isinstance(constant, Literal) and constant.value is not None:
        return int(constant.value)
    return None


def _far(nanos: int) -> bool:
    return not _LEAST <= nanos < _END


def _unless_null(operand: Expr, answer: bool, comparison: Call) -> Expr:
    condition = Call("IS NULL", (operand,), BOOLEAN.as_nullable(False), (), comparison.span)
    nothing, told = Literal(None, BOOLEAN), Literal(answer, BOOLEAN)
    return Case((condition,), (nothing,), told, comparison.type, comparison.span)


def _compared(expr: Call) -> Expr:
    left, right = expr.args
    if not (_is_fine(left.type) and _is_fine(right.type) and (_may_be_far(left) or _may_be_far(right))):
        return expr
    first, second = _parts(left), _parts(right)
    if first is None or second is None:
        return expr
    return Call(moment_parts.COMPARE, (*first, *second), expr.type, (("op", expr.function),), expr.span)


# What looks at a moment


def _coarsely(expr: Call) -> Expr:
    """The call over microseconds, where it sees no finer ones."""
    args: list[Expr] = []
    below: Expr | None = None
    for arg in expr.args:
        parts = _parts(arg) if _is_far_moment(arg) else None
        args.append(arg if parts is None else parts[0])
        below = below if parts is None else parts[1]
    if below is None or (expr.function == "DATE_FORMAT" and _shows_nanoseconds(args[1])):
        return expr
    made = replace(expr, args=tuple(args))
    if expr.function == "EXTRACT" and expr.option("unit") == "NANOSECOND":
        return Call(moment_parts.ADD, (made, below), expr.type, (), expr.span)
    return made


def _shows_nanoseconds(pattern: Expr) -> bool:
    """Whether a pattern of Java may have letters that show more than microseconds."""
    if not isinstance(pattern, Literal) or pattern.value is None:
        return True
    text = str(pattern.value)
    return "S" * 7 in text or "n" in text or "N" in text


def _cast_on(expr: Cast) -> Expr:
    parts = _parts(expr.operand)
    if parts is None:
        return expr
    coarse, below = parts
    match expr.type:
        case t.DateTimeType():
            return replace(expr, operand=coarse)
        case t.CharacterType():
            text = t.STRING.as_nullable(coarse.type.nullable)
            digits = _precision(expr.operand.type) - 6
            shown = Call(moment_parts.TEXT, (Cast(coarse, text), below), text, (("digits", digits),), expr.span)
            return replace(expr, operand=shown)
    return expr


# The two parts of a moment


def _precision(type_: t.LogicalType) -> int:
    assert isinstance(type_, TimestampType | TimestampLtzType)
    return type_.precision


def _coarse_type(type_: t.LogicalType) -> t.LogicalType:
    kind = TimestampLtzType if isinstance(type_, TimestampLtzType) else TimestampType
    return kind(precision=6, nullable=type_.nullable)


def _parts(expr: Expr) -> _Parts | None:
    """Microseconds, and the nanoseconds below them; None where an operand would be computed twice, with two answers."""
    type_ = _coarse_type(expr.type)
    match expr:
        case Literal(value=None):
            return Literal(None, type_, expr.span), Literal(0, _NANOS)
        case Literal(value=value):
            below = int(value) % 1000
            return Literal(int(value) - below, type_, expr.span), Literal(below, _NANOS)
        case Call(function=moment_parts.JOIN, args=(coarse, below_part)):
            return coarse, below_part
        case Cast():
            return _cast_parts(expr, type_)
        case Case(results=results, otherwise=otherwise) if _repeats(expr):
            parts = [_parts(result) for result in (*results, otherwise)]
            if any(part is None for part in parts):
                return None
            coarse_parts, below_parts = zip(*[part for part in parts if part is not None], strict=True)
            return (
                replace(expr, results=coarse_parts[:-1], otherwise=coarse_parts[-1], type=type_),
                replace(expr, results=below_parts[:-1], otherwise=below_parts[-1], type=_NANOS),
            )
        case Call(function="COALESCE", args=args) if _repeats(expr):
            parts = [_parts(arg) for arg in args]
            if any(part is None for part in parts):
                return None
            coarse_parts, below_parts = zip(*[part for part in parts if part is not None], strict=True)
            known = tuple(
                Call("IS NOT NULL", (part,), BOOLEAN.as_nullable(False), (), expr.span) for part in coarse_parts[:-1]
            )
            return (
                replace(expr, args=coarse_parts, type=type_),
                Case(known, below_parts[:-1], below_parts[-1], _NANOS, expr.span),
            )
        case Call(function=function, args=(moment, *rest)) if function in _ROUNDED and _is_fine(moment.type):
            inner = _parts(moment)
            return inner and (replace(expr, args=(inner[0], *rest), type=type_), Literal(0, _NANOS))
        case Call(function=function, args=args) if function in _MOVED:
            place = next((place for place in _MOVED[function] if _is_fine(args[place].type)), None)
            inner = None if place is None else _parts(args[place])
            if place is None or inner is None:
                return None
            return replace(expr, args=(*args[:place], inner[0], *args[place + 1 :]), type=type_), inner[1]
    if not _repeats(expr):
        return None
    return Cast(expr, type_, span=expr.span), Call(moment_parts.BELOW, (expr,), _NANOS, (), expr.span)


def _cast_parts(expr: Cast, type_: t.LogicalType) -> _Parts | None:
    operand = expr.operand
    match operand.type:
        case t.CharacterType() if _repeats(operand):
            options = (("precision", _precision(expr.type)),)
            below = Call(moment_parts.BELOW_OF_TEXT, (operand,), _NANOS, options, expr.span)
            return replace(expr, type=type_), below
        case source if _is_fine(source):
            inner = _parts(operand)
            if inner is None:
                return None
            coarse, below_part = inner
            if type(coarse.type) is not type(type_):
                coarse = replace(expr, operand=coarse, type=type_)
            step = 10 ** max(0, 9 - _precision(expr.type))
            if _precision(expr.type) < _precision(source):
                below_part = Call(moment_parts.CUT, (below_part,), _NANOS, (("step", step),), expr.span)
            return coarse, below_part
        case t.DateTimeType():
            return replace(expr, type=type_), Literal(0, _NANOS)
    return None


def _repeats(expr: Expr) -> bool:
    """Whether computing the expression again gives the same again."""
    return all(
        (moment_parts.part_definition(node.function) or find_definition(node)).deterministic
        for node in walk(expr)
        if isinstance(node, Call)
    )
