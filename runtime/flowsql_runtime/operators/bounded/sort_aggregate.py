"""Aggregates of a bounded input that is sorted: one group after the other."""

from __future__ import annotations

import numpy as np

from flowsql_core.batch import ChangelogBatch
from flowsql_core.graph.bounded_specs import SortAggregateSpec
from flowsql_runtime.operators.base import OperatorContext
from flowsql_runtime.operators.bounded.base import BoundedOperator
from flowsql_runtime.operators.bounded.groups import Groups, arriving_keys
from flowsql_runtime.operators.bounded.order import Words, begins, sort_words, stable_positions
from flowsql_runtime.operators.bounded.sorted_rows import SortedRows


class SortAggregateOperator(BoundedOperator[SortAggregateSpec]):
    """Rows are sorted by their group, in runs on disk where memory cannot hold them; then groups are folded in order.

    In     insert-only, hash-partitioned by ``spec.grouping`` (no grouping: one subtask, and nothing is sorted); rows,
           or accumulators where it merges.
    Out    one row a group, in the order of the groups; rows of a group are folded as they came.

    Source: Flink, ``SortAggCodeGenerator`` behind a ``SortOperator``.
    """

    def open(self, ctx: OperatorContext) -> None:
        """No rows yet."""
        self._rows = SortedRows(ctx.memory, self.share_bytes, lambda: self.space, self._words, stable_positions)
        #: The group whose rows go on in the next batch.
        self._open = Groups(self.spec)

    def _words(self, batch: ChangelogBatch) -> Words:
        return sort_words(batch.columns, tuple((column, False, True) for column in arriving_keys(self.spec)))

    def process_batch(self, input_index: int, batch: ChangelogBatch) -> None:
        """Keep rows; those of the group of all rows are folded at once."""
        if self.spec.grouping:
            self._rows.add(batch)
        elif batch.num_rows:
            self._open.fold(batch, only_known=False)

    def answer(self) -> None:
        """Groups in order."""
        if not self.spec.grouping:
            self._open.make_global()
        for batch in self._rows.batches():
            self._take(batch)
        self._emit(self._open)

    def _take(self, batch: ChangelogBatch) -> None:
        """Sorted rows: all groups but the last one are complete."""
        rest = self._open.fold(batch, only_known=True) if self._open.count else batch
        if rest is None:
            return
        self._emit(self._open)
        self._open = Groups(self.spec)
        last = int(np.flatnonzero(begins(self._words(rest), rest.num_rows))[-1])
        if last:
            groups = Groups(self.spec)
            groups.fold(rest.slice(0, last), only_known=False)
            self._emit(groups)
        self._open.fold(rest.slice(last, rest.num_rows), only_known=False)

    def _emit(self, groups: Groups) -> None:
        for batch in groups.batches():
            self.collect_within_offsets(batch)
