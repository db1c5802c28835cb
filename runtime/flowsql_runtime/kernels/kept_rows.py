"""Rows that stay in the batches that they arrived in: links by slot, and gathering over many arrays.

``links`` int32 (rows, 2): the row of the slot before it, its batch. ``ends`` as in ``row_list``. Addresses are those of
the buffers of each batch's column, which the caller keeps alive.
"""

from __future__ import annotations

import numpy as np

from flowsql_compute.compiler.declare import kernel
from flowsql_compute.kernels.memory import copy_far, far8, far32, far64, store64
from flowsql_runtime.kernels.row_list import COUNT, NEWEST, OLDER

_BATCH = 1


@kernel("void(int32[::1], int64, int32, int32[:,::1], int32[:,::1])")
def link(slots, first, batch, links, ends):
    """Rows ``first ..`` of ``batch`` join the lists of their slots; slot -1 takes no part."""
    for i in range(len(slots)):
        slot = slots[i]
        row = first + i
        links[row, OLDER] = -1
        links[row, _BATCH] = batch
        if slot < 0:
            continue
        if ends[slot, COUNT]:
            links[row, OLDER] = ends[slot, NEWEST]
        ends[slot, NEWEST] = row
        ends[slot, COUNT] += 1


@kernel("void(int32[::1], int32[:,::1], int64[::1], int64[::1], int32[::1], int32[::1])")
def locate(ids, links, firsts, selections, batches, places):
    """Batch and position in its columns of each row; ``selections``: address of a batch's int32 positions, or 0."""
    for i in range(len(ids)):
        batch = links[ids[i], _BATCH]
        place = ids[i] - firsts[batch]
        if selections[batch]:
            place = np.int64(far32(selections[batch] + 4 * place))
        batches[i] = batch
        places[i] = place


@kernel("void(int32[::1], int32[::1], int64[::1], int64, uint8[::1])")
def gather_fixed(batches, places, data, width, out):
    """Values of ``width`` bytes side by side."""
    if width == 8:
        for i in range(len(batches)):
            store64(out, 8 * i, far64(data[batches[i]] + 8 * np.int64(places[i])))
    else:
        for i in range(len(batches)):
            copy_far(out, width * i, data[batches[i]] + width * np.int64(places[i]), width)


@kernel("int64(int32[::1], int32[::1], int64[::1], int64[::1], int64[::1], int64[::1])")
def measure(batches, places, offsets, data, ends, addresses):
    """Offsets (n + 1) of strings, and the address of each; returns the sum of lengths."""
    used = np.int64(0)
    for i in range(len(batches)):
        batch = batches[i]
        at = offsets[batch] + 4 * np.int64(places[i])
        start = far32(at)
        ends[i] = used
        addresses[i] = data[batch] + start
        used += far32(at + 4) - start
    ends[len(batches)] = used
    return used


@kernel("void(int64[::1], int64[::1], uint8[::1])")
def gather_bytes(addresses, ends, out):
    """The strings that :func:`measure` found, side by side."""
    for i in range(len(addresses)):
        copy_far(out, ends[i], addresses[i], ends[i + 1] - ends[i])


@kernel("int64(int32[::1], int32[::1], int64[::1], int64[::1], boolean[::1])")
def gather_bits(batches, places, bitmaps, shifts, out):
    """The bit of each row (validity, BOOLEAN), True where a batch has no bits (address 0); returns how many are not."""
    missing = 0
    for i in range(len(batches)):
        batch = batches[i]
        out[i] = True
        if bitmaps[batch]:
            at = shifts[batch] + places[i]
            if not (far8(bitmaps[batch] + (at >> 3)) >> (at & 7)) & 1:
                out[i] = False
                missing += 1
    return missing
