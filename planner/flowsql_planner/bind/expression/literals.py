"""Literals as written to typed constants in Flink's types: ``1`` is INT NOT NULL, ``'ab'`` is CHAR(2) NOT NULL."""

from __future__ import annotations

import datetime
import math
import re
from decimal import Decimal
from typing import assert_never

from flowsql_compute.functions.registry import resolve_cast
from flowsql_core.errors import BindError
from flowsql_core.expr import Expr, Literal
from flowsql_core.span import Span
from flowsql_core.types import logical as t
from flowsql_grammar import ast
from flowsql_planner.bind.data_types import MONTH_INTERVAL, SECOND_INTERVAL, is_year_month

_INT = t.IntType(nullable=False)
_BIGINT = t.BigIntType(nullable=False)
_INT_RANGE = range(-(2**31), 2**31)
_BIGINT_RANGE = range(-(2**63), 2**63)
_EPOCH_DAY = datetime.date(1970, 1, 1).toordinal()
_UNIT_MS = {
    ast.TimeUnit.WEEK: 604_800_000,
    ast.TimeUnit.DAY: 86_400_000,
    ast.TimeUnit.HOUR: 3_600_000,
    ast.TimeUnit.MINUTE: 60_000,
    ast.TimeUnit.SECOND: 1000,
}
_UNIT_MONTHS = {ast.TimeUnit.YEAR: 12, ast.TimeUnit.QUARTER: 3, ast.TimeUnit.MONTH: 1}
_LEADING_LIMIT_DIGITS = 2


def bind_literal(node: ast.Literal) -> Literal:
    """A typed constant."""
    span = node.span
    match node:
        case ast.NumberLiteral():
            return bind_number(node, False, span)
        case ast.StringLiteral(value):
            return Literal(value, t.CharType(length=utf16_length(value), nullable=False), span)
        case ast.BinaryLiteral(data):
            return Literal(data, t.BinaryType(length=len(data), nullable=False), span)
        case ast.BooleanLiteral(truth):
            return Literal(truth, t.BooleanType(nullable=truth is None), span)
        case ast.NullLiteral():
            return Literal(None, t.NULL, span)
        case ast.DateLiteral(text):
            return Literal(_days(text), t.DateType(nullable=False), span)
        case ast.TimeLiteral(text):
            ns, digits = _nanos_of_day(text)
            return Literal(ns // 1_000_000, t.TimeType(precision=min(digits, 3), nullable=False), span)
        case ast.TimestampLiteral(text, local):
            return _timestamp(text, local, span)
        case ast.IntervalLiteral():
            return _interval(node)
        case _:
            assert_never(node)


def utf16_length(text: str) -> int:
    """Characters as Flink counts them for a literal's type: UTF-16 units."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2 if not text.isascii() else len(text)


def bind_number(node: ast.NumberLiteral, negative: bool, span: Span) -> Literal:
    """The smallest of INT and BIGINT, a DECIMAL of the digits as written, or a DOUBLE; ``negative``: after a minus.

    Raises:
        BindError: the digits do not fit into a BIGINT, or the exponent into a DOUBLE.
    """
    sign = -1 if negative else 1
    if node.is_approximate:
        value = sign * float(node.text)
        if math.isinf(value):
            written = f"{'-' if negative else ''}{node.text.upper()}"
            raise BindError("literal-out-of-range", f"Numeric literal '{written}' out of range", span)
        return Literal(value, t.DoubleType(nullable=False), span)
    whole, _, fraction = node.text.partition(".")
    unscaled = sign * int((whole + fraction) or "0")
    if unscaled not in _BIGINT_RANGE:
        raise BindError(
            "literal-out-of-range",
            f"Numeric literal '{node.text}' out of range",
            span,
            "write it as a string and cast it to DECIMAL",
        )
    if not fraction:
        return Literal(unscaled, _INT if unscaled in _INT_RANGE else _BIGINT, span)
    precision = min(len(whole) + len(fraction), max(t.MAX_PRECISION, len(fraction)))
    exact = Decimal(unscaled).scaleb(-len(fraction))
    return Literal(exact, t.DecimalType(precision=precision, scale=len(fraction), nullable=False), span)


def unit_interval(qualifier: ast.IntervalQualifier, span: Span) -> Literal:
    """One unit of an interval: the factor behind ``INTERVAL n DAY``."""
    if is_year_month(qualifier):
        return Literal(_UNIT_MONTHS[qualifier.start], MONTH_INTERVAL, span)
    return Literal(_UNIT_MS[qualifier.start], SECOND_INTERVAL, span)


def _days(text: str) -> int:
    year, month, day = (int(part) for part in text.strip().split("-"))
    return datetime.date(year, month, day).toordinal() - _EPOCH_DAY


def _nanos_of_day(text: str) -> tuple[int, int]:
    """Nanoseconds since midnight and the number of fractional digits written."""
    clock, _, fraction = text.strip().partition(".")
    hour, minute, second = (int(part) for part in clock.split(":"))
    nanos = int(fraction[:9].ljust(9, "0")) if fraction else 0
    return (hour * 3600 + minute * 60 + second) * 1_000_000_000 + nanos, len(fraction)


def _timestamp(text: str, local: bool, span: Span) -> Literal:
    day, _, clock = text.strip().replace("T", " ").partition(" ")
    nanos, digits = _nanos_of_day(clock) if clock.strip() else (0, 0)
    value = _days(day) * 86_400_000_000_000 + nanos
    precision = min(digits, 9)
    # A TIMESTAMP WITH LOCAL TIME ZONE literal is read as UTC, whatever the session's zone is.
    type_: t.LogicalType = (
        t.TimestampLtzType(precision=precision, nullable=False)
        if local
        else t.TimestampType(precision=precision, nullable=False)
    )
    return Literal(value, type_, span)


def _interval(node: ast.IntervalLiteral) -> Literal:
    qualifier = node.qualifier
    text = node.text.strip()
    sign = -1 if node.negative else 1
    if text[:1] in "+-":
        sign = -sign if text[0] == "-" else sign
        text = text[1:].strip()
    _check_leading_digits(text, qualifier, node.span)
    if is_year_month(qualifier):
        if qualifier.end is not None:
            years, _, months = text.partition("-")
            return Literal(sign * (int(years) * 12 + int(months)), MONTH_INTERVAL, node.span)
        return Literal(sign * int(text) * _UNIT_MONTHS[qualifier.start], MONTH_INTERVAL, node.span)
    return Literal(sign * _interval_ms(text, qualifier), SECOND_INTERVAL, node.span)


def _check_leading_digits(text: str, qualifier: ast.IntervalQualifier, span: Span) -> None:
    leading = re.match(r"\d+", text)
    allowed = _LEADING_LIMIT_DIGITS if qualifier.precision is None else qualifier.precision
    if leading is not None and len(leading[0].lstrip("0")) > allowed:
        unit = qualifier.start.value
        raise BindError(
            "interval-precision",
            f"Interval field value {int(leading[0]):,} exceeds precision of {unit}({allowed}) field",
            span,
            f"write {unit}({len(leading[0])})",
        )


_CLOCK_UNITS = (ast.TimeUnit.DAY, ast.TimeUnit.HOUR, ast.TimeUnit.MINUTE, ast.TimeUnit.SECOND)


def _interval_ms(text: str, qualifier: ast.IntervalQualifier) -> int:
    """``d hh:mm:ss.fff`` from the qualifier's first unit on, in milliseconds (further digits are cut)."""
    if qualifier.start is ast.TimeUnit.WEEK:
        return int(text) * _UNIT_MS[qualifier.start]
    units = _CLOCK_UNITS[_CLOCK_UNITS.index(qualifier.start) :]
    total = 0
    for unit, part in zip(units, re.split(r"[ :]+", text), strict=False):
        whole, _, fraction = part.partition(".")
        total += int(whole or "0") * _UNIT_MS[unit]
        if fraction:
            total += int(fraction[:3].ljust(3, "0"))
    return total


def written_interval(number: Expr, qualifier: ast.IntervalQualifier, safe: bool, span: Span) -> Expr:
    """``CAST(-3 AS INTERVAL DAY)``: a written number counts the unit, where any other one counts ms or months."""
    unit = unit_interval(qualifier, span)
    if not isinstance(number, Literal) or not isinstance(number.type, t.ExactNumericType):
        return resolve_cast(number, unit.type, safe, span)
    value = _low_bits(int(number.value * unit.value), 32 if is_year_month(qualifier) else 64)
    return Literal(value, unit.type.as_nullable() if safe else unit.type, span)


def _low_bits(number: int, bits: int) -> int:
    """The number that Java keeps of one which is too large: its low bits, the highest of them as the sign."""
    return (number + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1)
