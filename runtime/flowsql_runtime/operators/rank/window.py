"""Rows of each window by their place in an order, told once, when the window closes."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flowsql_core.batch import ChangelogBatch, LateColumns, WatermarkTrack, watermark_per_row
from flowsql_core.element import Watermark
from flowsql_core.graph.lineage import Lineage
from flowsql_core.graph.rank_specs import WindowDeduplicateSpec, WindowRankSpec
from flowsql_core.types.arrow import to_arrow
from flowsql_runtime.kernels import one_row
from flowsql_runtime.metrics.told import Waiting, earliest
from flowsql_runtime.operators.base import Operator, OperatorContext
from flowsql_runtime.operators.rank.order import order_text, row_order
from flowsql_runtime.state.arrow_words import value_words
from flowsql_runtime.state.names import StateNames, TableNames, row_names
from flowsql_runtime.state.rankings import Places, Telling
from flowsql_runtime.state.stores import StoredColumn
from flowsql_runtime.window.row_time import padded_milliseconds_of
from flowsql_runtime.window.zone import to_epoch_ms

Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]


class _WindowedRows(Operator[Any]):
    """Keeps rows by partition and window until the window closes."""

    spec: WindowRankSpec | WindowDeduplicateSpec

    def open(self, ctx: OperatorContext) -> None:
        """Make the windows."""
        spec = self.spec
        self._types = [to_arrow(column.type) for column in spec.input]
        self._index = ctx.state.window_index([self._types[key] for key in spec.partition])
        ctx.tell(Waiting, self._earliest_open)

    def _earliest_open(self) -> Waiting | None:
        ends = self._index.namespaces()
        return earliest("window", ends, self._trigger_ms(ends), self.current_watermark, zone=self.spec.zone)

    def names(
        self, columns: Sequence[str], tables: dict[str, TableNames], kept: str, answered_with: Mapping[str, str]
    ) -> StateNames:
        """What is kept of the rows of each window."""
        facts = {"window": f"{columns[self.spec.end_index]}, {self.spec.zone or 'no zone'}", "rows kept": kept}
        keys = tuple(columns[key] for key in self.spec.partition)
        return StateNames(keys, tables, facts, answered_with=answered_with)

    def _trigger_ms(self, window_ends: Int64s) -> Int64s:
        return to_epoch_ms(window_ends - 1, self.spec.zone)

    def process_batch(self, input_index: int, batch: ChangelogBatch) -> None:
        """Keep rows of open windows, then tell those of windows that the batch's watermarks close."""
        before = self.current_watermark
        track = self.advance_track(input_index, batch.track)
        if batch.num_rows:
            ends = padded_milliseconds_of(batch.columns[self.spec.end_index])
            late = self._trigger_ms(ends) <= watermark_per_row(batch.num_rows, track, before)
            if late.any():
                self.ctx.metrics.count("numLateRecordsDropped", int(late.sum()))
                batch, ends = batch.part(np.flatnonzero(~late)), ends[~late]
        if batch.num_rows:
            keys = [batch.columns[key] for key in self.spec.partition]
            slots, fresh = self._index.find_or_insert(self._index.encode(keys, ends, batch.num_rows))
            self.keep(batch, slots, fresh)
        if track is not None:
            self._close(track.last_ms, track)

    @abstractmethod
    def keep(self, batch: ChangelogBatch, slots: Int32s, fresh: Int32s) -> None:
        """Keep what is wanted of rows that came."""

    @abstractmethod
    def rows_of(self, slots: Int32s) -> tuple[Int32s, list[Any]]:
        """What a window tells: positions in ``slots``, rising, and the columns of the output."""

    @abstractmethod
    def drop(self, slots: Int32s) -> None:
        """Windows are over."""

    def on_watermark(self, watermark_ms: int) -> None:
        """A watermark between batches."""
        self._close(watermark_ms, None)

    def _close(self, until: int, track: WatermarkTrack | None) -> None:
        ends = self._index.namespaces()
        due = ends[self._trigger_ms(ends) <= until]
        if len(due):
            window_ends, slots = self._index.up_to(int(due[-1]))
            positions, columns = self.rows_of(slots)
            if track is not None:
                triggers = self._trigger_ms(window_ends)[positions]
                offsets = np.searchsorted(triggers, track.wm_ms, side="right").astype(np.int32)
                track = WatermarkTrack(offsets, track.wm_ms)
            self.drop(slots)
            self._index.remove(slots)
            self.collect_within_offsets(ChangelogBatch(tuple(columns), len(positions), None, None, track))
        elif track is not None:
            self.output.emit_watermark(Watermark(track.last_ms))


class WindowRankOperator(_WindowedRows):
    """Rows of each partition and window from one place to another.

    In     append-only rows with window columns, hash-partitioned by ``spec.partition``.
    Out    +I rows, windows in the order of their ends, rows in theirs.
    State  the best rows by (window end, partition), until the window closes.
    Late   a row whose window had closed before it came is dropped and counted.

    Source: Flink, ``WindowRankOperatorBuilder`` and its processors.
    """

    spec: WindowRankSpec

    def open(self, ctx: OperatorContext) -> None:
        """Make the state."""
        super().open(ctx)
        self._order = row_order(self.spec.order, self.spec.input)
        types = self._order.stored_types(self.spec.input)
        self._rows = ctx.state.sorted_list("rows", self._index, types, self._order.columns, keeps_best=True)
        last = self.spec.last
        self._places = Places(1, np.array([last], np.int64), last, True, Telling.NOTHING, before=False)

    def state_names(self, arriving: Sequence[Lineage]) -> StateNames:
        """The best rows of each window."""
        columns = arriving[0].columns
        kept = f"{self.spec.last} by {order_text(self.spec.order, columns)}"
        first = {"first place": str(self.spec.first)}
        stored = row_order(self.spec.order, self.spec.input).stored_names(columns)
        return self.names(columns, {"rows": row_names("rows", stored)}, kept, first)

    def keep(self, batch: ChangelogBatch, slots: Int32s, fresh: Int32s) -> None:
        """Rows among the best."""
        for _ in self._rows.rank(
            np.ones(len(slots), np.int8), slots, self._order.with_forms(batch.columns), self._places
        ):
            pass

    def rows_of(self, slots: Int32s) -> tuple[Int32s, list[Any]]:
        """Rows by place."""
        first = self.spec.first
        positions, rows = self._rows.rows_of(slots, first - 1, self.spec.last - first + 1)
        columns = list(self._order.without_forms(self._rows.gather(rows)))
        if self.spec.numbered:
            starts = np.searchsorted(positions, positions, side="left")
            columns.append(pa.array(np.arange(len(positions)) - starts + first))
        return positions, columns

    def drop(self, slots: Int32s) -> None:
        """Their rows."""
        self._rows.drop_slots(slots)


class WindowDeduplicateOperator(_WindowedRows):
    """The first or last row of each partition and window by row time.

    In, out and late as of :class:`WindowRankOperator`. Of rows with equal times the first one (``keep_last``: the last
    one) that came stays.

    Source: Flink, ``RowTimeDeduplicateRecordsCombiner``.
    """

    spec: WindowDeduplicateSpec

    def open(self, ctx: OperatorContext) -> None:
        """Make the state."""
        super().open(ctx)
        stored = [StoredColumn(f"r{place}", type_) for place, type_ in enumerate(self._types)]
        self._times = ctx.state.column_store("times", self._index, [StoredColumn("time", pa.int64(), False)])
        self._rows = ctx.state.column_store("rows", self._index, stored)

    def state_names(self, arriving: Sequence[Lineage]) -> StateNames:
        """The row of each window."""
        columns = arriving[0].columns
        tables = {
            "times": TableNames("row time", {"v:time": "row time"}),
            "rows": TableNames("rows", {f"v:r{place}": text for place, text in enumerate(columns)}),
        }
        kept = f"{'last' if self.spec.keep_last else 'first'} by {columns[self.spec.time_index]}"
        return self.names(columns, tables, kept, {})

    def keep(self, batch: ChangelogBatch, slots: Int32s, fresh: Int32s) -> None:
        """The row that stays."""
        n = batch.num_rows
        known = np.ones(n, np.bool_)
        known[fresh] = False
        times = np.ascontiguousarray(padded_milliseconds_of(batch.columns[self.spec.time_index]))
        stored = np.ascontiguousarray(value_words(self._times.gather(slots)[0]).words[0])
        replaced, stays = np.empty(n, np.int32), np.empty(n, np.bool_)
        one_row.replace(
            slots, known, True, self.spec.keep_last, True, times, stored, one_row.table_for(n), replaced, stays
        )
        kept = np.flatnonzero(stays)
        self._times.scatter(slots[kept], [pa.array(times[kept])])
        self._rows.scatter(slots[kept], LateColumns.of(batch.columns, kept))

    def rows_of(self, slots: Int32s) -> tuple[Int32s, list[Any]]:
        """One row a window."""
        return np.arange(len(slots), dtype=np.int32), list(self._rows.gather(slots))

    def drop(self, slots: Int32s) -> None:
        """Their rows."""
        self._times.clear(slots)
        self._rows.clear(slots)
