"""OVER windows in processing time: rows are answered as they come, those of a width of time a millisecond later."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from flowsql_core.batch import ChangelogBatch
from flowsql_core.element import Watermark
from flowsql_runtime.operators.base import OperatorContext, OperatorSnapshot
from flowsql_runtime.operators.over.idle_keys import IdleKeys
from flowsql_runtime.operators.over.keyed import KeyedOverOperator, WaitingRows, rows_at
from flowsql_runtime.operators.over.lateness import Lateness
from flowsql_runtime.state.names import TableNames

Int64s = npt.NDArray[np.int64]


class ProcessingTimeOverOperator(KeyedOverOperator):
    """Answer each row when it comes.

    In     append-only batches, hash-partitioned by ``spec.partition``.
    Out    append-only: the row's columns, then the results, in order of arrival.
    State  by key accumulators and, for a frame of rows, those. A key that is idle for ``state_ttl_ms`` starts over.
    Late   nothing is.

    Source: Flink, ``ProcTimeUnboundedPrecedingFunction`` and ``ProcTimeRowsBoundedPrecedingFunction``.
    """

    _timed = False

    def open(self, ctx: OperatorContext) -> None:
        """Make the state."""
        super().open(ctx)
        self._idle_keys = None
        if self.spec.state_ttl_ms:
            self._idle_keys = IdleKeys(ctx.state, self._index, self.spec.state_ttl_ms, self.spec.preceding is not None)

    def _other_names(self, columns: Sequence[str]) -> dict[str, TableNames]:
        return {} if self._idle_keys is None else self._idle_keys.names()

    def process_batch(self, input_index: int, batch: ChangelogBatch) -> None:
        """One answer a row."""
        track = self.advance_track(input_index, batch.track)
        n = batch.num_rows
        if not n:
            if track is not None:
                self.output.emit_watermark(Watermark(track.last_ms))
            return
        now = self.ctx.clock.now_ms()
        if self._idle_keys is not None:
            expired = self._idle_keys.expired(now)
            if len(expired):
                self._idle_keys.forget(expired)
                self._frames.forget(expired)
                self._index.remove(expired)
        columns = rows_at(batch, None)
        slots = self._slots_of(columns, n)
        if self._idle_keys is not None:
            self._idle_keys.touch(slots, now)
        answered = self._answered(slots, columns, None)
        self.collect_within_offsets(ChangelogBatch(answered, n, None, None, track))


class ProcessingTimeRangeOverOperator(KeyedOverOperator):
    """Answer rows once the millisecond in which they came is over.

    In     append-only batches, hash-partitioned by ``spec.partition``.
    Out    append-only: the row's columns, then the results; rows of one millisecond key by key as they came.
    State  rows of this millisecond; by key accumulators and the rows of its frame, until the key is idle for so long.
    Late   nothing is; rows of the last millisecond of the input are dropped, as timers of the clock are.

    Source: Flink, ``ProcTimeRangeBoundedPrecedingFunction``.
    """

    def open(self, ctx: OperatorContext) -> None:
        """Make the state."""
        super().open(ctx)
        assert self.spec.preceding is not None
        self._waiting = WaitingRows(ctx, self.spec)
        self._frame_ends = Lateness(ctx.state, self._index, self.spec.preceding)

    def _other_names(self, columns: Sequence[str]) -> dict[str, TableNames]:
        return WaitingRows.names(self.spec, columns) | self._frame_ends.names()

    def initialize_state(self, snapshot: OperatorSnapshot | None) -> None:
        """Alarms are set anew."""
        times = self._waiting.times()
        self._wake_at(times + 1)
        self._wake_for_frames()

    def _wake_at(self, times: Int64s) -> None:
        if len(times):
            self.ctx.timers.register_processing_timers(times, np.zeros(len(times), np.int64))

    def _wake_for_frames(self) -> None:
        earliest = self._frame_ends.earliest()
        if earliest is not None:
            self._wake_at(np.array([earliest + 1], np.int64))

    def process_batch(self, input_index: int, batch: ChangelogBatch) -> None:
        """Rows wait for the end of the millisecond; watermarks do not."""
        track = self.advance_track(input_index, batch.track)
        if batch.num_rows:
            now = self.ctx.clock.now_ms()
            self._waiting.add(rows_at(batch, None), np.full(batch.num_rows, now, np.int64))
            self._wake_at(np.array([now + 1], np.int64))
        if track is not None:
            self.output.emit_watermark(Watermark(track.last_ms))

    def on_processing_timers(self, times_ms: Int64s, slots: Int64s) -> None:
        """A millisecond with rows is over, or a key's frame."""
        until = int(times_ms[-1]) - 1
        taken = self._waiting.take(until)
        times, columns = (np.zeros(0, np.int64), self._empty()[: len(self.spec.input)]) if taken is None else taken
        keys = self._slots_of(columns, len(times))
        judged = self._frame_ends.judge(
            times, np.zeros(len(times), np.int32), keys, 0, np.array([until], np.int64), late=False
        )
        if len(times):
            answered = self._answered(keys, columns, times, judged.epochs)
            self.collect_within_offsets(ChangelogBatch(answered, len(times)))
        if len(judged.over):
            self._frames.forget(judged.over)
            self._frame_ends.forget(judged.gone)
            self._index.remove(judged.gone)
        self._wake_for_frames()
