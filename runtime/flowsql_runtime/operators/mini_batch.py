"""Marks between mini-batches: watermarks of processing time. Source: Flink ``ProcTimeMiniBatchAssignerOperator``."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from flowsql_core.batch import ChangelogBatch
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
