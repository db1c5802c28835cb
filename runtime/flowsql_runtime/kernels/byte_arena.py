"""Byte strings in one array: 8 bytes of length, then the bytes; a reference is the position, 0 is NULL."""

from __future__ import annotations

from flowsql_core.kernels.lazy import device, kernel

#: First position in use, so that 0 can mean NULL.
START = 8


@device
def length_at(arena, at):
    """Length of the value at a reference."""
    length = 0
    for k in range(8):
        length |= int(arena[at + k]) << (8 * k)
    return length


@device
def compare(arena, x, y):
    """-1, 0 or 1 by unsigned bytes, as Flink compares strings."""
    a = length_at(arena, x)
    b = length_at(arena, y)
    for k in range(8, 8 + min(a, b)):
        if arena[x + k] != arena[y + k]:
            return -1 if arena[x + k] < arena[y + k] else 1
    return 0 if a == b else (-1 if a < b else 1)


@kernel("int64(int64[::1], int64[::1], uint8[::1], uint8[::1], int64, int64[::1])")
def append(starts, lengths, data, arena, used, refs):
    """Store each value; a negative length stores nothing and gives 0. Returns the new ``used``."""
    for i in range(len(starts)):
        length = lengths[i]
        if length < 0:
            refs[i] = 0
            continue
        refs[i] = used
        for k in range(8):
            arena[used + k] = (length >> (8 * k)) & 0xFF
        for k in range(length):
            arena[used + 8 + k] = data[starts[i] + k]
        used += 8 + length
    return used


@kernel("int64(int64[::1], uint8[::1], int32[::1], uint8[::1])")
def read(refs, arena, offsets, out):
    """Arrow offsets (n + 1) of the values and, if ``out`` is not empty, their bytes; returns the sum of lengths."""
    used = 0
    for i in range(len(refs)):
        offsets[i] = used
        at = refs[i]
        if at:
            length = length_at(arena, at)
            if out.size:
                for k in range(length):
                    out[used + k] = arena[at + 8 + k]
            used += length
    offsets[len(refs)] = used
    return used


@kernel("int64(int64[:,::1], int64, int32[::1], uint8[::1], uint8[::1], int64)")
def move(rows, column, slots, old, new, used):
    """Copy what ``rows[slots, column]`` refers to from ``old`` to ``new``; returns the new ``used``."""
    for i in range(len(slots)):
        at = rows[slots[i], column]
        if at:
            total = 8 + length_at(old, at)
            for k in range(total):
                new[used + k] = old[at + k]
            rows[slots[i], column] = used
            used += total
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
