"""Rows of a Python aggregate in bundles: as many as the options say, whatever batches they come in.

A bundle ends when it is full, when its time is over, before a snapshot and at the end of the input. A watermark that
comes inside of one follows behind its rows. Source: PyFlink's ``AbstractPythonFunctionOperator``.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Generic, TypeVar

import numpy as np

from flowsql_core.batch import ChangelogBatch, concat_batches
from flowsql_core.element import MAX_WATERMARK, Watermark
from flowsql_core.graph.specs import OperatorSpec
from flowsql_runtime.operators.base import Int64s, Operator, OperatorContext
from flowsql_runtime.operators.pace import begin_slices
from flowsql_runtime.python.options import BUNDLE_SIZE, BUNDLE_TIME_MS

S = TypeVar("S", bound=OperatorSpec)


class BundleOperator(Operator[S], Generic[S]):
    """Base: hands bundles of its only input to :meth:`process_bundle`, and watermarks on behind them."""

    def open(self, ctx: OperatorContext) -> None:
        """Nothing waits."""
        super().open(ctx)
        self._size = BUNDLE_SIZE.read(ctx.parameter(BUNDLE_SIZE.key, str(BUNDLE_SIZE.default)))
        self._time_ms = BUNDLE_TIME_MS.read(ctx.parameter(BUNDLE_TIME_MS.key, str(BUNDLE_TIME_MS.default)))
        self._waiting: list[ChangelogBatch] = []
        self._waiting_rows = 0
        #: The watermark that comes behind the rows of the bundle.
        self._held_ms: int | None = None
        self._ends_ms: int | None = None
        begin_slices(ctx)

    @abstractmethod
    def process_bundle(self, batch: ChangelogBatch) -> None:
        """Rows of one bundle, without watermarks; what they make is emitted."""

    def process_batch(self, input_index: int, batch: ChangelogBatch) -> None:
        """Fill bundles."""
        track = batch.track
        offsets = () if track is None else tuple(track.offsets.tolist())
        batch = batch.with_track(None)
        first = marks = 0
        if track is not None and batch.num_rows and not self._waiting_rows:
            # Watermarks before the first row are inside of no bundle.
            marks = sum(offset <= 0 for offset in offsets)
            if marks:
                super().process_watermark(input_index, Watermark(int(track.wm_ms[marks - 1])))
        while first < batch.num_rows:
            last = min(first + self._size - self._waiting_rows, batch.num_rows)
            self._fill(batch if last - first == batch.num_rows else batch.slice(first, last))
            first = last
            while marks < len(offsets) and offsets[marks] <= last:
                assert track is not None
                self._held_ms = int(track.wm_ms[marks])
                marks += 1
            if self._waiting_rows == self._size:
                self.end_bundle()
                if self.ctx.time_slice.over:
                    self.ctx.time_slice.next()
        if track is not None and len(track) and not self._waiting_rows:
            self._held_ms = None
            super().process_watermark(input_index, Watermark(track.last_ms))

    def _fill(self, piece: ChangelogBatch) -> None:
        if not self._waiting_rows:
            self._ends_ms = self.ctx.clock.now_ms() + self._time_ms
            self.ctx.timers.register_processing_timers(np.array([self._ends_ms]), np.zeros(1, np.int64))
        self._waiting.append(piece)
        self._waiting_rows += piece.num_rows

    def end_bundle(self) -> None:
        """What waits is processed; then its watermark goes on."""
        if self._waiting_rows:
            batches, self._waiting, self._waiting_rows = self._waiting, [], 0
            for batch in concat_batches(batches):
                self.process_bundle(batch)
        held, self._held_ms = self._held_ms, None
        if held is not None:
            super().process_watermark(0, Watermark(held))

    def process_watermark(self, input_index: int, watermark: Watermark) -> None:
        """A watermark between batches: at once where nothing waits; the last one ends the bundle."""
        if watermark.timestamp_ms == MAX_WATERMARK:
            self.end_bundle()
        if not self._waiting_rows:
            super().process_watermark(input_index, watermark)
            return
        self._held_ms = watermark.timestamp_ms

    def on_processing_timers(self, times_ms: Int64s, slots: Int64s) -> None:
        """The time of a bundle is over; alarms of bundles that were full before mean nothing."""
        if self._waiting_rows and self._ends_ms is not None and self._ends_ms <= int(times_ms[-1]):
            self.end_bundle()

    def prepare_snapshot_pre_barrier(self, checkpoint_id: int) -> None:
        """What waits is not part of a snapshot."""
        self.end_bundle()

    def end_input(self, input_index: int) -> None:
        """The last bundle."""
        self.end_bundle()
