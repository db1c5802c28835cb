"""Multisets by slot with the extreme value on top: skew heaps of entries that share flat arrays.

An entry is one (slot, value) with a count. An entry whose count fell to zero stays in its heap until it reaches the top
(lazy deletion); the owner rebuilds the heaps when too many such entries lie below.
``heap`` int32 (entries, 3): left, right, 1 if in a heap. ``tops`` int32 (slots,): entry on top or -1.
"""

from __future__ import annotations

import numpy as np

from flowsql_compute.compiler.declare import device, kernel
from flowsql_runtime.kernels.byte_arena import compare

INTEGER, DOUBLE, WIDE, BYTES = 0, 1, 2, 3
_LEFT, _RIGHT, _INSIDE = 0, 1, 2


@device
def _before(words, doubles, arena, a, b, kind, largest):
    if kind == DOUBLE:
        x = doubles[a, 0]
        y = doubles[b, 0]
        # NaN above all numbers, as java.lang.Double.compareTo says.
        if largest:
            return (x > y) or (np.isnan(x) and not np.isnan(y))
        return (x < y) or (np.isnan(y) and not np.isnan(x))
    if kind == BYTES:
        order = compare(arena, words[a, 0], words[b, 0])
        return order > 0 if largest else order < 0
    if kind == WIDE and words[a, 1] != words[b, 1]:
        return words[a, 1] > words[b, 1] if largest else words[a, 1] < words[b, 1]
    if kind == WIDE:
        x = np.uint64(words[a, 0])
        y = np.uint64(words[b, 0])
        return x > y if largest else x < y
    return words[a, 0] > words[b, 0] if largest else words[a, 0] < words[b, 0]


@device
def _meld(words, doubles, arena, heap, a, b, kind, largest):
    if a < 0:
        return b
    if b < 0:
        return a
    if _before(words, doubles, arena, b, a, kind, largest):
        a, b = b, a
    top = a
    while True:
        right = heap[a, _RIGHT]
        heap[a, _RIGHT] = heap[a, _LEFT]
        if right < 0:
            heap[a, _LEFT] = b
            return top
        if _before(words, doubles, arena, b, right, kind, largest):
            right, b = b, right
        heap[a, _LEFT] = right
        a = right


@kernel(
    "int64(int8[::1], int32[::1], int32[::1], int64[:,::1], float64[:,::1], uint8[::1], int64[::1], int32[:,::1],"
    " int32[::1], int64, boolean, int32[::1], int32[::1])"
)
def update(signs, slots, entries, words, doubles, arena, counts, heap, tops, kind, largest, out, gone):
    """Count each row's entry up or down, in order; ``out``: the top of its slot afterwards, -1 when empty.

    Counts may fall below zero where a row takes back what never came; such an entry is not in the set. ``gone``:
    entries that left heap and set for good; returns how many. The same entry may stand there twice or live again.
    """
    left = 0
    for i in range(len(slots)):
        entry = np.int64(entries[i])
        slot = slots[i]
        if entry < 0 or signs[i] == 0:
            out[i] = -2
            continue
        counts[entry] += signs[i]
        if counts[entry] > 0 and not heap[entry, _INSIDE]:
            heap[entry, _LEFT] = -1
            heap[entry, _RIGHT] = -1
            heap[entry, _INSIDE] = 1
            tops[slot] = _meld(words, doubles, arena, heap, np.int64(tops[slot]), entry, kind, largest)
        elif counts[entry] == 0 and not heap[entry, _INSIDE]:
            gone[left] = entry
            left += 1
        top = np.int64(tops[slot])
        while top >= 0 and counts[top] <= 0:
            heap[top, _INSIDE] = 0
            if counts[top] == 0:
                gone[left] = top
                left += 1
            top = _meld(
                words, doubles, arena, heap, np.int64(heap[top, _LEFT]), np.int64(heap[top, _RIGHT]), kind, largest
            )
        tops[slot] = top
        out[i] = top
    return left


@kernel(
    "void(int32[::1], int64[::1], int64[:,::1], float64[:,::1], uint8[::1], int32[:,::1], int32[::1], int64, boolean)"
)
def rebuild(entries, slots, words, doubles, arena, heap, tops, kind, largest):
    """Heaps of the given entries only; ``slots`` says whose each is."""
    tops[:] = -1
    for i in range(len(entries)):
        entry = np.int64(entries[i])
        heap[entry, _LEFT] = -1
        heap[entry, _RIGHT] = -1
        heap[entry, _INSIDE] = 1
        tops[slots[i]] = _meld(words, doubles, arena, heap, np.int64(tops[slots[i]]), entry, kind, largest)
