"""Mini-batches of a join: rows wait by side, and what they take back of one another is gone before they meet."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flowsql_core.batch import ChangelogBatch, concat_batches
from flowsql_core.graph.specs import JoinKind, JoinSpec, MiniBatch
from flowsql_core.row import RowKind
from flowsql_core.types.arrow import to_arrow
from flowsql_core.types.logical import Schema
from flowsql_runtime.state.scratch import number_rows

Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]
Kinds = npt.NDArray[np.uint8]

#: Rows that wait at most, whatever the options say.
_MOST_ROWS: Final = 65_536
#: Rows of a batch from which on joining it alone costs less than putting it together with others.
LARGE_ROWS: Final = 4_096


class JoinBundle:
    """Rows that wait for the end of their mini-batch.

    The side whose rows would stand without a partner for a moment comes last: an outer join then pads fewer rows.

    Source: Flink, ``MiniBatchStreamingJoinOperator`` and its bundles.
    """

    def __init__(self, spec: JoinSpec, mini_batch: MiniBatch) -> None:
        self._full = min(mini_batch.size_rows, _MOST_ROWS) if mini_batch.size_rows > 0 else _MOST_ROWS
        self._order = (0, 1) if spec.kind is JoinKind.RIGHT else (1, 0)
        self._folds = (
            _Fold(spec.left, spec.left_keys, spec.left_unique, spec.left_upserts),
            _Fold(spec.right, spec.right_keys, spec.right_unique, spec.right_upserts),
        )
        self._waiting: tuple[list[ChangelogBatch], list[ChangelogBatch]] = ([], [])
        self._rows = 0

    def add(self, side: int, batch: ChangelogBatch) -> bool:
        """Rows wait, without a track; whether the mini-batch is full."""
        if batch.num_rows:
            self._waiting[side].append(batch)
            self._rows += batch.num_rows
        return self._rows >= self._full

    def take(self) -> Iterator[tuple[int, ChangelogBatch]]:
        """Side and rows of all that waits, folded; from now on nothing does."""
        waiting, self._waiting, self._rows = self._waiting, ([], []), 0
        for side in self._order:
            for batch in _together(waiting[side]):
                found = self._folds[side].folded(batch)
                if found.num_rows:
                    yield side, found


def _together(batches: list[ChangelogBatch]) -> Iterator[ChangelogBatch]:
    """Batches of one side as one, which can be folded; large ones that take nothing back stay as they are: they need no
    copy, and the state keeps their columns."""
    if any(batch.kinds is not None for batch in batches):
        yield from concat_batches(batches)
        return
    small: list[ChangelogBatch] = []
    for batch in batches:
        if batch.num_rows >= LARGE_ROWS:
            yield from concat_batches(small)
            small = []
            yield batch
        else:
            small.append(batch)
    yield from concat_batches(small)


class _Fold:
    """What is left of the changes of one side: the first that takes something back and the last that puts it in.

    With a unique key, of each of its values within a join key; else of equal rows as many as there are more of one sort
    than of the other.
    """

    def __init__(self, schema: Schema, keys: tuple[int, ...], unique: tuple[int, ...] | None, upserts: bool) -> None:
        self._upserts = upserts
        self._unique = None if unique is None else tuple(sorted({*keys, *unique}))
        # Rows are told apart by an index, which keeps no nested values; rows without columns are all alike.
        self._folds = bool(schema) and not any(pa.types.is_nested(to_arrow(column.type)) for column in schema)

    def folded(self, batch: ChangelogBatch) -> ChangelogBatch:
        """A batch with fewer changes and the same sum."""
        if batch.kinds is None or not self._folds:
            return batch
        rows, _ = number_rows(list(batch.columns))
        if self._unique is None:
            return _net_of_equal_rows(batch, batch.kinds, rows)
        # Without a column of a key there is one row at most.
        keys = np.zeros(len(rows), np.int32)
        if self._unique:
            keys, _ = number_rows([batch.columns[column] for column in self._unique])
        return _net_of_keys(batch, batch.kinds, keys, rows, self._upserts)


def _net_of_equal_rows(batch: ChangelogBatch, kinds: Kinds, rows: Int32s) -> ChangelogBatch:
    goes = (kinds & 1).astype(np.bool_)
    net = np.bincount(rows, weights=np.where(goes, -1, 1)).astype(np.int64)[rows]
    # Of each sort: how many equal ones are behind an arrival, and before a departure.
    behind = _rank(rows[~goes][::-1])[::-1]
    before = _rank(rows[goes])
    kept = np.zeros(len(rows), np.bool_)
    kept[~goes] = behind < net[~goes]
    kept[goes] = before < -net[goes]
    if (kinds == RowKind.DELETE).any():
        # An update may have lost its other half.
        kinds = np.where(goes, np.uint8(RowKind.DELETE), np.uint8(RowKind.INSERT))
    return batch.with_kinds(kinds).filter(kept)


def _net_of_keys(batch: ChangelogBatch, kinds: Kinds, keys: Int32s, rows: Int32s, upserts: bool) -> ChangelogBatch:
    order = np.argsort(keys, kind="stable")
    starts = np.flatnonzero(np.diff(keys[order], prepend=-1))
    first, last = order[starts], order[np.append(starts[1:], len(keys)) - 1]
    took, put = (kinds[first] & 1).astype(np.bool_), ~(kinds[last] & 1).astype(np.bool_)
    new = kinds[first] == RowKind.INSERT
    both = took & put
    same = both & (rows[first] == rows[last])
    made = kinds.copy()
    # What came in this mini-batch is an insert; what went for good is a delete, of what stood there before.
    made[last[put & new]] = RowKind.INSERT
    made[first[took & ~put]] = RowKind.DELETE
    made[first[both]], made[last[both]] = RowKind.UPDATE_BEFORE, RowKind.UPDATE_AFTER
    kept = np.zeros(len(kinds), np.bool_)
    kept[first[took & ~same]] = True
    kept[last[put & ~same]] = True
    if upserts:
        # Only the last change knows that the row went. Elsewhere the key's first row is +U where another key was left
        # for it, or the mini-batch before ended with its -U: no row stands there.
        kept[last[~took & ~put & ~new]] = True
    return batch.with_kinds(made).filter(kept)


def _rank(values: Int32s) -> Int64s:
    """How many equal values stand before each."""
    order = np.argsort(values, kind="stable")
    starts = np.flatnonzero(np.diff(values[order], prepend=-1))
    sizes = np.diff(np.append(starts, len(values)))
    ranks = np.empty(len(values), np.int64)
    ranks[order] = np.arange(len(values)) - np.repeat(starts, sizes)
    return ranks
