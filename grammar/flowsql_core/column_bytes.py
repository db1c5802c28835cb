"""Bytes of variable-length columns: how many each row takes, and what to do where they are too many for one array.

Arrow's strings have 32-bit offsets: the values of one array take 2 GiB at most. A gather or a concatenation that makes
more gives *wide* arrays (64-bit offsets inside). No batch that flows has wide columns:
``ChangelogBatch.within_offsets`` cuts it and gives its parts the usual types again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flowsql_core.arrow import compute as pc

Int64s = npt.NDArray[np.int64]

#: Bytes that the values of one column of a batch take at most.
MOST_BYTES: Final = 2**31 - 1


def row_bytes(array: Any) -> Int64s | None:
    """Bytes of each value, of lists also their elements, int64 (n,); None for types of fixed width."""
    type_ = array.type
    if pa.types.is_struct(type_):
        total: Int64s | None = None
        for index in range(type_.num_fields):
            found = row_bytes(array.field(index))
            if found is not None:
                total = found if total is None else total + found
        return total
    if pa.types.is_list(type_) or pa.types.is_map(type_):
        offsets = _offsets(array, np.int32)
        inner = row_bytes(array.values)
        sizes = np.diff(offsets)
        if inner is None:
            return sizes
        ends = np.concatenate((np.zeros(1, np.int64), np.cumsum(inner)))
        return sizes + ends[offsets[1:]] - ends[offsets[:-1]]
    if pa.types.is_string(type_) or pa.types.is_binary(type_):
        return np.diff(_offsets(array, np.int32))
    if pa.types.is_large_string(type_) or pa.types.is_large_binary(type_):
        return np.diff(_offsets(array, np.int64))
    return None


def _text_bytes_at(array: Any, rows: npt.NDArray[Any]) -> Int64s | None:
    """Bytes of the values at ``rows``, for types whose values are bytes; their cost is that of the rows."""
    type_ = array.type
    if pa.types.is_string(type_) or pa.types.is_binary(type_):
        kind: Any = np.int32
    elif pa.types.is_large_string(type_) or pa.types.is_large_binary(type_):
        kind = np.int64
    else:
        return None
    buffer = array.buffers()[1]
    if not len(array) or buffer is None:
        return np.zeros(len(rows), np.int64)
    offsets = np.frombuffer(buffer, kind, len(array) + 1, array.offset * np.dtype(kind).itemsize)
    found: Int64s = (offsets[1:][rows] - offsets[rows]).astype(np.int64)
    return found


def _offsets(array: Any, kind: Any) -> Int64s:
    buffer = array.buffers()[1]
    if not len(array) or buffer is None:
        return np.zeros(len(array) + 1, np.int64)
    start = array.offset * np.dtype(kind).itemsize
    return np.frombuffer(buffer, kind, len(array) + 1, start).astype(np.int64)


def ranges_within(sizes: npt.NDArray[Any], most: int) -> Iterator[tuple[int, int]]:
    """Cut rows so that the sizes of each part add up to at most ``most``: (first, last) of each, at least one part.

    ``sizes`` (n,). A row that is larger is a part of its own.
    """
    ends = np.cumsum(sizes, dtype=np.int64)
    n, first = len(ends), 0
    while True:
        before = int(ends[first - 1]) if first else 0
        last = int(np.searchsorted(ends, before + most, side="right"))
        last = min(max(last, first + 1), n)
        yield first, last
        if last >= n:
            return
        first = last


def bytes_of_rows(array: Any, rows: npt.NDArray[Any] | None, n: int) -> Int64s | None:
    """Bytes of each of the ``n`` values at ``rows`` (None: all); None if together they take no more than MOST_BYTES."""
    if array.get_total_buffer_size() * (1 if rows is None else n) <= MOST_BYTES:
        return None
    found = None if rows is None else _text_bytes_at(array, rows)
    if found is None:
        found = row_bytes(array)
        if found is None or int(found.max(initial=0)) * n <= MOST_BYTES:
            return None
        if rows is not None:
            found = found[rows]
    return None if int(found.sum()) <= MOST_BYTES else found


def fit_together(arrays: Sequence[Any]) -> bool:
    """Whether the values of arrays take no more than MOST_BYTES."""
    if sum(array.get_total_buffer_size() for array in arrays) <= MOST_BYTES:
        return True
    sizes = [found for array in arrays if (found := row_bytes(array)) is not None]
    return sum(int(found.sum()) for found in sizes) <= MOST_BYTES


def taken(array: Any, rows: npt.NDArray[Any], missing: npt.NDArray[np.bool_] | None = None) -> Any:
    """Values at positions (in any order, repeated or not; NULL where ``missing``); wide where they are too many."""
    if bytes_of_rows(array, rows, len(rows)) is not None:
        array = pc.cast(array, wide_type(array.type))
    return pc.take(array, pa.array(rows, mask=missing), boundscheck=False)


def joined(arrays: Sequence[Any]) -> Any:
    """The values of arrays of one type, some of which may be wide; wide where they are too many."""
    if len({array.type for array in arrays}) > 1 or not fit_together(arrays):
        arrays = [pc.cast(array, wide_type(array.type)) for array in arrays]
    return pa.concat_arrays(arrays)


def narrow(array: Any) -> Any:
    """A wide array whose values are few enough with 32-bit offsets; any other one as it is."""
    type_ = usual_type(array.type)
    if type_ == array.type:
        return array
    if pa.types.is_nested(type_):
        # The cast looks at the last offset of each child, so these have to start anew.
        return pc.cast(pc.take(array, pa.array(np.arange(len(array)))), type_)
    offsets = _offsets(array, np.int64)
    valid, _, data = array.buffers()
    first, last = int(offsets[0]), int(offsets[-1])
    text = pa.py_buffer(b"") if data is None else data.slice(first, last - first)
    if valid is not None and array.offset:
        valid = pc.is_valid(array).buffers()[1]
    return pa.Array.from_buffers(type_, len(array), [valid, pa.py_buffer((offsets - first).astype(np.int32)), text])


def wide_type(type_: Any) -> Any:
    """The type with 64-bit offsets of bytes in it."""
    return _with_strings(type_, pa.large_string(), pa.large_binary())


def usual_type(type_: Any) -> Any:
    """The type with 32-bit offsets in it."""
    return _with_strings(type_, pa.string(), pa.binary())


def _with_strings(type_: Any, string: Any, binary: Any) -> Any:
    if pa.types.is_string(type_) or pa.types.is_large_string(type_):
        return string
    if pa.types.is_binary(type_) or pa.types.is_large_binary(type_):
        return binary
    if pa.types.is_struct(type_):
        return pa.struct([_field(field, string, binary) for field in type_])
    if pa.types.is_map(type_):
        return pa.map_(_field(type_.key_field, string, binary), _field(type_.item_field, string, binary))
    if pa.types.is_list(type_):
        return pa.list_(_field(type_.value_field, string, binary))
    return type_


def _field(field: Any, string: Any, binary: Any) -> Any:
    return field.with_type(_with_strings(field.type, string, binary))
