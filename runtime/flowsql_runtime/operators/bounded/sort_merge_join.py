"""Sort-merge join: both inputs sorted by their keys, then walked through side by side."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from flowsql_core.batch import ChangelogBatch
from flowsql_core.column_bytes import joined
from flowsql_core.graph.bounded_specs import SortMergeJoinSpec
from flowsql_runtime.kernels.bounded.merge_walk import merge_walk, rows_below
from flowsql_runtime.network.spill import SpillFile
from flowsql_runtime.operators.base import OperatorContext
from flowsql_runtime.operators.bounded.held_rows import settled, size_bytes, together
from flowsql_runtime.operators.bounded.join_pairs import PairingOperator, from_starts, no_rows
from flowsql_runtime.operators.bounded.order import Words, sort_words, word_matrix
from flowsql_runtime.operators.bounded.sorted_rows import SortedRows
from flowsql_runtime.operators.join.side import row_ranges

Int64s = npt.NDArray[np.int64]
Matrix = npt.NDArray[np.int64]

#: Rows of a batch of a key whose rows wait in files.
_BLOCK_ROWS: Final = 1024


class SortMergeJoinOperator(PairingOperator[SortMergeJoinSpec]):
    """An equality join of any kind.

    In     two insert-only inputs, hash-partitioned by their keys.
    Out    left columns then right (of a semi or anti join the left ones), in the order of the keys; rows whose key is
           NULL, which equals nothing, at once.

    Each side is sorted, in runs on disk where memory cannot hold it. Then both are read in order: rows of a key meet
    when the next key of both sides has come. A key with more rows than memory goes to files, and each
    batch of its left rows meets each of its right rows.

    Source: Flink, ``SortMergeJoinOperator`` (``SortMergeInnerJoinIterator`` and its like; a long key spills in
    ``ResettableExternalBuffer``).
    """

    def open(self, ctx: OperatorContext) -> None:
        """No rows yet."""
        super().open(ctx)
        half = max(1, self.share_bytes // 2)
        self._sorted = [SortedRows(ctx.memory, half, lambda: self.space, partial(self._words, side)) for side in (0, 1)]

    def _words(self, side: int, batch: ChangelogBatch) -> Words:
        keys = self.sides[side].key_columns(batch.columns)
        return sort_words(keys, tuple((place, False, True) for place in range(len(keys))))

    def process_batch(self, input_index: int, batch: ChangelogBatch) -> None:
        """Keep rows whose key can have partners; those without leave, if they are in the answer."""
        if not batch.num_rows:
            return
        lost = self.sides[input_index].without_match(batch.columns)
        if lost is None or not lost.any():
            self._sorted[input_index].add(batch.with_track(None))
            return
        alone = batch.with_track(None).filter(lost)
        if self.partial and input_index == 0:
            self.pass_on(alone, np.zeros(alone.num_rows, np.bool_))
        elif self.stays(input_index):
            self.emit_alone(input_index, alone, np.arange(alone.num_rows))
        self._sorted[input_index].add(batch.with_track(None).filter(~lost))

    def answer(self) -> None:
        """Walk through both sides."""
        ends = [
            _Side(rows.batches(), no_rows(side.schema)) for rows, side in zip(self._sorted, self.sides, strict=True)
        ]
        while True:
            for end in ends:
                if not end.rows.num_rows:
                    end.read()
            if not any(end.rows.num_rows for end in ends):
                return
            left, right = self._matrices(ends[0].rows, ends[1].rows)
            going_on = self._going_on(ends, left, right)
            whole = [end.rows.num_rows for end in ends]
            if going_on is not None:
                last = (left, right)[going_on]
                whole = [int(rows_below(words, last, len(last) - 1)) for words in (left, right)]
            if any(whole):
                self._join(ends[0].take(whole[0]), ends[1].take(whole[1]), left[: whole[0]], right[: whole[1]])
                continue
            # All rows of that side are of the first key, which may go on.
            assert going_on is not None
            if size_bytes(ends[going_on].rows) > self.share_bytes // 2:
                self._join_in_files(ends)
            else:
                ends[going_on].read()

    def _matrices(self, left: ChangelogBatch, right: ChangelogBatch) -> tuple[Matrix, Matrix]:
        """The keys of both sides as words that compare with each other."""
        n = left.num_rows
        pairs = zip(self.sides[0].key_columns(left.columns), self.sides[1].key_columns(right.columns), strict=True)
        columns = [joined([one, other if other.type == one.type else other.cast(one.type)]) for one, other in pairs]
        words = sort_words(columns, tuple((place, False, True) for place in range(len(columns))))
        matrix = word_matrix(words, n + right.num_rows)
        return matrix[:n], matrix[n:]

    def _going_on(self, ends: list[_Side], left: Matrix, right: Matrix) -> int | None:
        """The side whose last key is the first one of which more rows may come; None: no rows come."""
        more = [side for side, end in enumerate(ends) if end.more]
        if len(more) < 2:
            return more[0] if more else None
        return int(rows_below(right[-1:], left, len(left) - 1))

    def _join(self, left: ChangelogBatch, right: ChangelogBatch, keys: Matrix, other: Matrix) -> None:
        """Rows of keys that are complete on both sides."""
        starts, counts = np.zeros((2, left.num_rows), np.int64)
        merge_walk(keys, other, starts, counts)
        met = np.zeros(right.num_rows, np.bool_)
        if left.num_rows:
            for first, last in row_ranges(counts):
                own = counts[first:last]
                self.meet(left.slice(first, last), own, right, from_starts(starts[first:last], own), met)
        if self.stays(1):
            self.emit_alone(1, right, np.flatnonzero(~met))

    # -- one key with more rows than memory

    def _join_in_files(self, ends: list[_Side]) -> None:
        """All rows of the key that both sides begin with."""
        first = self._first_key(ends)
        files = [self._in_file(end, side, first) for side, end in enumerate(ends)]
        left, right = files
        met = np.zeros(right.rows, np.bool_)
        for batch in left.batches():
            has = np.zeros(batch.num_rows, np.bool_)
            if self.partial and self.condition is None:
                has[:] = right.rows > 0
            else:
                self._meet_file(batch, right, has, met)
            if self.partial:
                self.pass_on(batch, has)
            elif self.stays(0):
                self.emit_alone(0, batch, np.flatnonzero(~has))
        if self.stays(1):
            place = 0
            for batch in right.batches():
                self.emit_alone(1, batch, np.flatnonzero(~met[place : place + batch.num_rows]))
                place += batch.num_rows
        for file in files:
            if file.file is not None:
                self.space.forget(file.file)

    def _meet_file(self, batch: ChangelogBatch, right: _KeyFile, has: Any, met: Any) -> None:
        place = 0
        for rows in right.batches():
            counts = np.full(batch.num_rows, rows.num_rows, np.int64)
            for first, last in row_ranges(counts):
                part, own = batch.slice(first, last), counts[first:last]
                probes, found = self.pairs(part, own, rows, from_starts(np.zeros(last - first, np.int64), own))
                has[first + probes] = True
                met[place + found] = True
                if not self.partial:
                    self.emit_pairs(part, rows, probes, found)
            place += rows.num_rows

    def _first_key(self, ends: list[_Side]) -> tuple[int, ChangelogBatch]:
        """The side and the row of the key that comes first."""
        left, right = ends[0].rows, ends[1].rows
        if not left.num_rows or not right.num_rows:
            side = 0 if left.num_rows else 1
        else:
            words, other = self._matrices(left.slice(0, 1), right.slice(0, 1))
            side = 1 if rows_below(other, words, 0) else 0
        return side, settled(ends[side].rows.slice(0, 1))

    def _in_file(self, end: _Side, side: int, first: tuple[int, ChangelogBatch]) -> _KeyFile:
        """Write the rows of a key, which stand at the start of a side."""
        made = _KeyFile()
        key_side, key = first
        while end.rows.num_rows or end.read():
            batch = end.rows
            pair = (key, batch) if key_side == 0 else (batch, key)
            if side == key_side:
                words = word_matrix(self._words(side, together([key, settled(batch)]) or batch), batch.num_rows + 1)
                key_words, words = words[:1], words[1:]
            else:
                one, other = self._matrices(*pair)
                key_words, words = (one, other) if key_side == 0 else (other, one)
            starts, counts = np.zeros((2, 1), np.int64)
            merge_walk(key_words, words, starts, counts)
            own = end.take(int(counts[0]))
            for at in range(0, own.num_rows, _BLOCK_ROWS):
                rows = settled(own.slice(at, min(at + _BLOCK_ROWS, own.num_rows)))
                if made.file is None:
                    made.file = self.space.new_file(tuple(column.type for column in rows.columns))
                made.file.append(rows)
            made.rows += own.num_rows
            if end.rows.num_rows:
                break
        if made.file is not None:
            made.file.seal()
        return made


class _Side:
    """A sorted side as it is read. ``rows``: read and not joined yet; ``more``: whether others come."""

    def __init__(self, batches: Iterator[ChangelogBatch], nothing: ChangelogBatch) -> None:
        self._batches = batches
        self._next = next(batches, None)
        self.rows = nothing

    @property
    def more(self) -> bool:
        return self._next is not None

    def read(self) -> bool:
        """One batch more; False where there is none."""
        if self._next is None:
            return False
        added = settled(self._next)
        whole = together([self.rows, added]) if self.rows.num_rows else added
        assert whole is not None
        self.rows = whole
        self._next = next(self._batches, None)
        return True

    def take(self, count: int) -> ChangelogBatch:
        """The first rows, which are no longer here."""
        whole = self.rows
        self.rows = settled(whole.slice(count, whole.num_rows))
        return settled(whole.slice(0, count))


class _KeyFile:
    """The rows of one key and side, read again and again."""

    def __init__(self) -> None:
        self.file: SpillFile | None = None
        self.rows = 0

    def batches(self) -> Iterator[ChangelogBatch]:
        if self.file is None:
            return
        self.file.rewind()
        while self.file.unread:
            yield self.file.next()
