"""Window table functions on their own: each row gets its window's columns; HOP and CUMULATE repeat it per window."""

from __future__ import annotations

import numpy as np

from flowsql_compute.eval.columns import validity
from flowsql_core.batch import ChangelogBatch, LateColumns
from flowsql_core.graph.specs import WindowKind, WindowTableFunctionSpec
from flowsql_core.types.arrow import to_arrow
from flowsql_runtime.operators.base import Operator
from flowsql_runtime.state.arrow_words import array_of_words
from flowsql_runtime.window.row_order import row_order
from flowsql_runtime.window.row_time import milliseconds_of
from flowsql_runtime.window.slices import Slicing
from flowsql_runtime.window.zone import rowtime_ms, to_local_ms


class WindowTableFunctionOperator(Operator[WindowTableFunctionSpec]):
    """Append window_start, window_end and window_time.

    In     any changelog; kinds and order stay.
    Out    the input's columns, then the window's; a row of several windows comes once for each: of HOP the latest
           window first, of CUMULATE the shortest.
    State  none.
    Late   not judged: downstream does.
    """

    def __init__(self, spec: WindowTableFunctionSpec) -> None:
        super().__init__(spec)
        self._slicing = Slicing.of(spec.window)

    def process_batch(self, input_index: int, batch: ChangelogBatch) -> None:
        """Append columns, repeating rows where needed."""
        window = self.spec.window
        track = self.advance_track(input_index, batch.track)
        batch = batch.with_track(track)
        if window.processing_time:
            times = np.full(batch.num_rows, self.ctx.clock.now_ms(), np.int64)
        else:
            assert window.time_index is not None
            timed = validity(batch.columns[window.time_index])
            if timed is not None:
                self.ctx.metrics.count("numNullRowTimeRecordsDropped", int((~timed).sum()))
                batch = batch.part(np.flatnonzero(timed))
            times = milliseconds_of(batch.columns[window.time_index])
        ends = self._slicing.slice_end(to_local_ms(times, window.zone))
        if not self._slicing.slices_are_windows:
            rows, ends = self._slicing.windows(ends)
            if window.kind is WindowKind.HOP:
                ends = ends[row_order((-ends, rows))]
            batch = batch.part(rows)
        first = len(batch.columns)
        added = (self._slicing.start(ends), ends, rowtime_ms(ends, window.zone))
        columns = [
            array_of_words([values], None, to_arrow(self.spec.output[first + place].type))
            for place, values in enumerate(added)
        ]
        self.collect_within_offsets(batch.with_columns(LateColumns.beside(batch.columns, columns)))
