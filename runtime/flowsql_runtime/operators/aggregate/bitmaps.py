"""BITMAP_*_AGG: the sets of each group put together, or how many values they have."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from flowsql_compute.eval.columns import make_array, values_and_validity
from flowsql_compute.eval.nested.bitmaps import Sets, read_sets, write_sets

Int64s = npt.NDArray[np.int64]
UInt64s = npt.NDArray[np.uint64]

_VALUE_BITS: Final = np.uint64(32)


def bitmap_aggregates(function: str, column: Any, owners: Int64s, n: int, type_: Any) -> Any:
    """The result of a BITMAP aggregate for each of ``n`` groups.

    Args:
        function: ``BITMAP_{BUILD, OR, AND, XOR}_AGG``, or the same with ``_CARDINALITY``.
        column: INT (BUILD) or BITMAP of each row, no NULLs.
        owners: the group of each row, (m,), rising.
        type_: Arrow type of the result.

    Returns:
        NULL for a group without rows.
    """
    rows = np.bincount(owners, minlength=n)
    if "_BUILD_" in function:
        numbers, _ = values_and_validity(column)
        words = _words(owners, np.ascontiguousarray(numbers, np.int32).view(np.uint32))
    else:
        sets = read_sets(column)
        words = _words(np.repeat(owners, np.diff(sets.starts)), sets.values)
    words, counts = np.unique(words, return_counts=True)
    groups = (words >> _VALUE_BITS).astype(np.int64)
    if "_AND_" in function:
        kept = counts == rows[groups]
    elif "_XOR_" in function:
        kept = counts % 2 == 1
    else:
        kept = np.ones(len(words), np.bool_)
    words, groups = words[kept], groups[kept]
    sizes = np.bincount(groups, minlength=n)
    valid = rows > 0
    if "_CARDINALITY_" in function:
        return make_array(sizes.astype(np.int64), valid, type_)
    starts = np.zeros(n + 1, np.int64)
    np.cumsum(sizes, out=starts[1:])
    return write_sets(Sets(starts, words.astype(np.uint32), valid))


def _words(owners: Int64s, values: npt.NDArray[np.uint32]) -> UInt64s:
    """Group and value in one word: sorted words are sorted sets behind each other."""
    words: UInt64s = (owners.astype(np.uint64) << _VALUE_BITS) | values
    return words
