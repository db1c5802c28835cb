"""Keys: canonical words and bytes of key columns, their hash, key groups, and which subtask owns which group.

Canonical bytes of a row, fixed for savepoints (version 1): for each column in order the value as 8-byte little-endian
words (integers, dates, times, timestamps in their own unit, BOOLEAN as 0/1: one signed word; FLOAT and DOUBLE: the bits
of the double with -0.0 as 0.0 and one NaN; DECIMAL: unscaled value without trailing zeros, low word, high word, scale;
character and binary strings: the bytes, then their length as one word; CHAR values carry their padding, as Flink
compares them; NULL: zero words, an empty string); ROW: its fields; ARRAY, MAP and MULTISET: the bytes that
``eval.value_bytes`` makes of them, as a binary string. Behind the columns stand the NULL bits, bit i of word j for
flattened column 64 * j + i: first words 1, 2 .. of keys of more than 64 flattened columns, in every row; then word 0,
only in rows where it is not 0. The hash is XXH64 with seed 0 over these bytes.

The zeros have one hash, so that they meet in one subtask, but they are two keys (``KeyIdentity``): the words of a key
column, by which state finds a key, hold the bits of FLOAT and DOUBLE. :func:`by_value` makes one key of them for
operators that compare values.

Source: Flink, ``KeyGroupRangeAssignment`` (rules for key groups, operator indexes and the default maximum).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flowsql_compute.eval.columns import floating_bits, validity, values_and_validity
from flowsql_core.arrow import compute as pc
from flowsql_core.batch import PyObjectColumn
from flowsql_core.record import record

VERSION: Final = 1
LOWEST_MAX_PARALLELISM: Final = 128
HIGHEST_MAX_PARALLELISM: Final = 32768

Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]
UInt64s = npt.NDArray[np.uint64]
Bools = npt.NDArray[np.bool_]

#: Columns whose NULL bits stand in one word.
MASK_BITS: Final = 64

_MINUS_ZERO_BITS: Final = np.int64(-(2**63))


@record
class FixedColumn:
    """A key column as words: ``words`` (n,) int64 each, 0 at NULL; ``valid`` (n,) or None without NULLs.

    ``floating``: the words are bits of doubles.
    """

    words: tuple[Int64s, ...]
    valid: Bools | None
    floating: bool = False


@record
class BytesColumn:
    """A variable-length key column: ``starts`` and ``lengths`` int64 (n,) into ``data`` uint8; NULL has length 0."""

    starts: Int64s
    lengths: Int64s
    data: npt.NDArray[np.uint8]
    valid: Bools | None


KeyColumn = FixedColumn | BytesColumn


def is_bytes_type(type_: Any) -> bool:
    """Whether keys of this Arrow type are variable-length bytes."""
    return bool(
        pa.types.is_string(type_)
        or pa.types.is_large_string(type_)
        or pa.types.is_binary(type_)
        or pa.types.is_large_binary(type_)
        or pa.types.is_fixed_size_binary(type_)
    )


def key_columns(array: Any) -> Iterator[KeyColumn]:
    """The flat key columns of an Arrow array; a ROW gives one for itself and those of its fields."""
    type_ = array.type
    if pa.types.is_dictionary(type_):
        yield from key_columns(array.dictionary_decode())
    elif pa.types.is_struct(type_):
        valid = validity(array)
        yield FixedColumn((np.zeros(len(array), np.int64),), valid)
        for field in array.flatten():
            yield from key_columns(field)
    elif is_bytes_type(type_):
        yield bytes_column(array)
    elif pa.types.is_nested(type_):
        # Few jobs have collections as keys; what turns them into bytes takes time to load.
        from flowsql_compute.eval.nested.value_bytes import to_bytes

        yield bytes_column(to_bytes(array))
    else:
        yield fixed_column(array)


def fixed_column(array: Any) -> FixedColumn:
    """Words of a fixed-width Arrow array: one, or two (low, high) for DECIMAL of more than 18 digits."""
    type_ = array.type
    values, valid = values_and_validity(array)
    words: tuple[Int64s, ...]
    if values.ndim == 2:
        words = (values[:, 0].copy(), values[:, 1].copy())
    elif pa.types.is_floating(type_):
        words = (floating_bits(values),)
    elif pa.types.is_decimal(type_):
        words = (values.copy(),)
    else:
        words = (values.astype(np.int64, copy=False),)
    if valid is not None:
        words = tuple(np.where(valid, word, np.int64(0)) for word in words)
    return FixedColumn(words, valid, pa.types.is_floating(type_))


def has_floating(type_: Any) -> bool:
    """True if values of an Arrow type are FLOAT or DOUBLE or hold such values."""
    if pa.types.is_floating(type_):
        return True
    return pa.types.is_nested(type_) and any(has_floating(type_.field(i).type) for i in range(type_.num_fields))


def by_value(array: Any) -> Any:
    """Return a key column with 0.0 in place of -0.0: keys of operators that compare values (``KeyIdentity.VALUE``).

    NaN stays, and is one key: what such an operator does with it is its own matter. Values inside of ARRAYs, MAPs and
    ROWs count too.
    """
    type_ = array.type
    if not has_floating(type_):
        return array
    if pa.types.is_floating(type_):
        return pc.add(array, pa.scalar(0.0, type_))
    if pa.types.is_struct(type_):
        children = [by_value(array.field(i)) for i in range(type_.num_fields)]
        return pa.StructArray.from_arrays(children, fields=list(type_), mask=array.is_null())
    if pa.types.is_map(type_):
        entries = pa.struct([type_.key_field, type_.item_field])
        values = pa.StructArray.from_arrays([by_value(array.keys), by_value(array.items)], fields=list(entries))
    else:
        values = by_value(array.values)
    # The values are those of the whole array, of which this one may be a part.
    return pa.Array.from_buffers(type_, len(array), array.buffers()[:2], offset=array.offset, children=[values])


def bytes_column(array: Any) -> BytesColumn:
    """Starts, lengths and data of a string or binary Arrow array."""
    type_ = array.type
    n = len(array)
    valid = validity(array)
    if pa.types.is_fixed_size_binary(type_):
        array = pc.cast(array, pa.binary())
        type_ = array.type
    wide = pa.types.is_large_string(type_) or pa.types.is_large_binary(type_)
    _, offsets_buffer, data_buffer = array.buffers()
    kind: Any = np.int64 if wide else np.int32
    if n == 0 or offsets_buffer is None:
        empty = np.zeros(n, np.int64)
        return BytesColumn(empty, empty, np.zeros(0, np.uint8), valid)
    offsets = np.frombuffer(offsets_buffer, kind, count=n + 1, offset=array.offset * kind().itemsize).astype(np.int64)
    data = np.zeros(0, np.uint8) if data_buffer is None else np.frombuffer(data_buffer, np.uint8)
    lengths = np.diff(offsets)
    if valid is not None:
        lengths = np.where(valid, lengths, 0)
    return BytesColumn(offsets[:-1], lengths, data, valid)


def key_hash64(columns: Sequence[Any], num_rows: int | None = None) -> UInt64s:
    """XXH64 of each row's canonical key bytes, uint64 (n,).

    Args:
        columns: Arrow arrays of one length; of any type. Or columns of Python objects.
        num_rows: needed only when there is no column.
    """
    if len(columns) == 1 and isinstance(columns[0], PyObjectColumn):
        # Jobs without Python objects do not load what encodes them.
        from flowsql_compute.object_keys import key_hashes

        return key_hashes(columns[0].values, lambda column: key_hash64([column]))
    # Numba is loaded where a job first hashes, not where a stateless one imports this module.
    from flowsql_compute.kernels import hash as kernels
    from flowsql_compute.kernels.contiguous import for_kernel

    n = len(columns[0]) if columns else (num_rows or 0)
    flat = [(part, array.type) for array in map(_arrow_keys, columns) for part in key_columns(array)]
    masks, further_masks = null_masks([part.valid for part, _ in flat], n)
    out = np.empty(n, np.uint64)
    pieces: list[UInt64s | BytesColumn] = []
    run: list[Int64s] = []
    for part, type_ in flat:
        if isinstance(part, BytesColumn):
            if run:
                pieces.append(_interleave(run, n))
                run = []
            pieces.append(part)
        else:
            run.extend(_hashed_words(part, type_))
    run.extend(further_masks)
    if run or not pieces:
        pieces.append(_interleave(run, n))
    if len(pieces) == 1 and not isinstance(pieces[0], BytesColumn):
        kernels.xxh64_words(for_kernel(pieces[0]), masks, out)
        return out
    lengths = np.zeros(n, np.int64)
    for piece in pieces:
        lengths += piece.lengths + 8 if isinstance(piece, BytesColumn) else 8 * piece.shape[1]
    if masks.size:
        lengths += np.where(masks != 0, 8, 0)
    starts = np.zeros(n + 1, np.int64)
    np.cumsum(lengths, out=starts[1:])
    buffer = np.empty(int(starts[-1]), np.uint8)
    cursors = starts[:-1].copy()
    for piece in pieces:
        if isinstance(piece, BytesColumn):
            kernels.append_bytes(
                buffer, cursors, for_kernel(piece.starts), for_kernel(piece.lengths), for_kernel(piece.data)
            )
        else:
            kernels.append_words(buffer, cursors, for_kernel(piece))
    if masks.size:
        rows = np.flatnonzero(masks)
        at = cursors[rows]
        kernels.append_words(buffer, at, masks[rows].reshape(-1, 1))
    kernels.xxh64_rows(buffer, starts, np.uint64(0), out)
    return out


def _arrow_keys(column: Any) -> Any:
    if not isinstance(column, PyObjectColumn):
        return column
    # Jobs without Python objects do not load what encodes them.
    from flowsql_core.stream.keys import encoded_keys

    return encoded_keys(column.values)


def null_masks(validities: Sequence[Bools | None], n: int) -> tuple[UInt64s, list[Int64s]]:
    """NULL bits of rows, bit i of word j for column 64 * j + i.

    Returns:
        Word 0, uint64 (n,), empty when no column of it is NULL anywhere. Words 1, 2 .., int64 (n,) each, as many as the
        number of columns asks for, so that they are part of every key of these columns.
    """
    masks = np.zeros(0, np.uint64)
    further = [np.zeros(n, np.int64) for _ in range(further_mask_words(len(validities)))]
    for index, valid in enumerate(validities):
        if valid is None:
            continue
        if index < MASK_BITS and not masks.size:
            masks = np.zeros(n, np.uint64)
        target = masks if index < MASK_BITS else further[index // MASK_BITS - 1].view(np.uint64)
        target |= (~valid).astype(np.uint64) << np.uint64(index % MASK_BITS)
    return masks, further


def further_mask_words(columns: int) -> int:
    """Words of NULL bits beyond the first for keys of so many flattened columns."""
    return max(0, columns - 1) // MASK_BITS


def _interleave(words: list[Int64s], n: int) -> UInt64s:
    if len(words) == 1:
        return words[0].view(np.uint64).reshape(n, 1)
    joined = np.empty((n, len(words)), np.uint64)
    for index, word in enumerate(words):
        joined[:, index] = word.view(np.uint64)
    return joined


def _hashed_words(part: FixedColumn, type_: Any) -> Sequence[Int64s]:
    if part.floating:
        words = part.words[0]
        return [np.where(words == _MINUS_ZERO_BITS, np.int64(0), words)]
    return _canonical_decimal(part, type_) if pa.types.is_decimal(type_) else part.words


def _canonical_decimal(part: FixedColumn, type_: Any) -> list[Int64s]:
    from flowsql_compute.kernels import hash as kernels

    low = part.words[0].copy()
    high = part.words[1].copy() if len(part.words) == 2 else low >> 63
    scales = np.full(len(low), type_.scale, np.int64)
    kernels.strip_decimal_zeros(low, high, scales)
    return [low, high, scales]


def key_groups(columns: Sequence[Any], max_parallelism: int, num_rows: int | None = None) -> Int32s:
    """Key group of each row, int32 (n,) in ``[0, max_parallelism)``: the top bits of the hash."""
    return groups_of_hashes(key_hash64(columns, num_rows), max_parallelism)


def groups_of_hashes(hashes: UInt64s, max_parallelism: int) -> Int32s:
    """``(h >> 32) * max_parallelism >> 32``, int32 (n,)."""
    return (((hashes >> np.uint64(32)) * np.uint64(max_parallelism)) >> np.uint64(32)).astype(np.int32)


def subtask_of(groups: Int32s, max_parallelism: int, parallelism: int) -> Int32s:
    """Subtask that owns each key group: ``group * parallelism / max_parallelism``, int32 (n,)."""
    return (groups.astype(np.int64) * parallelism // max_parallelism).astype(np.int32)


def key_group_range(max_parallelism: int, parallelism: int, subtask: int) -> range:
    """Key groups of one subtask; the ranges of all subtasks part ``[0, max_parallelism)``."""
    start = (subtask * max_parallelism + parallelism - 1) // parallelism
    stop = ((subtask + 1) * max_parallelism - 1) // parallelism + 1
    return range(start, stop)


def default_max_parallelism(parallelism: int) -> int:
    """Flink's default: 1.5 times the parallelism rounded up to a power of two, at least 128, at most 32768."""
    wanted = parallelism + parallelism // 2
    power = 1 << max(0, wanted - 1).bit_length()
    return min(max(power, LOWEST_MAX_PARALLELISM), HIGHEST_MAX_PARALLELISM)
