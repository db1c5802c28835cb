"""Window functions over a bounded input: each partition is sorted as a whole, then every frame is a range of rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flowsql_compute.eval.literal import literal_array
from flowsql_core.arrow import compute as pc
from flowsql_core.batch import ChangelogBatch, LateColumns
from flowsql_core.errors import NotSupportedYetError
from flowsql_core.expr import AggregateCall, InputRef, Literal
from flowsql_core.graph.bounded_specs import BoundedOverSpec, OverFrame
from flowsql_core.types.arrow import to_arrow
from flowsql_runtime.operators.base import OperatorContext
from flowsql_runtime.operators.bounded.base import BoundedOperator
from flowsql_runtime.operators.bounded.frames import Partitions
from flowsql_runtime.operators.bounded.held_rows import HeldRows, together
from flowsql_runtime.operators.bounded.order import sort_words, sorted_positions
from flowsql_runtime.operators.bounded.over_frames import FrameCalls
from flowsql_runtime.state.arrow_words import array_of_words

Int64s = npt.NDArray[np.int64]

#: Functions of a row's place in its partition; they have no frame, but for CUME_DIST alone in its window.
_PLACES: Final = frozenset({"ROW_NUMBER", "RANK", "DENSE_RANK", "PERCENT_RANK", "CUME_DIST", "NTILE"})
_OFFSETS: Final = {"LAG": -1, "LEAD": 1}


class BoundedOverOperator(BoundedOperator[BoundedOverSpec]):
    """Window functions with any frame.

    In     insert-only, hash-partitioned by ``spec.partition`` (no partition: one subtask).
    Out    the rows with a column a call, partition by partition, each in its order.

    Source: Flink, ``BufferDataOverWindowOperator`` and its frames.
    """

    def open(self, ctx: OperatorContext) -> None:
        """No rows yet."""
        spec = self.spec
        self._held = HeldRows(ctx.memory, self.share_bytes, lambda: self.space, spec.partition)
        by_frame: dict[OverFrame, list[int]] = {}
        for place, (call, frame) in enumerate(zip(spec.calls, spec.frames, strict=True)):
            if call.function not in _PLACES and call.function not in _OFFSETS:
                assert frame is not None
                by_frame.setdefault(frame, []).append(place)
        self._framed = {
            frame: (places, FrameCalls([spec.calls[place] for place in places], spec.input, spec.constants, frame))
            for frame, places in by_frame.items()
        }

    def process_batch(self, input_index: int, batch: ChangelogBatch) -> None:
        """Keep rows."""
        if batch.num_rows:
            self._held.add(batch)

    def answer(self) -> None:
        """All partitions."""
        for batches in self._held.parts():
            whole = together(batches)
            if whole is not None:
                self._answer(whole)

    def _answer(self, batch: ChangelogBatch) -> None:
        spec, n = self.spec, batch.num_rows
        keys = sort_words(batch.columns, tuple((column, False, True) for column in spec.partition))
        words = sort_words(batch.columns, spec.order)
        rows = sorted_positions([*keys, *words], n)
        partitions = Partitions.of([word[rows] for word in keys], [word[rows] for word in words], n)
        columns = LateColumns.of(batch.columns, rows)
        results: dict[int, Any] = {}
        for frame, (places, calls) in self._framed.items():
            value = columns[spec.order[0][0]] if not frame.counts_rows and spec.order else None
            low, high = partitions.frame(frame, value, bool(spec.order) and spec.order[0][1])
            found = calls.results(columns, partitions, low, high)
            results.update(zip(places, found, strict=True))
        for place, (call, frame_) in enumerate(zip(spec.calls, spec.frames, strict=True)):
            if call.function in _PLACES:
                results[place] = self._place(call, frame_, partitions)
            elif call.function in _OFFSETS:
                results[place] = self._offset(call, columns, partitions)
        added = [results[place] for place in range(len(spec.calls))]
        self.emit(ChangelogBatch(LateColumns.beside(columns, added), n))

    def _place(self, call: AggregateCall, frame: OverFrame | None, partitions: Partitions) -> Any:
        """A function of where a row stands."""
        first, size = partitions.first, partitions.last - partitions.first
        row: Int64s = np.arange(len(first)) - first
        type_ = to_arrow(call.type)
        found: Int64s
        match call.function:
            case "ROW_NUMBER":
                found = row + 1
            case "RANK":
                found = partitions.peer_first - first + 1
            case "DENSE_RANK":
                groups: Int64s = np.cumsum(partitions.peer_begins, dtype=np.int64)
                found = groups - groups[first] + 1
            case "PERCENT_RANK":
                share = (partitions.peer_first - first) / np.maximum(size - 1, 1)
                return pa.array(share, type_)
            case "CUME_DIST":
                # As in Flink, where other ranks of the window stand before it: row by row, peers or not.
                seen = row + 1 if frame is None else partitions.peer_last - first
                return pa.array(seen / size, type_)
            case "NTILE":
                buckets = int(self._constant(call.args[0]).value)
                small, large = size // buckets, size % buckets
                edge = large * (small + 1)
                behind = large + (row - edge) // np.maximum(small, 1)
                found = np.where(row < edge, row // (small + 1), behind) + np.int64(1)
            case _:
                raise AssertionError(call.function)
        return array_of_words([found.astype(np.int64)], None, type_)

    def _offset(self, call: AggregateCall, columns: Sequence[Any], partitions: Partitions) -> Any:
        """LAG and LEAD: the value of another row of the partition."""
        away = 1 if len(call.args) < 2 else int(self._constant(call.args[1]).value)
        wanted = np.arange(len(partitions.first)) + _OFFSETS[call.function] * away
        there = (wanted >= partitions.first) & (wanted < partitions.last)
        source, type_ = call.args[0].index, to_arrow(call.type)
        width = len(self.spec.input)
        column = columns[source] if source < width else literal_array(self._constant(call.args[0]), len(there))
        found = pc.take(column, pa.array(wanted, mask=~there), boundscheck=False)
        if found.type != type_:
            found = pc.cast(found, type_)
        if len(call.args) > 2:
            otherwise = self._constant(call.args[2])
            if otherwise.value is not None:
                found = pc.if_else(pa.array(there), found, literal_array(otherwise, len(there)).cast(type_))
        if not call.type.nullable and found.null_count:
            # As in Flink: a default that is NOT NULL makes the column so, and NULLs of numbers are shown as -1.
            if not (pa.types.is_integer(type_) or pa.types.is_floating(type_)):
                raise NotSupportedYetError(f"{call.function} of a NULL of {call.type} with a default that is NOT NULL")
            found = pc.fill_null(found, pa.scalar(-1, type_))
        return found

    def _constant(self, arg: InputRef) -> Literal:
        return self.spec.constants[arg.index - len(self.spec.input)]
