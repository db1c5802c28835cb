"""Data types as written (``ast.TypeSpec``) to logical types, with Flink's defaults for lengths and precisions."""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

from flowsql_core.errors import BindError, NotSupportedYetError
from flowsql_core.span import Span
from flowsql_core.types import logical as t
from flowsql_grammar import ast

#: Flink takes more digits of a second for the most that it has.
_MAX_FRACTION_DIGITS = 9

_YEAR_MONTH_UNITS = {ast.TimeUnit.YEAR, ast.TimeUnit.MONTH, ast.TimeUnit.QUARTER}

#: What every interval of months and of milliseconds is printed as: Flink forgets the units of a qualifier.
MONTH_INTERVAL = t.YearMonthIntervalType(nullable=False, resolution="MONTH")
SECOND_INTERVAL = t.DayTimeIntervalType(nullable=False, resolution="SECOND", fractional_precision=3)


def bind_type(spec: ast.TypeSpec) -> t.LogicalType:
    """The logical type of a written one; nullable unless NOT NULL stands behind it."""
    made = _bind(spec)
    return made if spec.nullable is not False else made.as_nullable(False)


def bind_cast_type(spec: ast.TypeSpec) -> t.LogicalType:
    """The type of CAST and RETURNING, where comments of fields are lost."""
    return _without_comments(bind_type(spec))


def _without_comments(type_: t.LogicalType) -> t.LogicalType:
    match type_:
        case t.ArrayType(element=element) | t.MultisetType(element=element):
            return replace(type_, element=_without_comments(element))
        case t.MapType(key=key, value=value):
            return replace(type_, key=_without_comments(key), value=_without_comments(value))
        case t.RowType(fields=fields):
            return replace(type_, fields=tuple(t.Field(field.name, _without_comments(field.type)) for field in fields))
    return type_


def bind_column_type(spec: ast.TypeSpec) -> t.LogicalType:
    """The type of a column that a table stores."""
    interval = next((part for part in spec.walk() if isinstance(part, ast.IntervalType)), None)
    if interval is not None:
        raise BindError(
            "interval-column",
            "Incorrect syntax near the keyword 'INTERVAL'",
            interval.span,
            "no column stores an interval: BIGINT holds its milliseconds, INT its months",
        )
    return bind_type(spec)


def is_year_month(qualifier: ast.IntervalQualifier) -> bool:
    """Whether an interval counts months (and not milliseconds)."""
    return qualifier.start in _YEAR_MONTH_UNITS


def _bind(spec: ast.TypeSpec) -> t.LogicalType:
    match spec:
        case ast.BasicType(name, parameters):
            return _bind_basic(name, parameters, spec.span)
        case ast.IntervalType(qualifier):
            interval: t.LogicalType = MONTH_INTERVAL if is_year_month(qualifier) else SECOND_INTERVAL
            return interval.as_nullable()
        case ast.ArrayType(element):
            return t.ArrayType(element=bind_type(element))
        case ast.MultisetType(element):
            return t.MultisetType(element=bind_type(element))
        case ast.MapType(key, value):
            return t.MapType(key=bind_type(key), value=bind_type(value))
        case ast.RowType(fields):
            _refuse_repeated(fields)
            return t.RowType(fields=tuple(_bind_field(field) for field in fields))
        case ast.StructuredType(class_name, fields):
            return t.StructuredType(class_name=class_name, fields=tuple(_bind_field(field) for field in fields))
        case ast.RawType(class_name, serializer):
            raise BindError(
                "raw-type",
                f"Unable to restore the RAW type of class '{class_name}' with serializer snapshot '{serializer}'.",
                spec.span,
                "RAW names a Java class and its serializer, and there is no JVM; a Python function may return objects",
            )
        case ast.UserType(name):
            raise BindError("unknown-type", f"Unknown identifier '{name}'", spec.span)
        case _:
            assert_never(spec)


def _refuse_repeated(fields: tuple[ast.RowField, ...]) -> None:
    names = [field.name.text for field in fields]
    twice = dict.fromkeys(name for i, name in enumerate(names) if name in names[:i])
    if twice:
        raise BindError(
            "duplicate-column",
            f"Field names must be unique. Found duplicates: [{', '.join(twice)}]",
            next(field.name.span for i, field in enumerate(fields) if field.name.text in names[:i]),
        )


def _bind_field(field: ast.RowField) -> t.Field:
    return t.Field(field.name.text, bind_type(field.type), field.comment)


_SIMPLE: dict[str, t.LogicalType] = {
    "BOOLEAN": t.BOOLEAN,
    "TINYINT": t.TINYINT,
    "SMALLINT": t.SMALLINT,
    "INT": t.INT,
    "BIGINT": t.BIGINT,
    "FLOAT": t.FLOAT,
    "DOUBLE": t.DOUBLE,
    "DATE": t.DATE,
    "STRING": t.STRING,
    "BYTES": t.BYTES,
    "NULL": t.NULL,
    "VARIANT": t.VARIANT,
    "BITMAP": t.BITMAP,
}


def _bind_basic(name: str, parameters: tuple[int, ...], span: Span) -> t.LogicalType:
    if name in _SIMPLE:
        return _SIMPLE[name]
    first = parameters[0] if parameters else None
    match name:
        case "DECIMAL":
            precision = 10 if first is None else first
            scale = parameters[1] if len(parameters) > 1 else 0
            # Flink takes more digits for the most that it has.
            precision = min(precision, t.MAX_PRECISION)
            _require(precision >= 1, "Decimal precision must be between 1 and 38 (both inclusive)", span)
            limit = f"Decimal scale must be between 0 and the precision {precision} (both inclusive)"
            _require(scale <= precision, limit, span)
            return t.DecimalType(precision=precision, scale=scale)
        case "CHAR":
            return t.CharType(length=_length(name, first, 1, span))
        case "VARCHAR":
            return t.VarCharType(length=_length(name, first, t.MAX_LENGTH, span))
        case "BINARY":
            return t.BinaryType(length=_length(name, first, 1, span))
        case "VARBINARY":
            return t.VarBinaryType(length=_length(name, first, t.MAX_LENGTH, span))
        case "TIME":
            # A time of day holds milliseconds.
            return t.TimeType(precision=min(_precision(first, 0), 3))
        case "TIMESTAMP":
            return t.TimestampType(precision=_precision(first, 6))
        case "TIMESTAMP_LTZ":
            return t.TimestampLtzType(precision=_precision(first, 6))
        case "REAL":
            raise BindError("unknown-type", "Type is not supported: REAL", span, "FLOAT has 4 bytes")
    raise NotSupportedYetError(f"the type {name}", span)


def _length(name: str, given: int | None, default: int, span: Span) -> int:
    length = default if given is None else given
    _require(length <= t.MAX_LENGTH, f"{name} length {length} must be at most {t.MAX_LENGTH}", span)
    return length


def _precision(given: int | None, default: int) -> int:
    return default if given is None else min(given, _MAX_FRACTION_DIGITS)


def _require(condition: bool, message: str, span: Span) -> None:
    if not condition:
        raise BindError("bad-type", message + ".", span)
