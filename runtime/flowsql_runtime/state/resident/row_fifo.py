"""Slot -> rows that leave in the order in which they came: the frames of OVER windows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from flowsql_runtime.kernels import row_fifo as kernels
from flowsql_runtime.state.resident.frozen import keep
from flowsql_runtime.state.resident.key_index import ResidentKeyIndex
from flowsql_runtime.state.resident.row_list import ResidentRowList

Int8s = npt.NDArray[np.int8]
Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]


class ResidentRowFifo(ResidentRowList):
    """Implements ``RowFifo``; see there."""

    def __init__(self, parent: ResidentKeyIndex, types: Sequence[Any]) -> None:
        super().__init__(parent, types)
        self.store.append_only = False

    def apply(
        self,
        signs: Int8s,
        slots: Int32s,
        columns: Sequence[Any],
        stamp: int = 0,
        associations: Int32s | None = None,
    ) -> Int32s:
        """Put rows in; none is taken out by an equal one."""
        del stamp, associations
        slots = np.ascontiguousarray(slots)
        words, _ = self.prepare(signs, slots, columns)
        out = np.empty(len(slots), np.int32)
        kernels.append(slots, words, self.store.rows, self._ids.links, self._ends, self._ids.meta, out)
        return out

    def first(self, slots: Int32s, counts: Int32s) -> tuple[Int32s, Int32s]:
        """Pairs (position in ``slots``, row) of the oldest rows; see ``RowFifo``."""
        starts = np.zeros(len(slots) + 1, np.int64)
        np.cumsum(counts, out=starts[1:])
        probes = np.empty(int(starts[-1]), np.int32)
        found = np.empty(len(probes), np.int32)
        if len(probes):
            kernels.first(np.ascontiguousarray(slots), starts, self._ids.links, self._ends, probes, found)
        return probes, found

    def count_below(self, slots: Int32s, column: int, limits: Int64s) -> Int32s:
        """How many of the oldest rows are below a limit; see ``RowFifo``."""
        out = np.zeros(len(slots), np.int32)
        word = self.store.word_of[column]
        kernels.count_below(
            np.ascontiguousarray(slots), np.ascontiguousarray(limits), word, self.store.rows, self._ids.links,
            self._ends, out,
        )  # fmt: skip
        return out

    def drop_first(self, slots: Int32s, counts: Int32s) -> None:
        """Take out the oldest rows; see ``RowFifo``."""
        if self.watchers:
            rows = self.first(slots, counts)[1]
            keep(self._ids, rows)
            keep(self.store, rows)
            keep(self, slots)
        kernels.drop_first(
            np.ascontiguousarray(slots), np.ascontiguousarray(counts), self._ids.links, self._ends, self._ids.meta
        )
