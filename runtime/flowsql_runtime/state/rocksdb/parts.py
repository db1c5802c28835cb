"""The resident stores, able to let slots go and to take them back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flowsql_core.arrow import compute as pc
from flowsql_runtime.kernels import byte_arena
from flowsql_runtime.state.arrow_words import value_words
from flowsql_runtime.state.flat_rows import flat_columns, flat_types, whole_columns
from flowsql_runtime.state.resident.accumulators import ResidentAccumulators
from flowsql_runtime.state.resident.column_store import ResidentColumnStore
from flowsql_runtime.state.resident.extreme_values import ResidentExtremes
from flowsql_runtime.state.resident.key_index import ResidentKeyIndex
from flowsql_runtime.state.resident.map_store import ResidentMapStore
from flowsql_runtime.state.resident.row_fifo import ResidentRowFifo
from flowsql_runtime.state.resident.row_list import ResidentRowList
from flowsql_runtime.state.resident.slot_times import ResidentSlotTimes
from flowsql_runtime.state.resident.sorted_list import ResidentSortedList
from flowsql_runtime.state.resident.timers import ResidentTimers
from flowsql_runtime.state.rocksdb.cold_times import ColdTimes
from flowsql_runtime.state.rocksdb.packing import PackedRows, RowFormat, refs_of
from flowsql_runtime.state.stores import SortColumn, StoredColumn

Bytes = npt.NDArray[np.uint8]
Int8s = npt.NDArray[np.int8]
Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]


class _Formatted:
    """Rows by a ``RowFormat``."""

    part_name = ""
    cold_rows = 0
    time_word: int | None = None
    _format: RowFormat
    _labels: Sequence[str]

    @property
    def part_width(self) -> int:
        """Words of a row."""
        return self._format.width

    @property
    def part_refs(self) -> Bytes:
        """Which words are references."""
        return self._format.refs

    def shrink(self) -> None:
        """Nothing is left of what left."""

    def labelled(self, packed: PackedRows) -> tuple[list[str], list[Any]]:
        """Names and arrays of the columns that a snapshot has."""
        return list(self._labels), self._format.unpack(packed)


class _Columns(ResidentColumnStore):
    """One row a slot, as it stands."""

    part_name = ""
    cold_rows = 0
    time_word: int | None = None

    @property
    def part_width(self) -> int:
        """Words of a row."""
        return self.width

    @property
    def part_refs(self) -> Bytes:
        """Which words are references."""
        return refs_of(self)

    def take(self, slots: Int32s) -> PackedRows:
        """The rows of slots."""
        self.ensure()
        return PackedRows(np.arange(len(slots), dtype=np.int32), self.rows[slots], refs_of(self), self.arena)

    def put(self, slots: Int32s, packed: PackedRows) -> None:
        """Rows of slots."""
        self.ensure()
        self.compact()
        rows = packed.rows
        if len(self._byte_words):
            size = len(packed.arena)
            self._reserve_bytes(size)
            at = self._arena_used
            self.arena[at : at + size] = packed.arena
            self._arena_used += size
            for word in self._byte_words:
                column = rows[:, word]
                column[column != 0] += at << byte_arena.LENGTH_BITS
        for watcher in self.watchers:
            watcher.keep(slots)
        self.rows[slots] = rows

    def forget(self, slots: Int32s) -> None:
        """Make the rows as new."""
        self.clear(slots)

    def shrink(self) -> None:
        """Give back the bytes of rows that left."""
        self.compact_now()

    def labelled(self, packed: PackedRows) -> tuple[list[str], list[Any]]:
        """Names and arrays of the columns."""
        names = [f"v:{column.name}" for column in self.columns]
        return names, RowFormatOf(self).unpack(packed)


class RowFormatOf(RowFormat):
    """The format of a column store's own rows."""

    def __init__(self, store: ResidentColumnStore) -> None:
        super().__init__([])
        self.types = tuple(column.type for column in store.columns)
        self._columns = list(store.columns)

    def unpack(self, packed: PackedRows) -> list[Any]:
        """The Arrow columns; nested ones stand in one word each."""
        store = self._store()
        store.rows, store.arena = packed.rows, packed.arena
        return store.gather(np.arange(len(packed.rows), dtype=np.int32))


class ColumnPart(_Columns):
    """Columns by slot."""


class AccumulatorPart(_Columns, ResidentAccumulators):
    """Accumulators by slot."""


class MapPart(_Formatted, ResidentMapStore):
    """Entries by slot."""

    def __init__(self, parent: ResidentKeyIndex, key_types: Sequence[Any], columns: Sequence[StoredColumn]) -> None:
        ResidentMapStore.__init__(self, parent, key_types, columns)
        self._keys = len(key_types)
        self._format = RowFormat([*key_types, *(column.type for column in columns)])
        self._labels = [f"m{i}" for i in range(self._keys)] + [f"v:{column.name}" for column in columns]

    def take(self, slots: Int32s) -> PackedRows:
        """The entries of slots."""
        self.values.ensure()
        positions, entries = self.iterate_slot(slots)
        return self._format.pack(positions, [*self.keys_at(entries), *self.gather(entries)])

    def put(self, slots: Int32s, packed: PackedRows) -> None:
        """Entries of slots."""
        if len(slots):
            columns = self._format.unpack(packed)
            entries, _ = self.find_or_insert(slots, columns[: self._keys])
            self.values.scatter(entries, columns[self._keys :])

    def forget(self, slots: Int32s) -> None:
        """Drop the entries."""
        self.drop_slots(slots)

    def shrink(self) -> None:
        """Give back the bytes of what left."""
        self.values.compact_now()


class ExtremesPart(_Formatted, ResidentExtremes):
    """Multisets by slot."""

    _labels = ("value", "count")

    def __init__(self, parent: ResidentKeyIndex, type_: Any, largest_first: bool) -> None:
        ResidentExtremes.__init__(self, parent, type_, largest_first)
        self._format = RowFormat([type_, pa.int64()])

    def take(self, slots: Int32s) -> PackedRows:
        """Values and counts of slots."""
        self._sweep()
        self._reserve()
        positions, entries = self.entries.entries_of(slots)
        there = self._counts[entries] != 0
        positions, entries = positions[there], entries[there]
        return self._format.pack(positions, [self.values.gather(entries)[0], pa.array(self._counts[entries])])

    def put(self, slots: Int32s, packed: PackedRows) -> None:
        """Values and counts of slots."""
        if len(slots):
            self.restore_counts(slots, *self._format.unpack(packed))

    def forget(self, slots: Int32s) -> None:
        """Drop the values."""
        self.drop_slots(slots)

    def shrink(self) -> None:
        """Give back the bytes of what left."""
        self.values.compact_now()


class RowsPart(_Formatted, ResidentRowList):
    """Rows by slot, in order of arrival."""

    def __init__(
        self,
        parent: ResidentKeyIndex,
        types: Sequence[Any],
        removable: bool,
        unique: Sequence[int] | None,
        stamped: bool,
        counted: bool,
        times: ColdTimes | None,
    ) -> None:
        ResidentRowList.__init__(self, parent, types, removable, unique, stamped, counted)
        # Rows leave with their slots, also where nobody takes them out.
        self.store.append_only = False
        self._times = times
        more = [pa.int64()] * stamped + [pa.int32()] * counted
        self._format = RowFormat([*self.types, *more])
        self._labels = [f"r{i}" for i in range(len(self.types))] + ["stamp"] * stamped + ["associations"] * counted
        self.time_word = self._format.word_of(len(self.types)) if stamped else None

    def take(self, slots: Int32s) -> PackedRows:
        """The rows of slots."""
        positions, rows = self.rows_of(slots)
        columns = self.gather(rows)
        if self._order is not None:
            columns.append(pa.array(self._order.stamps_at(rows)))
        if self._counted:
            columns.append(pa.array(self.associations(rows)))
        return self._format.pack(positions, columns)

    def put(self, slots: Int32s, packed: PackedRows) -> None:
        """Rows of slots."""
        if not len(slots):
            return
        columns = self._format.unpack(packed)
        n = len(self.types)
        partners = value_words(columns[-1]).words[0].astype(np.int32) if self._counted else None
        rows = self.apply(np.ones(len(slots), np.int8), slots, columns[:n], associations=partners)
        if self._order is not None:
            self._order.load(rows, value_words(columns[n]).words[0])

    def forget(self, slots: Int32s) -> None:
        """Drop the rows."""
        self.drop_slots(slots)

    def shrink(self) -> None:
        """Give back the bytes of rows that left."""
        self.store.compact_now()

    def remove_older(self, stamp: int) -> Int32s:
        """Take out rows stamped at or before ``stamp``, also of slots outside memory."""
        if self._times is not None:
            self._times.bring(stamp)
        return super().remove_older(stamp)


class FifoPart(_Formatted, ResidentRowFifo):
    """Rows by slot, which leave in order of arrival."""

    def __init__(self, parent: ResidentKeyIndex, types: Sequence[Any]) -> None:
        ResidentRowFifo.__init__(self, parent, types)
        self._format = RowFormat(self.types)
        self._labels = [f"r{i}" for i in range(len(self.types))]

    def take(self, slots: Int32s) -> PackedRows:
        """The rows of slots."""
        positions, rows = self.rows_of(slots)
        return self._format.pack(positions, self.gather(rows))

    def put(self, slots: Int32s, packed: PackedRows) -> None:
        """Rows of slots."""
        if len(slots):
            self.append(slots, self._format.unpack(packed))

    def forget(self, slots: Int32s) -> None:
        """Drop the rows."""
        self.drop_slots(slots)

    def shrink(self) -> None:
        """Give back the bytes of rows that left."""
        self.store.compact_now()


class KeptPart(RowsPart):
    """Rows that stay, of any types: nested columns stand as flat ones."""

    def __init__(self, parent: ResidentKeyIndex, types: Sequence[Any], counted: bool) -> None:
        flat = [part for type_ in types for part in flat_types(type_)]
        super().__init__(parent, flat, False, None, False, counted, None)
        self.types = tuple(types)
        self._format = RowFormat([*types, *[pa.int32()] * counted])
        self._labels = [f"r{i}" for i in range(len(types))] + ["associations"] * counted

    def apply(
        self,
        signs: Int8s,
        slots: Int32s,
        columns: Sequence[Any],
        stamp: int = 0,
        associations: Int32s | None = None,
    ) -> Int32s:
        """Put rows in."""
        whole = [columns[index] for index in range(len(self.types))]
        typed = [
            array if array.type == type_ else pc.cast(array, type_)
            for array, type_ in zip(whole, self.types, strict=True)
        ]
        flat = [part for array in typed for part in flat_columns(array)]
        return super().apply(signs, slots, flat, associations=associations)

    def gather(self, rows: Int32s) -> list[Any]:
        """Columns of rows."""
        return whole_columns(self.types, super().gather(rows))


class SortedPart(_Formatted, ResidentSortedList):
    """Rows by slot, in sort order."""

    def __init__(
        self,
        parent: ResidentKeyIndex,
        types: Sequence[Any],
        order: Sequence[SortColumn],
        unique: Sequence[int] | None,
        numbered: bool = False,
        counted: bool = False,
        keeps_best: bool = False,
    ) -> None:
        ResidentSortedList.__init__(self, parent, types, order, unique, numbered, counted, keeps_best)
        self._counted = counted
        self._format = RowFormat([*types, *[pa.int32()] * counted])
        self._labels = [f"r{i}" for i in range(len(types))] + ["associations"] * counted

    def take(self, slots: Int32s) -> PackedRows:
        """The rows of slots, in order of arrival."""
        positions, rows = self.rows.rows_of(slots)
        columns = self.gather(rows)
        if self._counted:
            columns.append(pa.array(self.associations(rows)))
        return self._format.pack(positions, columns)

    def put(self, slots: Int32s, packed: PackedRows) -> None:
        """Rows of slots."""
        if len(slots):
            columns = self._format.unpack(packed)
            partners = value_words(columns.pop()).words[0].astype(np.int32) if self._counted else None
            self.apply(np.ones(len(slots), np.int8), slots, columns, partners)

    def forget(self, slots: Int32s) -> None:
        """Drop the rows."""
        self.drop_slots(slots)

    def shrink(self) -> None:
        """Give back the bytes of rows that left."""
        self.rows.store.compact_now()


class TimersPart(_Formatted, ResidentTimers):
    """Timers; of slots outside memory only the first time is known."""

    _labels = ("time",)
    time_word = 0

    def __init__(self, parent: ResidentKeyIndex, times: ColdTimes) -> None:
        ResidentTimers.__init__(self, parent)
        self._times = times
        self._format = RowFormat([pa.int64()])

    def __len__(self) -> int:
        return super().__len__() + self.cold_rows

    def earliest(self) -> int | None:
        """The time of the next timer."""
        found = [time for time in (super().earliest(), self._times.earliest()) if time is not None]
        return min(found, default=None)

    def due(self, until_ms: int) -> tuple[Int64s, Int32s]:
        """Take the timers at or before a time."""
        self._times.bring(until_ms)
        return super().due(until_ms)

    def _of(self, slots: Int32s) -> tuple[Int32s, Int64s]:
        """Position and time of each timer of slots, by position. Reads all timers in memory."""
        times, owners = self.all_pairs()
        place = np.full(self.parent.high_water, -1, np.int32)
        place[slots] = np.arange(len(slots), dtype=np.int32)
        positions = place[owners]
        mine = np.flatnonzero(positions >= 0)
        mine = mine[np.argsort(positions[mine], kind="stable")]
        return positions[mine], times[mine]

    def take(self, slots: Int32s) -> PackedRows:
        """The timers of slots."""
        positions, times = self._of(slots)
        return self._format.pack(positions, [pa.array(times)])

    def put(self, slots: Int32s, packed: PackedRows) -> None:
        """Timers of slots."""
        self.cold_rows -= len(slots)
        self.register(value_words(self._format.unpack(packed)[0]).words[0], slots)

    def forget(self, slots: Int32s) -> None:
        """Drop the timers."""
        positions, times = self._of(slots)
        self.cold_rows += len(times)
        self.delete(times, slots[positions])


class SlotTimesPart(_Formatted, ResidentSlotTimes):
    """Times of last writes."""

    _labels = ("at",)
    time_word = 0

    def __init__(self, index: ResidentKeyIndex, times: ColdTimes) -> None:
        ResidentSlotTimes.__init__(self, index)
        self._times = times
        self._format = RowFormat([pa.int64()])

    def expired(self, until_ms: int) -> Int32s:
        """Take out the slots that were written to last at or before a time."""
        self._times.bring(until_ms)
        return super().expired(until_ms)

    def _of(self, slots: Int32s) -> tuple[Int32s, Int64s]:
        return self._order.known(slots)

    def take(self, slots: Int32s) -> PackedRows:
        """The times of slots."""
        positions, times = self._of(slots)
        return self._format.pack(positions, [pa.array(times)])

    def put(self, slots: Int32s, packed: PackedRows) -> None:
        """Times of slots."""
        if len(slots):
            self._order.load(slots, value_words(self._format.unpack(packed)[0]).words[0])

    def forget(self, slots: Int32s) -> None:
        """Drop the times."""
        self.drop_slots(slots)
