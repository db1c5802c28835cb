"""Ranges of rows that generators make values for."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from flowsql_core.record import record


@record
class RowRange:
    """Rows ``first``, ``first + stride``, ... of the job, ``count`` of them."""

    first: int
    stride: int
    count: int

    def indexes(self) -> npt.NDArray[np.int64]:
        """Row numbers, int64 (count,)."""
        return self.first + self.stride * np.arange(self.count, dtype=np.int64)


#: Makes the Arrow array of a column for a range of rows at a moment (epoch milliseconds).
Make = Callable[[RowRange, np.random.Generator, int], Any]


def local_ms(now_ms: int) -> int:
    """A moment as the clock of this machine's zone shows it, in milliseconds since 1970-01-01 00:00 of that clock."""
    return now_ms + time.localtime(now_ms // 1000).tm_gmtoff * 1000
