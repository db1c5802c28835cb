"""Timestamps and watermarks of DataStreams."""

from __future__ import annotations

import struct
from typing import Any, Final

import numpy as np

from flowsql_core.batch import ChangelogBatch, RowTimes, WatermarkTrack
from flowsql_core.element import ACTIVE, IDLE, MAX_WATERMARK, MIN_WATERMARK, Watermark, WatermarkStatus
from flowsql_core.graph.stream_specs import VALUE, AssignTimestampsSpec, WatermarkTick
from flowsql_core.stream.watermark import WatermarkGenerator, WatermarkStrategy
from flowsql_core.stream.window import MIN_LONG
from flowsql_runtime.operators.base import Int64s, Operator, OperatorContext, OperatorSnapshot
from flowsql_runtime.stream.copies import user_copy
from flowsql_runtime.stream.emitter import times_of
from flowsql_runtime.stream.failure import USER_ERRORS, user_failure
from flowsql_runtime.time.emission import emissions

_LEVELS: Final = "levels"
#: Slots of the two processing timers.
_TICK, _IDLENESS = 0, 1


class AssignTimestampsOperator(Operator[AssignTimestampsSpec]):
    """Flink's TimestampsAndWatermarksOperator.

    In     objects; watermarks other than the last are replaced.
    Out    the same with timestamps and watermarks; where they leave says ``spec.tick``.
    State  the latest timestamp's watermark, and the one emitted last.
    """

    def open(self, ctx: OperatorContext) -> None:
        """Take the strategy."""
        strategy: WatermarkStrategy = ctx.resources[self.spec.strategy]
        self._assigner = user_copy(strategy.timestamp_assigner)
        self._delay_ms = strategy.out_of_orderness_ms + 1
        self._generates = strategy.generator is WatermarkGenerator.BOUNDED_OUT_OF_ORDERNESS
        self._by_record = self.spec.tick is WatermarkTick.RECORD
        self._ticks = self._generates and not self._by_record and not self.spec.bounded and self.spec.interval_ms > 0
        self._idle_timeout_ms = strategy.idle_timeout_ms
        self._level_ms = MIN_WATERMARK
        self._last_ms = MIN_WATERMARK
        self._pending: list[Int64s | None] = [None, None]

    def initialize_state(self, snapshot: OperatorSnapshot | None) -> None:
        """Go on from the lowest of the old subtasks, and tell the receivers where that is."""
        if snapshot is not None:
            stored = [struct.unpack("<qq", part) for part in snapshot.union.get(_LEVELS, ())]
            if stored:
                self._level_ms = min(level for level, _ in stored)
                self._last_ms = min(last for _, last in stored)
                if self._last_ms > MIN_WATERMARK:
                    self.output.emit_watermark(Watermark(self._last_ms))
        if self._ticks:
            self._arm(_TICK, self.spec.interval_ms)
        if self._idle_timeout_ms > 0:
            self._arm(_IDLENESS, self._idle_timeout_ms)

    def snapshot_state(self, checkpoint_id: int) -> OperatorSnapshot:
        """The two levels, handed to every new subtask, which take the lowest."""
        return OperatorSnapshot(union={_LEVELS: (struct.pack("<qq", self._level_ms, self._last_ms),)})

    def process_batch(self, input_index: int, batch: ChangelogBatch) -> None:
        """Elements with their timestamps."""
        if not batch.num_rows:
            return
        if self._idle_timeout_ms > 0:
            self._active()
        stamps = self._stamps(batch)
        track = self._track(stamps) if self._generates else None
        times = batch.row_times if self._assigner is None else RowTimes(stamps)
        self.output.collect(ChangelogBatch(batch.columns, batch.num_rows, None, times, track))

    def _stamps(self, batch: ChangelogBatch) -> Int64s:
        """The timestamp of each element, the smallest long where it has none, int64 (n,)."""
        before = times_of(batch)
        if self._assigner is None:
            return np.fromiter(before, np.int64, batch.num_rows)
        extract = self._assigner.extract_timestamp
        found: list[int] = []
        value: Any = None
        try:
            for value, time in zip(batch.columns[VALUE].values.tolist(), before, strict=True):
                found.append(extract(value, time))
            return np.array(found, np.int64)
        except USER_ERRORS as error:
            raise user_failure(error, self._assigner, "extract_timestamp", value) from error

    def _track(self, stamps: Int64s) -> WatermarkTrack | None:
        # An element without a timestamp lifts nothing; the smallest long must not wrap.
        levels = np.where(stamps > MIN_LONG + self._delay_ms, stamps - self._delay_ms, MIN_WATERMARK)
        rising = np.maximum(np.maximum.accumulate(levels), self._level_ms)
        self._level_ms = int(rising[-1])
        if not self._by_record:
            return None
        track = emissions(rising, self._last_ms, self.spec.interval_ms)
        if track is not None:
            self._last_ms = track.last_ms
        return track

    # -- time from outside

    def process_watermark(self, input_index: int, watermark: Watermark) -> None:
        """Only the last one counts: it ends event time."""
        if watermark.timestamp_ms == MAX_WATERMARK and self._last_ms != MAX_WATERMARK:
            self._wake()
            self._last_ms = MAX_WATERMARK
            self.output.emit_watermark(watermark)

    def process_watermark_status(self, input_index: int, status: WatermarkStatus) -> None:
        """Idleness is judged here."""

    def on_processing_timers(self, times_ms: Int64s, slots: Int64s) -> None:
        """The interval, the silence."""
        if _TICK in slots:
            if self._level_ms > self._last_ms:
                self._last_ms = self._level_ms
                self.output.emit_watermark(Watermark(self._last_ms))
            self._arm(_TICK, self.spec.interval_ms)
        if _IDLENESS in slots and not self._idle:
            self._idle = True
            self.output.emit_watermark_status(IDLE)

    def _active(self) -> None:
        self._wake()
        self._arm(_IDLENESS, self._idle_timeout_ms)

    def _wake(self) -> None:
        if self._idle:
            self._idle = False
            self.output.emit_watermark_status(ACTIVE)

    def _arm(self, slot: int, after_ms: int) -> None:
        """(Re)start one of the timers."""
        timers = self.ctx.timers
        where = np.array([slot], np.int64)
        pending = self._pending[slot]
        if pending is not None:
            timers.delete_processing_timers(pending, where)
        due = np.array([self.ctx.clock.now_ms() + after_ms], np.int64)
        timers.register_processing_timers(due, where)
        self._pending[slot] = due
