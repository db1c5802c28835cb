"""Byte strings in one array. A reference is ``position << 24 | length``; 0 is NULL.

A length of ``LONG`` says that the length stands in the 8 bytes before the position.
"""

from __future__ import annotations

import numpy as np

from flowsql_compute.compiler.declare import device, kernel
from flowsql_compute.kernels.memory import copy_bytes, load64, store64

#: First position in use, so that 0 can mean NULL.
START = 8
LENGTH_BITS = 24
LONG = (1 << LENGTH_BITS) - 1
_U = np.uint64


@device
def length_at(arena, ref):
    """Length of the value at a reference."""
    length = ref & LONG
    if length == LONG:
        length = np.int64(load64(arena, (ref >> LENGTH_BITS) - 8))
    return length


@device
def compare(arena, x, y):
    """-1, 0 or 1 by unsigned bytes, as Flink compares strings."""
    a = length_at(arena, x)
    b = length_at(arena, y)
    at = x >> LENGTH_BITS
    other = y >> LENGTH_BITS
    shorter = min(a, b)
    k = np.int64(0)
    while k + 8 <= shorter and load64(arena, at + k) == load64(arena, other + k):
        k += 8
    while k < shorter:
        if arena[at + k] != arena[other + k]:
            return -1 if arena[at + k] < arena[other + k] else 1
        k += 1
    return 0 if a == b else (-1 if a < b else 1)


@kernel("int64(int64[::1], int64[::1], int64, int64[::1])")
def refer(starts, lengths, moved, refs):
    """References of values that were copied with all bytes between them, each ``moved`` bytes on.

    A negative length gives 0. Returns how many values are too long to be referred to so; their references are -1.
    """
    left = 0
    for i in range(len(starts)):
        length = lengths[i]
        if length < 0:
            refs[i] = 0
        elif length >= LONG:
            refs[i] = -1
            left += 1
        else:
            refs[i] = ((starts[i] + moved) << LENGTH_BITS) | length
    return left


@device
def _put(data, start, length, arena, used):
    """Store one value behind ``used``; returns the new ``used`` and the value's reference."""
    if length < 0:
        return used, np.int64(0)
    if length >= LONG:
        store64(arena, used, length)
        used += 8
    copy_bytes(arena, used, data, start, length)
    return used + length, (used << LENGTH_BITS) | min(length, LONG)


@kernel("int64(int64[::1], int64[::1], uint8[::1], uint8[::1], int64, int64[::1])")
def append(starts, lengths, data, arena, used, refs):
    """Store each value; a negative length stores nothing and gives 0. Returns the new ``used``."""
    for i in range(len(starts)):
        used, refs[i] = _put(data, starts[i], lengths[i], arena, used)
    return used


@kernel("int64(int32[::1], int64[::1])")
def bytes_wanted(offsets, chosen):
    """Bytes that :func:`append_chosen` stores at most for values ``chosen`` of a column."""
    total = np.int64(0)
    for i in range(len(chosen)):
        length = np.int64(offsets[chosen[i] + 1]) - offsets[chosen[i]]
        total += length + 8 if length >= LONG else length
    return total


@kernel(
    "int64(int32[::1], uint8[::1], int64, uint8[::1], int64[::1], uint8[::1], int64, int32[::1], int64[:,::1], int64)"
)
def append_chosen(offsets, bits, first_bit, data, chosen, arena, used, ids, rows, word):
    """Store values ``chosen`` of a column of Arrow's strings, their references in ``rows[ids, word]``.

    ``bits``: of its validity, from ``first_bit`` on; empty where no value is NULL. Returns the new ``used``.
    """
    for i in range(len(chosen)):
        at = chosen[i]
        length = np.int64(offsets[at + 1]) - offsets[at]
        if bits.size:
            place = first_bit + at
            if not (bits[place >> 3] >> (place & 7)) & 1:
                length = np.int64(-1)
        used, rows[ids[i], word] = _put(data, np.int64(offsets[at]), length, arena, used)
    return used


@kernel("int64(int64[::1], uint8[::1], int64[::1], uint8[::1])")
def read(refs, arena, offsets, out):
    """Offsets (n + 1) of the values and, if ``out`` is not empty, their bytes; returns the sum of lengths."""
    used = 0
    for i in range(len(refs)):
        offsets[i] = used
        ref = refs[i]
        if ref:
            length = length_at(arena, ref)
            if out.size:
                copy_bytes(out, used, arena, ref >> LENGTH_BITS, length)
            used += length
    offsets[len(refs)] = used
    return used


@kernel("int64(int64[::1], uint8[::1])")
def longest(refs, arena):
    """Bytes of the longest value."""
    found = np.int64(0)
    for i in range(len(refs)):
        if refs[i]:
            found = max(found, length_at(arena, refs[i]))
    return found


@kernel("int64(int64[:,::1], int64[::1], int32[::1], uint8[::1])")
def measure(rows, columns, slots, arena):
    """Bytes of the arena that ``rows[slots, columns]`` refer to."""
    total = np.int64(START)
    for i in range(len(slots)):
        row = np.int64(slots[i])
        for j in range(len(columns)):
            ref = rows[row, columns[j]]
            if ref:
                length = length_at(arena, ref)
                total += length + 8 if length >= LONG else length
    return total


@kernel("int64(int64[:,::1], int64, int32[::1], uint8[::1], uint8[::1], int64)")
def move(rows, column, slots, old, new, used):
    """Copy what ``rows[slots, column]`` refers to from ``old`` to ``new``; returns the new ``used``."""
    for i in range(len(slots)):
        ref = rows[slots[i], column]
        if ref:
            length = length_at(old, ref)
            if length >= LONG:
                store64(new, used, length)
                used += 8
            copy_bytes(new, used, old, ref >> LENGTH_BITS, length)
            rows[slots[i], column] = (used << LENGTH_BITS) | min(length, LONG)
            used += length
    return used


@kernel("void(int64[::1], int64[::1], uint8[::1], boolean[::1])")
def equal(left, right, arena, out):
    """Whether two references hold equal values (NULL equals NULL)."""
    for i in range(len(left)):
        if left[i] == right[i]:
            out[i] = True
        elif left[i] == 0 or right[i] == 0:
            out[i] = False
        else:
            out[i] = compare(arena, left[i], right[i]) == 0
