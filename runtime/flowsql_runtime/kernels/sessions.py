"""Rows fall into sessions one by one: a row opens one, widens one, or joins two."""

from __future__ import annotations

from flowsql_compute.compiler.declare import device, kernel

#: Columns of ``links``: the next session of the key (starts fall), its key, its number among the key's sessions, the
#: session that it was merged into, how many merges its rows went through, the row that opened it (-1: it was known).
NEXT, KEY, ORDINAL, INTO, ROUND, BORN = 0, 1, 2, 3, 4, 5
_LOW = 0xFFFFFFFF


@device
def trigger_ms(end, breaks, shifts):
    """When a session that ends at a local time closes: its last millisecond, less the zone's offset there."""
    last = end - 1
    low = 0
    high = len(breaks)
    while low < high:
        middle = (low + high) >> 1
        if breaks[middle] <= last:
            low = middle + 1
        else:
            high = middle
    return last - shifts[low]


@device
def _bucket(start, end):
    """Where Java's HashSet of a few windows keeps one: it says which of two sessions takes the other in."""
    x = ((end << 1) + 1) & _LOW
    inverse = (x * x * x) & _LOW
    inverse = (inverse * (2 - x * inverse)) & _LOW
    inverse = (inverse * (2 - x * inverse)) & _LOW
    inverse = (inverse * (2 - x * inverse)) & _LOW
    code = (start + inverse) & _LOW
    return (code ^ (code >> 16)) & 15


@kernel(
    "void(int32[::1], int64[::1], int64[::1], int64, int64[::1], int64[::1], int32[::1], int64[:,::1], int32[:,::1],"
    " int32[::1], int32[:,::1], int32[::1], int32[::1], int32[::1], int32[:,::1], int64[::1])"
)
def walk(
    keys, times, levels, gap, breaks, shifts, heads, bounds, links, free_heads, free, most, of_row, rounds, merges, out
):
    """Put each row, in order, into a session of its key.

    Args:
        keys: int32 (n,) from 0; ``times``: local ms (n,); ``levels``: the watermark before each row, ms (n,).
        breaks, shifts: offsets of the zone by local time, see ``zone.local_offsets``.
        heads: (keys,), the first session of each key or -1.
        bounds: (sessions, 2), start and end; ``links``: (sessions, 6). The first ``out[0]`` are known before.
        free_heads: (keys,), first of the numbers that no session of the key has, in ``free`` (number, next) or -1.
        most: (keys,), above all numbers of the key's sessions.
        of_row: (n,) gets the session, -1 where the row is late; ``rounds``: (n,), how many merges that session went
            through before the row.
        merges: (>= n, 3) gets (taker, taken, rounds that both went through), in order.
        out: sessions known; gets sessions, merges, late rows.

    Source: Flink, ``SessionWindowAssigner.mergeWindows`` and ``MergingWindowSet.addWindow``.
    """
    count = out[0]
    merged = 0
    late = 0
    for i in range(len(keys)):
        key = keys[i]
        time = times[i]
        end = time + gap
        level = levels[i]
        # Open sessions of a key neither overlap nor touch, so at most one that begins before the row and one that does
        # not can touch it; those further down the list end too early. Closed ones leave the list when they are met.
        later = -1
        earlier = -1
        before = -1
        previous = -1
        session = heads[key]
        while session >= 0:
            following = links[session, NEXT]
            if trigger_ms(bounds[session, 1], breaks, shifts) <= level:
                if previous >= 0:
                    links[previous, NEXT] = following
                else:
                    heads[key] = following
                session = following
                continue
            if bounds[session, 0] < time:
                if bounds[session, 1] >= time:
                    earlier = session
                break
            if bounds[session, 0] > end:
                before = session
            else:
                later = session
            previous = session
            session = following
        if later < 0 and earlier < 0:
            if trigger_ms(end, breaks, shifts) <= level:
                of_row[i] = -1
                rounds[i] = 0
                late += 1
                continue
            made = count
            count += 1
            bounds[made, 0] = time
            bounds[made, 1] = end
            if before >= 0:
                links[made, NEXT] = links[before, NEXT]
                links[before, NEXT] = made
            else:
                links[made, NEXT] = heads[key]
                heads[key] = made
            links[made, KEY] = key
            if free_heads[key] >= 0:
                links[made, ORDINAL] = free[free_heads[key], 0]
                free_heads[key] = free[free_heads[key], 1]
            else:
                links[made, ORDINAL] = most[key]
                most[key] += 1
            links[made, INTO] = -1
            links[made, ROUND] = 0
            links[made, BORN] = i
            of_row[i] = made
            rounds[i] = 0
            continue
        taker = later if later >= 0 else earlier
        if later >= 0 and earlier >= 0:
            taken = earlier
            if _bucket(bounds[earlier, 0], bounds[earlier, 1]) < _bucket(bounds[later, 0], bounds[later, 1]):
                taker = earlier
                taken = later
                if before >= 0:
                    links[before, NEXT] = earlier
                else:
                    heads[key] = earlier
            else:
                links[later, NEXT] = links[earlier, NEXT]
            links[taken, INTO] = taker
            passed = max(links[taker, ROUND], links[taken, ROUND])
            merges[merged, 0] = taker
            merges[merged, 1] = taken
            merges[merged, 2] = passed
            merged += 1
            links[taker, ROUND] = passed + 1
            bounds[taker, 0] = bounds[earlier, 0]
            bounds[taker, 1] = bounds[later, 1]
        bounds[taker, 0] = min(bounds[taker, 0], time)
        bounds[taker, 1] = max(bounds[taker, 1], end)
        of_row[i] = taker
        rounds[i] = links[taker, ROUND]
    out[0] = count
    out[1] = merged
    out[2] = late
