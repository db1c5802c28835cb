"""Sorting rows by several whole numbers at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

#: Rows from which on packing is cheaper than sorting key by key.
_MANY: Final = 256
_BITS: Final = 63


def row_order(keys: Sequence[npt.NDArray[Any]]) -> npt.NDArray[np.int64]:
    """``np.lexsort`` of integer keys: the last key sorts first, equal rows keep their order. int64 (n,).

    Where the spans of the keys and the row number fit into one word together, one sort of these words takes a tenth of
    the time.

    >>> row_order((np.array([5, 3, 5]), np.array([1, 0, 1]))).tolist()
    [1, 0, 2]
    """
    n = len(keys[0])
    if n < _MANY:
        return np.lexsort(keys).astype(np.int64, copy=False)
    bits = n.bit_length()
    spans: list[tuple[npt.NDArray[Any], int, int]] = []
    for key in keys:
        lowest = int(key.min())
        width = (int(key.max()) - lowest).bit_length()
        spans.append((key, lowest, bits))
        bits += width
    if bits > _BITS:
        return np.lexsort(keys).astype(np.int64, copy=False)
    words = np.arange(n, dtype=np.int64)
    for key, lowest, shift in spans:
        words |= (key.astype(np.int64) - lowest) << shift
    words.sort()
    words &= (1 << n.bit_length()) - 1
    return words
