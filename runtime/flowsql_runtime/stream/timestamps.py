"""Timestamps and watermarks of DataStreams."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from functools import partial
from typing import Any, Final

import numpy as np

from flowsql_core.batch import ChangelogBatch, RowTimes, WatermarkTrack
from flowsql_core.element import ACTIVE, IDLE, MAX_WATERMARK, MIN_WATERMARK, Watermark, WatermarkStatus
from flowsql_core.graph.stream_specs import VALUE, AssignTimestampsSpec, WatermarkTick
from flowsql_core.stream.watermark import WatermarkGenerator, WatermarkStrategy
from flowsql_core.stream.window import MIN_LONG
from flowsql_runtime.operators.base import Int64s, Operator, OperatorContext, OperatorSnapshot
from flowsql_runtime.operators.pace import begin_slices
from flowsql_runtime.stream.copies import user_copy
from flowsql_runtime.stream.emitter import times_of
from flowsql_runtime.stream.failure import USER_ERRORS, user_failure
from flowsql_runtime.stream.pieces import in_pieces
from flowsql_runtime.time.alignment import AlignedSource
from flowsql_runtime.time.emission import emissions

_LEVELS: Final = "levels"
#: Slots of the processing timers.
_TICK, _ALIGNMENT = 0, 1


class AssignTimestampsOperator(Operator[AssignTimestampsSpec]):
    """Flink's TimestampsAndWatermarksOperator: every interval of processing time the watermark of what came so far.

    A source in the same task that reads several splits has one watermark for each: the lowest of those that are not
    read to their end counts, and one that has not begun holds it back, as for tables.

    In     objects; watermarks other than the last are replaced.
    Out    the same with timestamps, and watermarks; where they leave says ``spec.tick``.
    State  the latest timestamp's watermark, and the one emitted last.

    Source: Flink, ``TimestampsAndWatermarksOperator``, ``BoundedOutOfOrdernessWatermarks``, ``WatermarksWithIdleness``.
    """

    def open(self, ctx: OperatorContext) -> None:
        """Take the strategy."""
        strategy: WatermarkStrategy = ctx.resources[self.spec.strategy]
        self._assigner = user_copy(strategy.timestamp_assigner)
        self._delay_ms = strategy.out_of_orderness_ms + 1
        self._generates = strategy.generator is WatermarkGenerator.BOUNDED_OUT_OF_ORDERNESS
        self._by_record = self.spec.tick is WatermarkTick.RECORD
        self._silence = _Silence(strategy.idle_timeout_ms)
        #: What each split that is being read allows; None: of rows that come from no split.
        self._by_split: dict[str | None, int] = {}
        #: What the splits that ended allowed.
        self._finished_ms = MIN_WATERMARK
        self._last_ms = MIN_WATERMARK
        self._pace = begin_slices(ctx)
        self._aligned: AlignedSource | None = None
        if self.spec.alignment is not None:
            self._aligned = AlignedSource(
                self.spec.alignment,
                ctx.job.alignment,
                (ctx.uid, ctx.subtask),
                self._by_split,
                ctx.progress.unfinished,
                partial(self._arm, _ALIGNMENT),
            )
            ctx.progress.aligned = self._aligned

    def initialize_state(self, snapshot: OperatorSnapshot | None) -> None:
        """Go on from the lowest of the old subtasks, and tell the receivers where that is."""
        if snapshot is not None:
            stored = [struct.unpack("<qq", part) for part in snapshot.union.get(_LEVELS, ())]
            if stored:
                self._finished_ms = min(level for level, _ in stored)
                self._last_ms = min(last for _, last in stored)
                if self._last_ms > MIN_WATERMARK:
                    self.output.emit_watermark(Watermark(self._last_ms))
        if self.spec.interval_ms > 0 and (self._generates or self._silence.timeout_ms > 0):
            self._arm(_TICK, self.spec.interval_ms)
        self._align()

    def snapshot_state(self, checkpoint_id: int) -> OperatorSnapshot:
        """The two levels, handed to every new subtask, which take the lowest."""
        level_ms = min(self._by_split.values(), default=self._finished_ms)
        return OperatorSnapshot(union={_LEVELS: (struct.pack("<qq", level_ms, self._last_ms),)})

    # -- elements

    def process_batch(self, input_index: int, batch: ChangelogBatch) -> None:
        """Elements with their timestamps."""
        if not batch.num_rows:
            return
        before = times_of(batch)
        bare = batch.with_track(None)
        if self._assigner is None:
            in_pieces(bare, iter(before), list, self._hand_on, self._pace, self.ctx.time_slice)
            return
        rows = zip(batch.columns[VALUE].values.tolist(), before, strict=True)
        in_pieces(bare, rows, self._extracted, self._hand_on, self._pace, self.ctx.time_slice)

    def _extracted(self, rows: Iterator[Any]) -> list[int]:
        """The timestamp of each element; the smallest long stands for none."""
        extract, over = self._assigner.extract_timestamp, self.ctx.time_slice.over
        found: list[int] = []
        value: Any = None
        try:
            for value, time in rows:
                found.append(extract(value, time))
                if over:
                    break
        except USER_ERRORS as error:
            raise user_failure(error, self._assigner, "extract_timestamp", value) from error
        return found

    def _hand_on(self, piece: ChangelogBatch, stamps: list[int]) -> None:
        self._silence.heard()
        found = np.fromiter(stamps, np.int64, len(stamps))
        track = self._track(found) if self._generates else None
        times = piece.row_times if self._assigner is None else RowTimes(found)
        self.output.collect(ChangelogBatch(piece.columns, piece.num_rows, None, times, track))
        self._align()

    def _track(self, stamps: Int64s) -> WatermarkTrack | None:
        split = self.ctx.progress.current
        before_ms = self._by_split.get(split, self._finished_ms if split is None else MIN_WATERMARK)
        # An element without a timestamp lifts nothing; the smallest long must not wrap.
        levels = np.where(stamps > MIN_LONG + self._delay_ms, stamps - self._delay_ms, MIN_WATERMARK)
        if not self._by_record:
            self._by_split[split] = max(before_ms, int(levels.max()))
            return None
        rising = np.maximum(np.maximum.accumulate(levels), before_ms)
        self._by_split[split] = int(rising[-1])
        track = emissions(rising, self._last_ms, self.spec.interval_ms)
        if track is not None:
            self._last_ms = track.last_ms
        return track

    def _level(self) -> int:
        """The watermark that all rows so far allow."""
        unfinished = self.ctx.progress.unfinished
        for split in [split for split in self._by_split if split is not None and split not in unfinished]:
            self._finished_ms = max(self._finished_ms, self._by_split.pop(split))
        waiting = [MIN_WATERMARK for split in unfinished if split not in self._by_split]
        return max(self._last_ms, min([*self._by_split.values(), *waiting], default=self._finished_ms))

    # -- time

    def process_watermark(self, input_index: int, watermark: Watermark) -> None:
        """Only the last one counts: it ends event time."""
        if watermark.timestamp_ms == MAX_WATERMARK:
            if self._aligned is not None:
                self._aligned.leave()
            self._emit(MAX_WATERMARK)

    def process_watermark_status(self, input_index: int, status: WatermarkStatus) -> None:
        """Idleness is judged here."""

    def on_processing_timers(self, times_ms: Int64s, slots: Int64s) -> None:
        """The interval is over; what waits for other sources looks again."""
        if _ALIGNMENT in slots and self._aligned is not None:
            self._aligned.interval_over()
        if _TICK in slots:
            self._tick()

    def _tick(self) -> None:
        if self._aligned is not None and self._aligned.waits:
            # It has elements, and reads none because it is ahead.
            self._silence.heard()
        if self._silence.lasts(self.ctx.clock.now_ms()):
            if not self._idle:
                self._idle = True
                self.output.emit_watermark_status(IDLE)
        elif self._generates and not self._by_record:
            self._emit(self._level())
        self._align()
        self._arm(_TICK, self.spec.interval_ms)

    def _align(self) -> None:
        """Tell the group how far this subtask is."""
        if self._aligned is not None:
            self._aligned.idle = self._idle
            self._aligned.emitted_ms = self._last_ms
            self._aligned.look()

    def close(self) -> None:
        """Nobody waits for a task that failed."""
        if self._aligned is not None:
            self._aligned.leave()

    def _emit(self, level_ms: int) -> None:
        """A watermark that lifts the last one ends idleness too."""
        if level_ms <= self._last_ms:
            return
        self._last_ms = level_ms
        if self._idle:
            self._idle = False
            self.output.emit_watermark_status(ACTIVE)
        self.output.emit_watermark(Watermark(level_ms))

    def _arm(self, slot: int, after_ms: int) -> None:
        due = np.array([self.ctx.clock.now_ms() + after_ms], np.int64)
        self.ctx.timers.register_processing_timers(due, np.array([slot], np.int64))


class _Silence:
    """Whether nothing came for longer than a timeout, seen from the ticks of an interval as Flink's IdlenessTimer does.

    ``timeout_ms`` 0: silence means nothing.
    """

    __slots__ = ("_heard", "_since_ms", "timeout_ms")

    def __init__(self, timeout_ms: int) -> None:
        self.timeout_ms = timeout_ms
        self._heard = False
        self._since_ms: int | None = None

    def heard(self) -> None:
        """Something came."""
        self._heard = True

    def lasts(self, now_ms: int) -> bool:
        """At a tick: the first one without anything new since the one before begins the silence."""
        if not self.timeout_ms:
            return False
        if self._heard:
            self._heard, self._since_ms = False, None
            return False
        if self._since_ms is None:
            self._since_ms = now_ms
            return False
        return now_ms - self._since_ms > self.timeout_ms
