"""Two sorted inputs walked through side by side: which rows of one have the keys of the other."""

from __future__ import annotations

from flowsql_compute.compiler.declare import device, kernel


@device
def _compare_rows(left, i, right, j):
    for k in range(left.shape[1]):
        if left[i, k] != right[j, k]:
            return 1 if left[i, k] > right[j, k] else -1
    return 0


@kernel("void(int64[:,::1], int64[:,::1], int64[::1], int64[::1])")
def merge_walk(left, right, starts, counts):
    """For each row of the left the run of equal rows of the right.

    Args:
        left: words of sorted rows, (n, w), compared from the first one on.
        right: (m, w), sorted too.
        starts, counts: out, (n,): where the run starts, and how many rows it has.
    """
    n, m = left.shape[0], right.shape[0]
    i = 0
    j = 0
    while i < n:
        while j < m and _compare_rows(left, i, right, j) > 0:
            j += 1
        end = j
        while end < m and _compare_rows(left, i, right, end) == 0:
            end += 1
        first = i
        while i < n and _compare_rows(left, first, left, i) == 0:
            starts[i] = j
            counts[i] = end - j
            i += 1
        j = end


@kernel("int64(int64[:,::1], int64[:,::1], int64)")
def rows_below(words, other, row):
    """How many sorted rows stand before row ``row`` of ``other``."""
    low = 0
    high = words.shape[0]
    while low < high:
        middle = (low + high) // 2
        if _compare_rows(words, middle, other, row) < 0:
            low = middle + 1
        else:
            high = middle
    return low
