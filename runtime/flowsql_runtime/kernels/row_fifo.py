"""Linked rows by slot that leave in the order in which they came. Arrays as of ``kernels/row_list.py``.

The row after a row is in its second link; after the newest one comes the oldest, so that both ends are known.
"""

from __future__ import annotations

from flowsql_compute.compiler.declare import kernel
from flowsql_runtime.kernels.row_list import COUNT, FREE, LIVE, NEWER, NEWEST, OLDER, SAME, SLOT, new_row


@kernel("void(int32[::1], int64[:,::1], int64[:,::1], int32[:,::1], int32[:,::1], int64[::1], int32[::1])")
def append(slots, words, rows, links, ends, meta, out):
    """Put all rows of ``words`` (n, w) in, in order; ``out``: their ids. Slot -1 takes no part."""
    for i in range(len(slots)):
        slot = slots[i]
        out[i] = -1
        if slot < 0:
            continue
        row = new_row(links, meta)
        for j in range(words.shape[1]):
            rows[row, j] = words[i, j]
        links[row, SAME] = -1
        links[row, SLOT] = slot
        if ends[slot, COUNT]:
            newest = ends[slot, NEWEST]
            links[row, OLDER] = newest
            links[row, NEWER] = links[newest, NEWER]
            links[newest, NEWER] = row
        else:
            links[row, OLDER] = -1
            links[row, NEWER] = row
        ends[slot, NEWEST] = row
        ends[slot, COUNT] += 1
        out[i] = row


@kernel("void(int32[::1], int64[::1], int32[:,::1], int32[:,::1], int32[::1], int32[::1])")
def first(slots, starts, links, ends, probes, found):
    """The oldest rows of each slot: ``starts[i + 1] - starts[i]`` of slot i, which has so many."""
    for i in range(len(slots)):
        if starts[i] == starts[i + 1]:
            continue
        row = links[ends[slots[i], NEWEST], NEWER]
        for at in range(starts[i], starts[i + 1]):
            probes[at] = i
            found[at] = row
            row = links[row, NEWER]


@kernel("void(int32[::1], int64[::1], int64, int64[:,::1], int32[:,::1], int32[:,::1], int32[::1])")
def count_below(slots, limits, word, rows, links, ends, out):
    """How many of the oldest rows of each slot have less than its limit in a word, up to the first that has not."""
    for i in range(len(slots)):
        slot = slots[i]
        out[i] = 0
        if slot < 0 or slot >= len(ends) or not ends[slot, COUNT]:
            continue
        row = links[ends[slot, NEWEST], NEWER]
        while out[i] < ends[slot, COUNT] and rows[row, word] < limits[i]:
            out[i] += 1
            row = links[row, NEWER]


@kernel("void(int32[::1], int32[::1], int32[:,::1], int32[:,::1], int64[::1])")
def drop_first(slots, counts, links, ends, meta):
    """Free the oldest rows of distinct slots, which have so many."""
    for i in range(len(slots)):
        if not counts[i]:
            continue
        slot = slots[i]
        newest = ends[slot, NEWEST]
        row = links[newest, NEWER]
        for _ in range(counts[i]):
            newer = links[row, NEWER]
            links[row, SLOT] = -1
            links[row, OLDER] = meta[FREE] - 1
            meta[FREE] = row + 1
            meta[LIVE] -= 1
            row = newer
        ends[slot, COUNT] -= counts[i]
        if ends[slot, COUNT]:
            links[newest, NEWER] = row
