"""Python values as literals of SQL: ``lit(5)``, and every plain value that stands where an expression may."""

from __future__ import annotations

import datetime
import math
from collections.abc import Mapping
from decimal import Decimal
from typing import TYPE_CHECKING

from flowsql.common.row import Row
from flowsql.table.syntax.build import ast
from flowsql.table.syntax.operands import ExpressionOperand
from flowsql_core.errors import BindError
from flowsql_core.types.logical import without_attributes

if TYPE_CHECKING:
    from flowsql_core.types.logical import LogicalType

_BIGINT = range(-(2**63), 2**63)
#: Digits that a DECIMAL literal of SQL may have; more are a string that is cast.
_LITERAL_DIGITS = 18


def literal(value: object) -> ast.Expression:
    """The literal of a Python value: ``1`` is INT, ``1.5`` DOUBLE, ``Decimal("1.5")`` DECIMAL(2, 1), ``"ab"`` CHAR(2).

    Raises:
        BindError: SQL has no literal for the value.
    """
    match value:
        case None:
            return ast.NullLiteral()
        case bool():
            return ast.BooleanLiteral(value)
        case int():
            if value not in _BIGINT:
                raise BindError(
                    "literal-out-of-range", f"{value} does not fit into BIGINT.", hint="give a decimal.Decimal"
                )
            return _signed(value < 0, str(abs(value)))
        case float():
            return _double(value)
        case Decimal():
            return _decimal(value)
        case str():
            return ast.StringLiteral(value)
        case bytes() | bytearray() | memoryview():
            return ast.BinaryLiteral(bytes(value))
        case datetime.datetime() | datetime.date() | datetime.time() | datetime.timedelta():
            return _temporal(value)
    return _nested(value)


def _nested(value: object) -> ast.Expression:
    match value:
        case ExpressionOperand():
            return value._value()
        case Row():
            return ast.RowConstructor(tuple(literal(item) for item in value))
        case list() | tuple():
            return ast.ArrayConstructor(tuple(literal(item) for item in value))
        case Mapping():
            return ast.MapConstructor(tuple((literal(key), literal(item)) for key, item in value.items()))
    raise BindError(
        "no-literal",
        f"There is no SQL literal for {value!r} of type {type(value).__name__}.",
        hint="an expression is made of columns, literals and functions: col('a'), lit(5), call('f', ...)",
    )


def _signed(negative: bool, digits: str) -> ast.Expression:
    number = ast.NumberLiteral(digits)
    return ast.UnaryOp(ast.UnaryOperator.MINUS, number) if negative else number


def _double(value: float) -> ast.Expression:
    if not math.isfinite(value):
        shown = "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
        return ast.Cast(ast.StringLiteral(shown), ast.BasicType("DOUBLE"))
    text = repr(abs(value))
    return _signed(math.copysign(1, value) < 0, text if "e" in text else f"{text}E0")


def _decimal(value: Decimal) -> ast.Expression:
    if not value.is_finite():
        raise BindError("no-literal", f"DECIMAL has no {value}.")
    text = format(abs(value), "f")
    whole, _, fraction = text.partition(".")
    precision = max(len(whole.lstrip("0")) + len(fraction), 1)
    if fraction and len(whole) + len(fraction) <= _LITERAL_DIGITS:
        return _signed(value < 0, text)
    return ast.Cast(ast.StringLiteral(format(value, "f")), ast.BasicType("DECIMAL", (precision, len(fraction))))


def _temporal(value: datetime.datetime | datetime.date | datetime.time | datetime.timedelta) -> ast.Expression:
    match value:
        case datetime.datetime():
            local = value.tzinfo is not None
            moment = value.astimezone(datetime.UTC).replace(tzinfo=None) if local else value
            return ast.TimestampLiteral(_trimmed(moment.isoformat(" ", "microseconds")), local)
        case datetime.date():
            return ast.DateLiteral(value.isoformat())
        case datetime.time():
            return ast.TimeLiteral(_trimmed(value.replace(tzinfo=None).isoformat("microseconds")))
        case datetime.timedelta():
            return _interval(value)


def _trimmed(text: str) -> str:
    """Without zeros at the end of the second's fraction: they would count as digits of the type."""
    return text.rstrip("0").rstrip(".")


def _interval(value: datetime.timedelta) -> ast.IntervalLiteral:
    total_ms = abs(value) // datetime.timedelta(milliseconds=1)
    seconds, ms = divmod(total_ms, 1000)
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    digits = len(str(days))
    qualifier = ast.IntervalQualifier(
        ast.TimeUnit.DAY, ast.TimeUnit.SECOND, precision=digits if digits > 2 else None, fraction=3
    )
    text = f"{days} {hours:02d}:{minutes:02d}:{seconds:02d}.{ms:03d}"
    return ast.IntervalLiteral(text, qualifier, value < datetime.timedelta())


def written_type(logical: LogicalType) -> ast.TypeSpec:
    """Return a type as CAST and DDL take it: time attributes, nested ones included, become plain timestamps."""
    from flowsql_grammar import parse_type

    return parse_type(str(without_attributes(logical)))
