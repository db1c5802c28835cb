"""The working memory of rankings, and what their kernel tells, piece by piece."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from flowsql_core.batch import LateColumns
from flowsql_runtime.kernels import ranked_rows as kernels
from flowsql_runtime.state.rankings import Places, Ranked, Telling
from flowsql_runtime.state.resident.growing import grow
from flowsql_runtime.state.resident.row_list import ResidentRowList
from flowsql_runtime.state.resident.told_rows import told_columns

Int8s = npt.NDArray[np.int8]
Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]

#: Changes that are told at once.
_PIECE: Final = 1 << 16


class Ranking:
    """Arrays that are zero, or -1, between two batches, so that none of them is cleared as a whole."""

    def __init__(self) -> None:
        #: By row: of the batch, -1; whose place it took; marks, which begin with one a row of the batch.
        self.origin = np.zeros(0, np.int32)
        self.placed = np.zeros(0, np.int32)
        self._replaces = np.zeros(0, np.int32)
        self._marks = np.zeros(0, np.int32)
        #: By slot.
        self._touches = np.zeros(0, np.int32)
        self._work = np.zeros(6, np.int64)
        self._noted = np.zeros(1024, np.int32)
        self._kinds = np.zeros(_PIECE, np.int8)
        self._told = np.zeros(_PIECE, np.int32)
        self._places = np.zeros(_PIECE, np.int64)

    def reserve(self, rows: int, slots: int, n: int) -> None:
        """Room for ids of rows, for slots, and for a batch."""
        before = len(self.origin)
        if rows > before:
            grow(self, "origin", rows)
            self.origin[before:] = -1
            grow(self, "_replaces", rows)
        if rows + n > len(self._marks):
            grow(self, "_marks", rows + n)
        if slots > len(self._touches):
            grow(self, "_touches", slots)
        if n > len(self.placed):
            self.placed = np.empty(n, np.int32)
        self.placed[:n] = -1

    def _room_to_tell(self, wanted: int) -> None:
        if wanted > len(self._kinds):
            self._kinds = np.zeros(wanted, np.int8)
            self._told = np.zeros(wanted, np.int32)
            self._places = np.zeros(wanted, np.int64)

    def told(
        self, keeping: int, places: Places, arrays: Sequence[Any], columns: Sequence[Any], rows: ResidentRowList
    ) -> Iterator[Ranked]:
        """What the rows of a batch change. ``arrays``: those of the kernel, from ``signs`` to ``roots``."""
        slots = arrays[1]
        n = len(slots)
        last = np.ascontiguousarray(places.last, np.int64)
        work, start = self._work, 0
        touched = np.empty(n, np.int32)
        lasts, noted_from = np.empty(n, np.int64), np.zeros(n + 1, np.int64)
        sums = np.zeros(n, np.int32)
        every, net = places.telling is Telling.EVERY, places.telling is Telling.NET
        while start < n:
            work[kernels.TOLD] = 0
            stop = kernels.rank(
                start, keeping, places.by_place, every, net, places.before, places.first, last, places.room, *arrays,
                self.origin, self.placed, self._replaces, sums, work, self._touches, touched, lasts, noted_from,
                self._noted, self._kinds, self._told, self._places,
            )  # fmt: skip
            if every and stop > start:
                yield self._piece(start, stop, sums[start:stop].copy(), columns, rows)
            if stop < n:
                self._make_room(stop, slots, last, every, rows)
            start = stop
        if not net:
            return
        count = int(work[kernels.TOUCHED])
        held = np.minimum(rows.counts(touched[:count]).astype(np.int64), lasts[:count])
        work[kernels.TOLD] = 0
        self._room_to_tell(2 * int(held.sum() + work[kernels.NOTED]))
        tree, roots = arrays[-2:]
        kernels.differences(
            places.by_place, places.before, places.first, touched, lasts, noted_from, self._noted, tree, roots,
            self.origin, self._replaces, self._marks, self._touches, work, self._kinds, self._told, self._places,
        )  # fmt: skip
        work[kernels.TOUCHED] = work[kernels.NOTED] = 0
        yield self._piece(0, n, np.zeros(0, np.int32), columns, rows)

    def _make_room(self, row: int, slots: Int32s, last: Int64s, every: bool, rows: ResidentRowList) -> None:
        """For what a row may change, or for the rows that have to be noted before it."""
        most = int(last[row] if len(last) > 1 else last[0])
        held = int(rows.counts(slots[row : row + 1])[0])
        if every:
            self._room_to_tell(2 * (min(most, held + 1) + 2))
        else:
            grow(self, "_noted", int(self._work[kernels.NOTED]) + min(most, held))

    def _piece(self, start: int, stop: int, sums: Int32s, columns: Sequence[Any], rows: ResidentRowList) -> Ranked:
        count, n = int(self._work[kernels.TOLD]), len(columns[0])
        found, used, stored = (np.empty(count, np.int32) for _ in range(3))
        both = kernels.refer(self._told, count, self.origin, self._marks, n, found, used, stored)
        users, keepers = both & 0xFFFFFFFF, both >> 32
        parts: Sequence[Any]
        if keepers:
            # Late columns are copied from where they come from, and only what changes tell of.
            parts = told_columns(LateColumns.of(columns, used[:users]), rows.store.rows_at(stored[:keepers]))
        else:
            parts, found = columns, used[:users][found]
        kinds = self._kinds[:count].view(np.uint8).copy()
        return Ranked(start, stop, kinds, self._places[:count].copy(), LateColumns.of(parts, found), sums)

    def freed(self, rows: ResidentRowList) -> tuple[Int32s, Int32s]:
        """Ids that were freed, and their slots."""
        count = int(self._work[kernels.FREED_COUNT])
        ids, slots = np.empty(count, np.int32), np.empty(count, np.int32)
        kernels.freed(rows.links, self._work, ids, slots)
        return ids, slots

    def settle(self, rows: ResidentRowList) -> None:
        """The batch is over: ids that were freed may be used again."""
        kernels.settle(rows.links, rows.meta, self._work)
