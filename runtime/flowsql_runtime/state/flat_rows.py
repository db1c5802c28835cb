"""ROW values as columns of their own, for state that keeps flat columns: whether there is a row, then its fields."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from flowsql_core.arrow import compute as pc


def flat_types(type_: Any) -> list[Any]:
    """The Arrow types that a value of a type takes."""
    if not pa.types.is_struct(type_):
        return [type_]
    return [pa.bool_(), *(part for field in type_ for part in flat_types(field.type))]


def flat_columns(array: Any) -> list[Any]:
    """A column as columns of ``flat_types``; the fields of a NULL row are NULL."""
    if not pa.types.is_struct(array.type):
        return [array]
    return [pc.is_valid(array), *(part for field in array.flatten() for part in flat_columns(field))]


def whole_columns(types: Sequence[Any], parts: Sequence[Any]) -> list[Any]:
    """The columns of ``types`` again."""
    rest = iter(parts)
    return [_whole(type_, rest) for type_ in types]


def _whole(type_: Any, parts: Iterator[Any]) -> Any:
    there = next(parts)
    if not pa.types.is_struct(type_):
        return there
    fields = [_whole(field.type, parts) for field in type_]
    mask = pc.invert(there) if pc.any(pc.invert(there)).as_py() else None
    if not fields:
        return pa.StructArray.from_buffers(type_, len(there), [None], children=[])
    return pa.StructArray.from_arrays(fields, fields=list(type_), mask=mask)
