"""Sorting by row time: which rows come behind a row of a later time that has left already."""

from __future__ import annotations

import numpy as np

from flowsql_compute.compiler.declare import device, kernel


@device
def _push(heap, size, value):
    at = size
    heap[at] = value
    while at > 0 and heap[(at - 1) // 2] > heap[at]:
        parent = (at - 1) // 2
        heap[parent], heap[at] = heap[at], heap[parent]
        at = parent


@device
def _pop(heap, size):
    """Take the least of ``size`` values out; it stays behind the others."""
    least = heap[0]
    last = size - 1
    heap[0] = heap[last]
    heap[last] = least
    at = 0
    while True:
        below = 2 * at + 1
        if below >= last:
            break
        if below + 1 < last and heap[below + 1] < heap[below]:
            below += 1
        if heap[at] <= heap[below]:
            break
        heap[at], heap[below] = heap[below], heap[at]
        at = below


@kernel("int64(int64[::1], int32[::1], int64[::1], int64[::1], int64, int64[::1], boolean[::1])")
def too_late(times, offsets, watermarks, waiting, left, heap, late):
    """Rows of a time that is not after the last one that has left, in order.

    Args:
        times: of the rows (n,). ``offsets``, ``watermarks``: as of a watermark track.
        waiting: times of rows in state, rising. ``left``: the last time that has left.
        heap: (n,) working memory.
        late: gets whether a row is too late.

    Returns:
        The last time that has left after the batch.
    """
    size = np.int64(0)
    stored = np.int64(0)
    entry = np.int64(0)
    for i in range(len(times) + 1):
        while entry < len(offsets) and offsets[entry] <= i:
            watermark = watermarks[entry]
            entry += 1
            while stored < len(waiting) and waiting[stored] <= watermark:
                left = max(left, waiting[stored])
                stored += 1
            while size > 0 and heap[0] <= watermark:
                left = max(left, heap[0])
                _pop(heap, size)
                size -= 1
        if i == len(times):
            break
        late[i] = times[i] <= left
        if not late[i]:
            _push(heap, size, times[i])
            size += 1
    return left
