"""``rocksdb``: keyed state whose cold part is in RocksDB."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Protocol, TypeVar

import pyarrow as pa

from flowsql_runtime.state.backend import KeyedSnapshot, Saved
from flowsql_runtime.state.hashmap import HashMapBackend
from flowsql_runtime.state.native import KnownFile, NativeSource
from flowsql_runtime.state.object_store import ObjectStore
from flowsql_runtime.state.resident.frozen import Moment
from flowsql_runtime.state.resident.key_index import ResidentKeyIndex
from flowsql_runtime.state.resident.row_queue import ResidentRowQueue
from flowsql_runtime.state.rocksdb import parts
from flowsql_runtime.state.rocksdb.cold_entries import ColdEntries, cold_object_tables, forget_objects
from flowsql_runtime.state.rocksdb.cold_index import ColdKeyIndex, ColdWindowIndex
from flowsql_runtime.state.rocksdb.cold_times import ColdTimes
from flowsql_runtime.state.rocksdb.database import Database, Present, Reader
from flowsql_runtime.state.rocksdb.local_files import LocalFiles
from flowsql_runtime.state.rocksdb.native_snapshot import (
    BACKEND,
    Layout,
    NativeSnapshot,
    ObjectsLayout,
    StaleKeys,
    bucket_columns,
    open_restored,
)
from flowsql_runtime.state.rocksdb.packing import Part
from flowsql_runtime.state.rocksdb.settings import SWEEP_PIECE, RocksDBSettings
from flowsql_runtime.state.rocksdb.store_calls import recorded
from flowsql_runtime.state.stores import KeyIndex, SortColumn, StoredColumn

#: Rows of a saved table that are put in before what is cold may leave again.
_PIECE: Final = 65_536
#: Rows ahead whose keys are brought back together: reading then costs less than what is done with the rows.
_MOST_AHEAD: Final = 262_144

P = TypeVar("P", bound="_SavedPart")
IndexT = TypeVar("IndexT", ColdKeyIndex, ColdWindowIndex)


class _SavedPart(Saved, Part, Protocol):
    """A store that is saved under a name and can leave memory."""


class RocksDBBackend(HashMapBackend):
    """Implements ``KeyedStateBackend``: the bodies of ``hashmap`` hold what was used lately, RocksDB the rest.

    A key leaves and comes back with all that the stores of its index keep of it.
    """

    def __init__(self, settings: RocksDBSettings, max_parallelism: int = 128, key_groups: range | None = None) -> None:
        super().__init__(max_parallelism, key_groups, settings.folders)
        self._settings = settings
        self._database = Database(settings, lambda: LocalFiles(settings.folders))
        self._cold_indexes: list[ColdKeyIndex | ColdWindowIndex] = []
        self._entries: dict[str, ColdEntries] = {}
        self._numbers = 0
        #: How the stores were made; see ``store_calls.py``.
        self.calls: list[list[Any]] = []
        #: A snapshot whose files become the database's, if the stores are made as its own were; and its layout.
        self._taking_over: tuple[NativeSource, Layout] | None = None
        #: Objects in the database that nobody asked for yet, by name.
        self._unasked: dict[str, ObjectsLayout] = {}
        #: Files that the database began with.
        self._restored_files: Mapping[str, KnownFile] = {}
        #: Allocated bytes from which slots leave, and how many slots stay then; None before the first time.
        self._ceiling = settings.resident_bytes
        self._most: int | None = None

    @property
    def database(self) -> Database:
        """Where state goes that leaves memory."""
        return self._database

    def close(self) -> None:
        """The operator is over: local files go."""
        self._database.close()

    # -- making stores

    @recorded
    def key_index(self, types: Sequence[Any]) -> ColdKeyIndex:
        """A new index."""
        return self._cold(ColdKeyIndex(types, self._index_number(), self._database))

    @recorded
    def window_index(self, types: Sequence[Any]) -> ColdWindowIndex:
        """A new index whose keys have a namespace."""
        return self._cold(ColdWindowIndex(types, self._index_number(), self._database))

    def indexes(self) -> Sequence[ColdKeyIndex | ColdWindowIndex]:
        """All indexes, in the order in which they were made."""
        return self._cold_indexes

    def _number(self) -> int:
        self._numbers += 1
        return self._numbers

    def _index_number(self) -> int:
        """The number that the index had in the files that are taken over, else a new one."""
        place = len(self._cold_indexes)
        known = () if self._taking_over is None else self._taking_over[1].numbers
        return known[place] if place < len(known) else self._number()

    def _cold(self, index: IndexT) -> IndexT:
        self._indexed(index)
        self._cold_indexes.append(index)
        return index

    @recorded
    def column_store(self, name: str, index: KeyIndex, columns: Sequence[StoredColumn]) -> parts.ColumnPart:
        """Columns by slot."""
        return self._joined(name, parts.ColumnPart(_cold(index), columns), index)

    @recorded
    def accumulators(self, name: str, index: KeyIndex, columns: Sequence[StoredColumn]) -> parts.AccumulatorPart:
        """Accumulators by slot."""
        return self._joined(name, parts.AccumulatorPart(_cold(index), columns), index)

    @recorded
    def map_store(
        self, name: str, parent: KeyIndex, key_types: Sequence[Any], columns: Sequence[StoredColumn]
    ) -> parts.MapPart:
        """(slot, key) -> columns."""
        return self._joined(name, parts.MapPart(_cold(parent), key_types, columns), parent)

    @recorded
    def row_list(
        self,
        name: str,
        parent: KeyIndex,
        types: Sequence[Any],
        *,
        removable: bool = False,
        unique: Sequence[int] | None = None,
        stamped: bool = False,
        counted: bool = False,
    ) -> parts.RowsPart:
        """Slot -> rows that may be taken out."""
        index = _cold(parent)
        times = index.region.times() if stamped else None
        made = parts.RowsPart(index, types, removable, unique, stamped, counted, times)
        return self._joined(name, made, parent, times)

    @recorded
    def row_fifo(self, name: str, parent: KeyIndex, types: Sequence[Any]) -> parts.FifoPart:
        """Slot -> rows that leave in their order."""
        return self._joined(name, parts.FifoPart(_cold(parent), types), parent)

    @recorded
    def kept_rows(
        self, name: str, parent: KeyIndex, types: Sequence[Any], sharers: int = 1, counted: bool = False
    ) -> parts.KeptPart:
        """Slot -> rows that stay. Batches are not shared: their rows leave one key at a time."""
        return self._joined(name, parts.KeptPart(_cold(parent), types, counted), parent)

    @recorded
    def sorted_list(
        self,
        name: str,
        parent: KeyIndex,
        types: Sequence[Any],
        order: Sequence[SortColumn],
        unique: Sequence[int] | None = None,
        *,
        numbered: bool = False,
        counted: bool = False,
        keeps_best: bool = False,
    ) -> parts.SortedPart:
        """Slot -> rows in sort order."""
        made = parts.SortedPart(_cold(parent), types, order, unique, numbered, counted, keeps_best)
        return self._joined(name, made, parent)

    @recorded
    def row_queue(self, name: str, parent: KeyIndex, types: Sequence[Any]) -> ResidentRowQueue:
        """Rows of all slots in one order: they stay in memory, and so do their slots."""
        made = ResidentRowQueue(_cold(parent), types)
        _cold(parent).region.queues.append(made)
        return self._named(name, made, parent)

    @recorded
    def extreme_values(self, name: str, parent: KeyIndex, type_: Any, largest_first: bool) -> parts.ExtremesPart:
        """Slot -> multiset of values."""
        return self._joined(name, parts.ExtremesPart(_cold(parent), type_, largest_first), parent)

    @recorded
    def timers(self, name: str, index: KeyIndex) -> parts.TimersPart:
        """Times that slots wait for."""
        times = _cold(index).region.times()
        return self._joined(name, parts.TimersPart(_cold(index), times), index, times)

    @recorded
    def slot_times(self, name: str, index: KeyIndex) -> parts.SlotTimesPart:
        """When each slot was written to last."""
        times = _cold(index).region.times()
        return self._joined(name, parts.SlotTimesPart(_cold(index), times), index, times)

    def _joined(self, name: str, store: P, index: KeyIndex, times: ColdTimes | None = None) -> P:
        store.part_name = name
        _cold(index).region.join(store, times)
        return self._named(name, store, index)

    def register_objects(self, name: str, store: Saved) -> None:
        """Save and restore a store of Python objects; entries of an ``ObjectStore`` leave memory, timers do not."""
        if isinstance(store, ObjectStore):
            known = self._unasked.get(name)
            number = self._number() if known is None else known.number
            store.entries = ColdEntries(store, number, self._database, self._settings.get(SWEEP_PIECE))
            self._entries[name] = store.entries
            if store.expiry is not None and store.expiry.piece is not None:
                self._database.compact_files_older_than(store.expiry.compaction_ms)
            if self._taking_over is None:
                self._asked_for(name, store)
        super().register_objects(name, store)

    def _asked_for(self, name: str, store: ObjectStore) -> None:
        """A store of objects is there for those that the database has."""
        known = self._unasked.pop(name, None)
        if known is None or not known.left:
            return
        entries = self._entries[name]
        if entries.expires == known.expires:
            entries.taken_over()
            return
        # They stand there in another way: as if they had come in tables.
        tables = list(cold_object_tables(self._database, known.number, known.namespaced, self.max_parallelism))
        forget_objects(self._database, known.number)
        for table in tables:
            store.load(table)

    # -- what leaves

    @property
    def rows_ahead(self) -> int:
        """As many as memory takes beside what is used most, once keys are outside it."""
        if self._most is None or not any(index.region.cold for index in self._cold_indexes):
            return 0
        return min(_MOST_AHEAD, self._most // 4)

    def settle(self) -> None:
        """What is cold leaves, once memory is full."""
        for index in self._cold_indexes:
            index.region.tick()
        for entries in self._entries.values():
            entries.sweep()
            most = self._settings.resident_bytes // (entries.entry_bytes * len(self._entries))
            if len(entries) > most:
                entries.evict(most // 2)
        if not self._cold_indexes:
            return
        live = sum(index.in_memory() for index in self._cold_indexes)
        if not live:
            return
        used = sum(index.nbytes for index in self._indexes) + sum(
            store.nbytes for name, (store, _) in self._stores.items() if name not in self._objects
        )
        if used > self._ceiling:
            # Arrays do not shrink, but what leaves makes room in them: from now on they must not grow.
            self._ceiling = max(self._ceiling, used)
            self._most = live * 3 // 4 if self._settings.resident_bytes else 0
        if self._most is not None and live > self._most:
            keep = self._most // 2
            for index in self._cold_indexes:
                index.region.evict(index.in_memory() * keep // live)

    def _load(self, store: Saved, table: Any) -> None:
        for start in range(0, table.num_rows, _PIECE):
            store.load(table.slice(start, _PIECE))
            # Before the database is taken over nothing may leave; it all was in memory when the snapshot was taken.
            if self._taking_over is None:
                self.settle()

    # -- snapshots

    def snapshot(self) -> dict[str, Any]:
        """Per name a table with ``__key_group`` first."""
        self._write_gone()
        return _together(super().snapshot(), self.cold_tables())

    def snapshot_async(self, native: bool = False) -> KeyedSnapshot:
        """What is in memory is frozen; RocksDB is read as it is now, or its files are linked."""
        self._write_gone()
        if native and self._settings.incremental:
            files = self._database.checkpoint()
            if files is not None:
                try:
                    return self._native_snapshot(files)
                except BaseException:
                    files[1]()
                    raise
        unasked = list(self._unasked_tables())
        moment = Moment()
        frozen = {number: moment.of(index) for number, index in enumerate(self._cold_indexes) if index.region.cold}
        present = self._database.present(self._cold_indexes[number].region.prefix for number in frozen)
        return _RocksDBSnapshot(self, super().snapshot_async(), moment, frozen, present, unasked)

    def _write_gone(self) -> None:
        for index in self._cold_indexes:
            index.region.write_gone()

    def _native_snapshot(self, files: tuple[Path, Callable[[], None]]) -> NativeSnapshot:
        with contextlib.ExitStack() as stack:
            for entries in self._entries.values():
                stack.enter_context(entries.in_memory_alone())
            resident = super().snapshot_async()
        objects = [
            ObjectsLayout(name, entries.number, entries.namespaced, entries.left, entries.expires)
            for name, entries in self._entries.items()
        ]
        layout = Layout(
            self.max_parallelism,
            list(self.calls),
            tuple(index.region.number for index in self._cold_indexes),
            tuple(index.region.counters() for index in self._cold_indexes),
            (*objects, *self._unasked.values()),
        )
        regions = [index.region for index in self._cold_indexes]
        return NativeSnapshot(
            resident,
            files,
            self._database.identity,
            self.key_groups,
            layout,
            bucket_columns(regions),
            [StaleKeys(index, index.region.stale_slots(), index.region.packed) for index in self._cold_indexes],
            [key for entries in self._entries.values() for key in entries.stale_keys()],
            self._restored_files,
            self._settings.transfer_threads,
        )

    def restore(
        self, tables: Mapping[str, Any], key_groups: range | None = None, native: Sequence[NativeSource] = ()
    ) -> None:
        """Take over saved tables, and files: as they are where they are of the same key groups and stores."""
        super().restore(tables, key_groups, native)
        if len(native) == 1 and native[0].backend == BACKEND and native[0].groups == self.key_groups:
            layout = Layout.of(native[0])
            self._native = ()
            self._taking_over = native[0], layout
            self._numbers = layout.next_number
            self._unasked = {one.name: one for one in layout.objects}

    def opened(self) -> None:
        """Take the database over if the stores are those that its files are of; else read the files."""
        if self._taking_over is not None:
            source, layout = self._taking_over
            self._taking_over = None
            if self.calls == layout.calls:
                regions = [index.region for index in self._cold_indexes]
                open_restored(self._database, regions, source, layout, self._settings.transfer_threads)
                for name in self._entries:
                    store = self._stores[name][0]
                    assert isinstance(store, ObjectStore)
                    self._asked_for(name, store)
                self._restored_files = source.known
            else:
                self._native = (source,)
                self._unasked = {}
        super().opened()

    def cold_tables(self) -> Iterator[tuple[str, Any]]:
        """Names and pieces of the tables of what is outside memory alone, of objects only what nobody asked for."""
        for name, table in self._cold_tables(self._database, dict(enumerate(self._cold_indexes))):
            yield name, self._grouped(table, self._stores[name][1])
        yield from self._unasked_tables()

    def _unasked_tables(self) -> Iterator[tuple[str, Any]]:
        for name, one in self._unasked.items():
            for table in cold_object_tables(self._database, one.number, one.namespaced, self.max_parallelism):
                yield name, table

    def _cold_tables(self, reader: Reader, indexes: Mapping[int, ResidentKeyIndex]) -> Iterator[tuple[str, Any]]:
        """Names and tables of what is outside memory alone; ``indexes`` know what is in memory, by number."""
        for number, index in indexes.items():
            cold = self._cold_indexes[number]
            if index is cold and not cold.region.cold:
                continue
            known = ResidentKeyIndex(index.types, namespaced=index.namespaced)
            live = index.live_slots()
            if len(live):
                known.find_or_insert(index.encoded_at(live))
            yield from cold.region.cold_tables(reader, known, index.types)


class _RocksDBSnapshot:
    """Implements ``KeyedSnapshot``; see there."""

    def __init__(
        self,
        backend: RocksDBBackend,
        resident: KeyedSnapshot,
        moment: Moment,
        frozen: dict[int, Any],
        present: Present,
        ready: list[tuple[str, Any]],
    ) -> None:
        self._backend = backend
        self._ready = ready
        self._resident = resident
        self._moment = moment
        self._frozen = frozen
        self._present = present

    def tables(self) -> dict[str, Any]:
        """The tables."""
        indexes = {number: frozen.shadow() for number, frozen in self._frozen.items()}
        backend = self._backend
        cold = (
            (name, backend._grouped(table, backend._stores[name][1]))
            for name, table in backend._cold_tables(self._present, indexes)
        )
        found = _together(self._resident.tables(), itertools.chain(cold, self._ready))
        self.release()
        return found

    def native(self) -> None:
        """All state is in the tables."""

    def release(self) -> None:
        """Nobody reads it any more."""
        self._moment.release()
        self._resident.release()
        self._present.release()
        self._frozen = {}


def _together(tables: dict[str, Any], cold: Iterator[tuple[str, Any]]) -> dict[str, Any]:
    """The tables of what is in memory, each with its pieces of what is not."""
    pieces: dict[str, list[Any]] = {}
    for name, table in cold:
        pieces.setdefault(name, [tables[name]] if name in tables else []).append(table)
    return tables | {name: pa.concat_tables(found) for name, found in pieces.items()}


def _cold(index: KeyIndex) -> ColdKeyIndex | ColdWindowIndex:
    assert isinstance(index, ColdKeyIndex | ColdWindowIndex), "stores of one operator come from one factory"
    return index
