"""Changes by key: of each key the last one counts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt


def last_of_each(keys: Sequence[Any]) -> npt.NDArray[np.int64]:
    """Where each combination of values stands last, rising."""
    n = len(keys[0])
    codes = np.zeros(n, np.int64)
    for column in keys:
        numbers = np.asarray(column.dictionary_encode(null_encoding="encode").indices, np.int64)
        # Numbered anew for each column, so that the product stays small.
        codes = np.unique(codes * (int(numbers.max(initial=0)) + 1) + numbers, return_inverse=True)[1]
    return np.sort(n - 1 - np.unique(codes[::-1], return_index=True)[1])
