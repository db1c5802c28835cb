"""BITMAP columns: serialised RoaringBitmaps in an Arrow binary column, taken apart to sorted values and put together.

A column always holds the canonical bytes of a set (run-optimised portable form), so that equal sets have equal bytes.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flowsql_compute.eval.columns import Bools, make_strings, string_buffers, validity, values_and_validity
from flowsql_compute.eval.nested.lists import packed
from flowsql_compute.kernels.contiguous import for_kernel
from flowsql_core.errors import ExecutionError
from flowsql_core.record import record

Int64s = npt.NDArray[np.int64]
#: Offsets of text columns have 32 bits.
_MOST_BYTES = 2**31 - 1


@record
class Sets:
    """Row i is ``values[starts[i]:starts[i + 1]]``, uint32 ascending; ``valid`` as in ``columns``."""

    starts: Int64s
    values: npt.NDArray[np.uint32]
    valid: Bools | None


def cardinality(column: pa.Array) -> Int64s:
    """The number of values a row, 0 of NULL, shape (n,).

    Raises:
        ExecutionError: bytes that are no bitmap.
    """
    from flowsql_compute.kernels.roaring import cardinalities

    offsets, data = string_buffers(column)
    valid = validity(column)
    counts = np.empty(len(column), dtype=np.int64)
    known = np.ones(len(column), dtype=np.bool_) if valid is None else valid
    cardinalities(for_kernel(offsets), for_kernel(data), for_kernel(known), counts)
    if np.any(counts < 0):
        raise ExecutionError("bad-bitmap", "Failed to deserialize bitmap from bytes.")
    return counts


def read_sets(column: pa.Array) -> Sets:
    """The values of every bitmap of a binary column."""
    from flowsql_compute.kernels.roaring import decode

    starts = _starts(cardinality(column))
    values = np.empty(int(starts[-1]), dtype=np.uint32)
    offsets, data = string_buffers(column)
    decode(for_kernel(offsets), for_kernel(data), starts, values)
    return Sets(starts, values, validity(column))


def write_sets(sets: Sets) -> pa.Array:
    """The binary column of sets; NULL rows take no bytes."""
    from flowsql_compute.kernels.roaring import encode, encode_scattered, encoded_sizes

    sizes, scattered = np.empty((2, len(sets.starts) - 1), dtype=np.int64)
    encoded_sizes(sets.starts, sets.values, sizes, scattered)
    if sets.valid is not None:
        sizes[~sets.valid] = 0
    offsets = _starts(sizes).astype(np.int32)
    out = np.zeros(int(offsets[-1]), dtype=np.uint8)
    encode_scattered(sets.starts, sets.values, scattered, offsets, out)
    encode(sets.starts, sets.values, scattered, offsets, out)
    return make_strings(offsets, out, sets.valid, pa.binary())


def sets_of_lists(lists: pa.Array) -> Sets:
    """The sets of INT lists: NULL elements left out, negative numbers above the positive ones."""
    # A NULL row may have elements below it, which do not count.
    rows, flat = packed(lists)
    numbers, known = values_and_validity(flat)
    owners = rows.owners()
    if known is not None:
        numbers, owners = numbers[known], owners[known]
    # Row and value in one word: sorted words are sorted sets behind each other.
    words = owners.astype(np.uint64) << np.uint64(32) | numbers.view(np.uint32)
    if np.any(words[1:] <= words[:-1]):
        words = np.sort(words)
        words = words[np.append(True, words[1:] != words[:-1])] if len(words) else words
    counts = np.bincount((words >> np.uint64(32)).astype(np.int64), minlength=len(lists))
    return Sets(_starts(counts), words.astype(np.uint32), validity(lists))


def combined(left: Sets, right: Sets, kept: int) -> Sets:
    """A set operation row by row; ``kept`` as in ``kernels.roaring.combine``; NULL where one is NULL."""
    from flowsql_compute.kernels.roaring import combine

    n = len(left.starts) - 1
    starts = np.empty(n + 1, dtype=np.int64)
    out = np.empty(len(left.values) + len(right.values), dtype=np.uint32)
    written = combine(kept, left.starts, left.values, right.starts, right.values, starts, out)
    valid = left.valid if right.valid is None else right.valid if left.valid is None else left.valid & right.valid
    return Sets(starts, out[:written], valid)


def bitmap_text(column: pa.Array) -> pa.Array:
    """``{1,2,3}`` for each bitmap, numbers unsigned and ascending."""
    from flowsql_compute.kernels.roaring import write_texts

    sets = read_sets(column)
    room = 11 * len(sets.values) + 2 * len(column)
    if room > _MOST_BYTES:
        raise ExecutionError(
            "bitmap-too-large", f"{len(sets.values)} values of bitmaps are too many for one text column"
        )
    offsets, out = np.empty(len(column) + 1, dtype=np.int32), np.empty(room, dtype=np.uint8)
    written = write_texts(sets.starts, sets.values, offsets, out)
    return make_strings(offsets, out[:written], sets.valid, pa.string())


def _starts(sizes: npt.NDArray[np.signedinteger]) -> Int64s:
    starts = np.zeros(len(sizes) + 1, dtype=np.int64)
    np.cumsum(sizes, out=starts[1:])
    return starts
