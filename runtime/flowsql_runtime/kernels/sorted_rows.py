"""Rows of slots in sort order: treaps over row ids that share flat arrays, beside the lists of ``row_list``.

``tree`` int32 (rows, 4): left, right, parent (-1 where there is none), rows below and with it. ``roots`` int32 by slot.
A row's priority is a mix of its id, so nothing is stored for balance and what a row costs is a logarithm of its slot's
rows. Equal rows stand in order of arrival. ``keys`` int64 (rows, k) hold what rows are sorted by, compared as unsigned;
``texts`` (k,): 0 for such a word, w + 1 where word w of the row is a reference to bytes that is compared instead,
-(w + 1) where greater bytes come first.
"""

from __future__ import annotations

import numpy as np

from flowsql_compute.compiler.declare import device, kernel
from flowsql_runtime.kernels.byte_arena import compare
from flowsql_runtime.kernels.row_list import NEWER, OLDER, SLOT, put, take, unlink

_LEFT, _RIGHT, _PARENT, _SIZE = 0, 1, 2, 3
_U = np.uint64
_MIX = np.uint64(0x9E3779B97F4A7C15)


@device
def _priority(row):
    h = _U(row + 1) * _MIX
    h ^= h >> _U(29)
    return h * _MIX


@device
def order_of(a, b, parts, keys, texts, rows, arena):
    """-1, 0 or 1 by the first ``parts`` of the sort key."""
    for j in range(parts):
        word = texts[j]
        if word == 0:
            x = _U(keys[a, j])
            y = _U(keys[b, j])
            if x != y:
                return -1 if x < y else 1
            continue
        at = abs(word) - 1
        x_ref = rows[a, at]
        y_ref = rows[b, at]
        if x_ref != 0 and y_ref != 0:
            order = compare(arena, x_ref, y_ref)
            if order != 0:
                return order if word > 0 else -order
    return 0


@device
def _size(row, tree):
    return tree[row, _SIZE] if row >= 0 else 0


@device
def _rotate(row, slot, tree, roots):
    """Put a row in the place of its parent."""
    parent = tree[row, _PARENT]
    above = tree[parent, _PARENT]
    if tree[parent, _LEFT] == row:
        moved = tree[row, _RIGHT]
        tree[parent, _LEFT] = moved
        tree[row, _RIGHT] = parent
    else:
        moved = tree[row, _LEFT]
        tree[parent, _RIGHT] = moved
        tree[row, _LEFT] = parent
    if moved >= 0:
        tree[moved, _PARENT] = parent
    tree[parent, _PARENT] = row
    tree[row, _PARENT] = above
    if above < 0:
        roots[slot] = row
    elif tree[above, _LEFT] == parent:
        tree[above, _LEFT] = row
    else:
        tree[above, _RIGHT] = row
    tree[row, _SIZE] = tree[parent, _SIZE]
    tree[parent, _SIZE] = 1 + _size(tree[parent, _LEFT], tree) + _size(tree[parent, _RIGHT], tree)


@device
def insert(row, slot, keys, texts, rows, arena, tree, roots):
    """Put a row into its slot's tree, behind equal ones; returns how many stand before it."""
    tree[row, _LEFT] = -1
    tree[row, _RIGHT] = -1
    tree[row, _PARENT] = -1
    tree[row, _SIZE] = 1
    at = np.int64(roots[slot])
    if at < 0:
        roots[slot] = row
        return 0
    before = np.int64(0)
    parts = keys.shape[1]
    while True:
        tree[at, _SIZE] += 1
        if order_of(row, at, parts, keys, texts, rows, arena) < 0:
            below = np.int64(tree[at, _LEFT])
            if below < 0:
                tree[at, _LEFT] = row
                break
        else:
            before += 1 + _size(tree[at, _LEFT], tree)
            below = np.int64(tree[at, _RIGHT])
            if below < 0:
                tree[at, _RIGHT] = row
                break
        at = below
    tree[row, _PARENT] = at
    own = _priority(row)
    while tree[row, _PARENT] >= 0 and _priority(np.int64(tree[row, _PARENT])) < own:
        _rotate(row, slot, tree, roots)
    return before


@device
def following(row, tree):
    """The row behind a row, -1 behind the last."""
    at = np.int64(row)
    if tree[at, _RIGHT] >= 0:
        at = np.int64(tree[at, _RIGHT])
        while tree[at, _LEFT] >= 0:
            at = np.int64(tree[at, _LEFT])
        return at
    below = at
    at = np.int64(tree[at, _PARENT])
    while at >= 0 and tree[at, _RIGHT] == below:
        below = at
        at = np.int64(tree[at, _PARENT])
    return at


@device
def at_place(root, before, tree):
    """The row of a tree that so many rows stand before, -1 behind the last."""
    at = np.int64(root)
    while at >= 0:
        left = np.int64(_size(tree[at, _LEFT], tree))
        if before < left:
            at = np.int64(tree[at, _LEFT])
        elif before == left:
            return at
        else:
            before -= left + 1
            at = np.int64(tree[at, _RIGHT])
    return at


@device
def last_row(root, tree):
    """The last row of a tree that has one."""
    at = np.int64(root)
    while tree[at, _RIGHT] >= 0:
        at = np.int64(tree[at, _RIGHT])
    return at


@device
def rank_of(row, tree):
    """How many rows stand before it."""
    before = np.int64(_size(tree[row, _LEFT], tree))
    at = np.int64(row)
    while tree[at, _PARENT] >= 0:
        parent = np.int64(tree[at, _PARENT])
        if tree[parent, _RIGHT] == at:
            before += 1 + _size(tree[parent, _LEFT], tree)
        at = parent
    return before


@device
def delete(row, slot, tree, roots):
    """Take a row out of its slot's tree."""
    while tree[row, _LEFT] >= 0 or tree[row, _RIGHT] >= 0:
        left = np.int64(tree[row, _LEFT])
        right = np.int64(tree[row, _RIGHT])
        if right < 0 or (left >= 0 and _priority(left) > _priority(right)):
            _rotate(left, slot, tree, roots)
        else:
            _rotate(right, slot, tree, roots)
    parent = np.int64(tree[row, _PARENT])
    if parent < 0:
        roots[slot] = -1
        return
    if tree[parent, _LEFT] == row:
        tree[parent, _LEFT] = -1
    else:
        tree[parent, _RIGHT] = -1
    while parent >= 0:
        tree[parent, _SIZE] -= 1
        parent = np.int64(tree[parent, _PARENT])


@kernel(
    "void(int8[::1], int32[::1], int32[::1], boolean, int64[:,::1], uint8[::1], uint8[::1], int64[:,::1],"
    " int32[:,::1], int32[:,::1], int32[:,::1], int64[::1], int64[:,::1], int64[:,::1], int32[::1], int32[:,::1],"
    " int32[::1], int32[::1], int32[::1])"
)
def apply(
    signs,
    slots,
    entries,
    unique,
    words,
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
    out,
    ranks,
):
    """``row_list.apply`` that keeps the trees.

    ``batch_keys`` (n, k): sort keys of the batch. ``ranks``: rows that stood before the row meant, after it was put in
    or before it was taken out; -1 if there is none.
    """
    for i in range(len(slots)):
        slot = slots[i]
        out[i] = -1
        ranks[i] = -1
        if slot < 0 or signs[i] == 0:
            continue
        entry = np.int64(-1)
        if entries.size > 0:
            entry = np.int64(entries[i])
        if signs[i] > 0:
            if unique and entry >= 0 and chains[entry, 0] >= 0:
                # It becomes the newest of its slot: rows that sort alike stand as a restored list would have them.
                old = take(i, slot, entry, unique, words, is_bytes, arena, rows, links, ends, chains, meta)
                delete(old, slot, tree, roots)
            row = put(i, slot, entry, unique, words, rows, links, ends, chains, meta)
            older = np.int64(links[row, OLDER])
            if entry < 0 and older >= 0:
                # Without identities rows go by number.
                links[older, NEWER] = row
            for j in range(keys.shape[1]):
                keys[row, j] = batch_keys[i, j]
            ranks[i] = insert(row, slot, keys, texts, rows, arena, tree, roots)
            out[i] = row
        else:
            row = take(i, slot, entry, unique, words, is_bytes, arena, rows, links, ends, chains, meta)
            if row >= 0:
                ranks[i] = rank_of(row, tree)
                delete(row, slot, tree, roots)
                out[i] = row


@kernel("void(int32[::1], int32[:,::1], int32[:,::1], int64[::1], int32[:,::1], int32[::1])")
def remove(found, links, ends, meta, tree, roots):
    """Take live rows out of lists without identities."""
    for i in range(len(found)):
        row = np.int64(found[i])
        slot = np.int64(links[row, SLOT])
        delete(row, slot, tree, roots)
        unlink(row, slot, links, ends, meta)


@kernel("void(int32[::1], int32[:,::1], int32[::1])")
def ranks_of(found, tree, out):
    """How many rows of its slot stand before each row."""
    for i in range(len(found)):
        out[i] = rank_of(np.int64(found[i]), tree)


@kernel(
    "void(int32[::1], int64, int64, boolean, int64[:,::1], int32[::1], int64[:,::1], uint8[::1], int32[:,::1],"
    " int32[::1], int64[::1])"
)
def count_before(slots, first, parts, equal_too, keys, texts, rows, arena, tree, roots, out):
    """How many rows of ``slots[i]`` sort before row ``first + i`` (``equal_too``: or like it) by some of the key."""
    for i in range(len(slots)):
        out[i] = 0
        at = np.int64(-1)
        if 0 <= slots[i] < len(roots):
            at = np.int64(roots[slots[i]])
        while at >= 0:
            order = order_of(at, first + i, parts, keys, texts, rows, arena)
            if order < 0 or (equal_too and order == 0):
                out[i] += 1 + _size(tree[at, _LEFT], tree)
                at = np.int64(tree[at, _RIGHT])
            else:
                at = np.int64(tree[at, _LEFT])


@kernel("void(int32[::1], int64[::1], int64[::1], int32[:,::1], int32[::1], int32[::1], int32[::1])")
def walk(slots, skipped, starts, tree, roots, probes, found):
    """Rows of each slot in order, ``skipped[i]`` left out, to ``found[starts[i]:starts[i + 1]]``; ``probes`` gets i."""
    for i in range(len(slots)):
        wanted = starts[i + 1] - starts[i]
        if wanted == 0:
            continue
        at = at_place(roots[slots[i]], skipped[i], tree)
        for k in range(starts[i], starts[i] + wanted):
            probes[k] = i
            found[k] = at
            at = following(at, tree)
