"""The batches of a mini-batch as one, whose columns are put together where somebody reads them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flowsql_core import column_bytes
from flowsql_core.arrow import compute as pc
from flowsql_core.batch import ChangelogBatch, LateColumns, PyObjectColumn, RowSource, concat_batches

Int64s = npt.NDArray[np.int64]


def one_batch(batches: Sequence[ChangelogBatch]) -> Iterable[ChangelogBatch]:
    """``concat_batches``, but a column that nobody reads is never copied, and of one that is read in part only that.

    Columns of Python objects, and what is still to be gathered from a state, are joined at once.
    """
    if len(batches) == 1:
        return batches
    ends = tuple(accumulate(batch.num_rows for batch in batches))
    every = np.arange(ends[-1])
    made: list[_Joined] = []
    for index in range(len(batches[0].columns)):
        parts = [_part(batch.columns, index) for batch in batches]
        found = _Joined([part for part in parts if part is not None], ends)
        if len(found.parts) < len(parts) or found.row_bytes(every, column_bytes.MOST_BYTES) is not None:
            return concat_batches(batches)
        made.append(found)
    whole = concat_batches([batch.with_columns(()) for batch in batches])[0]
    return (whole.with_columns(LateColumns.of(made, every)),)


def _part(columns: Sequence[Any], index: int) -> tuple[Any, npt.NDArray[Any] | None] | None:
    """An array and which of its rows a column consists of (None: all); no part of what is not an array."""
    origin = columns.origin(index) if isinstance(columns, LateColumns) else None
    if origin is not None:
        return None if isinstance(origin[0], PyObjectColumn) else origin
    array = columns.entry(index) if isinstance(columns, LateColumns) else columns[index]
    return (array, None) if isinstance(array, pa.Array) else None


class _Joined(RowSource):
    """A column of several batches: ``parts`` one behind the other, ``ends`` where each of them ends."""

    def __init__(self, parts: list[tuple[Any, npt.NDArray[Any] | None]], ends: tuple[int, ...]) -> None:
        self.parts = parts
        self._ends = ends
        self._sizes: Int64s | None = None

    def take(self, rows: npt.NDArray[Any]) -> Any:
        """An Arrow array of rows by their places, which together fit into one."""
        if not (rows[1:] > rows[:-1]).all():
            whole = self.take(np.arange(self._ends[-1]))
            return pc.take(whole, pa.array(rows), boundscheck=False)
        found, first, start = [], 0, 0
        for (array, places), end in zip(self.parts, self._ends, strict=True):
            last = int(np.searchsorted(rows, end))
            if last > first:
                chosen = rows[first:last] - start
                found.append(_selected(array, places, None if last - first == end - start else chosen))
            first, start = last, end
        return found[0] if len(found) == 1 else pa.concat_arrays(found or [self.parts[0][0].slice(0, 0)])

    def row_bytes(self, rows: npt.NDArray[Any], most: int) -> Int64s | None:
        """Bytes of rows by their places, int64 (n,); None if all together take no more than ``most``."""
        if column_bytes.row_bytes(self.parts[0][0].slice(0, 0)) is None:
            return None
        if self._sizes is None:
            self._sizes = np.concatenate([_bytes_of(array, places) for array, places in self.parts])
        sizes: Int64s = self._sizes[rows]
        return None if int(sizes.sum()) <= most else sizes


def _selected(array: Any, places: npt.NDArray[Any] | None, chosen: npt.NDArray[Any] | None) -> Any:
    """Rows ``chosen`` (None: all) of those of an array that a part consists of."""
    if places is None:
        places = chosen
    elif chosen is not None:
        places = places[chosen]
    return array if places is None else pc.take(array, pa.array(places), boundscheck=False)


def _bytes_of(array: Any, places: npt.NDArray[Any] | None) -> Int64s:
    sizes = column_bytes.row_bytes(array)
    assert sizes is not None
    return sizes if places is None else sizes[places]
