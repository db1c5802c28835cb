"""Logical types to Arrow types and back: the physical contract of every batch.

DECIMAL is decimal128 at any precision; a DAY TO SECOND interval is int64 milliseconds, a YEAR TO MONTH one int32
months; TIME is milliseconds; timestamps have the coarsest unit that holds their digits, TIMESTAMP_LTZ with zone UTC.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from flowsql_core.errors import InternalError, NotSupportedYetError
from flowsql_core.types import logical as t

_FIXED: dict[type[t.LogicalType], Any] = {
    t.BooleanType: pa.bool_(),
    t.TinyIntType: pa.int8(),
    t.SmallIntType: pa.int16(),
    t.IntType: pa.int32(),
    t.BigIntType: pa.int64(),
    t.FloatType: pa.float32(),
    t.DoubleType: pa.float64(),
    t.CharType: pa.string(),
    t.VarCharType: pa.string(),
    t.BinaryType: pa.binary(),
    t.VarBinaryType: pa.binary(),
    t.DateType: pa.date32(),
    t.TimeType: pa.time32("ms"),
    t.YearMonthIntervalType: pa.int32(),
    t.DayTimeIntervalType: pa.int64(),
    t.NullType: pa.null(),
    t.VariantType: pa.string(),
    t.BitmapType: pa.binary(),
}
_UNIT_DIGITS = {"s": 0, "ms": 3, "us": 6, "ns": 9}


def timestamp_unit(precision: int) -> str:
    """Arrow's unit for a timestamp of so many fractional digits: ``ms``, ``us`` or ``ns``."""
    return "ms" if precision <= 3 else "us" if precision <= 6 else "ns"


def to_arrow(type_: t.LogicalType) -> pa.DataType:
    """The Arrow type that carries a logical type.

    Raises:
        NotSupportedYetError: RAW and DESCRIPTOR have no Arrow form.
    """
    fixed = _FIXED.get(type(type_))
    if fixed is not None:
        return fixed
    match type_:
        case t.DecimalType(precision=precision, scale=scale):
            return pa.decimal128(precision, scale)
        case t.TimestampType(precision=precision):
            return pa.timestamp(timestamp_unit(precision))
        case t.TimestampLtzType(precision=precision):
            return pa.timestamp(timestamp_unit(precision), tz="UTC")
        case t.ArrayType(element=element):
            return pa.list_(to_arrow(element))
        case t.MapType(key=key, value=value):
            return pa.map_(to_arrow(key), to_arrow(value))
        case t.MultisetType(element=element):
            return pa.map_(to_arrow(element), pa.int32())
        case t.RowType(fields=fields):
            return pa.struct([pa.field(field.name, to_arrow(field.type)) for field in fields])
    raise NotSupportedYetError(f"columns of type {type_.as_nullable()}")


def arrow_schema(schema: t.Schema) -> pa.Schema:
    """The Arrow schema of named columns."""
    return pa.schema([pa.field(column.name, to_arrow(column.type), column.type.nullable) for column in schema])


def from_arrow(type_: pa.DataType, nullable: bool = True) -> t.LogicalType:
    """The logical type that fits an Arrow type from outside (a file, a data frame).

    Raises:
        InternalError: Arrow types without a SQL counterpart (unions, decimal256 beyond 38 digits).
    """
    return _from_arrow(type_).as_nullable(nullable)


def _from_arrow(type_: pa.DataType) -> t.LogicalType:
    kinds = pa.types
    if kinds.is_null(type_):
        return t.NULL
    if kinds.is_boolean(type_):
        return t.BOOLEAN
    if kinds.is_integer(type_):
        return _from_integer(type_)
    if kinds.is_floating(type_):
        return t.DOUBLE if kinds.is_float64(type_) else t.FLOAT
    if kinds.is_decimal(type_) and type_.precision <= t.MAX_PRECISION and 0 <= type_.scale <= type_.precision:
        return t.DecimalType(precision=type_.precision, scale=type_.scale)
    if kinds.is_string(type_) or kinds.is_large_string(type_) or kinds.is_string_view(type_):
        return t.STRING
    if kinds.is_fixed_size_binary(type_):
        return t.BinaryType(length=type_.byte_width)
    if kinds.is_binary(type_) or kinds.is_large_binary(type_) or kinds.is_binary_view(type_):
        return t.BYTES
    if kinds.is_date(type_):
        return t.DATE
    if kinds.is_time(type_):
        return t.TimeType(precision=_UNIT_DIGITS[type_.unit])
    if kinds.is_timestamp(type_):
        precision = _UNIT_DIGITS[type_.unit]
        return t.TimestampType(precision=precision) if type_.tz is None else t.TimestampLtzType(precision=precision)
    if kinds.is_duration(type_):
        return t.DayTimeIntervalType(resolution="SECOND", fractional_precision=3)
    return _from_nested(type_)


def _from_integer(type_: pa.DataType) -> t.LogicalType:
    # An unsigned integer needs the next wider signed one; the widest only fits a DECIMAL.
    bits = type_.bit_width * (1 if pa.types.is_signed_integer(type_) else 2)
    by_bits: dict[int, t.LogicalType] = {8: t.TINYINT, 16: t.SMALLINT, 32: t.INT, 64: t.BIGINT}
    return by_bits.get(bits, t.DecimalType(precision=20, scale=0))


def _from_nested(type_: pa.DataType) -> t.LogicalType:
    kinds = pa.types
    if kinds.is_map(type_):
        key = from_arrow(type_.key_type, nullable=False)
        return t.MapType(key=key, value=from_arrow(type_.item_type, type_.item_field.nullable))
    if kinds.is_list(type_) or kinds.is_large_list(type_) or kinds.is_fixed_size_list(type_):
        return t.ArrayType(element=from_arrow(type_.value_type, type_.value_field.nullable))
    if kinds.is_struct(type_):
        return t.RowType(fields=tuple(t.Field(field.name, from_arrow(field.type, field.nullable)) for field in type_))
    if kinds.is_dictionary(type_):
        return from_arrow(type_.value_type)
    raise InternalError(f"no SQL type for the Arrow type {type_}")
