"""Row times as milliseconds of their own kind."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flowsql_compute.eval.columns import values_and_validity
from flowsql_core.arrow import compute as pc
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


def padded_milliseconds_of(array: Any) -> Int64s:
    """As :func:`milliseconds_of`; NULL, with which outer joins pad, is 0, the moment that Flink's rows have there.

    Behind any watermark since 1970 such a row is late.
    """
    if array.null_count:
        array = pc.fill_null(array, pa.scalar(0, pa.int64()).cast(array.type))
    return milliseconds_of(array)
