"""OVER windows ordered by values: which results a row that comes or goes changes."""

from __future__ import annotations

from flowsql_compute.compiler.declare import device, kernel

#: Kinds of change, bytes of ``RowKind``.
INSERT, UPDATE_BEFORE, UPDATE_AFTER, DELETE = 0, 1, 2, 3


@device
def _fold(row, before, slots, copies, latest, events):
    """One event: the accumulators of ``before`` (-1: none) and ``row`` on top of them."""
    slots[events] = row
    copies[events] = before
    latest[row] = events
    return events + 1


@device
def _look(row, slots, copies, latest, events):
    """The event that holds the result of a row: one that only looks at it where it was made in an earlier part."""
    if latest[row] >= 0:
        return events
    slots[events] = row
    copies[events] = -2
    latest[row] = events
    return events + 1


@kernel(
    "void(int64, int8[::1], int32[::1], int32[::1], int64, int32[::1], int64[::1], int32[::1], int32[::1], boolean,"
    " int32[::1], int32[::1], int64[::1], int64[::1], int32[::1], int32[::1], int8[::1], int32[::1])"
)
def play(
    loaded, kinds, keys, places, start, sequence, starts, lengths, peers, by_row, latest, slots, copies, status,
    rows, sources, changes, results
):  # fmt: skip
    """Play the changes of a batch from ``start`` on, until the room for events ends.

    Args:
        loaded: rows in state; row ``loaded + i`` is that of change i.
        kinds, keys, places: of each change: kind of row, number of its key, and how many of the key's rows stand before
            it; -1 where there is none to take out.
        sequence, starts, lengths: rows of each key in order, those of key k from ``starts[k]`` on, with room for more.
        peers: by row: equal for rows of a key that sort alike.
        by_row: each row has a result of its own (ROWS), else all that sort alike have that of the last (RANGE).
        latest: by row, its last event of this part, -1 before.
        slots, copies: of each event: whose accumulators, and those of which row they start from: -1 none, -2: they
            stay as they are.
        rows, sources, changes, results: of what may be told: the row, the change behind it, its kind and the event
            that holds its results; an UPDATE_BEFORE stands right before its UPDATE_AFTER.
        status: the next change; events; rows told.
    """
    events = 0
    told = 0
    j = start
    while j < len(kinds):
        place = places[j]
        key = keys[j]
        length = lengths[key]
        if place < 0:
            j += 1
            continue
        if events + 2 * length + 4 > len(slots) or told + 2 * length + 4 > len(rows):
            break
        at = starts[key]
        taken_back = kinds[j] & 1
        gone = -1
        # The first row whose result changes, and the end of the rows that sort like the changed one.
        first = place
        old_end = -1
        if taken_back:
            gone = sequence[at + place]
            if not by_row:
                while first > 0 and peers[sequence[at + first - 1]] == peers[gone]:
                    first -= 1
            end = place + 1
            while not by_row and end < length and peers[sequence[at + end]] == peers[gone]:
                end += 1
            holder = sequence[at + end - 1]
            events = _look(holder, slots, copies, latest, events)
            old_end = latest[holder]
            for q in range(place, length - 1):
                sequence[at + q] = sequence[at + q + 1]
            length -= 1
            lengths[key] = length
            end -= 1
        else:
            row = loaded + j
            if not by_row:
                while first > 0 and peers[sequence[at + first - 1]] == peers[row]:
                    first -= 1
            if first < place:
                holder = sequence[at + place - 1]
                events = _look(holder, slots, copies, latest, events)
                old_end = latest[holder]
            for q in range(length, place, -1):
                sequence[at + q] = sequence[at + q - 1]
            sequence[at + place] = row
            length += 1
            lengths[key] = length
            end = place + 1
        # The group of the changed row.
        for q in range(place, end):
            before = sequence[at + q - 1] if q > 0 else -1
            events = _fold(sequence[at + q], before, slots, copies, latest, events)
        new_end = -1
        if end > first:
            holder = sequence[at + end - 1]
            events = _look(holder, slots, copies, latest, events)
            new_end = latest[holder]
        q = first
        while q < end or (taken_back and q == end and gone >= 0):
            if taken_back and q == place and gone >= 0:
                rows[told] = gone
                sources[told] = j
                changes[told] = DELETE
                results[told] = old_end
                told += 1
                gone = -1
                continue
            if q >= end:
                break
            row = sequence[at + q]
            if not taken_back and q == place:
                rows[told] = row
                sources[told] = j
                changes[told] = kinds[j]
                results[told] = new_end
                told += 1
            else:
                for kind in range(UPDATE_BEFORE, UPDATE_AFTER + 1):
                    rows[told] = row
                    sources[told] = j
                    changes[told] = kind
                    results[told] = old_end if kind == UPDATE_BEFORE else new_end
                    told += 1
            q += 1
        # The groups behind it.
        q = end
        while q < length:
            stop = q + 1
            while not by_row and stop < length and peers[sequence[at + stop]] == peers[sequence[at + q]]:
                stop += 1
            holder = sequence[at + stop - 1]
            events = _look(holder, slots, copies, latest, events)
            old_end = latest[holder]
            for p in range(q, stop):
                before = sequence[at + p - 1] if p > 0 else -1
                events = _fold(sequence[at + p], before, slots, copies, latest, events)
            new_end = latest[holder]
            for p in range(q, stop):
                for kind in range(UPDATE_BEFORE, UPDATE_AFTER + 1):
                    rows[told] = sequence[at + p]
                    sources[told] = j
                    changes[told] = kind
                    results[told] = old_end if kind == UPDATE_BEFORE else new_end
                    told += 1
            q = stop
        j += 1
    status[0] = j
    status[1] = events
    status[2] = told
