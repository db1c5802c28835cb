"""Columns to BSON values, by the rules of Flink's converter."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
from bson import Binary, Decimal128, Int64, ObjectId
from bson.datetime_ms import DatetimeMS

from flowsql_core.arrow import compute as pc
from flowsql_core.types import logical as t


def bson_values(array: Any, type_: t.LogicalType) -> list[Any]:
    """What the client library takes for each value of a column; None for NULL."""
    match type_:
        case t.BigIntType() | t.DayTimeIntervalType():
            return _each(array, Int64)
        case t.FloatType():
            array = array.cast(pa.float64())
        case t.DecimalType():
            return _each(array, Decimal128)
        case t.BinaryStringType():
            return _each(array, Binary)
        case t.TimestampType() | t.TimestampLtzType():
            moments = pc.floor_temporal(array, unit="millisecond") if array.type.unit != "ms" else array
            return _each(moments.cast(pa.timestamp("ms", array.type.tz)).cast(pa.int64()), DatetimeMS)
        case t.ArrayType(element=element):
            return _cut(bson_values(array.flatten(), element), pc.list_value_length(array))
        case t.MapType(key=key, value=value):
            entries = list(zip(bson_values(array.keys, key), bson_values(array.items, value), strict=True))
            ends = array.offsets.to_pylist()
            there = array.is_valid().to_pylist()
            return [dict(entries[ends[at] : ends[at + 1]]) if valid else None for at, valid in enumerate(there)]
        case t.RowType(fields=fields):
            names = [field.name for field in fields]
            children = [bson_values(pc.struct_field(array, [at]), field.type) for at, field in enumerate(fields)]
            there = array.is_valid().to_pylist()
            rows = zip(*children, strict=True)
            return [
                dict(zip(names, row, strict=True)) if valid else None for row, valid in zip(rows, there, strict=True)
            ]
    found: list[Any] = array.to_pylist()
    return found


def _each(array: Any, make: Callable[[Any], Any]) -> list[Any]:
    return [None if value is None else make(value) for value in array.to_pylist()]


def _cut(flat: list[Any], lengths: Any) -> list[Any]:
    """Consecutive pieces of a list; None where a length is NULL."""
    made: list[Any] = []
    start = 0
    for length in lengths.to_pylist():
        made.append(None if length is None else flat[start : start + length])
        start += length or 0
    return made


def documents(columns: Sequence[Any], schema: t.Schema) -> list[dict[str, Any]]:
    """A document a row."""
    names = [column.name for column in schema]
    values = [bson_values(array, column.type) for array, column in zip(columns, schema, strict=True)]
    return [dict(zip(names, row, strict=True)) for row in zip(*values, strict=True)]


def ids_of(columns: Sequence[Any], schema: t.Schema, keys: Sequence[int]) -> list[Any]:
    """``_id`` of each row: of one column its value, a text of 24 hexadecimal digits as an ObjectId; of several columns
    a document."""
    if len(keys) > 1:
        return documents([columns[key] for key in keys], tuple(schema[key] for key in keys))
    return [object_id(value) for value in bson_values(columns[keys[0]], schema[keys[0]].type)]


def object_id(value: Any) -> Any:
    """The ObjectId that a text spells; else the value itself."""
    return ObjectId(value) if isinstance(value, str) and ObjectId.is_valid(value) else value
