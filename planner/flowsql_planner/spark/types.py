"""Logical types as Spark SQL writes them, and the rules by which Spark itself types decimal arithmetic."""

from __future__ import annotations

from typing import Final

from flowsql_core.errors import NotSupportedYetError
from flowsql_core.graph.spark import carried
from flowsql_core.record import record
from flowsql_core.span import Span
from flowsql_core.types import logical as t
from flowsql_core.types.coerce import as_decimal

_PLAIN: Final[dict[type[t.LogicalType], str]] = {
    t.BooleanType: "BOOLEAN",
    t.TinyIntType: "TINYINT",
    t.SmallIntType: "SMALLINT",
    t.IntType: "INT",
    t.BigIntType: "BIGINT",
    t.FloatType: "FLOAT",
    t.DoubleType: "DOUBLE",
    t.CharType: "STRING",
    t.VarCharType: "STRING",
    t.BinaryType: "BINARY",
    t.VarBinaryType: "BINARY",
    t.DateType: "DATE",
    t.TimestampType: "TIMESTAMP_NTZ",
    t.TimestampLtzType: "TIMESTAMP_LTZ",
}


def spark_type(type_: t.LogicalType, span: Span | None = None) -> str:
    """The Spark type that carries a logical type.

    Raises:
        NotSupportedYetError: Spark has none, and nothing stands for it.
    """
    held = carried(type_)
    plain = _PLAIN.get(type(held))
    if plain is not None:
        return plain
    match held:
        case t.DecimalType(precision=precision, scale=scale):
            return f"DECIMAL({precision}, {scale})"
        case t.ArrayType(element=element):
            return f"ARRAY<{_inner(element, type_, span)}>"
        case t.MultisetType(element=element):
            return f"MAP<{_inner(element, type_, span)}, INT>"
        case t.MapType(key=key, value=value):
            return f"MAP<{_inner(key, type_, span)}, {_inner(value, type_, span)}>"
        case t.RowType(fields=fields):
            inner = ", ".join(f"`{f.name.replace('`', '``')}`: {_inner(f.type, type_, span)}" for f in fields)
            return f"STRUCT<{inner}>"
    raise _refusal(type_, span)


def is_opaque(type_: t.LogicalType) -> bool:
    """Whether Spark only carries the values of a type: it must neither compare nor hash them."""
    return isinstance(type_, t.VariantType | t.BitmapType | t.MultisetType)


def _inner(type_: t.LogicalType, whole: t.LogicalType, span: Span | None) -> str:
    """A type inside of another one: nothing may stand for it there."""
    if not carried(type_).same(type_):
        raise _refusal(whole, span)
    return spark_type(type_, span)


def _refusal(type_: t.LogicalType, span: Span | None) -> NotSupportedYetError:
    return NotSupportedYetError(f"a column of type {type_.as_nullable()} on Spark", span)


def ddl(schema: t.Schema, span: Span | None = None) -> str:
    """Columns as Spark reads them: ``c0 INT, c1 STRING``."""
    return ", ".join(f"c{index} {spark_type(column.type, span)}" for index, column in enumerate(schema))


def same_on_spark(a: t.LogicalType, b: t.LogicalType) -> bool:
    """Whether both are one type on Spark, with one meaning."""
    return (type(a) is type(b) and spark_type(a) == spark_type(b)) or _texts(a, b)


def _texts(a: t.LogicalType, b: t.LogicalType) -> bool:
    return (isinstance(a, t.CharacterType) and isinstance(b, t.CharacterType)) or (
        isinstance(a, t.BinaryStringType) and isinstance(b, t.BinaryStringType)
    )


# Decimals


@record
class Digits:
    """Precision and scale."""

    precision: int
    scale: int

    @property
    def whole(self) -> int:
        """Digits before the point."""
        return self.precision - self.scale


def digits_of(type_: t.LogicalType) -> Digits | None:
    """The decimal that holds every value of an exact number; None for other types."""
    made = as_decimal(type_)
    return None if made is None else Digits(made.precision, made.scale)


def spark_decimal(operator: str, a: Digits, b: Digits) -> Digits:
    """Spark's result type of ``+ - * /``, precision loss allowed (its default). Source: ``DecimalPrecision``."""
    match operator:
        case "+" | "-":
            scale = max(a.scale, b.scale)
            return _adjusted(max(a.whole, b.whole) + scale + 1, scale)
        case "*":
            return _adjusted(a.precision + b.precision + 1, a.scale + b.scale)
        case _:
            scale = max(6, a.scale + b.precision + 1)
            return _adjusted(a.whole + b.scale + scale, scale)


def _adjusted(precision: int, scale: int) -> Digits:
    if precision <= t.MAX_PRECISION:
        return Digits(precision, scale)
    kept = max(t.MAX_PRECISION - (precision - scale), min(scale, 6))
    return Digits(t.MAX_PRECISION, kept)
