"""Rows of a batch and rows of a store as the columns of one result, gathered where somebody reads them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flowsql_core import column_bytes
from flowsql_core.arrow import compute as pc
from flowsql_core.batch import LateColumns, RowSource
from flowsql_runtime.state.resident.column_store import StoredRows

Int64s = npt.NDArray[np.int64]


def told_columns(came: LateColumns, stored: StoredRows) -> list[RowSource]:
    """Columns of ``came`` with those of ``stored`` behind them, for late columns; any thread may gather them."""
    return [_Told(came, stored, index) for index in range(len(came))]


class _Told(RowSource):
    """One column. Both parts stay as they are, whatever the operator does with its state."""

    def __init__(self, came: LateColumns, stored: StoredRows, index: int) -> None:
        self._came = came
        self._stored = stored
        self._index = index
        self._joined: Any = None

    def take(self, rows: npt.NDArray[Any]) -> Any:
        """An Arrow array of rows by their places, which together fit into one."""
        return column_bytes.narrow(pc.take(self._whole(), pa.array(rows), boundscheck=False))

    def row_bytes(self, rows: npt.NDArray[Any], most: int) -> Int64s | None:
        """Bytes of rows by their places, int64 (n,); None if all together take no more than ``most``."""
        origin = self._came.origin(self._index)
        array = self._came[self._index] if origin is None else origin[0]
        longest = max(_longest(array), self._stored.longest(self._index))
        if longest * len(rows) <= most:
            return None
        return column_bytes.bytes_of_rows(self._whole(), rows, len(rows))

    def _whole(self) -> Any:
        if self._joined is None:
            self._joined = column_bytes.joined((self._came[self._index], self._stored.column(self._index)))
        return self._joined


def _longest(array: Any) -> int:
    """Bytes of the longest value, 0 for types of fixed width."""
    sizes = column_bytes.row_bytes(array)
    return 0 if sizes is None else int(sizes.max(initial=0))
