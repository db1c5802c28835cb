"""When rows of an interval join expire: timers of keys over the watermarks and the rows of one batch.

Pure functions over arrays. A key has at most one timer a side: set by the first row that is cached while there is none,
``kept_ms + idle_ms + 1`` behind the row's time; when it fires, what expired by then goes and the earliest row that is
left sets it anew. An entry is a watermark of the batch: ``levels`` (m,) rising, ``offsets`` (m,) the rows before each.
Source: Flink, ``TimeIntervalJoin``.
"""

from __future__ import annotations

import numpy as np

from flowsql_compute.compiler.declare import device, kernel

#: No timer is set. Also the time in front of all others.
NO_TIMER = -(2**63)
_LAST = 2**63 - 1


@device
def _expired(level, kept_ms):
    """Rows up to this time are over at a watermark; time starts at 0."""
    if level == _LAST:
        return np.int64(_LAST)
    return max(np.int64(level), np.int64(0)) - kept_ms - 1


@device
def _first_at_least(values, wanted):
    lo = np.int64(0)
    hi = np.int64(len(values))
    while lo < hi:
        middle = (lo + hi) // 2
        if values[middle] < wanted:
            lo = middle + 1
        else:
            hi = middle
    return lo


@kernel(
    "void(int64[::1], int64[::1], int32[::1], int64[::1], int32[::1], int64[::1], int32[::1], int64[::1], int64, int64,"
    " int64[::1], int32[::1], int64[::1], uint8[::1])"
)
def expire(
    row_starts, times, arrivals, arriving_starts, arriving_rows, arriving_times, offsets, levels, kept_ms, idle_ms,
    timers, entries, fires, fired,
):  # fmt: skip
    """Let the timers of keys fire.

    Args:
        row_starts: (g + 1,) rows of each key in ``times``, by time, then arrival: all that can expire in the batch and
            one more, and the rows of the batch. ``arrivals``: row of the batch, -1 for one that was there before.
        arriving_starts: (g + 1,) rows of the batch of each key, in order: row and time.
        timers: (g,) as they are; as they are after the batch at return.
        entries: (rows,) where each row went, -1: it stays. ``fires``: the time of the timer that took it.
        fired: (m,) set where any timer fired.
    """
    for g in range(len(timers)):
        first = row_starts[g]
        last = row_starts[g + 1]
        there = np.int64(0)
        for row in range(first, last):
            entries[row] = -1
            if arrivals[row] < 0:
                there += 1
        arriving = arriving_starts[g]
        end = arriving_starts[g + 1]
        timer = timers[g]
        while True:
            if timer == NO_TIMER:
                if arriving == end:
                    break
                timer = arriving_times[arriving] + kept_ms + idle_ms + 1
                arriving += 1
                there += 1
            entry = _first_at_least(levels, timer)
            if entry == len(levels):
                break
            while arriving < end and arriving_rows[arriving] < offsets[entry]:
                arriving += 1
                there += 1
            expired = _expired(levels[entry], kept_ms)
            fired[entry] = 1
            while first < last and times[first] <= expired:
                entries[first] = entry
                fires[first] = timer
                first += 1
                there -= 1
            timer = NO_TIMER
            if there:
                earliest = first
                while arrivals[earliest] >= offsets[entry]:
                    earliest += 1
                timer = times[earliest] + kept_ms + idle_ms + 1
        timers[g] = timer


@kernel("int64(int64[::1], int64[::1], int32[::1], int64[::1], uint8[::1], int64, int64, uint8[::1], int64[::1])")
def admit(levels_of_rows, uppers, offsets, levels, fired, kept_ms, expired, admitted, expirations):
    """Which rows look into the other side's cache; returns up to what time that cache was cleaned last.

    A row looks only if its interval reaches beyond that time; then the time is that of the row's watermark.

    Args:
        levels_of_rows: (n,) watermark before each row. ``uppers``: (n,) end of its interval, included.
        fired: (m,) whether timers of the other side fire at each watermark.
        expired: up to what time the cache was cleaned before the batch.
        admitted: (n,) the answer. ``expirations``: (n,) up to what time the row cleans what its key has there.
    """
    entry = np.int64(0)
    for row in range(len(uppers)):
        while entry < len(levels) and offsets[entry] <= row:
            if fired[entry]:
                expired = _expired(levels[entry], kept_ms)
            entry += 1
        admitted[row] = expired < uppers[row]
        if admitted[row]:
            expired = _expired(levels_of_rows[row], kept_ms)
        expirations[row] = expired
    while entry < len(levels):
        if fired[entry]:
            expired = _expired(levels[entry], kept_ms)
        entry += 1
    return expired


@kernel("void(int64[::1], int64[::1], int64[::1], int32[::1], int64[::1], int32[::1])")
def clean(row_starts, times, probe_starts, probe_rows, probe_expirations, cleaners):
    """The first row of the batch that looks at a key's cache when a cached row has expired; -1 for none.

    Args:
        row_starts: (g + 1,) cached rows of each key in ``times``.
        probe_starts: (g + 1,) rows of the batch that look, of each key, in order; with up to what time they clean.
    """
    for g in range(len(row_starts) - 1):
        for row in range(row_starts[g], row_starts[g + 1]):
            lo = probe_starts[g]
            hi = probe_starts[g + 1]
            while lo < hi:
                middle = (lo + hi) // 2
                if probe_expirations[middle] < times[row]:
                    lo = middle + 1
                else:
                    hi = middle
            cleaners[row] = probe_rows[lo] if lo < probe_starts[g + 1] else -1
