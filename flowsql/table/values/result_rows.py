"""Columns to Python values, for programs that read results row by row. Not for SQL paths."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa

from flowsql.common.row import Row
from flowsql.common.short_floats import shortest_float
from flowsql_core.arrow import compute as pc
from flowsql_core.batch import ChangelogBatch, PyObjectColumn
from flowsql_core.row import RowKind
from flowsql_core.types.logical import (
    ArrayType,
    BinaryStringType,
    DayTimeIntervalType,
    FloatType,
    LogicalType,
    MapType,
    MultisetType,
    RowType,
    Schema,
    TimestampLtzType,
    TimestampType,
)

Convert = Callable[[Any], Any]


def rows_of(batch: ChangelogBatch, schema: Schema) -> Iterator[Row]:
    """One :class:`Row` per row, its values to be found by the columns' names.

    INT to ``int``, FLOAT to the ``float`` of its shortest text, DECIMAL to ``Decimal``, DATE/TIME/TIMESTAMP to
    ``datetime`` values (TIMESTAMP_LTZ with UTC), a day-time interval to ``timedelta``, a year-month one to months,
    BYTES to ``bytearray``, MAP and MULTISET to ``dict``, ROW to ``Row``.
    """
    names = tuple(column.name for column in schema)
    columns = [_values(data, column.type) for data, column in zip(batch.columns, schema, strict=True)]
    rows = zip(*columns, strict=True) if columns else iter([()] * batch.num_rows)
    if batch.kinds is None:
        for values in rows:
            yield Row.of_labels(names, values)
    else:
        for values, kind in zip(rows, batch.kinds.tolist(), strict=True):
            yield Row.of_labels(names, values, RowKind(kind))


def _values(data: Any, type_: LogicalType) -> list[Any]:
    if isinstance(data, PyObjectColumn):
        return list(data.values)
    if isinstance(type_, TimestampType | TimestampLtzType) and data.type.unit == "ns":
        # Python's clock has microseconds; Arrow would make values of pandas.
        data = pc.cast(data, pa.timestamp("us", data.type.tz), safe=False)
    if isinstance(type_, FloatType):
        # As ``shortest_float``, for all values at once.
        data = pc.cast(pc.cast(data, pa.string()), pa.float64())
        return list(data.to_pylist())
    values: list[Any] = data.to_pylist()
    convert = _converter(type_)
    return values if convert is None else [None if value is None else convert(value) for value in values]


def _converter(type_: LogicalType) -> Convert | None:
    """What turns Arrow's Python value into ours; None where they are the same."""
    match type_:
        case DayTimeIntervalType():
            return lambda value: datetime.timedelta(milliseconds=value)
        case FloatType():
            return shortest_float
        case BinaryStringType():
            return bytearray
        case ArrayType(element=element):
            inner = _converter(element)
            return None if inner is None else lambda value: [_optional(inner, item) for item in value]
        case MapType(key=key, value=item):
            return _map_converter(_key_converter(key), _converter(item))
        case MultisetType(element=element):
            return _map_converter(_key_converter(element), None)
        case RowType(fields=fields):
            names = tuple(field.name for field in fields)
            inners = [_converter(field.type) for field in fields]
            return lambda value: Row.of_labels(
                names, [_optional(inner, value[name]) for inner, name in zip(inners, names, strict=True)]
            )
    return None


def _key_converter(type_: LogicalType) -> Convert | None:
    """That of keys: a ``bytearray`` can be none, so they stay ``bytes``."""
    return None if isinstance(type_, BinaryStringType) else _converter(type_)


def _map_converter(key: Convert | None, item: Convert | None) -> Convert:
    return lambda pairs: {_optional(key, k): _optional(item, v) for k, v in pairs}


def _optional(convert: Convert | None, value: Any) -> Any:
    return value if convert is None or value is None else convert(value)
