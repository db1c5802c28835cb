"""Top-N over the trees of ``sorted_rows``: rows come, go and push each other out, and each change of a place is told.

Rows are ids as in ``row_list``. An id that is freed is not used again before :func:`settle`: until then a row that
went can be read, and what was told names rows and nothing else. Modes: ``BEST``, where rows only come and those behind
the last place are forgotten; ``REPLACED``, the same where a row takes the place of the one with its key; ``ALL``, where
rows are taken out by equal ones and none is forgotten.
"""

from __future__ import annotations

import numpy as np

from flowsql_compute.compiler.declare import device, kernel
from flowsql_runtime.kernels.row_list import (
    COUNT,
    FREE,
    LIVE,
    OLDER,
    SLOT,
    attach,
    detach,
    join_chain,
    leave_chain,
    new_row,
)
from flowsql_runtime.kernels.sorted_rows import at_place, delete, following, insert, last_row, order_of, rank_of

BEST, REPLACED, ALL = 0, 1, 2
#: Places in ``work``: changes told, keys that were touched, rows of theirs that were noted; freed ids: first + 1,
#: last + 1, how many.
TOLD, TOUCHED, NOTED, FREED, FREED_LAST, FREED_COUNT = 0, 1, 2, 3, 4, 5

_INSERT, _UPDATE_BEFORE, _UPDATE_AFTER, _DELETE = 0, 1, 2, 3


@device
def _put(i, slot, words, text_words, text_at, rows, links, ends, meta, batch_keys, keys, origin, placed):
    """A new row with its words and sort key, the newest of its slot; returns its id."""
    row = new_row(links, meta)
    for j in range(words.shape[1]):
        rows[row, j] = words[i, j]
    for j in range(len(text_at)):
        rows[row, text_at[j]] = text_words[i, j]
    for j in range(keys.shape[1]):
        keys[row, j] = batch_keys[i, j]
    attach(row, slot, True, links, ends)
    origin[row] = i
    placed[i] = row
    return row


@device
def _free(row, slot, links, ends, meta, work):
    """Take a row out of its slot; its id waits for :func:`settle`."""
    detach(row, slot, links, ends)
    meta[LIVE] -= 1
    links[row, SLOT] = -2 - slot
    links[row, OLDER] = work[FREED] - 1
    if work[FREED] == 0:
        work[FREED_LAST] = row + 1
    work[FREED] = row + 1
    work[FREED_COUNT] += 1


@device
def _take(row, slot, links, ends, meta, tree, roots, work):
    """Take a row out of its tree and its slot."""
    delete(row, slot, tree, roots)
    _free(row, slot, links, ends, meta, work)


@device
def _tell(kind, row, place, first, before, work, kinds, told, places):
    """Note a change of a place from ``first`` on."""
    if place < first or (kind == _UPDATE_BEFORE and not before):
        return
    at = work[TOLD]
    kinds[at] = kind
    told[at] = row
    places[at] = place
    work[TOLD] += 1


@device
def _tell_moved(row, place, first, last, before, tree, work, kinds, told, places):
    """A row came to a place: from there on each takes that of the next one."""
    current = np.int64(row)
    below = following(row, tree)
    while below >= 0 and place <= last:
        _tell(_UPDATE_BEFORE, below, place, first, before, work, kinds, told, places)
        _tell(_UPDATE_AFTER, current, place, first, before, work, kinds, told, places)
        current = below
        below = following(below, tree)
        place += 1
    if place <= last:
        _tell(_INSERT, current, place, first, before, work, kinds, told, places)


@device
def _tell_gone(row, below, place, first, last, before, tree, work, kinds, told, places):
    """A row left a place: from there on each is followed by the next one. ``below``: the one that stood behind it.

    A row goes from its old place before it comes to its new one: of one key there are never two.
    """
    if place > last:
        return
    _tell(_DELETE if below < 0 else _UPDATE_BEFORE, row, place, first, before, work, kinds, told, places)
    while below >= 0 and place <= last:
        behind = following(below, tree)
        if place < last:
            gone = _DELETE if behind < 0 else _UPDATE_BEFORE
            _tell(gone, below, place + 1, first, before, work, kinds, told, places)
        _tell(_UPDATE_AFTER, below, place, first, before, work, kinds, told, places)
        below = behind
        place += 1


@device
def _tell_replaced(old, row, old_place, place, first, last, before, tree, work, kinds, told, places):
    """A row took the place of another one with its key; both trees' places are from 1, ``old`` is out of the tree."""
    if place == old_place:
        _tell(_UPDATE_BEFORE, old, place, first, before, work, kinds, told, places)
        _tell(_UPDATE_AFTER, row, place, first, before, work, kinds, told, places)
    elif place < old_place:
        current = np.int64(row)
        below = following(row, tree)
        while place < old_place and place <= last:
            _tell(_UPDATE_BEFORE, below, place, first, before, work, kinds, told, places)
            if current == row:
                # Of one key the old row goes before the new one comes.
                _tell(_UPDATE_BEFORE, old, old_place, first, before, work, kinds, told, places)
            _tell(_UPDATE_AFTER, current, place, first, before, work, kinds, told, places)
            current = below
            below = following(below, tree)
            place += 1
        if place <= last:
            _tell(_UPDATE_AFTER, current, place, first, before, work, kinds, told, places)
    else:
        _tell(_UPDATE_BEFORE, old, old_place, first, before, work, kinds, told, places)
        at = at_place(_root_of(row, tree), old_place - 1, tree)
        moved = old_place
        while moved < place:
            _tell(_UPDATE_BEFORE, at, moved + 1, first, before, work, kinds, told, places)
            _tell(_UPDATE_AFTER, at, moved, first, before, work, kinds, told, places)
            at = following(at, tree)
            moved += 1
        _tell(_UPDATE_AFTER, row, place, first, before, work, kinds, told, places)


@device
def _root_of(row, tree):
    at = np.int64(row)
    while tree[at, 2] >= 0:
        at = np.int64(tree[at, 2])
    return at


@device
def _exchange(old, row, slot, tree, roots):
    """Put a row where another one stands in a tree."""
    for j in range(4):
        tree[row, j] = tree[old, j]
    parent = np.int64(tree[row, 2])
    if parent < 0:
        roots[slot] = row
    elif tree[parent, 0] == old:
        tree[parent, 0] = row
    else:
        tree[parent, 1] = row
    if tree[row, 0] >= 0:
        tree[tree[row, 0], 2] = row
    if tree[row, 1] >= 0:
        tree[tree[row, 1], 2] = row


@kernel(
    "int64(int64, int64, boolean, boolean, boolean, boolean, int64, int64[::1], int64,"
    " int8[::1], int32[::1], int32[::1], int64[:,::1], int64[:,::1], int32[::1],"
    " uint8[::1], uint8[::1], int64[:,::1], int32[:,::1], int32[:,::1], int32[:,::1], int64[::1],"
    " int64[:,::1], int64[:,::1], int32[::1], int32[:,::1], int32[::1], int32[::1], int32[::1], int32[::1], int32[::1],"
    " int64[::1], int32[::1], int32[::1], int64[::1], int64[::1], int32[::1], int8[::1], int32[::1], int64[::1])"
)
def rank(
    start,
    mode,
    by_place,
    every,
    net,
    before,
    first,
    limits,
    room,
    signs,
    slots,
    entries,
    words,
    text_words,
    text_at,
    is_bytes,
    arena,
    rows,
    links,
    ends,
    chains,
    meta,
    batch_keys,
    keys,
    texts,
    tree,
    roots,
    origin,
    placed,
    replaces,
    sums,
    work,
    touches,
    touched,
    lasts,
    noted_from,
    noted,
    kinds,
    told,
    places,
):
    """Rows ``start ..`` of a batch come (sign 1) or go (-1), in order; returns the row that found no room to tell.

    Args:
        by_place: changes of places are told; else which rows came among the places and which left them.
        every: each change is told, in ``kinds``, ``told`` (rows) and ``places``.
        net: the rows at the places of each slot are noted before its first change: slots in ``touched``, their last
            places in ``lasts``, rows in ``noted[noted_from[k]:noted_from[k + 1]]``; ``touches`` by slot, 0 before, gets
            1 + its number there. Neither: nothing is told.
        before: -U are told.
        first, limits: places from 1; the last one of all rows (1,), or of each row (n,).
        room: with ``BEST`` and ``REPLACED``, rows from which on only better ones than the last are taken, at most the
            limit.
        words: (n, w) of the rows, or (n, 0): then ``text_words`` (n, t) are those at ``text_at`` (t,), and who calls
            writes the others. ``entries``: identities, empty with ``BEST``; ``chains`` their rows.
        origin, placed: get the row of the batch by id, and the id by row. ``replaces``: gets one more than the id that
            a row came in place of, by id; with ``REPLACED``. ``sums``: gets how much was told before each row.
        work: see ``TOLD`` and so on.
    """
    parts = keys.shape[1]
    for i in range(start, len(slots)):
        slot = slots[i]
        sums[i] = work[TOLD]
        if slot < 0 or signs[i] == 0:
            continue
        last = limits[i] if len(limits) > 1 else limits[0]
        count = np.int64(ends[slot, COUNT])
        if every:
            if work[TOLD] + 2 * (min(last, count + 1) + 2) > len(kinds):
                return i
        elif net and touches[slot] == 0:
            wanted = min(last, count)
            if work[NOTED] + wanted > len(noted):
                return i
            k = work[TOUCHED]
            touched[k] = slot
            lasts[k] = last
            noted_from[k] = work[NOTED]
            at = at_place(roots[slot], 0, tree) if wanted else np.int64(-1)
            for _ in range(wanted):
                noted[work[NOTED]] = at
                work[NOTED] += 1
                at = following(at, tree)
            noted_from[k + 1] = work[NOTED]
            work[TOUCHED] = k + 1
            touches[slot] = k + 1
        if signs[i] < 0:
            if mode != ALL:
                continue
            row = leave_chain(i, np.int64(entries[i]), False, words, is_bytes, arena, rows, links, chains)
            if row < 0:
                continue
            place = rank_of(row, tree) + 1
            below = following(row, tree)
            _take(row, slot, links, ends, meta, tree, roots, work)
            if every and place <= last:
                if by_place:
                    _tell_gone(row, below, place, first, last, before, tree, work, kinds, told, places)
                else:
                    _tell(_DELETE, row, place, 0, before, work, kinds, told, places)
                    came = at_place(roots[slot], last - 1, tree)
                    if came >= 0:
                        _tell(_INSERT, came, last, 0, before, work, kinds, told, places)
            continue
        old = np.int64(-1)
        if mode == REPLACED:
            old = np.int64(chains[entries[i], 0])
            if old >= 0 and links[old, SLOT] < 0:
                old = -1
        if old >= 0:
            old_place = rank_of(old, tree) + 1
            row = _put(i, slot, words, text_words, text_at, rows, links, ends, meta, batch_keys, keys, origin, placed)
            same = order_of(row, old, parts, keys, texts, rows, arena) == 0
            if same:
                # It keeps its place among rows that sort alike.
                _exchange(old, row, slot, tree, roots)
                place = old_place
                _free(old, slot, links, ends, meta, work)
            else:
                _take(old, slot, links, ends, meta, tree, roots, work)
                place = insert(row, slot, keys, texts, rows, arena, tree, roots) + 1
            chains[entries[i], 0] = row
            chains[entries[i], 1] = row
            replaces[row] = replaces[old] if origin[old] >= 0 else old + 1
            if every:
                if by_place:
                    _tell_replaced(old, row, old_place, place, first, last, before, tree, work, kinds, told, places)
                else:
                    _tell(_UPDATE_BEFORE, old, place, 0, before, work, kinds, told, places)
                    _tell(_UPDATE_AFTER, row, place, 0, before, work, kinds, told, places)
            continue
        if mode != ALL and count >= min(last, room):
            if count == 0:
                continue
            # Its key has to stand somewhere to be compared: behind all rows that there are room for.
            worst = last_row(roots[slot], tree)
            spare = len(keys) - 1
            for j in range(parts):
                keys[spare, j] = batch_keys[i, j]
            for j in range(len(text_at)):
                rows[spare, text_at[j]] = text_words[i, j]
            if len(text_at) == 0 and words.shape[1] > 0:
                for j in range(words.shape[1]):
                    rows[spare, j] = words[i, j]
            if order_of(spare, worst, parts, keys, texts, rows, arena) >= 0:
                continue
        row = _put(i, slot, words, text_words, text_at, rows, links, ends, meta, batch_keys, keys, origin, placed)
        place = insert(row, slot, keys, texts, rows, arena, tree, roots) + 1
        if mode == REPLACED:
            chains[entries[i], 0] = row
            chains[entries[i], 1] = row
            replaces[row] = 0
        elif mode == ALL:
            join_chain(row, np.int64(entries[i]), links, chains)
        if every and place <= last:
            if by_place:
                _tell_moved(row, place, first, last, before, tree, work, kinds, told, places)
            else:
                out = at_place(roots[slot], last, tree)
                if out >= 0:
                    _tell(_DELETE, out, last, 0, before, work, kinds, told, places)
                _tell(_INSERT, row, place, 0, before, work, kinds, told, places)
        if mode != ALL:
            while ends[slot, COUNT] > last:
                _take(last_row(roots[slot], tree), slot, links, ends, meta, tree, roots, work)
    return len(slots)


@kernel(
    "void(boolean, boolean, int64, int32[::1], int64[::1], int64[::1], int32[::1], int32[:,::1], int32[::1],"
    " int32[::1], int32[::1], int32[::1], int32[::1], int64[::1], int8[::1], int32[::1], int64[::1])"
)
def differences(
    by_place,
    before,
    first,
    touched,
    lasts,
    noted_from,
    noted,
    tree,
    roots,
    origin,
    replaces,
    marks,
    touches,
    work,
    kinds,
    told,
    places,
):
    """What differs at the places of each touched slot from what was noted, one change a place or row.

    ``marks`` by row is 0 before and after. There is room for all of it.
    """
    for k in range(work[TOUCHED]):
        slot = touched[k]
        last = lasts[k]
        start = noted_from[k] + min(first - 1, noted_from[k + 1] - noted_from[k])
        stop = noted_from[k + 1]
        touches[slot] = 0
        now = at_place(roots[slot], first - 1, tree) if roots[slot] >= 0 else np.int64(-1)
        if by_place:
            # What goes is told before what comes: of one key there are never two.
            for came in range(2):
                place = first
                at = start
                new = now
                while place <= last and (at < stop or new >= 0):
                    old = np.int64(noted[at]) if at < stop else np.int64(-1)
                    if old != new:
                        if came == 0 and old >= 0:
                            kind = _UPDATE_BEFORE if new >= 0 else _DELETE
                            _tell(kind, old, place, 0, before, work, kinds, told, places)
                        elif came == 1 and new >= 0:
                            kind = _UPDATE_AFTER if old >= 0 else _INSERT
                            _tell(kind, new, place, 0, before, work, kinds, told, places)
                    at += 1
                    place += 1
                    if new >= 0:
                        new = following(new, tree)
            continue
        # 1: it is at a place now. 2: it was at one. 4: it is there in place of one that was.
        at = now
        place = first
        while at >= 0 and place <= last:
            marks[at] |= 1
            at = following(at, tree)
            place += 1
        for j in range(start, stop):
            marks[noted[j]] |= 2
        at = now
        place = first
        while at >= 0 and place <= last:
            old = np.int64(-1)
            if origin[at] >= 0 and len(replaces) > 0:
                old = np.int64(replaces[at]) - 1
            if old >= 0 and marks[old] == 2:
                marks[old] |= 4
                marks[at] |= 4
            at = following(at, tree)
            place += 1
        for j in range(start, stop):
            if marks[noted[j]] == 2:
                _tell(_DELETE, np.int64(noted[j]), last, 0, before, work, kinds, told, places)
        at = now
        place = first
        while at >= 0 and place <= last:
            if marks[at] & 4:
                _tell(_UPDATE_BEFORE, np.int64(replaces[at]) - 1, place, 0, before, work, kinds, told, places)
                _tell(_UPDATE_AFTER, at, place, 0, before, work, kinds, told, places)
            elif marks[at] == 1:
                _tell(_INSERT, at, place, 0, before, work, kinds, told, places)
            at = following(at, tree)
            place += 1
        at = now
        place = first
        while at >= 0 and place <= last:
            marks[at] = 0
            at = following(at, tree)
            place += 1
        for j in range(start, stop):
            marks[noted[j]] = 0


@kernel("int64(int32[::1], int64, int32[::1], int32[::1], int64, int32[::1], int32[::1], int32[::1])")
def refer(told, count, origin, marks, n, found, used, stored):
    """Where the first ``count`` rows told are read: ``found`` in the rows ``used`` of the batch, then those ``stored``.

    ``marks``: 0 before and after; by row of the batch (n,), then by id. Returns how many are used | stored << 32.
    """
    users = np.int64(0)
    keepers = np.int64(0)
    for i in range(count):
        row = np.int64(told[i])
        if origin[row] >= 0:
            at = np.int64(origin[row])
            if marks[at] == 0:
                used[users] = at
                users += 1
                marks[at] = users
            found[i] = marks[at] - 1
        else:
            if marks[n + row] == 0:
                stored[keepers] = row
                keepers += 1
                marks[n + row] = keepers
            found[i] = -marks[n + row]
    for i in range(count):
        if found[i] < 0:
            found[i] = users - found[i] - 1
    for i in range(users):
        marks[used[i]] = 0
    for i in range(keepers):
        marks[n + stored[i]] = 0
    return users | (keepers << 32)


@kernel("void(int32[:,::1], int64[::1], int32[::1], int32[::1])")
def freed(links, work, ids, slots):
    """Ids that were freed, and their slots."""
    row = np.int64(work[FREED] - 1)
    for i in range(len(ids)):
        ids[i] = row
        slots[i] = -2 - links[row, SLOT]
        row = np.int64(links[row, OLDER])


@kernel("void(int32[:,::1], int64[::1], int64[::1])")
def settle(links, meta, work):
    """Ids that were freed may be used again."""
    if work[FREED] == 0:
        return
    row = np.int64(work[FREED] - 1)
    for _ in range(work[FREED_COUNT]):
        links[row, SLOT] = -1
        row = np.int64(links[row, OLDER])
    links[work[FREED_LAST] - 1, OLDER] = meta[FREE] - 1
    meta[FREE] = work[FREED]
    work[FREED] = 0
    work[FREED_LAST] = 0
    work[FREED_COUNT] = 0
