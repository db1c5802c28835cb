"""Linked rows by slot: append, remove an equal row, list. Rows are ids into a matrix of words.

``links`` int32 (rows, 4): the row of the slot before it, the one after it, next row of the same identity, slot.
``ends`` int32 (slots, 2): newest row, rows. A new row touches no older one unless rows may be taken out, as lists are
read backwards; the row after is kept only where there are identities, and in sorted lists. ``meta`` int64: next unused
row, head of the free list + 1, live rows.
"""

from __future__ import annotations

import numpy as np

from flowsql_compute.compiler.declare import device, kernel
from flowsql_runtime.kernels.byte_arena import compare

NEXT_ROW, FREE, LIVE = 0, 1, 2
OLDER, NEWER, SAME, SLOT = 0, 1, 2, 3
NEWEST, COUNT = 0, 1


@device(inline=True)
def new_row(links, meta):
    """The id of a row that is not used."""
    if meta[FREE]:
        row = np.int64(meta[FREE] - 1)
        meta[FREE] = links[row, OLDER] + 1
    else:
        row = np.int64(meta[NEXT_ROW])
        meta[NEXT_ROW] += 1
    meta[LIVE] += 1
    return row


@device(inline=True)
def attach(row, slot, both_ways, links, ends):
    """Make a row the newest of its slot; ``both_ways``: the one before it knows it."""
    links[row, OLDER] = -1
    links[row, NEWER] = -1
    links[row, SAME] = -1
    links[row, SLOT] = slot
    if ends[slot, COUNT]:
        links[row, OLDER] = ends[slot, NEWEST]
        if both_ways:
            links[ends[slot, NEWEST], NEWER] = row
    ends[slot, NEWEST] = row
    ends[slot, COUNT] += 1


@device(inline=True)
def detach(row, slot, links, ends):
    """Join the rows on both sides of a row, which leaves the list of its slot."""
    older = np.int64(links[row, OLDER])
    newer = np.int64(links[row, NEWER])
    if newer >= 0:
        links[newer, OLDER] = older
    else:
        ends[slot, NEWEST] = older
    if older >= 0:
        links[older, NEWER] = newer
    ends[slot, COUNT] -= 1


@device(inline=True)
def join_chain(row, entry, links, chains):
    """Make a row the last one of its identity."""
    if chains[entry, 0] < 0:
        chains[entry, 0] = row
    else:
        links[chains[entry, 1], SAME] = row
    chains[entry, 1] = row


@device(inline=True)
def leave_chain(i, entry, unique, words, is_bytes, arena, rows, links, chains):
    """The oldest row that equals row ``i`` of ``words``, off the chain of its identity; -1 if there is none."""
    before = np.int64(-1)
    row = np.int64(chains[entry, 0])
    while row >= 0 and not unique:
        same = True
        for j in range(words.shape[1]):
            a = rows[row, j]
            b = words[i, j]
            if is_bytes[j] and a != 0 and b != 0:
                same = same and compare(arena, a, b) == 0
            elif a != b:
                same = False
        if same:
            break
        before = row
        row = np.int64(links[row, SAME])
    if row < 0:
        return row
    if before < 0:
        chains[entry, 0] = links[row, SAME]
    else:
        links[before, SAME] = links[row, SAME]
    if chains[entry, 1] == row:
        chains[entry, 1] = before
    return row


@device(inline=True)
def put(i, slot, entry, unique, words, rows, links, ends, chains, meta):
    """Put row ``i`` of ``words`` in; returns its id. ``entry`` is -1 where nothing is ever taken out."""
    w = words.shape[1]
    if unique and entry >= 0 and chains[entry, 0] >= 0:
        row = np.int64(chains[entry, 0])
        for j in range(w):
            rows[row, j] = words[i, j]
        return row
    row = new_row(links, meta)
    for j in range(w):
        rows[row, j] = words[i, j]
    attach(row, slot, entry >= 0, links, ends)
    if entry >= 0:
        join_chain(row, entry, links, chains)
    return row


@device(inline=True)
def unlink(row, slot, links, ends, meta):
    """Free a row and join those on both sides of it."""
    detach(row, slot, links, ends)
    meta[LIVE] -= 1
    links[row, SLOT] = -1
    links[row, OLDER] = meta[FREE] - 1
    meta[FREE] = row + 1


@device(inline=True)
def take(i, slot, entry, unique, words, is_bytes, arena, rows, links, ends, chains, meta):
    """Take the row that equals row ``i`` of ``words`` out; returns its id, -1 if there is none."""
    row = leave_chain(i, entry, unique, words, is_bytes, arena, rows, links, chains)
    if row >= 0:
        unlink(row, slot, links, ends, meta)
    return row


@kernel(
    "void(int8[::1], int32[::1], int32[::1], boolean, int64[:,::1], uint8[::1], uint8[::1], int64[:,::1],"
    " int32[:,::1], int32[:,::1], int32[:,::1], int64[::1], int32[::1])"
)
def apply(signs, slots, entries, unique, words, is_bytes, arena, rows, links, ends, chains, meta, out):
    """Put rows in (sign > 0) and take equal ones out (sign < 0), in order; ``out``: the row meant, -1 if there is none.

    Args:
        slots: -1 takes no part.
        entries: identity of each row, or empty when nothing is ever taken out; ``chains`` (entries, 2) its first and
            last row. ``unique``: an identity has one row, which a new one overwrites; else an identity is a hash, and
            the oldest row with the same words goes.
        words: (n, w) the rows; where ``is_bytes`` they are references into ``arena``.
    """
    has_identity = entries.size > 0
    for i in range(len(slots)):
        slot = slots[i]
        out[i] = -1
        if slot < 0 or signs[i] == 0:
            continue
        entry = np.int64(-1)
        if has_identity:
            entry = np.int64(entries[i])
        if signs[i] > 0:
            out[i] = put(i, slot, entry, unique, words, rows, links, ends, chains, meta)
        else:
            out[i] = take(i, slot, entry, unique, words, is_bytes, arena, rows, links, ends, chains, meta)


@kernel(
    "int64(int8[::1], int32[::1], int32[::1], boolean, int64[:,::1], uint8[::1], uint8[::1], int64[:,::1],"
    " int32[:,::1], int32[:,::1], int32[:,::1], int64[::1], int64, int8[::1], int32[::1])"
)
def apply_latest(
    signs, slots, entries, unique, words, is_bytes, arena, rows, links, ends, chains, meta, spare, kinds, shown
):
    """:func:`apply`, and what each row makes of the newest one of its slot; returns the next spare row.

    ``kinds``: of the change (bytes of ``RowKind``), -1 where the newest row stays. ``shown``: -1 where the change is of
    the row itself; else the id of a copy, from ``spare`` on, of the row that is the newest again.
    """
    for i in range(len(slots)):
        slot = slots[i]
        entry = np.int64(entries[i])
        kinds[i] = -1
        shown[i] = -1
        if signs[i] > 0:
            kinds[i] = 2 if ends[slot, COUNT] else 0
            put(i, slot, entry, unique, words, rows, links, ends, chains, meta)
            continue
        newest = np.int64(ends[slot, NEWEST])
        row = take(i, slot, entry, unique, words, is_bytes, arena, rows, links, ends, chains, meta)
        if row < 0:
            continue
        if not ends[slot, COUNT]:
            kinds[i] = 3
        elif row == newest:
            kinds[i] = 2
            for j in range(words.shape[1]):
                rows[spare, j] = rows[ends[slot, NEWEST], j]
            shown[i] = spare
            spare += 1
    return spare


@kernel("void(int32[::1], int64[::1], int32[:,::1], int32[:,::1], int32[::1], int32[::1])")
def expand(slots, starts, links, ends, probes, found):
    """All rows of each slot in arrival order: from ``starts[i]`` on, ``probes`` gets i and ``found`` the row ids."""
    for i in range(len(slots)):
        slot = slots[i]
        if slot < 0 or slot >= len(ends):
            continue
        count = ends[slot, COUNT]
        row = ends[slot, NEWEST]
        for at in range(starts[i] + count - 1, starts[i] - 1, -1):
            probes[at] = i
            found[at] = row
            row = links[row, OLDER]


@kernel("void(int32[::1], int32[:,::1], int32[:,::1], int64[::1])")
def drop_slots(slots, links, ends, meta):
    """Free every row of the slots (lists without identities)."""
    for i in range(len(slots)):
        slot = slots[i]
        if slot >= len(ends) or not ends[slot, COUNT]:
            continue
        row = ends[slot, NEWEST]
        for _ in range(ends[slot, COUNT]):
            older = links[row, OLDER]
            links[row, SLOT] = -1
            links[row, OLDER] = meta[FREE] - 1
            meta[FREE] = row + 1
            meta[LIVE] -= 1
            row = older
        ends[slot, COUNT] = 0


@kernel("void(int32[::1], int32[::1], int32[::1], int32[::1])")
def associate(found, changes, counts, before):
    """Add each change to the count of its row, in order; ``before``: what it was."""
    for i in range(len(found)):
        before[i] = counts[found[i]]
        counts[found[i]] += changes[i]
