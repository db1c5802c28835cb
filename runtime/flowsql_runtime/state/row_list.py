"""``RowList``: slot -> rows in arrival order, with removal by equal row or by unique key. Joins, ordered values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flowsql_compute.keys import is_bytes_type, key_hash64
from flowsql_runtime.kernels import row_list as kernels
from flowsql_runtime.state.arrow_words import value_words
from flowsql_runtime.state.column_store import ColumnStore, StoredColumn, flat, key_table_of
from flowsql_runtime.state.growing import grow
from flowsql_runtime.state.key_index import KeyIndex
from flowsql_runtime.state.map_store import parent_slots

Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]
Int8s = npt.NDArray[np.int8]

NO_SLOTS: Final = np.zeros(0, np.int32)


def rows_of_slots(slots: Int32s, ends: npt.NDArray[np.int32], links: npt.NDArray[np.int32]) -> tuple[Int32s, Int32s]:
    """Pairs (position in ``slots``, row id), by position and arrival; slot -1 or an empty one has none."""
    known = (slots >= 0) & (slots < len(ends))
    counts = np.where(known, ends[np.where(known, slots, 0), 1], 0) if len(ends) else 0 * slots
    starts = np.zeros(len(slots) + 1, np.int64)
    np.cumsum(counts, out=starts[1:])
    probes = np.empty(int(starts[-1]), np.int32)
    found = np.empty(len(probes), np.int32)
    if len(probes):
        kernels.expand(slots, starts, links, ends, probes, found)
    return probes, found


def counts_of_slots(slots: Int32s, ends: npt.NDArray[np.int32]) -> Int32s:
    """Rows of each slot."""
    if not len(ends):
        return np.zeros(len(slots), np.int32)
    result: Int32s = np.where(slots < len(ends), ends[np.minimum(slots, len(ends) - 1), 1], 0)
    return result


class _RowIds:
    """What a ``ColumnStore`` asks of an index, for ids that a row list gives out."""

    def __init__(self) -> None:
        self.meta = np.zeros(3, np.int64)
        self.links = np.full((0, 4), -1, np.int32)

    @property
    def high_water(self) -> int:
        return int(self.meta[kernels.NEXT_ROW])

    def live_slots(self) -> Int32s:
        return np.flatnonzero(self.links[: self.high_water, 3] >= 0).astype(np.int32)


class RowList:
    """Rows of slots.

    Args:
        parent: gives the slots.
        types: Arrow types of the row's columns.
        removable: rows may be taken out by an equal row (the oldest equal one goes).
        unique: columns that identify a row within its slot: a new row overwrites, removal goes by these columns.
            () means one row a slot.
        stamped: ``stamps`` (int64 by row id) keeps a time that the owner writes after ``apply``.
    """

    def __init__(
        self,
        parent: KeyIndex,
        types: Sequence[Any],
        removable: bool = False,
        unique: Sequence[int] | None = None,
        stamped: bool = False,
    ) -> None:
        self.parent = parent
        self.types = tuple(types)
        self.unique = None if unique is None else tuple(unique)
        self._ids = _RowIds()
        stored = [StoredColumn(str(i), type_) for i, type_ in enumerate(self.types)]
        self._append_only = not removable and unique is None
        self.store = ColumnStore(self._ids, stored, self._append_only)
        self._ends = np.zeros((0, 2), np.int32)
        self._stamped = stamped
        self.stamps = np.zeros(0, np.int64)
        self._identity: KeyIndex | None = None
        if self.unique is not None:
            self._identity = KeyIndex([self.types[i] for i in self.unique], namespaced=True)
        elif removable:
            self._identity = KeyIndex([pa.int64()], namespaced=True)
        self._chains = np.full((0, 2), -1, np.int32)
        self._is_bytes = np.zeros(self.store.width, np.uint8)
        for word, type_ in zip(self.store.word_of, self.types, strict=True):
            self._is_bytes[word] = is_bytes_type(type_)

    def __len__(self) -> int:
        return int(self._ids.meta[kernels.LIVE])

    @property
    def nbytes(self) -> int:
        """Bytes allocated."""
        identity = 0 if self._identity is None else self._identity.nbytes + self._chains.nbytes
        return int(self.store.nbytes + self._ids.links.nbytes + self._ends.nbytes + identity)

    def apply(self, signs: Int8s, slots: Int32s, columns: Sequence[Any]) -> Int32s:
        """Put rows in (sign 1) and take equal ones out (sign -1), in order; slot -1 takes no part.

        Returns:
            int32 (n,): the row put in or taken out; -1 where there was none. Ids taken out may be in use again.
        """
        self.store.compact()
        n = len(slots)
        self._reserve(n)
        words = self.store.words_of(columns, n)
        entries = NO_SLOTS
        if self._identity is not None:
            entries = self._entries(slots, columns)
        out = np.empty(n, np.int32)
        kernels.apply(
            signs, slots, entries, self.unique is not None, words, self._is_bytes, self.store.arena, self.store.rows,
            self._ids.links, self._ends, self._chains, self._ids.meta, out,
        )  # fmt: skip
        self._forget_identities(signs, entries)
        return out

    def apply_latest(self, signs: Int8s, slots: Int32s, columns: Sequence[Any]) -> tuple[Int8s, Int32s]:
        """:meth:`apply` of rows that may be taken out, and how each changes the newest row of its slot.

        Returns:
            int8 (n,): the kind of change, -1 where the newest row stays. int32 (n,): -1 where it is the row itself that
            changes, else a row that is the newest again; gather those before the next call.
        """
        self.store.compact()
        n = len(slots)
        # Rows past the used ones are free for copies.
        self._reserve(2 * n)
        words = self.store.words_of(columns, n)
        entries = self._entries(slots, columns)
        kinds, shown = np.empty(n, np.int8), np.empty(n, np.int32)
        kernels.apply_latest(
            signs, slots, entries, self.unique is not None, words, self._is_bytes, self.store.arena, self.store.rows,
            self._ids.links, self._ends, self._chains, self._ids.meta, self._ids.high_water + n, kinds, shown,
        )  # fmt: skip
        self._forget_identities(signs, entries)
        return kinds, shown

    def _forget_identities(self, signs: Int8s, entries: Int32s) -> None:
        if self._identity is not None and (signs < 0).any():
            used = np.unique(entries[entries >= 0])
            self._identity.remove(used[self._chains[used, 0] < 0])

    def newest(self, slots: Int32s) -> Int32s:
        """The newest row of each slot that has one."""
        rows: Int32s = self._ends[slots, 0]
        return rows

    def _reserve(self, n: int) -> None:
        needed = self._ids.high_water + n
        if needed > len(self._ids.links):
            grow(self._ids, "links", needed)
            size = len(self._ids.links)
            self.store.reserve(size)
            if self._stamped:
                stamps = np.zeros(size, np.int64)
                stamps[: len(self.stamps)] = self.stamps
                self.stamps = stamps
        slots = self.parent.high_water
        if slots > len(self._ends):
            grow(self, "_ends", slots)

    def _entries(self, slots: Int32s, columns: Sequence[Any]) -> Int32s:
        assert self._identity is not None
        if self.unique is None:
            keys = [pa.array(key_hash64(columns).view(np.int64))]
        else:
            keys = [columns[i] for i in self.unique]
        encoded = self._identity.encode(keys, slots.astype(np.int64))
        entries, fresh = self._identity.find_or_insert(encoded, np.asarray(slots < 0).view(np.uint8))
        if self._identity.high_water > len(self._chains):
            chains = np.full((max(self._identity.high_water, 2 * len(self._chains)), 2), -1, np.int32)
            chains[: len(self._chains)] = self._chains
            self._chains = chains
        self._chains[entries[fresh]] = -1
        return entries

    def rows_of(self, slots: Int32s) -> tuple[Int32s, Int32s]:
        """Pairs (position in ``slots``, row id), by position and arrival; slot -1 or an empty one has none."""
        return rows_of_slots(slots, self._ends, self._ids.links)

    def counts(self, slots: Int32s) -> Int32s:
        """Rows of each slot."""
        return counts_of_slots(slots, self._ends)

    def remove_older(self, stamp: int) -> Int32s:
        """Take out rows stamped at or before ``stamp``; returns their slots. Needs ``stamped`` and removable rows."""
        live = self._ids.live_slots()
        rows = live[self.stamps[live] <= stamp]
        slots: Int32s = self._ids.links[rows, 3].copy()
        # Of equal rows the oldest goes, so that never a younger one is hit.
        self.apply(np.full(len(rows), -1, np.int8), slots, self.gather(rows))
        return slots

    def gather(self, rows: Int32s) -> list[Any]:
        """Columns of rows as Arrow arrays."""
        return self.store.gather(rows)

    def drop_slots(self, slots: Int32s) -> None:
        """Take out every row of the slots."""
        if self._identity is not None:
            live = self._identity.live_slots()
            gone = live[np.isin(self._identity.namespaces_at(live), slots)]
            self._identity.remove(gone)
        kernels.drop_slots(slots, self._ids.links, self._ends, self._ids.meta)

    def save(self) -> Any:
        """Parent keys and columns ``r0 ..`` of all rows, in arrival order within a slot."""
        owners = np.flatnonzero(self._ends[:, 1] > 0).astype(np.int32)
        probes, rows = self.rows_of(owners)
        names = [f"r{i}" for i in range(len(self.types))]
        columns = self.gather(rows)
        if self._stamped:
            columns.append(pa.array(self.stamps[rows]))
            names.append("stamp")
        return key_table_of(self.parent, owners[probes], columns, names)

    def load(self, table: Any) -> None:
        """Append the rows of a saved table."""
        slots = parent_slots(self.parent, table)
        columns = [flat(table.column(f"r{i}")) for i in range(len(self.types))]
        rows = self.apply(np.ones(len(slots), np.int8), slots, columns)
        if self._stamped:
            self.stamps[rows] = value_words(flat(table.column("stamp"))).words[0]
