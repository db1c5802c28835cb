"""Row times as milliseconds of their own kind."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from flowsql_compute.eval.columns import values_and_validity
from flowsql_core.errors import ExecutionError

Int64s = npt.NDArray[np.int64]
_PER_MS = {"s": 0, "ms": 1, "us": 1_000, "ns": 1_000_000}


def milliseconds_of(array: Any) -> Int64s:
    """Epoch milliseconds of a timestamp column, int64 (n,), finer digits cut off downwards.

    Raises:
        ExecutionError: a row time is NULL.
    """
    values, valid = values_and_validity(array)
    if valid is not None and not valid.all():
        raise ExecutionError(
            "null-row-time", "RowTime field should not be null, please convert it to a non-null long value."
        )
    per_ms = _PER_MS[array.type.unit]
    if per_ms == 1:
        return values
    return values * 1_000 if per_ms == 0 else values // per_ms
