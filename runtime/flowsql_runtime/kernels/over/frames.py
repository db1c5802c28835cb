"""Frames of OVER windows: which rows enter and leave the aggregates, in the order of the rows that are answered.

Rows of a batch stand in the order in which they are answered; within a key that is ascending. A key's rows are those
that its frame holds already, oldest first, then those of the batch. What is loaded of held rows is a *pool*, key after
key; behind it stand the rows of the batch. All counts and places are by dense numbers of keys.
"""

from __future__ import annotations

from flowsql_compute.compiler.declare import kernel


@kernel("int64(int32[::1], int32[::1], int32[::1], int32[::1], int32[::1], int32[::1])")
def number(slots, scratch, keys, ranks, touched, counts):
    """Number distinct slots in order of first sight; returns how many there are.

    Args:
        scratch: by slot, -1 before and after.
        keys, ranks: (n,): number of each row's slot, and how many rows of it stand before.
        touched, counts: by number: the slot and its rows.
    """
    known = 0
    for i in range(len(slots)):
        slot = slots[i]
        if scratch[slot] < 0:
            scratch[slot] = known
            touched[known] = slot
            counts[known] = 0
            known += 1
        key = scratch[slot]
        keys[i] = key
        ranks[i] = counts[key]
        counts[key] += 1
    for key in range(known):
        scratch[touched[key]] = -1
    return known


@kernel(
    "int64(int32[::1], int32[::1], int64[::1], int32[::1], int32[::1], int64[::1], int64, int64, int32[::1],"
    " int32[::1], int8[::1], int32[::1])"
)
def slide_rows(keys, ranks, starts, by_key, held, loaded_starts, loaded, size, owners, pool, signs, answers):
    """Frames of ``size`` rows: the row that leaves, if one does, goes out before each row comes in.

    Args:
        starts, by_key: rows of the batch by key: those of key k from ``starts[k]`` on.
        held: how many rows the frame of each key holds; of those that leave all are in the pool.
        loaded_starts, loaded: where the pool of each key starts, and how long all of it is.
        owners, pool, signs: (events,): the row of the batch, the place in the pool, 1 in or -1 out.
        answers: (n,): after which event a row is answered.

    Returns:
        How many events there are.
    """
    events = 0
    for i in range(len(keys)):
        key = keys[i]
        leaving = ranks[i] + held[key] - size
        if leaving >= 0:
            owners[events] = i
            signs[events] = -1
            if leaving < held[key]:
                pool[events] = loaded_starts[key] + leaving
            else:
                pool[events] = loaded + by_key[starts[key] + leaving - held[key]]
            events += 1
        owners[events] = i
        signs[events] = 1
        pool[events] = loaded + i
        answers[i] = events
        events += 1
    return events


@kernel(
    "int64(int32[::1], int32[::1], int64[::1], int32[::1], int64[::1], int32[::1], int32[::1], int64[::1],"
    " int64[::1], int64, int64, int32[::1], int32[::1], int32[::1], int8[::1], int8[::1], int32[::1])"
)
def slide_range(
    keys, ranks, starts, by_key, times, epochs, held, loaded_starts, loaded_times, loaded, width, heads, owners, pool,
    signs, restarts, answers
):  # fmt: skip
    """Frames of ``width`` milliseconds: before the first row of each time, all rows that are too old go out.

    Args:
        epochs: (n,): a row of another epoch than the one before it finds its frame empty; held rows are of epoch 0.
        times, loaded_times: of the rows of the batch and of the pool, which holds every row that may leave.
        heads: by key, 0 at first: how many of its rows have left.
        restarts: (events,): 1 where a frame ran empty because it was dropped.

    The others are as of :func:`slide_rows`; rows of one time are answered by :func:`join_peers`.
    """
    events = 0
    for i in range(len(keys)):
        key = keys[i]
        rank = ranks[i]
        time = times[i]
        pooled = loaded_starts[key + 1] - loaded_starts[key]
        before = by_key[starts[key] + rank - 1] if rank else -1
        anew = epochs[i] != (epochs[before] if rank else 0)
        if rank == 0 or anew or times[before] != time:
            while True:
                head = heads[key]
                if head < pooled:
                    place = loaded_starts[key] + head
                    old = loaded_times[place]
                elif held[key] == pooled and head - pooled < rank:
                    row = by_key[starts[key] + head - pooled]
                    place = loaded + row
                    old = times[row]
                else:
                    break
                if old >= time - width and not anew:
                    break
                owners[events] = i
                signs[events] = -1
                pool[events] = place
                restarts[events] = 0
                events += 1
                heads[key] += 1
            if anew and events and owners[events - 1] == i:
                restarts[events - 1] = 1
        owners[events] = i
        signs[events] = 1
        restarts[events] = 0
        pool[events] = loaded + i
        answers[i] = events
        events += 1
    return events


@kernel("void(int32[::1], int32[::1], int64[::1], int32[::1], int64[::1], int32[::1], int32[::1])")
def join_peers(keys, ranks, starts, by_key, times, epochs, answers):
    """Rows of one key and time are all answered after the last of them."""
    for i in range(len(keys) - 1, -1, -1):
        after = starts[keys[i]] + ranks[i] + 1
        if after < starts[keys[i] + 1]:
            row = by_key[after]
            if times[row] == times[i] and epochs[row] == epochs[i]:
                answers[i] = answers[row]


@kernel("void(int32[::1], int64[::1], int64[::1], int64[::1], int32[::1], int32[::1], int64, int64[::1])")
def starts_by_time(keys, places, heads, times, epochs, latest, width, starts):
    """The first row of each row's frame of ``width`` milliseconds.

    Args:
        keys: (n,), number of each row's key; rows of a key come in the order of their times.
        places: (n,), where each row stands among the rows by key.
        heads: by key, where its rows begin; ``latest``: by key, 0. Both are written to.
        times: by place, milliseconds.
        epochs: (n,), rising within a key: rows of an earlier one are in no frame; what was held before is of epoch 0.
        starts: (n,), the result, places.
    """
    for i in range(len(keys)):
        key = keys[i]
        if epochs[i] != latest[key]:
            latest[key] = epochs[i]
            heads[key] = places[i]
        head = heads[key]
        while times[head] < times[places[i]] - width:
            head += 1
        heads[key] = head
        starts[i] = head
