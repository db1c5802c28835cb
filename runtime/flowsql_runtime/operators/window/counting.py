"""Group windows of a number of rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flowsql_compute.eval.columns import values_and_validity
from flowsql_core.batch import ChangelogBatch, columns_of
from flowsql_core.element import Watermark
from flowsql_core.graph.lineage import Lineage
from flowsql_core.graph.window_specs import CountWindowSpec
from flowsql_core.python_call import aggregated_with
from flowsql_core.types.arrow import to_arrow
from flowsql_runtime.kernels.over import frames as kernels
from flowsql_runtime.operators.aggregate.group import signs_of
from flowsql_runtime.operators.aggregate.program import AggregateProgram
from flowsql_runtime.operators.base import Int64s, Operator, OperatorContext
from flowsql_runtime.state.names import StateNames, TableNames
from flowsql_runtime.state.stores import StoredColumn

Int32s = npt.NDArray[np.int32]

_SEEN: Final = "seen"


class CountWindowOperator(Operator[CountWindowSpec]):
    """One row per key and window of ``spec.size`` rows, when the last of them comes.

    In     any changelog, hash-partitioned by ``spec.grouping``; each change counts as a row, as in Flink.
    Out    +I rows: grouping columns and results, in the order of the rows that fill windows; none of a window whose
           rows were all taken back. Windows that are not full at the end of input are dropped.
    State  how many rows each key has had; accumulators by (window number, key) of windows that are not full.
    Late   not judged.

    Source: Flink, ``AggregateWindowOperator`` over ``CountTumblingWindowAssigner`` and ``CountSlidingWindowAssigner``.
    """

    def __init__(self, spec: CountWindowSpec) -> None:
        super().__init__(spec)
        self._python = None
        if any(aggregated_with(call) is not None for call in spec.calls):
            # Loaded by jobs that have such calls only.
            from flowsql_runtime.operators.python_aggregate.window_program import python_program

            self._python = python_program(spec.calls, spec.input, spec.input_retracts, merges=False)
        self._program = self._python or AggregateProgram(
            spec.calls, spec.input, spec.input_retracts, clear_at_zero=False
        )

    def open(self, ctx: OperatorContext) -> None:
        """Make the state."""
        types = [to_arrow(self.spec.input[column].type) for column in self.spec.grouping]
        self._keys = ctx.state.key_index(types)
        self._seen = ctx.state.column_store(_SEEN, self._keys, [StoredColumn("rows", pa.int64(), nullable=False)])
        self._windows = ctx.state.window_index(types)
        self._program.open(ctx.state, self._windows, "window")
        #: By slot of a key, -1 between two batches.
        self._scratch: Int32s = np.zeros(0, np.int32)
        if self._python is not None:
            from flowsql_runtime.operators.evaluation import eval_context

            self._python.load(ctx, eval_context(ctx).zone)

    def finish(self) -> None:
        """Close the functions of a user, which says whether that went well."""
        if self._python is not None:
            self._python.close()

    def close(self) -> None:
        """Close the functions of a job that failed."""
        self.finish()

    def state_names(self, arriving: Sequence[Lineage]) -> StateNames:
        """Rows by key, accumulators by window."""
        columns = arriving[0].columns
        tables = dict(self._program.table_names(columns, "window"))
        tables[_SEEN] = TableNames("rows of keys", {"v:rows": "rows that came"})
        facts = {"window": f"{self.spec.size} rows, every {self.spec.step} rows"}
        keys = tuple(columns[index] for index in self.spec.grouping)
        return StateNames(keys, tables, facts, retracts=self._program.retracts)

    def expect(self, input_index: int, batches: Sequence[ChangelogBatch]) -> None:
        """Keys of rows that come."""
        self._keys.expect(*columns_of(batches, self.spec.grouping))

    def process_batch(self, input_index: int, batch: ChangelogBatch) -> None:
        """Put rows into windows; full ones answer."""
        track = self.advance_track(input_index, batch.track)
        if batch.num_rows:
            self._take_in(batch.with_track(None))
        if track is not None:
            self.output.emit_watermark(Watermark(track.last_ms))

    def _numbers(self, batch: ChangelogBatch) -> Int64s:
        """Which row of its key each one is, from 0."""
        n = batch.num_rows
        keys = [batch.columns[column] for column in self.spec.grouping]
        slots, _ = self._keys.find_or_insert(self._keys.encode(keys, num_rows=n))
        if int(slots.max(initial=-1)) >= len(self._scratch):
            self._scratch = np.full(2 * int(slots.max()) + 2, -1, np.int32)
        numbers, ranks = np.empty(n, np.int32), np.empty(n, np.int32)
        touched, counts = np.empty(n, np.int32), np.empty(n, np.int32)
        known = int(kernels.number(np.ascontiguousarray(slots), self._scratch, numbers, ranks, touched, counts))
        touched = touched[:known].copy()
        before = values_and_validity(self._seen.gather(touched)[0])[0]
        self._seen.scatter(touched, [pa.array(before + counts[:known])])
        made: Int64s = before.astype(np.int64, copy=False)[numbers] + ranks
        return made

    def _take_in(self, batch: ChangelogBatch) -> None:
        size, step = self.spec.size, self.spec.step
        numbers = self._numbers(batch)
        # Window w holds rows w * step .. w * step + size - 1 of its key.
        last = numbers // step
        first = np.maximum((numbers - size) // step + 1, 0)
        counts = np.maximum(last - first + 1, 0)
        rows = np.repeat(np.arange(batch.num_rows), counts)
        windows = first[rows] + np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
        if not len(rows):
            return
        given = batch.take(rows)
        keys = [given.columns[column] for column in self.spec.grouping]
        slots, _ = self._windows.find_or_insert(self._windows.encode(keys, windows, num_rows=len(rows)))
        self._program.fold(slots, given.columns, signs_of(given), every=False)
        full = np.ascontiguousarray(slots[numbers[rows] - windows * step == size - 1])
        if not len(full):
            return
        told = np.ascontiguousarray(full[self._program.store.row_counts(full) != 0])
        if len(told):
            columns = (*self._windows.columns_at(told), *self._program.results_at(told))
            self.collect_within_offsets(ChangelogBatch(columns, len(told)))
        self._program.forget(full)
        self._windows.remove(full)
