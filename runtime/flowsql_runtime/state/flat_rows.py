"""Nested values as flat columns, for state that keeps those alone: of a ROW whether there is one, then its fields; a
collection as bytes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from flowsql_core import column_bytes
from flowsql_core.arrow import compute as pc
from flowsql_core.column_bytes import joined, ranges_within, row_bytes


def word_type(type_: Any) -> Any:
    """The Arrow type that one column of words keeps values of a type in: any nested one as bytes."""
    return pa.binary() if pa.types.is_nested(type_) else type_


def word_column(array: Any) -> Any:
    """A column as one of its ``word_type``; equal values have equal bytes."""
    return _to_bytes(array) if pa.types.is_nested(array.type) else array


def value_column(array: Any, type_: Any) -> Any:
    """The column of ``type_`` whose :func:`word_column` is ``array``."""
    return _from_bytes(array, type_) if pa.types.is_nested(type_) else array


def flat_types(type_: Any) -> list[Any]:
    """The Arrow types that a value of a type takes."""
    if not pa.types.is_struct(type_):
        return [pa.binary() if _is_collection(type_) else type_]
    return [pa.bool_(), *(part for field in type_ for part in flat_types(field.type))]


def flat_columns(array: Any) -> list[Any]:
    """A column as columns of ``flat_types``; the fields of a NULL row are NULL."""
    if not pa.types.is_struct(array.type):
        return [_to_bytes(array) if _is_collection(array.type) else array]
    return [pc.is_valid(array), *(part for field in array.flatten() for part in flat_columns(field))]


def whole_columns(types: Sequence[Any], parts: Sequence[Any]) -> list[Any]:
    """The columns of ``types`` again."""
    rest = iter(parts)
    return [_whole(type_, rest) for type_ in types]


def _whole(type_: Any, parts: Iterator[Any]) -> Any:
    there = next(parts)
    if not pa.types.is_struct(type_):
        return _from_bytes(there, type_) if _is_collection(type_) else there
    fields = [_whole(field.type, parts) for field in type_]
    mask = pc.invert(there) if pc.any(pc.invert(there)).as_py() else None
    if not fields:
        return pa.StructArray.from_buffers(type_, len(there), [None], children=[])
    types = [field.with_type(values.type) for field, values in zip(type_, fields, strict=True)]
    return pa.StructArray.from_arrays(fields, fields=types, mask=mask)


# Few jobs keep collections in state; what turns them into bytes takes time to load.


def _is_collection(type_: Any) -> bool:
    return bool(pa.types.is_nested(type_))


def _to_bytes(array: Any) -> Any:
    from flowsql_compute.eval.nested.value_bytes import to_bytes

    return to_bytes(array)


def _from_bytes(array: Any, type_: Any) -> Any:
    from flowsql_compute.eval.nested.value_bytes import from_bytes

    if not pa.types.is_large_binary(array.type):
        return from_bytes(array, type_)
    # Values take no more bytes than what they are kept as.
    sizes = row_bytes(array)
    assert sizes is not None
    parts = (array.slice(a, b - a) for a, b in ranges_within(sizes, column_bytes.MOST_BYTES))
    return joined([from_bytes(pc.cast(part, pa.binary()), type_) for part in parts])
