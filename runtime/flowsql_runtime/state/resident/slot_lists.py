"""Lists of ids by group, and ids in the order in which they were touched: what makes freeing cost what is freed."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from flowsql_runtime.kernels import slot_lists as kernels
from flowsql_runtime.state.resident.frozen import Frozen, Moment, keep
from flowsql_runtime.state.resident.growing import grow
from flowsql_runtime.state.resident.row_walk import counts_of_slots, rows_of_slots

Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]

#: How many ids are asked for at first when nobody knows how many are due.
_FIRST_PIECE: Final = 1024


class SlotLists:
    """Members (ids below some number) in lists of groups (likewise), each in the order in which it was put in."""

    def __init__(self) -> None:
        self._links = np.zeros((0, 2), np.int32)
        self._ends = np.zeros((0, 2), np.int32)

    @property
    def nbytes(self) -> int:
        """Bytes allocated."""
        return int(self._links.nbytes + self._ends.nbytes)

    def add(self, members: Int32s, groups: Int32s) -> None:
        """Members that are in no list become the newest of their groups."""
        if not len(members):
            return
        most, last = int(members.max()), int(groups.max())
        if most >= len(self._links):
            grow(self, "_links", most + 1)
        if last >= len(self._ends):
            grow(self, "_ends", last + 1)
        kernels.link(np.ascontiguousarray(members), np.ascontiguousarray(groups), self._links, self._ends)

    def remove(self, members: Int32s, groups: Int32s) -> None:
        """Members leave their groups."""
        if len(members):
            kernels.unlink(np.ascontiguousarray(members), np.ascontiguousarray(groups), self._links, self._ends)

    def members_of(self, groups: Int32s) -> tuple[Int32s, Int32s]:
        """Pairs (position in ``groups``, member), by position and age."""
        return rows_of_slots(groups, self._ends, self._links)

    def counts(self, groups: Int32s) -> Int32s:
        """Members of each group."""
        return counts_of_slots(groups, self._ends)


class TouchOrder:
    """Ids by the time of their last touch. Times never fall."""

    def __init__(self) -> None:
        self._links = np.zeros((0, 2), np.int32)
        self._ends = np.zeros((1, 2), np.int32)
        self._oldest = np.full(1, -1, np.int32)
        self._stamps = np.zeros(0, np.int64)
        self.watchers: tuple[Frozen, ...] = ()

    @property
    def nbytes(self) -> int:
        """Bytes allocated."""
        return int(self._links.nbytes + self._stamps.nbytes)

    def touch(self, ids: Int32s, now: int) -> None:
        """Ids are the youngest now; -1 takes no part."""
        if not len(ids):
            return
        # The clock may step back; the order must not.
        newest = int(self._ends[0, 0]) if self._ends[0, 1] else -1
        if newest >= 0:
            now = max(now, int(self._stamps[newest]))
        self._touch(np.ascontiguousarray(ids), np.full(len(ids), now, np.int64))

    def load(self, ids: Int32s, stamps: Int64s) -> None:
        """Restored ids with the times of their last touch, whatever stands there. Costs what is older than they are."""
        if len(ids):
            self.forget(ids)
            order = np.argsort(stamps, kind="stable")
            ids = np.ascontiguousarray(ids[order])
            self._reserve(ids)
            kernels.put_back(ids, stamps[order], self._stamps, self._links, self._ends, self._oldest)

    def _touch(self, ids: Int32s, times: Int64s) -> None:
        self._reserve(ids)
        kernels.touch(ids, times, self._stamps, self._links, self._ends, self._oldest)

    def _reserve(self, ids: Int32s) -> None:
        """Room for ids that are about to be written."""
        most = int(ids.max())
        if most >= len(self._links):
            grow(self, "_links", most + 1)
            before = len(self._stamps)
            grow(self, "_stamps", len(self._links))
            self._stamps[before:] = kernels.ABSENT
        keep(self, ids)

    def forget(self, ids: Int32s) -> None:
        """Take ids out; unknown ones are ignored."""
        ids = np.ascontiguousarray(ids[ids < len(self._stamps)])
        if len(ids):
            keep(self, ids)
            kernels.forget(ids, self._stamps, self._links, self._ends, self._oldest)

    def older(self, until: int) -> Int32s:
        """The ids touched last at or before a time, the oldest first."""
        room = _FIRST_PIECE
        while True:
            found = np.empty(room, np.int32)
            count = kernels.count_until(until, self._stamps, self._links, self._oldest, found)
            if count < room:
                return found[:count].copy()
            room *= 4

    def freeze(self, moment: Moment) -> Frozen:
        """The times of this moment; see ``Freezable``."""
        return Frozen(self, rows={"_stamps": len(self._stamps)})

    def stamps_at(self, ids: Int32s) -> Int64s:
        """When ids that are in it were touched."""
        stamps: Int64s = self._stamps[ids]
        return stamps

    def known(self, ids: Int32s) -> tuple[Int32s, Int64s]:
        """Positions in ``ids`` of those that are in it, and when they were touched."""
        there = ids < len(self._stamps)
        stamps = np.full(len(ids), kernels.ABSENT, np.int64)
        stamps[there] = self._stamps[ids[there]]
        positions = np.flatnonzero(stamps != kernels.ABSENT).astype(np.int32)
        return positions, stamps[positions]

    def ids(self) -> Int32s:
        """All ids, rising."""
        return np.flatnonzero(self._stamps != kernels.ABSENT).astype(np.int32)
