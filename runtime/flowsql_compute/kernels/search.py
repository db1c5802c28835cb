"""Kernels that look for one text column in another: row i is ``data[offsets[i]:offsets[i + 1]]``, both UTF-8."""

from __future__ import annotations

import numpy as np

from flowsql_compute.compiler.declare import device, kernel


@device
def _stands_at(data, at, marks, low, size):
    """Whether ``marks[low:low + size]`` stands at ``at``, where there are at least so many bytes."""
    step = np.int64(0)
    while step < size and data[at + step] == marks[low + step]:
        step += 1
    return step == size


@kernel("void(int32[::1], uint8[::1], int32[::1], uint8[::1], int64[::1], int64[::1], int32[::1])")
def find_nth(offsets, data, mark_offsets, marks, first, nth, found):
    """Where the ``nth`` mark of a row begins, in characters from 1; 0 when nowhere. An empty mark stands at 1.

    Marks that begin before character ``first`` (from 0) do not count; those that do may overlap.
    """
    for row in range(found.size):
        low = np.int64(mark_offsets[row])
        size = np.int64(mark_offsets[row + 1]) - low
        found[row] = 0
        if size == 0:
            found[row] = 1
            continue
        begin = np.int64(offsets[row])
        last = np.int64(offsets[row + 1]) - size
        # The place of the character that holds the byte. Marks begin with the first byte of a character.
        place = np.int64(0)
        missing = nth[row]
        head = marks[low]
        for at in range(begin, last + 1):
            if at > begin and data[at] & 0xC0 != 0x80:
                place += 1
            if data[at] == head and place >= first[row] and _stands_at(data, at, marks, low, size):
                missing -= 1
                if missing == 0:
                    found[row] = place + 1
                    break


@kernel("void(int32[::1], uint8[::1], int32[::1], uint8[::1], boolean, boolean[::1])")
def stands_at_edge(offsets, data, mark_offsets, marks, behind, found):
    """Whether each row begins, or with ``behind`` ends, with its mark."""
    for row in range(found.size):
        low = np.int64(mark_offsets[row])
        size = np.int64(mark_offsets[row + 1]) - low
        begin = np.int64(offsets[row])
        end = np.int64(offsets[row + 1])
        found[row] = size <= end - begin and _stands_at(data, end - size if behind else begin, marks, low, size)
