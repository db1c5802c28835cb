"""Accumulators of aggregates by slot: a ``ColumnStore`` whose rows kernels fold batches into."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from flowsql_runtime.kernels import accumulate as kernels
from flowsql_runtime.kernels import byte_arena
from flowsql_runtime.kernels import rows as row_kernels
from flowsql_runtime.state.resident.column_store import ResidentColumnStore, Slots
from flowsql_runtime.state.resident.frozen import keep
from flowsql_runtime.state.resident.growing import grow
from flowsql_runtime.state.stores import Folded, StoredColumn

Bools = npt.NDArray[np.bool_]
Int8s = npt.NDArray[np.int8]
Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]


class ResidentAccumulators(ResidentColumnStore):
    """Implements ``AccumulatorStore``; see there."""

    def __init__(self, index: Slots, columns: Sequence[StoredColumn]) -> None:
        super().__init__(index, columns)
        self._seen = np.zeros(0, np.uint8)
        #: Room for what a fold returns, the same memory each time: fresh pages cost more than the fold itself.
        self._touched: Int32s = np.empty(0, np.int32)
        self._first_rows: Int32s = np.empty(0, np.int32)
        self._states: Int64s = np.empty((0, self.width), np.int64)

    def prepare(self) -> None:
        """Before a batch puts texts in."""
        self.ensure()
        self.compact()

    def equal_bytes(self, left: Int64s, right: Int64s) -> Bools:
        """Whether references hold equal values."""
        equal = np.empty(len(left), np.bool_)
        byte_arena.equal(np.ascontiguousarray(left), np.ascontiguousarray(right), self.arena, equal)
        return equal

    def known_signs(self, slots: Int32s, signs: Int8s) -> Int8s:
        """The signs without retractions of slots that have no rows."""
        self.ensure()
        keep(self, slots)
        out = np.empty_like(signs)
        kernels.ignore_unknown(self.rows, slots, signs, out)
        return out

    def fold(
        self, slots: Int32s, ops: Int64s, arguments: Int64s, signs: Int8s, record: int, clear: bool = False
    ) -> Folded:
        """Fold a batch into the slots by a program."""
        if len(self._seen) < self.index.high_water:
            grow(self, "_seen", self.index.high_water)
        self._reserve(0 if record == kernels.NOTHING else len(slots))
        keep(self, slots)
        status = np.zeros(1, np.int64)
        m = kernels.folding(ops[:, 0].tolist())(
            self.rows, self.rows.view(np.float64), slots, ops, arguments, arguments.view(np.float64), signs,
            self.arena, record, clear, self._seen, self._touched, self._first_rows, self._states, status,
        )  # fmt: skip
        more = bool(status[0] == kernels.MORE_THAN_ONE)
        return Folded(self._touched[:m], self._first_rows[:m], self._states[: 2 * m], more)

    def _reserve(self, n: int) -> None:
        if len(self._touched) < n:
            self._touched = np.empty(n, np.int32)
            self._first_rows = np.empty(n, np.int32)
            self._states = np.empty((2 * n, self.width), np.int64)

    def merged(self, positions: Int32s, count: int, members: Int32s, ops: Int64s) -> Int64s:
        """Rows of ``members`` merged by position."""
        self.ensure()
        merged = np.zeros((count, self.width), np.int64)
        row_kernels.merge(
            merged, merged.view(np.float64), positions, self.rows, self.rows.view(np.float64), members, ops, self.arena
        )
        return merged

    def row_counts(self, slots: Int32s) -> Int64s:
        """Word 0 of the slots."""
        self.ensure()
        counts: Int64s = self.rows[slots, 0]
        return counts

    def words_at(self, slots: Int32s) -> Int64s:
        """Rows of the slots."""
        words: Int64s = self.rows[slots]
        return words

    def word_columns_at(self, slots: Int32s) -> Int64s:
        """Rows of the slots, as columns."""
        words = np.empty((self.width, len(slots)), np.int64)
        row_kernels.gather(self.rows, np.ascontiguousarray(slots), words)
        return words

    def put_words(self, slots: Int32s, words: Int64s) -> None:
        """Write whole rows."""
        self.ensure()
        keep(self, slots)
        self.rows[slots] = words

    def clear_all(self) -> None:
        """Zero every row and forget all bytes; the memory stays."""
        keep(self, np.arange(self.index.high_water, dtype=np.int32))
        self.rows[: self.index.high_water] = 0
        if not self.watchers:
            self._arena_used = byte_arena.START
