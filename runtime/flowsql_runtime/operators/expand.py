"""Grouping sets: each row once per projection list."""

from __future__ import annotations

import numpy as np

from flowsql_compute.eval.compile import compile_projections
from flowsql_core.batch import ChangelogBatch, RowTimes, WatermarkTrack
from flowsql_core.column_bytes import joined, taken
from flowsql_core.graph.specs import ExpandSpec
from flowsql_runtime.operators.base import Operator, OperatorContext
from flowsql_runtime.operators.evaluation import eval_context, read_watermarks


class ExpandOperator(Operator[ExpandSpec]):
    """Row i becomes rows ``m * i .. m * i + m`` for m projection lists, each with the kind of its row.

    In     any changelog.
    Out    the same kinds, m times as many rows.
    State  none.
    """

    def open(self, ctx: OperatorContext) -> None:
        """Compile every list."""
        context = eval_context(ctx)
        lists, self._watermarks = read_watermarks(self.spec.projections)
        self._lists = [compile_projections(projections, context) for projections in lists]

    def process_batch(self, input_index: int, batch: ChangelogBatch) -> None:
        """Evaluate list by list, then bring the rows of one input row together."""
        before = self.current_watermark
        track = self.advance_track(input_index, batch.track)
        batch = self._watermarks.beside(batch.with_track(track), before)
        n, m = batch.num_rows, len(self._lists)
        results = [project(batch.columns, n) for project in self._lists]
        order = (np.arange(n)[:, None] + n * np.arange(m)[None, :]).ravel()
        columns = tuple(taken(joined([result[index] for result in results]), order) for index in range(len(results[0])))
        times = batch.row_times
        if times is not None:
            times = RowTimes(np.repeat(times.values_ms, m), None if times.valid is None else np.repeat(times.valid, m))
        self.collect_within_offsets(
            ChangelogBatch(
                columns,
                n * m,
                None if batch.kinds is None else np.repeat(batch.kinds, m),
                times,
                None if track is None else WatermarkTrack(track.offsets * np.int32(m), track.wm_ms),
            )
        )
