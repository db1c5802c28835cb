"""OVER windows in row time: rows wait for the watermark and come out by time and arrival."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from flowsql_core.batch import ChangelogBatch, WatermarkTrack, watermark_per_row
from flowsql_core.column_bytes import joined, taken
from flowsql_core.element import Watermark
from flowsql_core.graph.over_specs import OverAggregateSpec
from flowsql_runtime.metrics.told import Waiting, earliest
from flowsql_runtime.operators.base import OperatorContext
from flowsql_runtime.operators.over.idle_keys import IdleKeys
from flowsql_runtime.operators.over.keyed import KeyedOverOperator, WaitingRows, in_time_order, rows_at
from flowsql_runtime.operators.over.lateness import Lateness
from flowsql_runtime.state.names import TableNames
from flowsql_runtime.window.row_time import padded_milliseconds_of

Int64s = npt.NDArray[np.int64]

LATE = "late"


class RowTimeOverOperator(KeyedOverOperator):
    """Answer each row once the watermark has reached its time.

    In     append-only batches, hash-partitioned by ``spec.partition``.
    Out    append-only: the row's columns, then the results; by time, rows of one time key by key as they came.
    State  rows that wait, by time and key; by key accumulators and, for a frame that slides, its rows. A frame of time
           goes when its key is idle for so long; other state goes by the time-to-live.
    Late   a row of an unbounded frame is dropped if the watermark had reached its time before it came; a row of a
           frame that slides if a later one of its key was answered, so that a row behind the watermark may count.

    Source: Flink, ``RowTimeUnboundedPrecedingOverFunctionV2``, ``RowTimeRowsBoundedPrecedingFunction`` and
    ``RowTimeRangeBoundedPrecedingFunction``.
    """

    def __init__(self, spec: OverAggregateSpec) -> None:
        super().__init__(spec)
        self._lateness: Lateness | None = None

    def open(self, ctx: OperatorContext) -> None:
        """Make the state."""
        super().open(ctx)
        self._waiting = WaitingRows(ctx, self.spec)
        ctx.tell(Waiting, self._earliest_open)
        self._idle_keys = None
        if self.spec.state_ttl_ms and (self.spec.preceding is None or self.spec.counts_rows):
            self._idle_keys = IdleKeys(ctx.state, self._index, self.spec.state_ttl_ms, slack=True)
        if self.spec.preceding is not None:
            width = None if self.spec.counts_rows else self.spec.preceding
            self._lateness = Lateness(ctx.state, self._index, width)

    def _earliest_open(self) -> Waiting | None:
        times = self._waiting.times()
        return earliest("row", times, times, self.current_watermark)

    def _other_names(self, columns: Sequence[str]) -> dict[str, TableNames]:
        names = WaitingRows.names(self.spec, columns)
        names |= {} if self._lateness is None else self._lateness.names()
        return names | ({} if self._idle_keys is None else self._idle_keys.names())

    def process_batch(self, input_index: int, batch: ChangelogBatch) -> None:
        """Rows wait; those that the batch's own watermarks reach are answered."""
        before = self.current_watermark
        track = self.advance_track(input_index, batch.track)
        self._forget_idle()
        n = batch.num_rows
        times = padded_milliseconds_of(batch.columns[self.spec.order_index]) if n else np.zeros(0, np.int64)
        if self._lateness is not None:
            self._answer_in_stages(batch, times, track)
            return
        late = times <= watermark_per_row(n, track, before)
        if late.any():
            self._drop(batch, late)
            kept = np.flatnonzero(~late)
            batch, times = batch.with_track(None).take(kept), times[kept]
        if track is None:
            self._waiting.add(rows_at(batch, None), times)
            return
        due = times <= track.last_ms
        if due.all():
            self._answer(rows_at(batch, None), times, track)
            return
        rest, own = np.flatnonzero(~due), np.flatnonzero(due)
        columns, own_times = rows_at(batch, own), times[own]
        self._answer(columns, own_times, track)
        self._waiting.add(rows_at(batch, rest), times[rest])

    def on_watermark(self, watermark_ms: int) -> None:
        """A watermark between batches."""
        track = WatermarkTrack(np.zeros(1, np.int32), np.array([watermark_ms]))
        nothing = self._empty()[: len(self.spec.input)]
        if self._lateness is not None:
            self._answer_in_stages(ChangelogBatch(tuple(nothing), 0), np.zeros(0, np.int64), track, forward=False)
        else:
            self._answer(nothing, np.zeros(0, np.int64), track, forward=False)

    def _drop(self, batch: ChangelogBatch, late: npt.NDArray[np.bool_]) -> None:
        self.ctx.metrics.count("numLateRecordsDropped", int(late.sum()))
        self.output.collect_side(LATE, batch.with_track(None).take(np.flatnonzero(late)))

    def _answer(self, columns: Sequence[Any], times: Int64s, track: WatermarkTrack, *, forward: bool = True) -> None:
        """Answer rows that waited and new ones that the watermarks reach, and hand the watermarks on between them."""
        waited = self._waiting.take(track.last_ms)
        if waited is not None:
            columns = [joined(list(pair)) for pair in zip(waited[1], columns, strict=True)]
            times = np.concatenate((waited[0], times))
        out = None
        slots = self._slots_of(columns, len(times))
        order = in_time_order(times, slots) if len(times) > 1 else None
        if order is not None:
            columns, times, slots = [taken(column, order) for column in columns], times[order], slots[order]
        if forward:
            out = WatermarkTrack(np.searchsorted(times, track.wm_ms, side="right").astype(np.int32), track.wm_ms)
        if len(times):
            self._touch(slots)
            answered = self._answered(slots, columns, times)
            self.collect_within_offsets(ChangelogBatch(answered, len(times), None, None, out))
        elif out is not None:
            self.output.emit_watermark(Watermark(out.last_ms))

    def _answer_in_stages(
        self, batch: ChangelogBatch, times: Int64s, track: WatermarkTrack | None, *, forward: bool = True
    ) -> None:
        """The same for frames that slide: a row may come behind the watermark and wait for the next one."""
        assert self._lateness is not None
        levels = np.zeros(0, np.int64) if track is None else track.wm_ms
        offsets = np.zeros(0, np.int32) if track is None else track.offsets
        columns = rows_at(batch, None)
        arrivals = np.searchsorted(offsets, np.arange(len(times)), side="right").astype(np.int32)
        waited = None if track is None else self._waiting.take(track.last_ms)
        first = 0
        if waited is not None:
            first = len(waited[0])
            columns = [joined(list(pair)) for pair in zip(waited[1], columns, strict=True)]
            times = np.concatenate((waited[0], times))
            arrivals = np.concatenate((np.zeros(first, np.int32), arrivals))
        slots = self._slots_of(columns, len(times))
        self._touch(slots)
        judged = self._lateness.judge(times, arrivals, slots, first, levels)
        late = judged.fires[first:] < 0
        if late.any():
            self._drop(batch, late)
        rest = np.flatnonzero(judged.fires == len(levels))
        if len(rest):
            self._waiting.add([taken(column, rest) for column in columns], times[rest])
        due = np.flatnonzero((judged.fires >= 0) & (judged.fires < len(levels)))
        fires, due_times = judged.fires[due], times[due]
        order = in_time_order(due_times, slots[due], fires) if len(due) > 1 else None
        if order is not None:
            due, fires, due_times = due[order], fires[order], due_times[order]
        offsets = np.searchsorted(fires, np.arange(len(levels)), side="right").astype(np.int32)
        out = WatermarkTrack(offsets, levels) if forward and len(levels) else None
        if len(due):
            if len(due) < len(times) or (np.diff(due) < 0).any():
                columns, slots = [taken(column, due) for column in columns], slots[due]
            answered = self._answered(slots, columns, due_times, judged.epochs[due])
            self.collect_within_offsets(ChangelogBatch(answered, len(due), None, None, out))
        elif out is not None:
            self.output.emit_watermark(Watermark(out.last_ms))
        if len(judged.over):
            self._frames.forget(judged.over)
            self._lateness.forget(judged.gone)
            self._index.remove(judged.gone)

    def _touch(self, slots: npt.NDArray[np.int32]) -> None:
        if self._idle_keys is not None and len(slots):
            self._idle_keys.touch(slots, self.ctx.clock.now_ms())

    def _forget_idle(self) -> None:
        """Keys that are idle for the time-to-live go, but for those that wait for the watermark."""
        if self._idle_keys is None:
            return
        now = self.ctx.clock.now_ms()
        slots = self._idle_keys.expired(now)
        if not len(slots):
            return
        busy = np.isin(slots, self._index.lookup(self._index.encode(*self._waiting.keys())))
        self._idle_keys.forget(slots)
        self._idle_keys.touch(slots[busy], now)
        if not busy.all():
            self._forget(slots[~busy])

    def _forget(self, slots: npt.NDArray[np.int32]) -> None:
        self._frames.forget(slots)
        if self._lateness is not None:
            self._lateness.forget(slots)
        self._index.remove(slots)
