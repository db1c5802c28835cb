"""Aggregates over frames of sorted rows, computed by the accumulators of group aggregates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flowsql_compute.eval.literal import literal_array
from flowsql_core import column_bytes
from flowsql_core.expr import AggregateCall, InputRef, Literal
from flowsql_core.graph.bounded_specs import OverFrame
from flowsql_core.types.arrow import to_arrow
from flowsql_core.types.logical import Column, Schema, without_attribute
from flowsql_runtime.operators.aggregate.program import AggregateProgram
from flowsql_runtime.operators.bounded.frames import Partitions
from flowsql_runtime.operators.join.side import row_ranges
from flowsql_runtime.state.scratch import scratch_stores
from flowsql_runtime.state.stores import KeyIndex

Int64s = npt.NDArray[np.int64]

#: Rows that are folded at once where every row's state is kept.
_STEP_ROWS: Final = 65_536
#: Functions that the order of rows means nothing to: a frame that ends with its partition is folded from behind.
_ANY_ORDER: Final = frozenset({"COUNT", "SUM", "$SUM0", "MIN", "MAX", "AVG"})


class FrameCalls:
    """Calls of one frame.

    Args:
        calls: arguments are columns of ``input`` and, behind them, ``constants``.
    """

    def __init__(
        self, calls: Sequence[AggregateCall], input: Schema, constants: Sequence[Literal], frame: OverFrame
    ) -> None:
        width = len(input)
        used = sorted({arg.index for call in calls for arg in call.args})
        self._columns = [index for index in used if index < width]
        self._constants = [constants[index - width] for index in used if index >= width]
        own = [Column(input[index].name, without_attribute(input[index].type)) for index in self._columns]
        schema = (*own, *(Column(f"c{i}", constant.type) for i, constant in enumerate(self._constants)))
        moved = [
            replace(
                call,
                args=tuple(InputRef(used.index(arg.index), without_attribute(arg.type), arg.span) for arg in call.args),
            )
            for call in calls
        ]
        self._types = [to_arrow(call.type) for call in calls]
        self._program = AggregateProgram(moved, schema, retracts=False)
        self._frame = frame
        self._any_order = all(call.function in _ANY_ORDER for call in calls)

    def results(self, columns: Sequence[Any], partitions: Partitions, low: Int64s, high: Int64s) -> list[Any]:
        """A column a call.

        Args:
            columns: the input's, sorted.
            low, high: the frame of each row.
        """
        n = len(low)
        values = [columns[index] for index in self._columns]
        values += [literal_array(constant, n) for constant in self._constants]
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
        n = len(rows)
        firsts, slots = np.unique(partitions.first, return_inverse=True)
        self._open(len(firsts) + 1)
        taken = slots.astype(np.int32)[rows]
        parts: list[list[Any]] = [[] for _ in self._types]
        for start in range(0, n, _STEP_ROWS):
            some = rows[start : start + _STEP_ROWS]
            part = [column_bytes.taken(column, some) for column in values]
            changes = self._program.fold(
                taken[start : start + _STEP_ROWS], part, np.ones(len(some), np.int8), every=True
            )
            after = 2 * np.arange(len(some)) + 1
            for place, result in enumerate(changes.results):
                parts[place].append(result.to_arrow(after))
        nothing = self._program.results_at(np.array([len(firsts)], np.int32))
        return [
            column_bytes.taken(column_bytes.joined([*part, none]), steps)
            for part, none in zip(parts, nothing, strict=True)
        ]

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
