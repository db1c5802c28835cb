"""Marks between mini-batches, by the clock or by watermarks.

Source: Flink, ``ProcTimeMiniBatchAssignerOperator`` and ``RowTimeMiniBatchAssginerOperator``.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from flowsql_core.batch import ChangelogBatch, WatermarkTrack
from flowsql_core.element import MAX_WATERMARK, Watermark
from flowsql_core.graph.specs import MiniBatchAssignerSpec
from flowsql_runtime.operators.base import Operator, OperatorContext, OperatorSnapshot

Int64s = npt.NDArray[np.int64]


class MiniBatchAssignerOperator(Operator[MiniBatchAssignerSpec]):
    """A mark (a watermark) at each multiple of the interval of processing time; mini-batch operators flush at marks.

    In     any changelog; its watermarks are not handed on, except the last.
    Out    the same rows, marks between batches.
    State  none.
    """

    def open(self, ctx: OperatorContext) -> None:
        """No mark yet."""
        self._mark_ms = 0

    def initialize_state(self, snapshot: OperatorSnapshot | None) -> None:
        """Wait for the first mark."""
        self._arm()

    def process_batch(self, input_index: int, batch: ChangelogBatch) -> None:
        """The mark that is due, then the rows."""
        self._mark()
        self.output.collect(batch.with_track(None))

    def process_watermark(self, input_index: int, watermark: Watermark) -> None:
        """Only the end of time passes."""
        if watermark.timestamp_ms == MAX_WATERMARK and self._mark_ms != MAX_WATERMARK:
            self._mark_ms = MAX_WATERMARK
            self.output.emit_watermark(watermark)

    def on_processing_timers(self, times_ms: Int64s, slots: Int64s) -> None:
        """A mark is due."""
        self._mark()
        self._arm()

    def _mark(self) -> None:
        now_ms = self.ctx.clock.now_ms()
        mark_ms = now_ms - now_ms % self.spec.interval_ms
        if mark_ms > self._mark_ms:
            self._mark_ms = mark_ms
            self.output.emit_watermark(Watermark(mark_ms))

    def _arm(self) -> None:
        now_ms = self.ctx.clock.now_ms()
        due_ms = now_ms - now_ms % self.spec.interval_ms + self.spec.interval_ms
        self.ctx.timers.register_processing_timers(np.array([due_ms], np.int64), np.zeros(1, np.int64))


class RowTimeMiniBatchAssignerOperator(Operator[MiniBatchAssignerSpec]):
    """Hand on a watermark only when it completes another interval of row time.

    In     any changelog.
    Out    the same rows; of the watermarks those that reach the end of an interval, and at the end of the input the
           last.
    State  none, as in Flink.
    Late   rows are judged by the watermarks that pass: fewer are late than without mini-batches.
    """

    def open(self, ctx: OperatorContext) -> None:
        """Intervals count from the epoch; watermarks before it wait."""
        self._completed = 0
        self._held_ms = 0

    def process_batch(self, input_index: int, batch: ChangelogBatch) -> None:
        """Rows with those watermarks that pass."""
        track = batch.track
        if track is not None:
            completed = self._intervals(track.wm_ms)
            passes = np.diff(np.maximum(completed, self._completed), prepend=self._completed) > 0
            self._completed = max(self._completed, int(completed[-1]))
            self._held_ms = 0 if passes[-1] else track.last_ms
            track = WatermarkTrack(track.offsets[passes], track.wm_ms[passes]) if passes.any() else None
        self.output.collect(batch.with_track(track))

    def process_watermark(self, input_index: int, watermark: Watermark) -> None:
        """A watermark between batches passes by the same rule."""
        wm_ms = watermark.timestamp_ms
        completed = int(self._intervals(np.array([wm_ms]))[0])
        if wm_ms == MAX_WATERMARK or completed > self._completed:
            self._completed = completed
            self._held_ms = 0
            self.output.emit_watermark(watermark)
        else:
            self._held_ms = wm_ms

    def _intervals(self, wm_ms: Int64s) -> Int64s:
        """How many intervals each watermark completes: the last millisecond of one does."""
        interval = self.spec.interval_ms
        completed: Int64s = wm_ms // interval + (wm_ms % interval == interval - 1)
        return completed

    def end_input(self, input_index: int) -> None:
        """What was held back passes."""
        if self._held_ms > 0:
            self.output.emit_watermark(Watermark(self._held_ms))


def mini_batch_assigner(spec: MiniBatchAssignerSpec) -> Operator[MiniBatchAssignerSpec]:
    """Return the operator that marks by watermarks or by the clock."""
    return RowTimeMiniBatchAssignerOperator(spec) if spec.row_time else MiniBatchAssignerOperator(spec)
