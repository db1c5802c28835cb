"""Values of streams and columns of tables: types both ways, and the conversion of whole batches.

Rows are Python objects by nature, so this walks through them; it runs at the ends of a bridge, never inside a table.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from flowsql.common.row import Row
from flowsql.common.time import Instant
from flowsql.common.typeinfo import (
    BasicArrayTypeInfo,
    BasicType,
    BasicTypeInfo,
    DateTypeInfo,
    ExternalTypeInfo,
    LocalTimeTypeInfo,
    MapTypeInfo,
    ObjectArrayTypeInfo,
    PrimitiveArrayTypeInfo,
    RowTypeInfo,
    TimestampTypeInfo,
    TimeTypeInfo,
    TupleTypeInfo,
    TypeInformation,
    Types,
)
from flowsql_compute.eval.columns import values_and_validity
from flowsql_core.batch import PyObjectColumn
from flowsql_core.errors import ExecutionError, NotSupportedYetError
from flowsql_core.types import logical as t
from flowsql_core.types.arrow import to_arrow

Convert = Callable[[Any], Any]

_EPOCH: Final = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)

_BASIC: Final[dict[BasicType, t.LogicalType]] = {
    BasicType.STRING: t.STRING,
    BasicType.BOOLEAN: t.BOOLEAN,
    BasicType.BYTE: t.TINYINT,
    BasicType.SHORT: t.SMALLINT,
    BasicType.INT: t.INT,
    BasicType.LONG: t.BIGINT,
    BasicType.FLOAT: t.FLOAT,
    BasicType.DOUBLE: t.DOUBLE,
    BasicType.CHAR: t.CharType(length=1),
    BasicType.BIG_DEC: t.DecimalType(precision=38, scale=18),
    BasicType.INSTANT: t.TimestampLtzType(precision=9),
}
_LOCAL: Final = {
    LocalTimeTypeInfo.TimeType.LOCAL_DATE: t.DATE,
    LocalTimeTypeInfo.TimeType.LOCAL_TIME: t.TimeType(precision=9),
    LocalTimeTypeInfo.TimeType.LOCAL_DATE_TIME: t.TimestampType(precision=9),
}
_PLAIN: Final[dict[type[t.LogicalType], Callable[[], TypeInformation]]] = {
    t.CharType: Types.STRING,
    t.VarCharType: Types.STRING,
    t.BooleanType: Types.BOOLEAN,
    t.TinyIntType: Types.BYTE,
    t.SmallIntType: Types.SHORT,
    t.IntType: Types.INT,
    t.BigIntType: Types.LONG,
    t.FloatType: Types.FLOAT,
    t.DoubleType: Types.DOUBLE,
    t.DecimalType: Types.BIG_DEC,
    t.TimestampLtzType: Types.INSTANT,
    t.BinaryType: lambda: Types.PRIMITIVE_ARRAY(Types.BYTE()),
    t.VarBinaryType: lambda: Types.PRIMITIVE_ARRAY(Types.BYTE()),
    t.DateType: lambda: LocalTimeTypeInfo(LocalTimeTypeInfo.TimeType.LOCAL_DATE),
    t.TimeType: lambda: LocalTimeTypeInfo(LocalTimeTypeInfo.TimeType.LOCAL_TIME),
    t.TimestampType: lambda: LocalTimeTypeInfo(LocalTimeTypeInfo.TimeType.LOCAL_DATE_TIME),
}


# Types


#: What is never null outside of rows: Java's tuples and single values hold no null there.
_NEVER_NULL: Final = frozenset(
    {
        BasicType.BOOLEAN,
        BasicType.BYTE,
        BasicType.SHORT,
        BasicType.INT,
        BasicType.LONG,
        BasicType.FLOAT,
        BasicType.DOUBLE,
        BasicType.CHAR,
    }
)


def columns_of(type_: TypeInformation, nullable: bool = False) -> t.Schema:
    """The columns of a table of a stream: the fields of rows and tuples, else one column ``f0``.

    Args:
        type_: of the stream's values.
        nullable: numbers in tuples and single numbers may be NULL, too; fields of rows always may.

    Raises:
        NotSupportedYetError: the type has no SQL type, as that of streams that declare none.
    """
    inner = type_.type_info if isinstance(type_, ExternalTypeInfo) else type_
    if isinstance(type_, TableRowsTypeInfo):
        columns_of(inner)  # refuses what has no way back into a column
        return type_.columns
    match inner:
        case RowTypeInfo():
            nullable, names, fields = True, inner.get_field_names(), inner.get_field_types()
        case TupleTypeInfo():
            fields = inner.get_field_types()
            names = [f"f{index}" for index in range(len(fields))]
        case _:
            names, fields = ["f0"], [inner]
    return tuple(
        t.Column(name, logical_type(field) if nullable else _outside_of_rows(field))
        for name, field in zip(names, fields, strict=True)
    )


def _outside_of_rows(field: TypeInformation) -> t.LogicalType:
    never = isinstance(field, BasicTypeInfo) and field.basic_type in _NEVER_NULL
    return logical_type(field).as_nullable(not never)


def logical_type(type_: TypeInformation) -> t.LogicalType:
    """The SQL type of a field."""
    match type_:
        case BasicTypeInfo(basic_type=basic) if basic in _BASIC:
            return _BASIC[basic]
        case DateTypeInfo():
            return t.DATE
        case TimeTypeInfo():
            return t.TimeType(precision=0)
        case TimestampTypeInfo():
            return t.TimestampType(precision=9)
        case LocalTimeTypeInfo():
            return _LOCAL[type_.time_type]
        case PrimitiveArrayTypeInfo(is_bytes=True):
            return t.BYTES
        case PrimitiveArrayTypeInfo():
            return t.ArrayType(element=logical_type(type_.element_type).as_nullable(False))
        case BasicArrayTypeInfo() | ObjectArrayTypeInfo():
            return t.ArrayType(element=logical_type(type_.element_type))
        case MapTypeInfo():
            return t.MapType(key=logical_type(type_.key_type), value=logical_type(type_.value_type))
        case RowTypeInfo() | TupleTypeInfo():
            return t.RowType(fields=tuple(t.Field(column.name, column.type) for column in columns_of(type_)))
    raise NotSupportedYetError(
        f"a table column of type {type_!r}",
        hint="declare the stream's type, e.g. map(..., output_type=Types.ROW([Types.INT(), Types.STRING()]))",
    )


class TableRowsTypeInfo(ExternalTypeInfo):
    """The type of a stream of a table's rows: where the stream becomes a table again, its columns are the same."""

    def __init__(self, columns: t.Schema) -> None:
        super().__init__(
            Types.ROW_NAMED([column.name for column in columns], [type_of(column.type) for column in columns])
        )
        self.columns = columns


def type_of_columns(schema: t.Schema) -> ExternalTypeInfo:
    """The type of a stream of a table's rows."""
    return TableRowsTypeInfo(tuple(t.Column(column.name, t.without_attribute(column.type)) for column in schema))


def type_of(type_: t.LogicalType) -> TypeInformation:
    """The type of the values of a column."""
    plain = _PLAIN.get(type(type_))
    if plain is not None:
        return plain()
    match type_:
        case t.ArrayType(element=element):
            return Types.OBJECT_ARRAY(type_of(element))
        case t.MapType(key=key, value=value):
            return Types.MAP(type_of(key), type_of(value))
        case t.RowType(fields=fields):
            return Types.ROW_NAMED([field.name for field in fields], [type_of(field.type) for field in fields])
    return Types.PICKLED_BYTE_ARRAY()


# Values into columns


def column_maker(column: t.Column) -> Callable[[list[Any]], Any]:
    """Makes the Arrow array of a column's Python values.

    Raises (when called):
        ExecutionError: a value does not fit the column's type, or is None where it must not be.
    """
    target = to_arrow(column.type)
    convert = _into(column.type)

    def make(values: list[Any]) -> Any:
        ready = values if convert is None else [None if value is None else convert(value) for value in values]
        try:
            made = pa.array(ready, target)
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            raise ExecutionError(
                "value-does-not-fit", f"A value of column '{column.name}' is no {column.type}: {error}"
            ) from error
        if made.null_count and not column.type.nullable:
            raise ExecutionError(
                "null-in-not-null", f"Column '{column.name}' is NOT NULL, however, a null value arrived."
            )
        return made

    return make


def _into(type_: t.LogicalType) -> Convert | None:
    """What turns a value into one that Arrow takes for the type; None where it does already."""
    match type_:
        case t.TimestampLtzType(precision=precision):
            return _point(precision)
        case t.DecimalType(scale=scale):
            return _scaled(scale)
        case t.ArrayType(element=element):
            inner = _into(element)
            return list if inner is None else lambda value: [_optional(inner, item) for item in value]
        case t.MapType(key=key, value=item):
            convert_key, convert_item = _into(key), _into(item)
            return lambda value: [(_optional(convert_key, k), _optional(convert_item, v)) for k, v in value.items()]
        case t.RowType(fields=fields):
            names = [field.name for field in fields]
            inners = [_into(field.type) for field in fields]
            return lambda value: {
                name: _optional(inner, item) for name, inner, item in zip(names, inners, value, strict=True)
            }
    return None


def _point(precision: int) -> Convert:
    """Whole units since the epoch, of an Instant or a ``datetime`` with a zone."""
    per_second = 1000 if precision <= 3 else 1_000_000 if precision <= 6 else 1_000_000_000

    def convert(value: Any) -> int:
        if isinstance(value, Instant):
            return value.seconds * per_second + value.nanos // (1_000_000_000 // per_second)
        if isinstance(value, datetime.datetime) and value.tzinfo is not None:
            micros = (value - _EPOCH) // datetime.timedelta(microseconds=1)
            return micros * per_second // 1_000_000
        raise TypeError(f"{value!r} is no point in time: an Instant or a datetime with a zone is")

    return convert


def _scaled(scale: int) -> Convert:
    import decimal

    unit = decimal.Decimal(1).scaleb(-scale)
    context = decimal.Context(prec=76, rounding=decimal.ROUND_HALF_UP)
    return lambda value: decimal.Decimal(value).quantize(unit, context=context)


def _optional(convert: Convert | None, value: Any) -> Any:
    return value if convert is None or value is None else convert(value)


# Columns into values


def column_values(data: Any, type_: t.LogicalType, zone: datetime.tzinfo | None = None) -> list[Any]:
    """The Python values of a column: ``Instant`` for TIMESTAMP_LTZ, ``datetime`` for other times, ``Row`` for ROW.

    ``zone``: a TIMESTAMP_LTZ is a ``datetime`` in this zone instead.
    """
    if isinstance(data, PyObjectColumn):
        return list(data.values)
    if isinstance(type_, t.TimestampLtzType) and zone is None:
        per_second = {"ms": 1000, "us": 1_000_000, "ns": 1_000_000_000}[data.type.unit]
        units: list[int | None] = data.cast(pa.int64()).to_pylist()
        return [None if unit is None else _instant(unit, per_second) for unit in units]
    micros = _micros(data.type)
    values: list[Any] = (data if micros == data.type else data.cast(micros, safe=False)).to_pylist()
    convert = _out_of(type_, zone)
    return values if convert is None else [None if value is None else convert(value) for value in values]


def _micros(type_: pa.DataType) -> pa.DataType:
    """The type with microseconds for nanoseconds: ``datetime`` holds no more."""
    if pa.types.is_timestamp(type_):
        return pa.timestamp("us", type_.tz) if type_.unit == "ns" else type_
    if pa.types.is_list(type_):
        return pa.list_(_micros(type_.value_type))
    if pa.types.is_map(type_):
        return pa.map_(_micros(type_.key_type), _micros(type_.item_type))
    if pa.types.is_struct(type_):
        return pa.struct([field.with_type(_micros(field.type)) for field in type_])
    return type_


def _instant(units: int, per_second: int) -> Instant:
    seconds, rest = divmod(units, per_second)
    return Instant(seconds, rest * (1_000_000_000 // per_second))


def _out_of(type_: t.LogicalType, zone: datetime.tzinfo | None = None) -> Convert | None:
    """What turns Arrow's Python value into the stream's; None where they are the same."""
    match type_:
        case t.TimestampLtzType() if zone is not None:
            return lambda value: value.astimezone(zone)
        case t.TimestampLtzType():
            return lambda value: _instant((value - _EPOCH) // datetime.timedelta(microseconds=1), 1_000_000)
        case t.ArrayType(element=element):
            inner = _out_of(element, zone)
            return None if inner is None else lambda value: [_optional(inner, item) for item in value]
        case t.MapType(key=key, value=item):
            convert_key, convert_item = _out_of(key, zone), _out_of(item, zone)
            return lambda pairs: {_optional(convert_key, k): _optional(convert_item, v) for k, v in pairs}
        case t.MultisetType(element=element):
            convert_element = _out_of(element, zone)
            return lambda pairs: {_optional(convert_element, k): v for k, v in pairs}
        case t.RowType(fields=fields):
            names = tuple(field.name for field in fields)
            inners = [_out_of(field.type, zone) for field in fields]
            return lambda value: Row.of_names(
                names, [_optional(inner, value[name]) for inner, name in zip(inners, names, strict=True)]
            )
    return None


def epoch_ms(data: Any) -> tuple[Any, Any]:
    """Epoch milliseconds of a timestamp column, the wall clock's for TIMESTAMP: int64 (n,), and which are not NULL."""
    values, valid = values_and_validity(data)
    per_ms = {"ms": 1, "us": 1_000, "ns": 1_000_000}[data.type.unit]
    return (values if per_ms == 1 else values // per_ms), valid


def objects(values: Sequence[Any]) -> PyObjectColumn:
    """A column of Python objects."""
    made = np.empty(len(values), dtype=object)
    for index, value in enumerate(values):  # an assignment of the whole would look into lists and tuples
        made[index] = value
    return PyObjectColumn(made)
