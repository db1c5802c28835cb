"""Rows whose fields have other names than those of the table that they go to: SQL assigns them by position."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from flowsql_core.arrow import compute as pc


def named_as(array: Any, target: Any) -> Any:
    """The array with the field names of ``target``, at any depth; types of values stay as they are.

    Arrow's casts go by name: a field that the target calls otherwise would become NULL.
    """
    if pa.types.is_struct(target):
        children = [named_as(array.field(index), field.type) for index, field in enumerate(target)]
        fields = [pa.field(field.name, child.type) for field, child in zip(target, children, strict=True)]
        mask = pc.is_null(array) if array.null_count else None
        return pa.StructArray.from_arrays(children, fields=fields, mask=mask)
    if pa.types.is_list(target):
        values = named_as(array.values, target.value_type)
        return _lists(pa.list_(values.type), array, values)
    if pa.types.is_map(target):
        keys, items = named_as(array.keys, target.key_type), named_as(array.items, target.item_type)
        type_ = pa.map_(keys.type, items.type)
        entries = pa.StructArray.from_arrays([keys, items], fields=[type_.key_field, type_.item_field])
        return _lists(type_, array, entries)
    return array


def _lists(type_: Any, array: Any, values: Any) -> Any:
    buffers = array.buffers()[:2]
    return pa.Array.from_buffers(type_, len(array), buffers, offset=array.offset, children=[values])
