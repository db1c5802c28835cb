"""ORDER BY of a bounded input: sorted in memory, or in runs on disk that are merged at the end."""

from __future__ import annotations

from flowsql_core.batch import ChangelogBatch
from flowsql_core.graph.bounded_specs import BoundedSortSpec
from flowsql_runtime.operators.base import OperatorContext
from flowsql_runtime.operators.bounded.base import OUTPUT_ROWS, BoundedOperator
from flowsql_runtime.operators.bounded.order import Words, sorter_words
from flowsql_runtime.operators.bounded.sorted_rows import SortedRows


class BoundedSortOperator(BoundedOperator[BoundedSortSpec]):
    """All rows in order, or the first of them.

    In     insert-only, in one subtask.
    Out    the rows, sorted. With ``fetch`` only the first rows are held at all.

    Source: Flink, ``SortOperator`` (``BinaryExternalSorter``), ``SortLimitOperator``.
    """

    def open(self, ctx: OperatorContext) -> None:
        """No rows yet."""
        self._rows = SortedRows(ctx.memory, self.share_bytes, lambda: self.space, self._words)
        if self.spec.fetch is not None:
            self._rows.wanted = self.spec.offset + self.spec.fetch

    def _words(self, batch: ChangelogBatch) -> Words:
        return sorter_words(batch.columns, self.spec.order, limited=self.spec.fetch is not None)

    def process_batch(self, input_index: int, batch: ChangelogBatch) -> None:
        """Keep rows; those that others push behind the last place go."""
        self._rows.add(batch)
        wanted = self._rows.wanted
        if wanted is not None and self._rows.held_rows > 2 * wanted + OUTPUT_ROWS:
            self._rows.cut()

    def answer(self) -> None:
        """The rows from ``offset`` on."""
        place, stop = 0, self._rows.wanted
        for batch in self._rows.batches():
            first = min(max(self.spec.offset - place, 0), batch.num_rows)
            last = batch.num_rows if stop is None else min(batch.num_rows, stop - place)
            if first < last:
                self.emit(batch.slice(first, last))
            place += batch.num_rows
            if stop is not None and place >= stop:
                break
