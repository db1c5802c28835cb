"""Functions of pandas over the groups of a bounded input."""

from __future__ import annotations

import numpy as np

from flowsql_core.batch import ChangelogBatch
from flowsql_core.column_bytes import taken
from flowsql_core.graph.bounded_specs import PandasAggregateSpec
from flowsql_runtime.operators.base import OperatorContext
from flowsql_runtime.operators.bounded.base import BoundedOperator
from flowsql_runtime.operators.bounded.held_rows import settled, together
from flowsql_runtime.operators.bounded.order import Words, begins, sort_words, stable_positions
from flowsql_runtime.operators.bounded.sorted_rows import SortedRows
from flowsql_runtime.operators.evaluation import eval_context
from flowsql_runtime.operators.python_aggregate.pandas_calls import PandasCalls


class PandasAggregateOperator(BoundedOperator[PandasAggregateSpec]):
    """Rows are sorted by their group; a function sees all rows of a group at once, which have to fit in memory.

    In     insert-only, hash-partitioned by ``spec.grouping`` (no grouping: one subtask).
    Out    one row a group, in the order of the groups.

    Source: Flink, ``BatchArrowPythonGroupAggregateFunctionOperator``.
    """

    def open(self, ctx: OperatorContext) -> None:
        """No rows yet; the functions are made."""
        spec = self.spec
        self._rows = SortedRows(ctx.memory, self.share_bytes, lambda: self.space, self._words, stable_positions)
        self._read = sorted({arg.index for call in spec.calls for arg in call.args})
        self._python = PandasCalls(spec.calls, tuple(spec.input[column] for column in self._read), self._read)
        self._python.load(ctx, eval_context(ctx).zone)

    def close(self) -> None:
        """The functions, too."""
        try:
            self._python.close()
        finally:
            super().close()

    def _words(self, batch: ChangelogBatch) -> Words:
        columns = (*self.spec.grouping, *self.spec.order)
        return sort_words(batch.columns, tuple((column, False, True) for column in columns))

    def process_batch(self, input_index: int, batch: ChangelogBatch) -> None:
        """Keep rows."""
        self._rows.add(batch.with_track(None))

    def answer(self) -> None:
        """Groups in order; the last one of a batch may go on in the next."""
        waiting: list[ChangelogBatch] = []
        for batch in self._rows.batches():
            rows = together([*waiting, settled(batch)])
            assert rows is not None
            last = int(self._starts(rows)[-1])
            waiting = [settled(rows.slice(last, rows.num_rows))]
            if last:
                self._emit(settled(rows.slice(0, last)))
        for batch in waiting:
            self._emit(batch)

    def _starts(self, rows: ChangelogBatch) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        words = sort_words(rows.columns, tuple((column, False, True) for column in self.spec.grouping))
        return np.flatnonzero(begins(words, rows.num_rows)).astype(np.int64)

    def _emit(self, rows: ChangelogBatch) -> None:
        starts = self._starts(rows)
        stops = np.append(starts[1:], rows.num_rows)
        results = self._python.results([rows.columns[column] for column in self._read], starts, stops)
        keys = [taken(rows.columns[column], starts) for column in self.spec.grouping]
        self.emit(ChangelogBatch((*keys, *results), len(starts)))
