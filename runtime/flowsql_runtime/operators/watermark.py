"""The watermark assigner: makes the watermark track of each batch from an expression over its rows."""

from __future__ import annotations

import struct
from collections.abc import Set
from functools import partial
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flowsql_compute.eval.columns import validity, values_and_validity
from flowsql_compute.eval.compile import compile_projections
from flowsql_core.batch import ChangelogBatch, WatermarkTrack
from flowsql_core.element import ACTIVE, IDLE, MAX_WATERMARK, MIN_WATERMARK, Watermark, WatermarkStatus
from flowsql_core.errors import ExecutionError, FailedRow
from flowsql_core.expr import Call, Expr, InputRef, Literal
from flowsql_core.graph.specs import WatermarkAssignerSpec, WatermarkEmit
from flowsql_core.types.logical import DayTimeIntervalType, TimestampLtzType, TimestampType
from flowsql_runtime.metrics.told import AssignerState
from flowsql_runtime.operators.base import Operator, OperatorContext, OperatorSnapshot
from flowsql_runtime.operators.evaluation import eval_context, projected
from flowsql_runtime.operators.failure import trace_row
from flowsql_runtime.time.alignment import AlignedSource
from flowsql_runtime.time.emission import emissions, with_full_interval
from flowsql_runtime.time.silence import SplitSilence

Int64s = npt.NDArray[np.int64]

_LEVELS: Final = "levels"
_PER_MS: Final = {"s": None, "ms": 1, "us": 1_000, "ns": 1_000_000}
#: Slots of the processing timers.
_TICK, _IDLENESS, _ALIGNMENT = 0, 1, 2


class WatermarkAssignerOperator(Operator[WatermarkAssignerSpec]):
    """Flink's WatermarkAssigner, row-precise: the track says after which rows watermarks leave.

    A source in the same task that reads several splits has one watermark per split: the minimum over the unfinished
    ones counts, and one that has not started holds it back. So files read one behind another lose no rows as late.
    Splits that are read side by side are left out while they are idle.

    With ``spec.alignment`` splits of the source of the same task wait when their watermarks are too far ahead of the
    others' in the group; it looks again after each of its batches, and by a timer while something waits.

    In     insert-only or changelog; a NULL row time fails the job.
    Out    the same rows with a watermark track; incoming watermarks other than the last are replaced.
    State  current and last emitted watermark.
    """

    def open(self, ctx: OperatorContext) -> None:
        """Compile the expression."""
        self._expression = compile_projections((self.spec.expression,), eval_context(ctx))
        self._delayed = delayed_column(self.spec.expression)
        on_event = self.spec.emit is WatermarkEmit.ON_EVENT
        # Flink's assigner counts from 0, not from the smallest long.
        self._start_ms = MIN_WATERMARK if on_event else 0
        self._interval_ms = 0 if on_event else self.spec.interval_ms
        self._last_ms = self._start_ms
        self._by_split: dict[str | None, int] = {}
        self._finished_ms = self._start_ms
        self._pending: list[Int64s | None] = [None, None, None]
        self._silence = SplitSilence(self.spec.idle_timeout_ms, ctx.clock.now_ms())
        self._aligned: AlignedSource | None = None
        if self.spec.alignment is not None:
            self._aligned = AlignedSource(
                self.spec.alignment,
                ctx.job.alignment,
                (ctx.uid, ctx.subtask),
                self._by_split,
                ctx.progress.unfinished,
                partial(self._arm, _ALIGNMENT),
                self._start_ms,
            )
            ctx.progress.aligned = self._aligned
        ctx.tell(AssignerState, self._state)

    def _state(self) -> AssignerState:
        left_out = frozenset() if self._idle else self._silence.idle
        counted = {split: level for split, level in self._by_split.items() if split not in left_out}
        levels = {split: level for split, level in counted.items() if level > self._start_ms}
        unread = self.ctx.progress.unfinished - self._by_split.keys() - self._silence.idle
        not_begun = tuple(sorted(unread))
        return AssignerState(self._idle, tuple(levels.items()), not_begun, self.spec.idle_timeout_ms)

    def initialize_state(self, snapshot: OperatorSnapshot | None) -> None:
        """Go on from the lowest of the old subtasks, and tell the receivers where that is."""
        if snapshot is not None:
            stored = [struct.unpack("<qq", part) for part in snapshot.union.get(_LEVELS, ())]
            if stored:
                self._finished_ms = min(current for current, _ in stored)
                self._last_ms = min(last for _, last in stored)
                if self._last_ms > self._start_ms:
                    self.output.emit_watermark(Watermark(self._last_ms))
        if self.spec.idle_timeout_ms > 0:
            self._arm(_IDLENESS, self.spec.idle_timeout_ms)
        self._align()

    def process_batch(self, input_index: int, batch: ChangelogBatch) -> None:
        """Rows with their new track."""
        if batch.columns[self.spec.rowtime_index].null_count:
            raise self._null_row_time(batch)
        if self.spec.idle_timeout_ms > 0:
            self._heard()
        made = None
        try:
            made = batch.with_track(self._track(batch))
            self.output.collect(made)
            self._align()
        except ExecutionError as error:
            trace_row(error, batch, made)
            raise

    def _null_row_time(self, batch: ChangelogBatch) -> ExecutionError:
        error = ExecutionError(
            "null-rowtime",
            "RowTime field should not be null, please convert it to a non-null long value.",
            hint=f"column '{self.spec.rowtime_name}' is the row time; give it a value with COALESCE",
        )
        valid = validity(batch.columns[self.spec.rowtime_index])
        row = 0 if valid is None else int(np.argmin(valid))
        error.row = FailedRow(row, {self.spec.rowtime_index: "NULL"})
        error.row.arrived_in(batch, row)
        return error

    def _track(self, batch: ChangelogBatch) -> WatermarkTrack | None:
        if not batch.num_rows:
            return None
        split = self.ctx.progress.current
        before = self._by_split.get(split, self._start_ms if split is not None else self._finished_ms)
        own = self._levels(batch, before)
        self._by_split[split] = int(own[-1])
        ceiling_ms = self._others(split)
        if ceiling_ms <= self._last_ms:
            return None
        # What finished splits reached stays reached.
        floor_ms = self._last_ms
        levels = np.clip(own, floor_ms, ceiling_ms) if ceiling_ms < MAX_WATERMARK else np.maximum(own, floor_ms)
        track = emissions(levels, self._last_ms, self._interval_ms)
        progress, level_ms = self.ctx.progress, int(levels[-1])
        if progress.paced and self._interval_ms:
            track = with_full_interval(track, batch.num_rows, level_ms, self._last_ms, self._interval_ms)
        if track is not None:
            self._last_ms = track.last_ms
        # A bounded source that is read as fast as can be soon ends: a tick there would make the answer depend on the
        # machine's speed.
        ticks = self._interval_ms and (progress.paced or not progress.bounded)
        if ticks and level_ms > self._last_ms and self._pending[_TICK] is None:
            self._arm(_TICK, self._interval_ms)
        return track

    def _levels(self, batch: ChangelogBatch, before_ms: int) -> Int64s:
        """The watermark of this split after each row, not falling; NULLs of the expression lift nothing."""
        if self._delayed is not None:
            index, delay_ms = self._delayed
            values, valid = values_and_validity(batch.columns[index])
            levels = values - delay_ms
        else:
            column = pa.concat_arrays([made for _, _, (made,) in projected(batch, self._expression)])
            values, valid = values_and_validity(column)
            per_ms = _PER_MS[column.type.unit]
            levels = values * 1_000 if per_ms is None else values // per_ms if per_ms > 1 else values
        if valid is not None:
            levels = np.where(valid, levels, MIN_WATERMARK)
        rising: Int64s = np.maximum.accumulate(levels)
        return np.maximum(rising, before_ms)

    def _others(self, split: str | None) -> int:
        """The minimum over the other unfinished splits that are not idle; splits that ended are forgotten."""
        progress = self.ctx.progress
        if split is None:
            return MAX_WATERMARK
        for ended in [known for known in self._by_split if known not in progress.unfinished and known != split]:
            self._finished_ms = max(self._finished_ms, self._by_split.pop(ended))
        lowest = MAX_WATERMARK
        for other in progress.unfinished:
            if other != split and other not in self._silence.idle:
                lowest = min(lowest, self._by_split.get(other, MIN_WATERMARK))
        return lowest

    # -- time from outside

    def process_watermark(self, input_index: int, watermark: Watermark) -> None:
        """Watermarks from above are not event time of this table, but those of its source are; the last one ends it."""
        if self.ctx.progress.tells_watermarks and watermark.timestamp_ms < MAX_WATERMARK:
            self._told(watermark.timestamp_ms)
        elif watermark.timestamp_ms == MAX_WATERMARK and self._last_ms != MAX_WATERMARK:
            self._wake()
            self._last_ms = MAX_WATERMARK
            if self._aligned is not None:
                self._aligned.leave()
            self.output.emit_watermark(watermark)

    def _told(self, reached_ms: int) -> None:
        """The source says how far it is with the split that it reads."""
        split = self.ctx.progress.current
        self._by_split[split] = max(self._by_split.get(split, self._finished_ms), reached_ms)
        if min(self._by_split[split], self._others(split)) > self._last_ms:
            self._wake()
            self._last_ms = min(self._by_split[split], self._others(split))
            self.output.emit_watermark(Watermark(self._last_ms))

    def process_watermark_status(self, input_index: int, status: WatermarkStatus) -> None:
        """Idleness is judged here, by ``idle_timeout_ms``."""

    def on_processing_timers(self, times_ms: Int64s, slots: Int64s) -> None:
        """The tick emits what is left below the interval; the idle timeout declares idleness."""
        if _TICK in slots:
            self._pending[_TICK] = None
            self._tick()
        if _ALIGNMENT in slots and self._aligned is not None:
            self._aligned.interval_over()
        if _IDLENESS in slots:
            self._pending[_IDLENESS] = None
            self._judge_silence()

    def _judge_silence(self) -> None:
        """Idle splits hold nothing back; where all are idle, so is the whole."""
        aligned = self._aligned
        splits = self._silent_as()
        # Who is ahead has rows, and is not read.
        held_back = frozenset() if aligned is None else splits if aligned.waits else aligned.paused
        again_ms = self._silence.judge(splits, held_back, self.ctx.clock.now_ms())
        if again_ms is not None:
            self._arm(_IDLENESS, again_ms)
            self._tick()
        elif not self._idle:
            self._idle = True
            self._align()
            self.output.emit_watermark_status(IDLE)

    def _silent_as(self) -> Set[str | None]:
        """What may be silent: each split of those that are read side by side, else the whole."""
        progress = self.ctx.progress
        return progress.unfinished if progress.side_by_side and progress.unfinished else frozenset({None})

    def _align(self) -> None:
        """Tell the group how far this subtask is."""
        if self._aligned is not None:
            self._aligned.idle = self._idle
            self._aligned.emitted_ms = MIN_WATERMARK if self._last_ms == self._start_ms else self._last_ms
            self._aligned.look()

    def close(self) -> None:
        """Nobody waits for a task that failed."""
        if self._aligned is not None:
            self._aligned.leave()

    def _tick(self) -> None:
        unfinished = self.ctx.progress.unfinished
        counted = (unfinished or self._by_split.keys()) - self._silence.idle
        started = all(split in self._by_split for split in counted)
        if not started:
            return
        current = min((self._by_split[split] for split in counted), default=self._finished_ms)
        if current > self._last_ms:
            self._last_ms = current
            self.output.emit_watermark(Watermark(current))

    def _heard(self) -> None:
        """Rows came."""
        self._wake()
        progress = self.ctx.progress
        self._silence.heard(progress.current if progress.side_by_side else None, self.ctx.clock.now_ms())
        if self._pending[_IDLENESS] is None:
            self._arm(_IDLENESS, self.spec.idle_timeout_ms)

    def _wake(self) -> None:
        if self._idle:
            self._idle = False
            self.output.emit_watermark_status(ACTIVE)

    def _arm(self, slot: int, after_ms: int) -> None:
        """(Re)start one of the timers."""
        timers = self.ctx.timers
        pending = self._pending[slot]
        due = np.array([self.ctx.clock.now_ms() + after_ms], np.int64)
        where = np.array([slot], np.int64)
        if pending is not None:
            timers.delete_processing_timers(pending, where)
        timers.register_processing_timers(due, where)
        self._pending[slot] = due

    # -- fault tolerance

    def snapshot_state(self, checkpoint_id: int) -> OperatorSnapshot:
        """The two levels, handed to every new subtask, which take the lowest."""
        current = min(self._by_split.values(), default=self._finished_ms)
        return OperatorSnapshot(union={_LEVELS: (struct.pack("<qq", current, self._last_ms),)})


def delayed_column(expression: Expr) -> tuple[int, int] | None:
    """``ts - INTERVAL`` over a column in milliseconds, the usual watermark: the column and the delay in ms."""
    match expression:
        case Call(function="-", args=(InputRef() as moment, Literal(value=int() as delay_ms) as amount)) if (
            isinstance(amount.type, DayTimeIntervalType)
            and isinstance(moment.type, TimestampType | TimestampLtzType)
            and moment.type.precision == 3
        ):
            return moment.index, delay_ms
        case _:
            return None
