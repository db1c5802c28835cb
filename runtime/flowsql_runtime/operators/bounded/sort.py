"""ORDER BY of a bounded input: sorted in memory, or in runs on disk that are merged at the end."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from flowsql_core.batch import ChangelogBatch, LateColumns, concat_batches
from flowsql_core.graph.bounded_specs import BoundedSortSpec
from flowsql_core.graph.rank_specs import OrderKeys
from flowsql_runtime.network.spill import SpillFile, spillable
from flowsql_runtime.operators.base import OperatorContext
from flowsql_runtime.operators.bounded.base import OUTPUT_ROWS, BoundedOperator
from flowsql_runtime.operators.bounded.held_rows import settled, size_bytes, together
from flowsql_runtime.operators.bounded.order import sort_words, sorted_positions, stable_positions

#: Rows of a batch of a run: what is in memory of each while runs are merged.
_RUN_ROWS = 16_384


class BoundedSortOperator(BoundedOperator[BoundedSortSpec]):
    """All rows in order, or the first of them.

    In     insert-only, in one subtask.
    Out    the rows, sorted. With ``fetch`` only the first rows are held at all.

    Source: Flink, ``SortOperator`` (``BinaryExternalSorter``), ``SortLimitOperator``.
    """

    def open(self, ctx: OperatorContext) -> None:
        """No rows yet."""
        spec = self.spec
        self._held: list[ChangelogBatch] = []
        self._held_rows = 0
        self._runs: list[SpillFile] = []
        #: Rows that can still be among the first ones; None: all.
        self._wanted = None if spec.fetch is None else spec.offset + spec.fetch

    def process_batch(self, input_index: int, batch: ChangelogBatch) -> None:
        """Keep rows; those that others push behind the last place go."""
        if not batch.num_rows:
            return
        kept = settled(batch)
        size = size_bytes(kept)
        if self._held and (
            self.ctx.memory.held_bytes + size > self.share_bytes or not self.ctx.memory.try_reserve(size)
        ):
            self._spill()
            self.ctx.memory.reserve(size)
        elif not self._held:
            self.ctx.memory.reserve(size)
        self._held.append(kept)
        self._held_rows += kept.num_rows
        if self._wanted is not None and self._held_rows > 2 * self._wanted + OUTPUT_ROWS:
            self._keep_first(self._wanted)

    def _keep_first(self, wanted: int) -> None:
        rows = self._sorted()
        self._held, self._held_rows = [], 0
        if rows is not None and wanted:
            first = settled(rows.slice(0, min(wanted, rows.num_rows)))
            self._held, self._held_rows = [first], first.num_rows
        self.ctx.memory.resize(sum(map(size_bytes, self._held)))

    def _sorted(self) -> ChangelogBatch | None:
        whole = together(self._held)
        return None if whole is None else in_order(whole, self.spec.order)

    def _spill(self) -> None:
        """What is held becomes a run."""
        rows = self._sorted()
        if rows is None or not spillable(rows):
            return
        run = self.space.new_file(tuple(column.type for column in rows.columns))
        wanted = rows.num_rows if self._wanted is None else min(self._wanted, rows.num_rows)
        for first in range(0, wanted, _RUN_ROWS):
            run.append(rows.slice(first, min(first + _RUN_ROWS, wanted)))
        run.seal()
        self._runs.append(run)
        self._held, self._held_rows = [], 0
        self.ctx.memory.resize(0)

    def answer(self) -> None:
        """The rows from ``offset`` on."""
        if self._runs:
            self._spill()
            batches = merged(self._runs, self.spec.order)
        else:
            rows = self._sorted()
            batches = iter(() if rows is None else (rows,))
        self._held = []
        place, stop = 0, self._wanted
        for batch in batches:
            first = min(max(self.spec.offset - place, 0), batch.num_rows)
            last = batch.num_rows if stop is None else min(batch.num_rows, stop - place)
            if first < last:
                self.emit(batch.slice(first, last))
            place += batch.num_rows
            if stop is not None and place >= stop:
                break


def in_order(batch: ChangelogBatch, order: OrderKeys) -> ChangelogBatch:
    """The rows sorted; columns are gathered late."""
    rows = sorted_positions(sort_words(batch.columns, order), batch.num_rows)
    return ChangelogBatch(LateColumns.of(batch.columns, rows), batch.num_rows)


def merged(runs: list[SpillFile], order: OrderKeys) -> Iterator[ChangelogBatch]:
    """Rows of sorted runs in order; rows that sort alike in the order of the runs.

    The heads of all runs are sorted together. What stands up to the last row of any head whose run goes on is final:
    no row to come stands before it.
    """
    heads: list[ChangelogBatch | None] = [None] * len(runs)
    while True:
        for number, run in enumerate(runs):
            if heads[number] is None and run.unread:
                heads[number] = run.next()
        live = [number for number, head in enumerate(heads) if head is not None]
        if not live:
            return
        parts = [head for head in heads if head is not None]
        joined = concat_batches(parts)
        if len(joined) > 1:
            raise AssertionError("heads of runs do not fit into one array")
        whole = joined[0]
        positions = stable_positions(sort_words(whole.columns, order), whole.num_rows)
        places = np.empty(whole.num_rows, np.int64)
        places[positions] = np.arange(whole.num_rows)
        ends = np.cumsum([part.num_rows for part in parts])
        final = whole.num_rows
        for number, end in zip(live, ends.tolist(), strict=True):
            if runs[number].unread:
                final = min(final, int(places[end - 1]) + 1)
        yield ChangelogBatch(LateColumns.of(whole.columns, positions[:final]), final)
        first = 0
        for number, part, end in zip(live, parts, ends.tolist(), strict=True):
            gone = int(np.count_nonzero(places[first:end] < final))
            heads[number] = None if gone == part.num_rows else settled(part.slice(gone, part.num_rows))
            first = end
