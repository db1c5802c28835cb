"""Rows of a bounded input in an order: in memory up to a share, beyond it in sorted runs on disk that are merged."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

import numpy as np

from flowsql_core.batch import ChangelogBatch, LateColumns, concat_batches
from flowsql_core.errors import ExecutionError
from flowsql_runtime.network.spill import SpillFile, SpillSpace, spillable
from flowsql_runtime.operators.bounded.held_rows import settled, size_bytes, together
from flowsql_runtime.operators.bounded.order import Int64s, Words, sorted_positions, stable_positions
from flowsql_runtime.task.memory import MEMORY, OperatorMemory

#: Runs that are merged at once; more of them are first merged to longer ones.
FAN_IN: Final = 16
#: Rows of a batch of a run at most, and at least however small the share is.
_MOST_ROWS: Final = 16_384
_FEWEST_ROWS: Final = 64

#: What rows are compared by; called with batches of any number of rows, whose words compare within one call alone.
WordsOf = Callable[[ChangelogBatch], Words]


class SortedRows:
    """Collects rows, then gives them back in order, once.

    While runs are merged one or two batches of each are in memory: all of them together take about ``share_bytes``.

    Args:
        memory: account at the process budget.
        share_bytes: what may be in memory.
        space: gives files, asked when the first is needed.
        words: of rows, for the order.
        positions: sorts what is in memory; by default rows that sort alike stand as Flink's sort leaves them.
    """

    def __init__(
        self,
        memory: OperatorMemory,
        share_bytes: int,
        space: Callable[[], SpillSpace],
        words: WordsOf,
        positions: Callable[[Words, int], Int64s] = sorted_positions,
    ) -> None:
        self._memory = memory
        self._share_bytes = share_bytes
        self._space = space
        self._words = words
        self._positions = positions
        self._held: list[ChangelogBatch] = []
        self._held_bytes = 0
        self._runs: list[SpillFile] = []
        #: Rows that are in memory, and all that were added (less those that were cut off).
        self.held_rows = 0
        self.num_rows = 0
        #: Rows of the order's start that are wanted; None: all.
        self.wanted: int | None = None

    @property
    def spilled(self) -> bool:
        """Whether rows are in files."""
        return bool(self._runs)

    def add(self, batch: ChangelogBatch) -> None:
        """Keep rows.

        Raises:
            ExecutionError: ``memory-exceeded`` where rows fit neither in memory nor in a file.
        """
        if not batch.num_rows:
            return
        kept = settled(batch)
        size = size_bytes(kept)
        if self._held and (self._held_bytes + size > self._share_bytes or not self._memory.try_reserve(size)):
            self._spill()
            self._memory.reserve(size)
        elif not self._held:
            self._memory.reserve(size)
        self._held_bytes += size
        self._held.append(kept)
        self.held_rows += kept.num_rows
        self.num_rows += kept.num_rows
        if self._held_bytes > self._share_bytes and spillable(kept):
            # One batch alone is larger than the share.
            self._spill()

    def cut(self) -> None:
        """Keep of the rows in memory only those that are wanted."""
        assert self.wanted is not None
        rows = self._sorted()
        self.num_rows -= self.held_rows
        first = None if rows is None else settled(rows.slice(0, min(self.wanted, rows.num_rows)))
        self._forget()
        if first is not None and first.num_rows:
            self._held, self.held_rows = [first], first.num_rows
            self._held_bytes = size_bytes(first)
            self._memory.reserve(self._held_bytes)
            self.num_rows += first.num_rows

    def batches(self) -> Iterator[ChangelogBatch]:
        """All rows in order."""
        if not self._runs:
            rows = self._sorted()
            self._held = []
            if rows is not None:
                yield rows
            self._forget()
            return
        self._spill()
        runs, self._runs = self._runs, []
        while len(runs) > FAN_IN:
            runs = [self._merged_run(runs[at : at + FAN_IN]) for at in range(0, len(runs), FAN_IN)]
        with_heads = min(self._share_bytes, sum(_head_bytes(run) for run in runs))
        self._memory.reserve(with_heads)
        yield from merged(runs, self._words)
        self._memory.release(with_heads)
        for run in runs:
            self._space().forget(run)

    def _forget(self) -> None:
        self._memory.release(self._held_bytes)
        self._held, self._held_bytes, self.held_rows = [], 0, 0

    def _sorted(self) -> ChangelogBatch | None:
        whole = together(self._held)
        if whole is None:
            return None
        rows = self._positions(self._words(whole), whole.num_rows)
        return ChangelogBatch(LateColumns.of(whole.columns, rows), whole.num_rows)

    def _spill(self) -> None:
        """What is held becomes a run."""
        rows = self._sorted()
        if rows is None:
            return
        if not spillable(rows):
            raise ExecutionError(
                "memory-exceeded",
                "Rows with Python objects need more memory than there is, and no file can hold them.",
                hint=f"raise '{MEMORY.key}'",
            )
        wanted = rows.num_rows if self.wanted is None else min(self.wanted, rows.num_rows)
        some = self._rows_of_batch(self._held_bytes, rows.num_rows)
        run = self._space().new_file(tuple(column.type for column in rows.columns))
        for first in range(0, wanted, some):
            run.append(rows.slice(first, min(first + some, wanted)))
        run.seal()
        self._runs.append(run)
        self._forget()

    def _rows_of_batch(self, size: int, rows: int) -> int:
        """Rows of which two batches of each run that is merged take the share."""
        fitting = self._share_bytes * max(rows, 1) // max(size, 1) // (2 * FAN_IN)
        return max(_FEWEST_ROWS, min(_MOST_ROWS, fitting))

    def _merged_run(self, runs: list[SpillFile]) -> SpillFile:
        if len(runs) == 1:
            return runs[0]
        made = self._space().new_file(runs[0].types)
        for batch in merged(runs, self._words):
            rows = settled(batch)
            some = self._rows_of_batch(size_bytes(rows), rows.num_rows)
            for first in range(0, rows.num_rows, some):
                made.append(settled(rows.slice(first, min(first + some, rows.num_rows))))
        made.seal()
        for run in runs:
            self._space().forget(run)
        return made


def _head_bytes(run: SpillFile) -> int:
    """What two batches of a run take in memory, about."""
    return 4 * run.written_bytes // max(run.unread, 1)


def merged(runs: list[SpillFile], words: WordsOf) -> Iterator[ChangelogBatch]:
    """Rows of sorted runs in order; rows that sort alike in the order of the runs.

    The heads of all runs are sorted together. What stands up to the last row of any head whose run goes on is final:
    no row to come stands before it. A head has never fewer rows than one batch, so that half of all heads becomes final
    at once: with one batch a head, each row would be sorted as often as there are runs.
    """
    heads: list[ChangelogBatch | None] = [None] * len(runs)
    some = [0] * len(runs)
    while True:
        for number, run in enumerate(runs):
            head = heads[number]
            if run.unread and (head is None or head.num_rows < some[number]):
                more = run.next()
                some[number] = max(some[number], more.num_rows)
                heads[number] = more if head is None else together([head, more])
        live = [number for number, head in enumerate(heads) if head is not None]
        if not live:
            return
        parts = [head for head in heads if head is not None]
        joined = concat_batches(parts)
        if len(joined) > 1:
            raise AssertionError("heads of runs do not fit into one array")
        whole = joined[0]
        positions = stable_positions(words(whole), whole.num_rows)
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
