"""One row of each key: which rows of a batch take the place of the one that is kept. Deduplication.

``table`` int32 (2**k, 3), k such that it has room for twice the rows: slot, row that is kept, what was there before the
batch.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from flowsql_compute.compiler.declare import device, kernel

#: What a row came in place of, beside rows of the batch: none, and the one in state.
NOTHING, STORED, STAYS_OUT = -1, -2, -3

_U = np.uint64
_MIX = np.uint64(0x9E3779B97F4A7C15)


def table_for(n: int) -> npt.NDArray[np.int32]:
    """A table for the slots of so many rows."""
    return np.empty((max(16, 1 << (2 * n - 1).bit_length()), 3), np.int32)


@device
def _place(slot, table):
    """Where a slot stands in the table, or may be put."""
    mask = len(table) - 1
    at = np.int64((_U(slot + 1) * _MIX) >> _U(32)) & mask
    while table[at, 0] != slot and table[at, 0] >= 0:
        at = (at + 1) & mask
    return at


@kernel(
    "void(int32[::1], boolean[::1], boolean, boolean, boolean, int64[::1], int64[::1], int32[:,::1], int32[::1],"
    " boolean[::1])"
)
def replace(slots, known, by_time, last, net, times, stored_times, table, replaced, stays):
    """Rows that take the place of their slot's row, in order.

    Args:
        known: whether the slot had a row before the batch, (n,); ``stored_times`` of it, by row.
        by_time: the row time decides: the latest stays (``last``; of equal ones the row that came last), or the
            earliest (of equal ones the row that came first). Else each row does (``last``), or only the first one.
        replaced: gets the row of the batch that a row came in place of, or ``NOTHING``, ``STORED``, ``STAYS_OUT``;
            ``net``: what its slot had before the batch, ``NOTHING`` or ``STORED``.
        stays: gets whether a row is its slot's after the batch.
    """
    table[:, 0] = -1
    for i in range(len(slots)):
        at = _place(slots[i], table)
        stays[i] = False
        if table[at, 0] < 0:
            table[at, 0] = slots[i]
            table[at, 1] = STORED if known[i] else NOTHING
            table[at, 2] = table[at, 1]
        holder = np.int64(table[at, 1])
        takes = True
        if holder != NOTHING:
            if by_time:
                held = stored_times[i] if holder == STORED else times[holder]
                takes = times[i] >= held if last else times[i] < held
            else:
                takes = last
        if not takes:
            replaced[i] = STAYS_OUT
            continue
        replaced[i] = table[at, 2] if net else holder
        if holder >= 0:
            stays[holder] = False
        stays[i] = True
        table[at, 1] = i


@kernel(
    "int64(int32[::1], int64[::1], int64[::1], int64, int64[::1], int8[::1], int32[:,::1], int32[::1], boolean[::1])"
)
def wait(slots, times, watermarks, floor, stored_times, states, table, replaced, stays):
    """The earliest row of each slot, which leaves for good with the first watermark that reaches its time.

    Args:
        watermarks: before each row, not falling; ``floor`` at the start of the batch.
        states: of the slot before the batch: 0 nothing, 1 a row waits (``stored_times``), 2 a row has left.
        replaced: as of :func:`replace`: what waits no longer because of the row.
        stays: gets whether a row waits after the batch, or left in it.

    Returns:
        How many rows came too late: before their watermark.
    """
    late = 0
    table[:, 0] = -1
    for i in range(len(slots)):
        at = _place(slots[i], table)
        stays[i] = False
        replaced[i] = STAYS_OUT
        if table[at, 0] < 0:
            table[at, 0] = slots[i]
            table[at, 1] = NOTHING if states[i] == 0 else STORED
        if times[i] < watermarks[i]:
            late += 1
            continue
        holder = np.int64(table[at, 1])
        held = np.int64(0)
        if holder == STORED:
            if states[i] == 2 or (stored_times[i] <= watermarks[i] and watermarks[i] > floor):
                continue
            held = stored_times[i]
        elif holder >= 0:
            held = times[holder]
            if held <= watermarks[i] and watermarks[i] > watermarks[holder]:
                continue
        if holder == NOTHING or times[i] < held:
            replaced[i] = holder
            if holder >= 0:
                stays[holder] = False
            stays[i] = True
            table[at, 1] = i
    return late
