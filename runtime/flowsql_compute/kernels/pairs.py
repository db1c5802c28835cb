"""Kernel that cuts texts of pairs (``a=1,b=2``) into keys and values."""

from __future__ import annotations

import numpy as np

from flowsql_compute.compiler.declare import device, kernel


@device
def _next(data, at, end, mark):
    """Where ``mark`` (not empty) first stands in bytes [at, end); ``end`` when nowhere."""
    size = mark.size
    while at <= end - size:
        step = np.int64(0)
        while step < size and data[at + step] == mark[step]:
            step += 1
        if step == size:
            return at
        at += 1
    return end


@kernel(
    "int64(int32[::1], uint8[::1], boolean[::1], uint8[::1], uint8[::1], "
    "int64[::1], int64[::1], int64[::1], int64[::1], int64[::1])"
)
def pair_bounds(offsets, data, valid, pairs, between, key_low, key_high, value_low, value_high, sizes):
    """Byte ranges of the keys and values of each valid row, and how many pairs there are; returns the number of all.

    Pieces between ``pairs`` are cut at their first ``between``; ``value_low`` is -1 where there is none. Empty pieces
    at the end of a row do not count.
    """
    count = np.int64(0)
    for row in range(sizes.size):
        at = np.int64(offsets[row])
        end = np.int64(offsets[row + 1]) if valid[row] else at
        before = count
        # Behind the last piece that counts.
        counted = count
        while at < end:
            stop = _next(data, at, end, pairs)
            middle = _next(data, at, stop, between)
            key_low[count] = at
            key_high[count] = middle
            value_low[count] = middle + between.size if middle < stop else -1
            value_high[count] = stop
            count += 1
            if stop > at:
                counted = count
            at = stop + pairs.size
        count = counted
        sizes[row] = count - before
    return count
