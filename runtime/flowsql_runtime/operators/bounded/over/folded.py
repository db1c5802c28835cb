"""Aggregates over frames of sorted rows, computed by the accumulators of group aggregates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flowsql_core import column_bytes
from flowsql_core.expr import AggregateCall, Literal
from flowsql_core.graph.bounded_specs import OverFrame
from flowsql_core.types.logical import Schema
from flowsql_runtime.operators.aggregate.program import AggregateProgram
from flowsql_runtime.operators.bounded.over.frame_calls import FrameCalls
from flowsql_runtime.operators.bounded.over.frames import Partitions
from flowsql_runtime.operators.join.side import row_ranges
from flowsql_runtime.state.scratch import scratch_stores
from flowsql_runtime.state.stores import KeyIndex

Int64s = npt.NDArray[np.int64]

#: Rows that are folded at once where every row's state is kept.
_STEP_ROWS: Final = 65_536
#: Functions that the order of rows means nothing to: a frame that ends with its partition is folded from behind.
_ANY_ORDER: Final = frozenset({"COUNT", "APPROX_COUNT_DISTINCT", "SUM", "$SUM0", "MIN", "MAX", "AVG"})


class FoldedFrames(FrameCalls):
    """Calls that fold rows into accumulators. Arguments as of the base."""

    def __init__(
        self, calls: Sequence[AggregateCall], input: Schema, constants: Sequence[Literal], frame: OverFrame
    ) -> None:
        super().__init__(calls, input, constants, frame)
        self._program = AggregateProgram(self._calls, self._schema, retracts=False)
        self._any_order = all(call.function in _ANY_ORDER for call in calls)

    @property
    def takes_parts(self) -> bool:
        """One accumulator has all rows; other frames follow the rows, or are read again."""
        return self.whole

    @property
    def from_first(self) -> bool:
        """Whether frames begin with the partition, and are results after one of its rows."""
        return self._frame.start is None

    @property
    def from_last(self) -> bool:
        """The same from behind."""
        return self._frame.end is None and self._any_order

    def begin(self) -> None:
        """One slot for the rows that come in parts, and one that stays empty."""
        self._open(2)

    def take_part(self, columns: Sequence[Any], n: int) -> None:
        """Folded into the first slot."""
        self._fold(self._values(columns, n), np.zeros(n, np.int32))

    def follow_part(self, columns: Sequence[Any], n: int, back: bool) -> list[Any]:
        """The next rows of the partition: the results after each of them.

        Args:
            back: the last row comes first; results stand beside their rows all the same.
        """
        rows = np.arange(n)[::-1] if back else np.arange(n)
        parts = self._followed(self._values(columns, n), rows, np.zeros(n, np.int32))
        return [column_bytes.taken(column_bytes.joined(part), rows) for part in parts]

    def results_of_parts(self, low: Int64s, high: Int64s) -> list[Any]:
        """The first slot's: each frame is the whole partition."""
        return [column_bytes.taken(column, np.zeros(len(low), np.int64)) for column in self._results(0)]

    def result_of_none(self, n: int) -> list[Any]:
        """What no rows are, for n rows."""
        return [column_bytes.taken(column, np.zeros(n, np.int64)) for column in self._results(1)]

    def _results(self, slot: int) -> list[Any]:
        return self._program.results_at(np.array([slot], np.int32))

    def sliding(self, columns: Sequence[Any], n: int, low: Int64s, high: Int64s) -> list[Any]:
        """Results of frames among n rows."""
        return self._sliding(self._values(columns, n), low, high)

    def results(self, columns: Sequence[Any], partitions: Partitions, low: Int64s, high: Int64s) -> list[Any]:
        """As of the base; whole and running frames fold each row once."""
        n = len(low)
        values = self._values(columns, n)
        if self._frame.start is None and self._frame.end is None:
            return self._whole(values, partitions)
        if self._frame.start is None:
            return self._running(values, partitions, np.arange(n), np.where(high > low, high - 1, n))
        if self._frame.end is None and self._any_order:
            back = np.arange(n)[::-1]
            return self._running(values, partitions, back, np.where(high > low, n - 1 - low, n))
        return self._sliding(values, low, high)

    def _open(self, slots: int) -> KeyIndex:
        """Fresh accumulators: slots from 0 on."""
        stores = scratch_stores()
        index = stores.key_index([pa.int64()])
        self._program.open(stores, index)
        index.find_or_insert(index.encode([pa.array(np.arange(slots))]))
        # Room for all of them, also where no row comes.
        self._program.store.prepare()
        return index

    def _fold(self, values: Sequence[Any], slots: npt.NDArray[np.int32]) -> None:
        signs = np.ones(len(slots), np.int8)
        if self._program.mergeable:
            self._program.take_in(slots, values, signs)
        else:
            self._program.fold(slots, values, signs, every=False)

    def _whole(self, values: Sequence[Any], partitions: Partitions) -> list[Any]:
        """The same for all rows of a partition."""
        firsts, slots = np.unique(partitions.first, return_inverse=True)
        self._open(len(firsts))
        self._fold(values, slots.astype(np.int32))
        found = self._program.results_at(np.arange(len(firsts), dtype=np.int32))
        return [column_bytes.taken(column, slots) for column in found]

    def _running(self, values: Sequence[Any], partitions: Partitions, rows: Int64s, steps: Int64s) -> list[Any]:
        """Rows are taken in one after the other.

        Args:
            rows: in which order.
            steps: for each row of the output, after which of them its result stands; n: that of no rows.
        """
        firsts, slots = np.unique(partitions.first, return_inverse=True)
        self._open(len(firsts) + 1)
        parts = self._followed(values, rows, slots.astype(np.int32)[rows])
        nothing = self._results(len(firsts))
        return [
            column_bytes.taken(column_bytes.joined([*part, none]), steps)
            for part, none in zip(parts, nothing, strict=True)
        ]

    def _followed(self, values: Sequence[Any], rows: Int64s, slots: npt.NDArray[np.int32]) -> list[list[Any]]:
        """Results after each of ``rows``, which are taken into ``slots`` in this order; a list of arrays a call."""
        parts: list[list[Any]] = [[] for _ in self._types]
        for start in range(0, len(rows), _STEP_ROWS):
            some = rows[start : start + _STEP_ROWS]
            part = [column_bytes.taken(column, some) for column in values]
            changes = self._program.fold(
                slots[start : start + _STEP_ROWS], part, np.ones(len(some), np.int8), every=True
            )
            after = 2 * np.arange(len(some)) + 1
            for place, result in enumerate(changes.results):
                parts[place].append(result.to_arrow(after))
        return parts

    def _sliding(self, values: Sequence[Any], low: Int64s, high: Int64s) -> list[Any]:
        """Each frame anew, as Flink does: sums of doubles do not keep what rounding left behind."""
        counts = high - low
        parts: list[list[Any]] = [[] for _ in self._types]
        for first, last in row_ranges(counts):
            own = counts[first:last]
            self._open(last - first)
            before = np.cumsum(own) - own
            rows = np.arange(int(own.sum())) - np.repeat(before - low[first:last], own)
            slots = np.repeat(np.arange(last - first, dtype=np.int32), own)
            if len(rows):
                self._fold([column_bytes.taken(column, rows) for column in values], slots)
            found = self._program.results_at(np.arange(last - first, dtype=np.int32))
            for place, column in enumerate(found):
                parts[place].append(column)
        return [column_bytes.joined(part) for part in parts]
