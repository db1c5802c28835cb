"""Window functions over a bounded input: partitions that fit in memory are looked at whole, larger ones in pieces."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from flowsql_core.batch import ChangelogBatch, LateColumns
from flowsql_core.expr import AggregateCall
from flowsql_core.graph.bounded_specs import BoundedOverSpec, OverFrame
from flowsql_core.graph.rank_specs import OrderKeys
from flowsql_runtime.operators.base import OperatorContext
from flowsql_runtime.operators.bounded.base import BoundedOperator
from flowsql_runtime.operators.bounded.held_rows import settled, size_bytes, together
from flowsql_runtime.operators.bounded.order import ComparedWord, Words, begins_by_value, compared_words, sorter_words
from flowsql_runtime.operators.bounded.over.folded import FoldedFrames
from flowsql_runtime.operators.bounded.over.frame_calls import FrameCalls
from flowsql_runtime.operators.bounded.over.frames import Partitions
from flowsql_runtime.operators.bounded.over.large_partition import LargePartition
from flowsql_runtime.operators.bounded.over.places import OFFSETS, PLACES, offset_values, place_values
from flowsql_runtime.operators.bounded.sorted_rows import SortedRows


class BoundedOverOperator(BoundedOperator[BoundedOverSpec]):
    """Window functions with any frame.

    In     insert-only, hash-partitioned by ``spec.partition`` (no partition: one subtask).
    Out    the rows with a column a call, partition by partition, each in its order.

    Rows are sorted by partition and order, in runs on disk where memory cannot hold them. Of rows that were on disk,
    complete partitions are answered together; one that is larger than half of the share goes to a file of its own.

    Source: Flink, ``BufferDataOverWindowOperator`` and its frames behind a ``SortOperator``.
    """

    def open(self, ctx: OperatorContext) -> None:
        """No rows yet."""
        spec = self.spec
        self._rows = SortedRows(ctx.memory, self.share_bytes, lambda: self.space, self._words)
        by_frame: dict[OverFrame, list[int]] = {}
        for place, (call, frame) in enumerate(zip(spec.calls, spec.frames, strict=True)):
            if call.function not in PLACES and call.function not in OFFSETS:
                assert frame is not None
                by_frame.setdefault(frame, []).append(place)
        self._framed = {
            frame: (places, self._frame_calls([spec.calls[place] for place in places], frame))
            for frame, places in by_frame.items()
        }
        #: Rows of the partition that goes on in the next batch, and their bytes.
        self._open: list[ChangelogBatch] = []
        self._open_bytes = 0
        self._large: LargePartition | None = None

    def _frame_calls(self, calls: Sequence[AggregateCall], frame: OverFrame) -> FrameCalls:
        """What computes the calls of one frame."""
        return FoldedFrames(calls, self.spec.input, self.spec.constants, frame)

    @property
    def _key_order(self) -> OrderKeys:
        # Flink keeps the columns of a partition as a set of places.
        return tuple((column, False, True) for column in sorted(self.spec.partition))

    def _words(self, batch: ChangelogBatch) -> Words:
        return sorter_words(batch.columns, (*self._key_order, *self.spec.order))

    def _keys(self, batch: ChangelogBatch) -> list[ComparedWord]:
        return compared_words(batch.columns, self._key_order)

    def process_batch(self, input_index: int, batch: ChangelogBatch) -> None:
        """Keep rows."""
        self._rows.add(batch.with_track(None))

    def answer(self) -> None:
        """All partitions."""
        if not self._rows.spilled:
            for batch in self._rows.batches():
                self._answer(batch)
            return
        last: ChangelogBatch | None = None
        for batch in self._rows.batches():
            rows = settled(batch)
            starts = np.flatnonzero(begins_by_value(self._keys(rows), rows.num_rows)).tolist()
            if last is not None:
                pair = together([last, rows.slice(0, 1)])
                assert pair is not None
                if begins_by_value(self._keys(pair), 2)[1]:
                    self._close_partition()
            end = starts[-1]
            if end:
                # The open partition ends with the first one that begins here; the others are complete.
                self._take(settled(rows.slice(0, starts[1])))
                self._close_partition()
                if end > starts[1]:
                    self._answer(settled(rows.slice(starts[1], end)))
            self._take(settled(rows.slice(end, rows.num_rows)))
            last = settled(rows.slice(rows.num_rows - 1, rows.num_rows))
        self._close_partition()

    def _take(self, rows: ChangelogBatch) -> None:
        """Rows of the open partition."""
        if self._large is not None:
            self._large.add(rows)
            return
        size = size_bytes(rows)
        self.ctx.memory.reserve(size)
        self._open.append(rows)
        self._open_bytes += size
        if self._open_bytes > self.share_bytes // 2:
            self._large = LargePartition(self.spec, self._framed, self.space, self.share_bytes)
            for batch in self._drained():
                self._large.add(batch)

    def _drained(self) -> list[ChangelogBatch]:
        rows, self._open = self._open, []
        self.ctx.memory.release(self._open_bytes)
        self._open_bytes = 0
        return rows

    def _close_partition(self) -> None:
        if self._large is not None:
            for answered in self._large.answers():
                self.emit(answered)
            self._large = None
            return
        whole = together(self._drained())
        if whole is not None:
            self._answer(whole)

    def _answer(self, batch: ChangelogBatch) -> None:
        """Sorted rows of whole partitions."""
        spec, n = self.spec, batch.num_rows
        columns = batch.columns
        partitions = Partitions.of(self._keys(batch), compared_words(columns, spec.order), n)
        here = np.arange(n)
        results: dict[int, Any] = {}
        for frame, (places, calls) in self._framed.items():
            value = columns[spec.order[0][0]] if not frame.counts_rows and spec.order else None
            low, high = partitions.frame(frame, value, bool(spec.order) and spec.order[0][1])
            found = calls.results(columns, partitions, low, high)
            results.update(zip(places, found, strict=True))
        for place, (call, frame_) in enumerate(zip(spec.calls, spec.frames, strict=True)):
            if call.function in PLACES:
                results[place] = place_values(call, frame_, partitions, here, spec)
            elif call.function in OFFSETS:
                results[place] = offset_values(call, columns, partitions, here, 0, spec)
        added = [results[place] for place in range(len(spec.calls))]
        self.emit(ChangelogBatch(LateColumns.beside(columns, added), n))
