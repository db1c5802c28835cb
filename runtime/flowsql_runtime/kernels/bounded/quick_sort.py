"""The sort of Flink's batch operators: which of several equal rows comes first is decided as there.

Source: Flink, ``QuickSort`` (Hadoop's), as ``BinaryExternalSorter`` uses it for what fits in memory.
"""

from __future__ import annotations

import numpy as np

from flowsql_compute.compiler.declare import device, kernel


@device
def _compare(words, a, b):
    for k in range(words.shape[1]):
        if words[a, k] != words[b, k]:
            return 1 if words[a, k] > words[b, k] else -1
    return 0


@device
def _swap(rows, i, j):
    kept = rows[i]
    rows[i] = rows[j]
    rows[j] = kept


@device
def _insert(words, rows, first, last):
    for i in range(first + 1, last):
        j = i
        while j > first and _compare(words, rows[j - 1], rows[j]) > 0:
            _swap(rows, j, j - 1)
            j -= 1


@device
def _down(words, rows, first, at, size):
    while True:
        below = 2 * at + 1
        if below >= size:
            return
        if below + 1 < size and _compare(words, rows[first + below + 1], rows[first + below]) > 0:
            below += 1
        if _compare(words, rows[first + at], rows[first + below]) >= 0:
            return
        _swap(rows, first + at, first + below)
        at = below


@device
def _heap(words, rows, first, last):
    """Where pivots are chosen badly again and again."""
    size = last - first
    for at in range(size // 2 - 1, -1, -1):
        _down(words, rows, first, at, size)
    for end in range(size - 1, 0, -1):
        _swap(rows, first, first + end)
        _down(words, rows, first, 0, end)


@kernel("void(int64[:,::1], int64[::1], int64[:,::1])")
def quick_sort(words, rows, stack):
    """Sort row numbers by their words.

    Args:
        words: of each row (n, w), compared from the first one on.
        rows: the numbers 0 .. n - 1, which are brought into order.
        stack: (128, 3) working memory: the smaller part is sorted first, so that one entry a halving waits.
    """
    depth = np.int64(0)
    size = len(rows) - 1
    while size > 0:
        depth += 4
        size >>= 1
    stack[0, 0], stack[0, 1], stack[0, 2] = 0, len(rows), depth
    waiting = 1
    while waiting > 0:
        waiting -= 1
        p, r, left = stack[waiting, 0], stack[waiting, 1], stack[waiting, 2]
        while True:
            if r - p < 13:
                _insert(words, rows, p, r)
                break
            left -= 1
            if left < 0:
                _heap(words, rows, p, r)
                break
            middle = (p + r) >> 1
            if _compare(words, rows[middle], rows[p]) > 0:
                _swap(rows, middle, p)
            if _compare(words, rows[middle], rows[r - 1]) > 0:
                _swap(rows, middle, r - 1)
            if _compare(words, rows[p], rows[r - 1]) > 0:
                _swap(rows, p, r - 1)
            i, j, low, high = p, r, p, r
            while True:
                i += 1
                while i < j:
                    order = _compare(words, rows[i], rows[p])
                    if order > 0:
                        break
                    if order == 0:
                        low += 1
                        if low != i:
                            _swap(rows, low, i)
                    i += 1
                j -= 1
                while j > i:
                    order = _compare(words, rows[p], rows[j])
                    if order > 0:
                        break
                    if order == 0:
                        high -= 1
                        if high != j:
                            _swap(rows, high, j)
                    j -= 1
                if i < j:
                    _swap(rows, i, j)
                else:
                    break
            j = i
            # The pivot and what equals it go between the two parts.
            while low >= p:
                i -= 1
                _swap(rows, low, i)
                low -= 1
            while high < r:
                _swap(rows, high, j)
                high += 1
                j += 1
            # The larger part waits.
            if i - p < r - j:
                stack[waiting, 0], stack[waiting, 1], stack[waiting, 2] = j, r, left
                r = i
            else:
                stack[waiting, 0], stack[waiting, 1], stack[waiting, 2] = p, i, left
                p = j
            waiting += 1
