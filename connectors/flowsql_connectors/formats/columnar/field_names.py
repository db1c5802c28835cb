"""Columns in the types that a file has: SQL assigns the fields of rows by position, Arrow casts them by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from flowsql_core.arrow import compute as pc

#: Takes an array that is no container and its target type.
Convert = Callable[[Any, Any], Any]


def named_as(array: Any, target: Any, convert: Convert = lambda array, target: array) -> Any:
    """The array with the field names and nullability of ``target``, at any depth.

    Arrow's casts go by name: a field that the target calls otherwise would become NULL.

    Args:
        array: its containers are those of ``target``.
        target: a type.
        convert: makes what is inside of the containers; by default types of values stay as they are.
    """
    if pa.types.is_struct(target):
        children = [named_as(array.field(index), field.type, convert) for index, field in enumerate(target)]
        fields = [
            pa.field(field.name, child.type, field.nullable) for field, child in zip(target, children, strict=True)
        ]
        mask = pc.is_null(array) if array.null_count else None
        return pa.StructArray.from_arrays(children, fields=fields, mask=mask)
    if pa.types.is_list(target):
        values = named_as(array.values, target.value_type, convert)
        field = target.value_field
        return _lists(pa.list_(pa.field(field.name, values.type, field.nullable)), array, values)
    if pa.types.is_map(target):
        keys, items = named_as(array.keys, target.key_type, convert), named_as(array.items, target.item_type, convert)
        type_ = pa.map_(keys.type, pa.field(target.item_field.name, items.type, target.item_field.nullable))
        entries = pa.StructArray.from_arrays([keys, items], fields=[type_.key_field, type_.item_field])
        return _lists(type_, array, entries)
    return convert(array, target)


def cast_cutting_times(array: Any, target: Any) -> Any:
    """A cast that cuts digits of moments off, before 1970 too; other losses are errors.

    Arrow cuts towards 1970: of 1969-12-31 23:59:59.999999 it would make 1970-01-01 00:00:00.000 in milliseconds.

    Raises:
        pa.ArrowInvalid, pa.ArrowNotImplementedError: there is no such cast, or a value does not fit.
    """
    if array.type == target:
        return array
    if pa.types.is_timestamp(array.type) and pa.types.is_timestamp(target):
        divisor = _PER_SECOND[array.type.unit] // _PER_SECOND[target.unit]
        if divisor > 1:
            values = array.cast(pa.int64())
            cut = np.floor_divide(np.asarray(values.fill_null(0)), divisor)
            mask = np.asarray(values.is_null()) if values.null_count else None
            return pa.array(cut, pa.int64(), mask=mask).cast(pa.timestamp(target.unit)).cast(target)
    return pc.cast(array, options=pc.CastOptions(target, allow_time_truncate=True))


_PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}


def _lists(type_: Any, array: Any, values: Any) -> Any:
    buffers = array.buffers()[:2]
    return pa.Array.from_buffers(type_, len(array), buffers, offset=array.offset, children=[values])
