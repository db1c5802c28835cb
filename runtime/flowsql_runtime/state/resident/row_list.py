"""Slot -> rows in arrival order, with removal by equal row or by unique key. Joins, ordered values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flowsql_compute.keys import is_bytes_type, key_hash64
from flowsql_core.errors import InternalError
from flowsql_runtime.kernels import row_list as kernels
from flowsql_runtime.state.arrow_words import value_words
from flowsql_runtime.state.flat_rows import word_type
from flowsql_runtime.state.resident.column_store import ResidentColumnStore, flat, key_table_of, parent_slots
from flowsql_runtime.state.resident.frozen import Frozen, Moment, keep
from flowsql_runtime.state.resident.growing import grow
from flowsql_runtime.state.resident.key_index import KeyWords, ResidentKeyIndex
from flowsql_runtime.state.resident.row_walk import counts_of_slots, rows_of_slots
from flowsql_runtime.state.resident.slot_lists import TouchOrder
from flowsql_runtime.state.stores import StoredColumn

Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]
Int8s = npt.NDArray[np.int8]
Bools = npt.NDArray[np.bool_]

NO_SLOTS: Final = np.zeros(0, np.int32)


class _RowIds:
    """What a ``ColumnStore`` asks of an index, for ids that a row list gives out."""

    def __init__(self) -> None:
        self.meta = np.zeros(3, np.int64)
        self.links = np.full((0, 4), -1, np.int32)
        #: By row: partners on the other side of a join; empty where nobody counts them.
        self.associations = np.zeros(0, np.int32)
        self.watchers: tuple[Frozen, ...] = ()

    @property
    def high_water(self) -> int:
        return int(self.meta[kernels.NEXT_ROW])

    def live_slots(self) -> Int32s:
        return np.flatnonzero(self.links[: self.high_water, 3] >= 0).astype(np.int32)

    def freeze(self, moment: Moment) -> Frozen:
        """The links of this moment; see ``Freezable``."""
        # A list without rows has room for none, and nobody counts partners in many.
        counted = min(self.high_water, len(self.associations))
        rows = {"links": self.high_water, "associations": counted}
        return Frozen(self, rows=rows, values={"meta": self.meta.copy()})


class ResidentRowList:
    """Implements ``RowList``.

    Args:
        parent: gives the slots.
        types: Arrow types of the row's columns.
        removable: rows may be taken out by an equal row (the oldest equal one goes).
        unique: columns that identify a row within its slot: a new row overwrites, removal goes by these columns.
            () means one row a slot.
        counted: rows keep how many partners they have.
        stamped: rows keep the time at which they were put in.
    """

    def __init__(
        self,
        parent: ResidentKeyIndex,
        types: Sequence[Any],
        removable: bool = False,
        unique: Sequence[int] | None = None,
        stamped: bool = False,
        counted: bool = False,
    ) -> None:
        self.parent = parent
        self.types = tuple(types)
        self.unique = None if unique is None else tuple(unique)
        self._ids = _RowIds()
        stored = [StoredColumn(str(i), type_) for i, type_ in enumerate(self.types)]
        append_only = not removable and unique is None
        self.store = ResidentColumnStore(self._ids, stored, append_only)
        self._ends = np.zeros((0, 2), np.int32)
        self._order = TouchOrder() if stamped else None
        self._counted = counted
        self._identity: ResidentKeyIndex | None = None
        if self.unique is not None:
            self._identity = ResidentKeyIndex([self.types[i] for i in self.unique], namespaced=True)
        elif removable:
            self._identity = ResidentKeyIndex([pa.int64()], namespaced=True)
        self._chains = np.full((0, 2), -1, np.int32)
        self.watchers: tuple[Frozen, ...] = ()
        self._is_bytes = np.zeros(self.store.width, np.uint8)
        for word, type_ in zip(self.store.word_of, self.types, strict=True):
            self._is_bytes[word] = is_bytes_type(word_type(type_))

    def __len__(self) -> int:
        return int(self._ids.meta[kernels.LIVE])

    @property
    def nbytes(self) -> int:
        """Bytes allocated."""
        identity = 0 if self._identity is None else self._identity.nbytes + self._chains.nbytes
        stamps = 0 if self._order is None else self._order.nbytes
        return int(self.store.nbytes + self._ids.links.nbytes + self._ends.nbytes + identity + stamps)

    def append(self, slots: Int32s, columns: Sequence[Any], associations: Int32s | None = None) -> None:
        """Keep rows; slot -1 takes no part."""
        self.apply(np.ones(len(slots), np.int8), slots, columns, associations=associations)

    def apply(
        self,
        signs: Int8s,
        slots: Int32s,
        columns: Sequence[Any],
        stamp: int = 0,
        associations: Int32s | None = None,
    ) -> Int32s:
        """Put rows in and take equal ones out; see ``RowList``. Ids taken out may be in use again."""
        n, signs, slots = len(slots), np.ascontiguousarray(signs), np.ascontiguousarray(slots)
        words, entries = self.prepare(signs, slots, columns)
        out = np.empty(n, np.int32)
        kernels.apply(signs, slots, entries, self.unique is not None, words, *self.body(), out)
        self.forget_identities(signs, entries)
        if self._order is not None:
            self._stamp(signs, out, stamp)
        self.start_associations(signs, out, associations)
        return out

    def start_associations(self, signs: Int8s, rows: Int32s, associations: Int32s | None) -> None:
        """After rows were put in: how many partners they have."""
        if self._counted:
            came = (rows >= 0) & (signs > 0)
            self._ids.associations[rows[came]] = 0 if associations is None else associations[came]

    def associate(self, rows: Int32s, changes: Int32s, stamp: int | None = None) -> Int32s:
        """Count partners of rows up or down; see ``Rows``."""
        assert self._counted
        keep(self._ids, rows)
        if self._order is not None and stamp is not None:
            self._order.touch(rows, stamp)
        before = np.empty(len(rows), np.int32)
        kernels.associate(np.ascontiguousarray(rows), np.ascontiguousarray(changes), self._ids.associations, before)
        return before

    def associations(self, rows: Int32s) -> Int32s:
        """Partners of rows."""
        assert self._counted
        counts: Int32s = self._ids.associations[rows]
        return counts

    def _keep(self, signs: Int8s, slots: Int32s) -> None:
        """Before a change: a new row touches no row that is read back, but one that goes or is overwritten may touch
        any of its slot."""
        if self.watchers:
            self._keep_rows(slots if self.unique is not None else slots[signs < 0])
            keep(self, slots)

    def keep_slots(self, slots: Int32s) -> None:
        """Before any row of the slots may go."""
        if self.watchers:
            self._keep_rows(slots)
            keep(self, slots)

    def _keep_rows(self, slots: Int32s) -> None:
        rows = self.rows_of(np.unique(slots))[1]
        keep(self._ids, rows)
        keep(self.store, rows)

    def keep_slots_of(self, rows: Int32s) -> None:
        """Before live rows go: what a snapshot needs of their slots."""
        if self.watchers:
            slots = self._ids.links[rows, 3]
            self._keep_rows(slots)
            keep(self, slots)

    def freeze(self, moment: Moment) -> Frozen:
        """The rows of this moment; see ``Freezable``."""
        self.reserve(0)
        return Frozen(
            self,
            rows={"_ends": len(self._ends)},
            parts={
                "parent": moment.of(self.parent),
                "_ids": moment.of(self._ids),
                "store": moment.of(self.store),
                "_order": moment.maybe(self._order),
                "_identity": None,
            },
        )

    def prepare(
        self, signs: Int8s, slots: Int32s, columns: Sequence[Any], spare: int = 0
    ) -> tuple[npt.NDArray[np.int64], Int32s]:
        """Before a kernel changes rows: make room, keep what a snapshot needs, and give the rows' words and identities.

        ``spare``: ids that the kernel may use behind those of new rows.

        Raises:
            InternalError: a row is to be taken out of a list that is neither ``removable`` nor ``unique``.
        """
        if self._identity is None and (signs < 0).any():
            raise InternalError("a row is taken out of a list whose rows stay")
        self.store.compact()
        self.reserve(len(slots) + spare)
        self._keep(signs, slots)
        words = self.store.words_of(columns, len(slots))
        return words, NO_SLOTS if self._identity is None else self._entries(slots, columns)

    def body(self) -> tuple[Any, ...]:
        """The arrays that kernels of rows take, in their order."""
        ids = self._ids
        return (
            self._is_bytes, self.store.arena, self.store.rows, ids.links, self._ends, self._chains, ids.meta
        )  # fmt: skip

    @property
    def links(self) -> Int32s:
        """Links by id, as kernels of rows take them."""
        return self._ids.links

    @property
    def meta(self) -> Int64s:
        """Counters, as kernels of rows take them."""
        return self._ids.meta

    @property
    def capacity(self) -> int:
        """Rows that there is room for."""
        return len(self._ids.links)

    def alive(self, ids: Int32s) -> Bools:
        """Whether ids are those of rows."""
        living: Bools = self._ids.links[ids, 3] >= 0
        return living

    @property
    def next_row(self) -> int:
        """One more than the highest id ever given out."""
        return self._ids.high_water

    def _stamp(self, signs: Int8s, rows: Int32s, stamp: int) -> None:
        """Rows that live were put in now, if they were named with sign 1; an id may have been freed and used again."""
        assert self._order is not None
        alive = (rows >= 0) & (self._ids.links[rows, 3] >= 0)
        self._order.forget(rows[(rows >= 0) & ~alive])
        self._order.touch(rows[alive & (signs > 0)], stamp)

    def apply_latest(self, signs: Int8s, slots: Int32s, columns: Sequence[Any]) -> tuple[Int8s, Int32s]:
        """:meth:`apply` of rows that may be taken out, and how each changes the newest row of its slot.

        Returns:
            int8 (n,): the kind of change, -1 where the newest row stays. int32 (n,): -1 where it is the row itself that
            changes, else a row that is the newest again; gather those before the next call.
        """
        n, signs, slots = len(slots), np.ascontiguousarray(signs), np.ascontiguousarray(slots)
        # Rows past the used ones are free for copies.
        words, entries = self.prepare(signs, slots, columns, spare=n)
        kinds, shown = np.empty(n, np.int8), np.empty(n, np.int32)
        kernels.apply_latest(
            signs, slots, entries, self.unique is not None, words, *self.body(), self._ids.high_water + n, kinds, shown,
        )  # fmt: skip
        self.forget_identities(signs, entries)
        return kinds, shown

    def forget_identities(self, signs: Int8s, entries: Int32s) -> None:
        """After a kernel took rows out."""
        if self._identity is not None and (signs < 0).any():
            used = np.unique(entries[entries >= 0])
            self._identity.remove(used[self._chains[used, 0] < 0])

    def forget_freed(self, ids: Int32s, slots: Int32s) -> None:
        """After a kernel took rows out by their ids: the identities that they alone had, where a list is ``unique``."""
        assert self._identity is not None
        entries = self._identity.lookup(self._keys_of(slots, self.gather(ids)))
        entries = np.unique(entries[entries >= 0])
        first = self._chains[entries, 0]
        gone = entries[(first < 0) | (self._ids.links[first, 3] < 0)]
        self._chains[gone] = -1
        self._identity.remove(gone)

    def reserve(self, n: int) -> None:
        """Make room for so many more rows, and for all slots."""
        needed = self._ids.high_water + n
        if needed > len(self._ids.links):
            grow(self._ids, "links", needed)
            if self._counted:
                grow(self._ids, "associations", len(self._ids.links))
            self.store.reserve(len(self._ids.links))
        slots = self.parent.high_water
        if slots > len(self._ends):
            grow(self, "_ends", slots)

    def _entries(self, slots: Int32s, columns: Sequence[Any]) -> Int32s:
        assert self._identity is not None
        keys = self._keys_of(slots, columns)
        entries, fresh = self._identity.find_or_insert(keys, np.asarray(slots < 0).view(np.uint8))
        if self._identity.high_water > len(self._chains):
            chains = np.full((max(self._identity.high_water, 2 * len(self._chains)), 2), -1, np.int32)
            chains[: len(self._chains)] = self._chains
            self._chains = chains
        self._chains[entries[fresh]] = -1
        return entries

    def _keys_of(self, slots: Int32s, columns: Sequence[Any]) -> KeyWords:
        """What rows are known by within their slots."""
        assert self._identity is not None
        if self.unique is None:
            keys = [pa.array(key_hash64(columns).view(np.int64))]
        else:
            keys = [columns[i] for i in self.unique]
        return self._identity.encode(keys, slots.astype(np.int64))

    def rows_of(self, slots: Int32s) -> tuple[Int32s, Int32s]:
        """Pairs (position in ``slots``, row id), by position and arrival; slot -1 or an empty one has none."""
        return rows_of_slots(slots, self._ends, self._ids.links)

    def counts(self, slots: Int32s) -> Int32s:
        """Rows of each slot."""
        return counts_of_slots(slots, self._ends)

    def younger(self, rows: Int32s, stamp: int) -> Bools:
        """Whether each row was stamped after ``stamp``."""
        assert self._order is not None
        younger: Bools = self._order.stamps_at(rows) > stamp
        return younger

    def remove_older(self, stamp: int) -> Int32s:
        """Take out rows stamped at or before ``stamp``; returns their slots."""
        assert self._order is not None
        rows = self._order.older(stamp)
        slots: Int32s = self._ids.links[rows, 3].copy()
        # Of equal rows the oldest goes, so that never a younger one is hit.
        self.apply(np.full(len(rows), -1, np.int8), slots, self.gather(rows))
        return slots

    def gather(self, rows: Int32s) -> list[Any]:
        """Columns of rows as Arrow arrays."""
        return self.store.gather(rows)

    def row_bytes(self, rows: Int32s) -> Int64s:
        """Bytes of all variable-length values of each row, int64 (n,)."""
        return self.store.row_bytes(rows)

    def drop_slots(self, slots: Int32s) -> None:
        """Take out every row of the slots."""
        self.keep_slots(slots)
        if self._identity is not None or self._order is not None:
            probes, rows = self.rows_of(slots)
            if self._order is not None:
                self._order.forget(rows)
            if self._identity is not None and len(rows):
                keys = self._keys_of(slots[probes], self.gather(rows))
                self._identity.remove(np.unique(self._identity.lookup(keys)))
        kernels.drop_slots(np.ascontiguousarray(slots), self._ids.links, self._ends, self._ids.meta)

    def save(self) -> Any:
        """Parent keys and columns ``r0 ..`` of all rows, in arrival order within a slot."""
        owners = np.flatnonzero(self._ends[:, 1] > 0).astype(np.int32)
        probes, rows = self.rows_of(owners)
        names = [f"r{i}" for i in range(len(self.types))]
        columns = self.gather(rows)
        if self._order is not None:
            columns.append(pa.array(self._order.stamps_at(rows)))
            names.append("stamp")
        if self._counted:
            columns.append(pa.array(self.associations(rows)))
            names.append("associations")
        return key_table_of(self.parent, owners[probes], columns, names)

    def load(self, table: Any) -> None:
        """Append the rows of a saved table."""
        slots, columns = self.rows_of_table(table)
        partners = self.associations_of_table(table)
        rows = self.apply(np.ones(len(slots), np.int8), slots, columns, associations=partners)
        if self._order is not None:
            self._order.load(rows, value_words(flat(table.column("stamp"))).words[0])

    def associations_of_table(self, table: Any) -> Int32s | None:
        """Partners of the rows of a saved table, where they are counted."""
        if not self._counted:
            return None
        partners: Int32s = value_words(flat(table.column("associations"))).words[0].astype(np.int32)
        return partners

    def rows_of_table(self, table: Any) -> tuple[Int32s, list[Any]]:
        """Slots and columns of the rows of a saved table."""
        columns = [flat(table.column(f"r{i}")) for i in range(len(self.types))]
        return parent_slots(self.parent, table), columns
