"""Which version of a row was valid when: the timers of keys of a temporal join over the watermarks and rows of a batch.

Pure functions over arrays. A key waits for the earliest time of what came since its timer fired last and of the left
rows that still wait. When it fires, all left rows up to the watermark get their versions, and versions before the one
that is valid at the watermark go. An entry is a watermark of the batch: ``levels`` (m,) rising, ``offsets`` (m,) the
rows before each. Source: Flink, ``TemporalRowTimeJoinOperator``.
"""

from __future__ import annotations

import numpy as np

from flowsql_compute.compiler.declare import device, kernel
from flowsql_runtime.kernels.interval import NO_TIMER


@device
def _entry_of(levels, offsets, time, row):
    """The first watermark behind a row that reaches a time; row -1: any."""
    lo = np.int64(0)
    hi = np.int64(len(levels))
    while lo < hi:
        middle = (lo + hi) // 2
        if levels[middle] < time or offsets[middle] <= row:
            lo = middle + 1
        else:
            hi = middle
    return lo


@kernel("int64(int32[::1], int32[::1], int32[::1], int32[::1])")
def number_slots(slots, marks, distinct, numbers):
    """Number slots in order of first sight; returns how many there are.

    ``marks``: by slot, -1 before and after. ``distinct`` (n,) gets the slots, ``numbers`` (n,) the number of each.
    """
    count = np.int64(0)
    for i in range(len(slots)):
        slot = slots[i]
        if marks[slot] < 0:
            marks[slot] = count
            distinct[count] = slot
            count += 1
        numbers[i] = marks[slot]
    for k in range(count):
        marks[distinct[k]] = -1
    return count


@kernel("void(int64[::1], int32[::1], int32[::1], int64[::1], int32[::1])")
def entries_of(times, rows, offsets, levels, entries):
    """The watermark at which each left row is due, the number of watermarks for none in the batch."""
    for i in range(len(times)):
        entries[i] = _entry_of(levels, offsets, times[i], np.int64(rows[i]))


@kernel(
    "void(int64[::1], int64[::1], int32[::1], int64[::1], int64[::1], int32[::1], uint8[::1], int64[::1], int32[::1],"
    " int64[::1], int32[::1], int64[::1], int64[::1], int32[::1], int64[::1])"
)
def join(
    left_starts, left_times, left_entries, version_starts, version_times, version_rows, alive, arriving_starts,
    arriving_rows, arriving_times, offsets, levels, timers, versions, fires,
):  # fmt: skip
    """Let the timers of keys fire.

    Args:
        left_starts: (g + 1,) left rows of each key in ``left_times``, by the watermark at which they are due, then in
            order of arrival; rows that are not due in the batch last: the earliest one of those that were there before,
            and those of the batch.
        left_entries: (rows,) those watermarks.
        version_starts: (g + 1,) versions of each key in ``version_times``, by time, then arrival; ``version_rows``: row
            of the batch, -1 for one that was there before. ``alive``: 1; 0 at return for those that went.
        arriving_starts: (g + 1,) right rows of the batch of each key, in order: row and time.
        timers: (g,) as they are; as they are after the batch at return.
        versions: (rows,) the version of each left row that is due, -1 for none.
        fires: (rows,) the time of the timer that each left row left with.
    """
    m = len(levels)
    for g in range(len(timers)):
        left = left_starts[g]
        last_left = left_starts[g + 1]
        first = version_starts[g]
        last = version_starts[g + 1]
        arriving = arriving_starts[g]
        end = arriving_starts[g + 1]
        pending = timers[g]
        since = np.int64(-1)
        while True:
            entry = np.int64(m)
            if left < last_left:
                entry = np.int64(left_entries[left])
            if pending != NO_TIMER:
                entry = min(entry, _entry_of(levels, offsets, pending, since))
            # Right rows that come before that may make the key wait for less.
            if arriving < end and (entry == m or arriving_rows[arriving] < offsets[entry]):
                if pending == NO_TIMER or arriving_times[arriving] < pending:
                    pending = arriving_times[arriving]
                    since = np.int64(arriving_rows[arriving])
                arriving += 1
                continue
            if entry == m:
                break
            level = levels[entry]
            seen = offsets[entry]
            timer = pending
            stop = left
            while stop < last_left and left_entries[stop] == entry:
                if timer == NO_TIMER or left_times[stop] < timer:
                    timer = left_times[stop]
                stop += 1
            for row in range(left, stop):
                fires[row] = timer
                lo = first
                hi = last
                while lo < hi:
                    middle = (lo + hi) // 2
                    if version_times[middle] <= left_times[row]:
                        lo = middle + 1
                    else:
                        hi = middle
                at = lo - 1
                while at >= first and not (alive[at] and version_rows[at] < seen):
                    at -= 1
                versions[row] = at if at >= first else -1
            left = stop
            # The version that is valid at the watermark stays, those before it go.
            at = last - 1
            while at >= first and not (version_times[at] <= level and alive[at] and version_rows[at] < seen):
                at -= 1
            at -= 1
            while at >= first:
                if version_rows[at] < seen:
                    alive[at] = 0
                at -= 1
            while first < last and not alive[first]:
                first += 1
            pending = np.int64(NO_TIMER)
        for row in range(left, last_left):
            if pending == NO_TIMER or left_times[row] < pending:
                pending = left_times[row]
        timers[g] = pending
