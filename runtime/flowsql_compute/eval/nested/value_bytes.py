"""Collections as bytes of their own: keys and state that know flat columns alone keep ARRAYs, MAPs and MULTISETs so.

The bytes of one value are its parts column by column, as in a batch of one row: for each column of k values k bytes
that say which of them are there; then of a ROW its fields; of a collection k lengths (4 bytes) and the columns of all
its elements; of text and binary k lengths (4 bytes) and all bytes; of anything else k times 8 (16: DECIMAL of more than
18 digits) bytes; -0.0 is not 0.0, and NaN is one value. Equal values, a map's entries in equal order, have equal bytes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flowsql_compute.eval.columns import (
    Bools,
    floating_bits,
    make_array,
    make_strings,
    pack_validity,
    string_buffers,
    validity,
    values_and_validity,
)
from flowsql_compute.eval.nested.lists import Int64s, Ranges, make_list, packed
from flowsql_core import column_bytes

Bytes = npt.NDArray[np.uint8]


def is_collection(type_: Any) -> bool:
    """Whether values of an Arrow type are ARRAYs, MAPs or MULTISETs."""
    return bool(pa.types.is_list(type_) or pa.types.is_map(type_))


def to_bytes(array: Any) -> Any:
    """A binary Arrow array of the values of a column of collections, wide (``column_bytes``) where they take too much;
    NULL stays NULL."""
    n = len(array)
    valid = validity(array)
    there = np.ones(n, np.bool_) if valid is None else valid
    bounds = _ends(there.astype(np.int64))
    sections: list[tuple[Bytes, Int64s]] = []
    _write(array if valid is None else array.drop_null(), bounds, sections)
    offsets = _ends(sum((lengths for _, lengths in sections), np.zeros(n, np.int64)))
    data = np.empty(int(offsets[-1]), np.uint8)
    cursors = offsets[:-1].copy()
    for part, lengths in sections:
        data[Ranges(cursors, lengths, None).positions()] = part
        cursors += lengths
    if int(offsets[-1]) > column_bytes.MOST_BYTES:
        buffers = [pack_validity(valid), pa.py_buffer(offsets), pa.py_buffer(data)]
        return pa.Array.from_buffers(pa.large_binary(), n, buffers)
    return make_strings(offsets.astype(np.int32), data, valid, pa.binary())


def from_bytes(array: Any, type_: Any) -> Any:
    """The column of ``type_`` whose :func:`to_bytes` is ``array``."""
    valid = validity(array)
    offsets, data = string_buffers(array)
    there = np.ones(len(array), np.bool_) if valid is None else valid
    bounds = _ends(there.astype(np.int64))
    values = _read(type_, _Reader(data, offsets[:-1].astype(np.int64)), bounds)
    if valid is None:
        return values
    return values.take(pa.array(np.where(there, bounds[:-1], 0), mask=~there))


def _ends(sizes: Int64s) -> Int64s:
    """0 and the running sums, (n + 1,)."""
    ends = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=ends[1:])
    return ends


def _write(array: Any, bounds: Int64s, sections: list[tuple[Bytes, Int64s]]) -> None:
    """The sections of a column of whose values row i has ``bounds[i]`` to ``bounds[i + 1]``: bytes, and how many each
    row has."""
    type_, counts = array.type, np.diff(bounds)
    valid = validity(array)
    sections.append((np.ones(len(array), np.uint8) if valid is None else valid.view(np.uint8), counts))
    if pa.types.is_null(type_):
        return
    if pa.types.is_struct(type_):
        for field in array.flatten():
            _write(field, bounds, sections)
    elif is_collection(type_):
        rows, values = packed(array)
        sections.append((rows.sizes.astype(np.int32).view(np.uint8), 4 * counts))
        _write(values, _ends(rows.sizes)[bounds], sections)
    elif pa.types.is_string(type_) or pa.types.is_binary(type_):
        offsets, data = string_buffers(array)
        sizes: Int64s = np.diff(offsets).astype(np.int64)
        if valid is not None:
            sizes = np.where(valid, sizes, 0)
        sections.append((sizes.astype(np.int32).view(np.uint8), 4 * counts))
        taken = data[Ranges(offsets[:-1].astype(np.int64), sizes, None).positions()]
        sections.append((taken, np.diff(_ends(sizes)[bounds])))
    else:
        words = _words(array, valid)
        sections.append((words.reshape(-1).view(np.uint8), words.shape[1] * 8 * counts))


def _words(array: Any, valid: Bools | None) -> Int64s:
    """Fixed-width values as (n, 1 or 2) int64, 0 at NULL."""
    values, _ = values_and_validity(array)
    if pa.types.is_floating(array.type):
        values = floating_bits(values)
    words = np.array(values, dtype=np.int64)
    if words.ndim == 1:
        words = words.reshape(-1, 1)
    if valid is not None:
        words[~valid] = 0
    return words


class _Reader:
    """Where each row's next byte stands."""

    def __init__(self, data: Bytes, cursors: Int64s) -> None:
        self._data = data
        self._cursors = cursors

    def take(self, lengths: Int64s) -> Bytes:
        """The next bytes of each row, one behind another."""
        taken: Bytes = self._data[Ranges(self._cursors, lengths, None).positions()]
        self._cursors = self._cursors + lengths
        return taken


def _read(type_: Any, reader: _Reader, bounds: Int64s) -> Any:
    counts = np.diff(bounds)
    valid = reader.take(counts).view(np.bool_)
    n = len(valid)
    if pa.types.is_null(type_):
        return pa.nulls(n)
    if pa.types.is_struct(type_):
        fields = [_read(field.type, reader, bounds) for field in type_]
        return pa.Array.from_buffers(type_, n, [pack_validity(valid)], children=fields)
    if is_collection(type_):
        sizes = reader.take(4 * counts).view(np.int32).astype(np.int64)
        ends = _ends(sizes)
        return make_list(_read(_entry(type_), reader, ends[bounds]), sizes, valid, type_)
    if pa.types.is_string(type_) or pa.types.is_binary(type_):
        ends = _ends(reader.take(4 * counts).view(np.int32).astype(np.int64))
        return make_strings(ends.astype(np.int32), reader.take(np.diff(ends[bounds])), valid, type_)
    return _array_of_words(reader, counts, valid, type_)


def _entry(type_: Any) -> Any:
    return type_.value_type if pa.types.is_list(type_) else pa.struct([type_.key_field, type_.item_field])


def _array_of_words(reader: _Reader, counts: Int64s, valid: Bools, type_: Any) -> Any:
    width = 2 if pa.types.is_decimal(type_) and type_.precision > 18 else 1
    words = reader.take(width * 8 * counts).view(np.int64)
    if width == 2:
        return make_array(words.reshape(-1, 2), valid, type_)
    if pa.types.is_boolean(type_):
        return make_array(words != 0, valid, type_)
    if pa.types.is_floating(type_):
        return make_array(words.view(np.float64), valid, type_)
    return make_array(words, valid, type_)
