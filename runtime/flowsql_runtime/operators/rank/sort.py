"""ORDER BY of all rows: by a time attribute while they come, by other columns when they have come."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flowsql_core.batch import ChangelogBatch, LateColumns, WatermarkTrack
from flowsql_core.column_bytes import joined, taken
from flowsql_core.element import Watermark
from flowsql_core.graph.lineage import Lineage
from flowsql_core.graph.rank_specs import OrderKeys, SortSpec, TemporalSortSpec
from flowsql_core.types.arrow import to_arrow
from flowsql_core.types.logical import Schema
from flowsql_runtime.kernels import time_order
from flowsql_runtime.metrics.told import Waiting, earliest
from flowsql_runtime.operators.aggregate.group import signs_of
from flowsql_runtime.operators.base import Operator, OperatorContext, OperatorSnapshot
from flowsql_runtime.operators.rank.order import sort_columns, sort_key
from flowsql_runtime.state.names import StateNames, row_names
from flowsql_runtime.state.scratch import scratch_stores
from flowsql_runtime.state.stores import SortColumn
from flowsql_runtime.window.row_order import row_order
from flowsql_runtime.window.row_time import milliseconds_of

Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]

_LEFT: Final = "left"
_NEVER: Final = -(2**63)


def sorted_rows(columns: Sequence[Any], order: Sequence[SortColumn], n: int) -> Int32s:
    """Positions of rows in an order; rows that sort alike stay as they are. ``order`` counts in ``columns``."""
    columns = [sort_key(column) for column in columns]
    stores = scratch_stores()
    index = stores.key_index([])
    slots, _ = index.find_or_insert(index.encode([], num_rows=n))
    kept = stores.sorted_list("rows", index, [column.type for column in columns], order, keeps_best=True)
    kept.apply(np.ones(n, np.int8), slots, columns)
    return kept.rows_of(slots[:1])[1]


def _order_of(order: OrderKeys, input: Schema, columns: Sequence[Any]) -> tuple[list[Any], list[SortColumn]]:
    """Columns that rows are sorted by, and how."""
    keys = sort_columns(order, input)
    found = [columns[key.index] for key in keys]
    return found, [SortColumn(place, key.ascending, key.nulls_first) for place, key in enumerate(keys)]


class TemporalSortOperator(Operator[TemporalSortSpec]):
    """All rows by time, then by other columns. Runs in one subtask.

    In     append-only.
    Out    append-only: in row time a row when the watermark reaches its time; in processing time at once, rows that
           come together in the order of the other columns.
    State  row time: rows by time until they leave, and the last time that has left.
    Late   a row whose time is not after the last one that has left is dropped and counted.

    Source: Flink, ``RowTimeSortOperator`` and ``ProcTimeSortOperator``.
    """

    def open(self, ctx: OperatorContext) -> None:
        """Make the rows of each time."""
        self._left = _NEVER
        self._index = ctx.state.window_index([])
        self._rows = ctx.state.row_list("rows", self._index, [to_arrow(column.type) for column in self.spec.input])
        if self.spec.time_index is not None:
            ctx.tell(Waiting, self._earliest_open)

    def _earliest_open(self) -> Waiting | None:
        times = self._index.namespaces()
        return earliest("row", times, times, self.current_watermark)

    def state_names(self, arriving: Sequence[Lineage]) -> StateNames:
        """Rows that wait."""
        columns = arriving[0].columns
        index = self.spec.time_index
        time = "processing time" if index is None else columns[index]
        return StateNames((), {"rows": row_names("rows", columns)}, {"waits for": time})

    def initialize_state(self, snapshot: OperatorSnapshot | None) -> None:
        """Go on behind the last time that has left."""
        if snapshot is not None:
            parts = snapshot.lists.get(_LEFT, ())
            self._left = max((struct.unpack("<q", part)[0] for part in parts), default=_NEVER)

    def snapshot_state(self, checkpoint_id: int) -> OperatorSnapshot:
        """The last time that has left."""
        self.ctx.operator_state.list_state(_LEFT)[:] = [struct.pack("<q", self._left)]
        return super().snapshot_state(checkpoint_id)

    def process_batch(self, input_index: int, batch: ChangelogBatch) -> None:
        """Rows that the batch's own watermarks reach leave; the others wait."""
        track = self.advance_track(input_index, batch.track)
        index = self.spec.time_index
        if index is None:
            self._together(batch.with_track(track))
            return
        n = batch.num_rows
        times = np.ascontiguousarray(milliseconds_of(batch.columns[index])) if n else np.zeros(0, np.int64)
        waiting = self._index.namespaces()
        offsets = np.zeros(0, np.int32) if track is None else np.ascontiguousarray(track.offsets)
        levels = np.zeros(0, np.int64) if track is None else np.ascontiguousarray(track.wm_ms)
        late = np.zeros(n, np.bool_)
        self._left = time_order.too_late(times, offsets, levels, waiting, self._left, np.empty(n, np.int64), late)
        if late.any():
            self.ctx.metrics.count("numLateRecordsDropped", int(late.sum()))
        # The watermark that lets a row go is one behind it.
        entries = np.maximum(np.searchsorted(levels, times), np.searchsorted(offsets, np.arange(n), side="right"))
        goes = ~late & (entries < len(levels))
        waits = np.flatnonzero(~late & ~goes)
        stored_times, slots = (
            (np.zeros(0, np.int64), np.zeros(0, np.int32)) if track is None else self._index.up_to(track.last_ms)
        )
        if track is not None:
            self._leave(batch, np.flatnonzero(goes), entries, times, stored_times, slots, track)
        if len(slots):
            self._rows.drop_slots(slots)
            self._index.remove(slots)
        if len(waits):
            part = batch.part(waits)
            held, _ = self._index.find_or_insert(self._index.encode([], times[waits], len(waits)))
            self._rows.append(held, part.columns)

    def _together(self, batch: ChangelogBatch) -> None:
        """Rows that came together, in the order of the other columns."""
        keys, order = _order_of(self.spec.order, self.spec.input, batch.columns)
        if order and batch.num_rows:
            rows = sorted_rows(keys, order, batch.num_rows)
            batch = ChangelogBatch(LateColumns.of(batch.columns, rows), batch.num_rows, None, None, batch.track)
        self.output.collect(batch)

    def _leave(
        self,
        batch: ChangelogBatch,
        own: npt.NDArray[Any],
        entries: npt.NDArray[Any],
        times: Int64s,
        stored_times: Int64s,
        slots: Int32s,
        track: WatermarkTrack,
    ) -> None:
        """Rows in state and of the batch that watermarks let go, in the order of watermark, time and columns."""
        positions, rows = self._rows.rows_of(slots)
        count = len(rows) + len(own)
        if not count:
            self.output.emit_watermark(Watermark(track.last_ms))
            return
        columns: Sequence[Any] = LateColumns.of(batch.columns, own)
        if len(rows):
            kept = self._rows.gather(rows)
            columns = [joined([old, taken(batch.columns[i], own)]) for i, old in enumerate(kept)]
        of_stored = np.searchsorted(track.wm_ms, stored_times)[positions]
        fired = np.concatenate([of_stored, entries[own]]).astype(np.int64)
        when = np.concatenate([stored_times[positions], times[own]])
        if len(self.spec.order) == 1:
            order = row_order((when, fired))
        else:
            keys, sort = _order_of(self.spec.order, self.spec.input, columns)
            shifted = [SortColumn(key.index + 1, key.ascending, key.nulls_first) for key in sort]
            order = sorted_rows([pa.array(fired), *keys], [SortColumn(0), *shifted], count).astype(np.int64)
        offsets = np.searchsorted(fired[order], np.arange(len(track)), side="right").astype(np.int32)
        out = LateColumns.of(columns, order)
        self.collect_within_offsets(ChangelogBatch(out, count, None, None, WatermarkTrack(offsets, track.wm_ms)))

    def on_watermark(self, watermark_ms: int) -> None:
        """A watermark between batches: rows in state leave before it."""
        if self.spec.time_index is None:
            return
        stored_times, slots = self._index.up_to(watermark_ms)
        if not len(slots):
            return
        self._left = max(self._left, int(stored_times[-1]))
        _, rows = self._rows.rows_of(slots)
        columns: Sequence[Any] = self._rows.gather(rows)
        if len(self.spec.order) > 1:
            keys, order = _order_of(self.spec.order, self.spec.input, columns)
            columns = LateColumns.of(columns, sorted_rows(keys, order, len(rows)))
        self._rows.drop_slots(slots)
        self._index.remove(slots)
        self.collect_within_offsets(ChangelogBatch(columns, len(rows)))


class SortOperator(Operator[SortSpec]):
    """All rows by some columns, when the input has ended. Runs in one subtask.

    In     any changelog.
    Out    append-only, after the last row.
    State  all rows.

    Source: Flink, ``StreamSortOperator``.
    """

    def open(self, ctx: OperatorContext) -> None:
        """Make the list of rows."""
        types = [to_arrow(column.type) for column in self.spec.input]
        self._index = ctx.state.key_index([])
        self._rows = ctx.state.row_list("rows", self._index, types, removable=self.spec.input_retracts)

    def state_names(self, arriving: Sequence[Lineage]) -> StateNames:
        """All rows."""
        return StateNames((), {"rows": row_names("rows", arriving[0].columns)})

    def process_batch(self, input_index: int, batch: ChangelogBatch) -> None:
        """Keep the rows."""
        track = self.advance_track(input_index, batch.track)
        if batch.num_rows:
            slots, _ = self._index.find_or_insert(self._index.encode([], num_rows=batch.num_rows))
            self._rows.apply(signs_of(batch), slots, batch.columns)
        if track is not None:
            self.output.emit_watermark(Watermark(track.last_ms))

    def finish(self) -> None:
        """All rows."""
        slots = self._index.lookup(self._index.encode([], num_rows=1))
        _, rows = self._rows.rows_of(slots)
        if len(rows):
            columns = self._rows.gather(rows)
            keys, order = _order_of(self.spec.order, self.spec.input, columns)
            if order:
                columns = LateColumns.of(columns, sorted_rows(keys, order, len(rows)))
            self.collect_within_offsets(ChangelogBatch(columns, len(rows)))
