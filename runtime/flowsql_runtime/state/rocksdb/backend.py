"""``rocksdb``: keyed state whose cold part is in RocksDB."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, Protocol, TypeVar

import pyarrow as pa

from flowsql_runtime.state.backend import KeyedSnapshot, Saved
from flowsql_runtime.state.hashmap import HashMapBackend
from flowsql_runtime.state.object_store import ObjectStore
from flowsql_runtime.state.resident.frozen import Moment
from flowsql_runtime.state.resident.key_index import ResidentKeyIndex
from flowsql_runtime.state.resident.row_queue import ResidentRowQueue
from flowsql_runtime.state.rocksdb import parts
from flowsql_runtime.state.rocksdb.cold_entries import ColdEntries
from flowsql_runtime.state.rocksdb.cold_index import ColdKeyIndex, ColdWindowIndex
from flowsql_runtime.state.rocksdb.cold_times import ColdTimes
from flowsql_runtime.state.rocksdb.database import Database, Present, Reader
from flowsql_runtime.state.rocksdb.local_files import LocalFiles
from flowsql_runtime.state.rocksdb.packing import Part
from flowsql_runtime.state.rocksdb.settings import SWEEP_PIECE, RocksDBSettings
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
        super().__init__(max_parallelism, key_groups)
        self._settings = settings
        self._database = Database(settings, lambda: LocalFiles(settings.folders))
        self._cold_indexes: list[ColdKeyIndex | ColdWindowIndex] = []
        self._entries: list[ColdEntries] = []
        self._numbers = 0
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

    def key_index(self, types: Sequence[Any]) -> ColdKeyIndex:
        """A new index."""
        return self._cold(ColdKeyIndex(types, self._number(), self._database))

    def window_index(self, types: Sequence[Any]) -> ColdWindowIndex:
        """A new index whose keys have a namespace."""
        return self._cold(ColdWindowIndex(types, self._number(), self._database))

    def _number(self) -> int:
        self._numbers += 1
        return self._numbers

    def _cold(self, index: IndexT) -> IndexT:
        self._indexed(index)
        self._cold_indexes.append(index)
        return index

    def column_store(self, name: str, index: KeyIndex, columns: Sequence[StoredColumn]) -> parts.ColumnPart:
        """Columns by slot."""
        return self._joined(name, parts.ColumnPart(_cold(index), columns), index)

    def accumulators(self, name: str, index: KeyIndex, columns: Sequence[StoredColumn]) -> parts.AccumulatorPart:
        """Accumulators by slot."""
        return self._joined(name, parts.AccumulatorPart(_cold(index), columns), index)

    def map_store(
        self, name: str, parent: KeyIndex, key_types: Sequence[Any], columns: Sequence[StoredColumn]
    ) -> parts.MapPart:
        """(slot, key) -> columns."""
        return self._joined(name, parts.MapPart(_cold(parent), key_types, columns), parent)

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

    def kept_rows(self, name: str, parent: KeyIndex, types: Sequence[Any], sharers: int = 1) -> parts.KeptPart:
        """Slot -> rows that stay. Batches are not shared: their rows leave one key at a time."""
        return self._joined(name, parts.KeptPart(_cold(parent), types), parent)

    def sorted_list(
        self,
        name: str,
        parent: KeyIndex,
        types: Sequence[Any],
        order: Sequence[SortColumn],
        unique: Sequence[int] | None = None,
    ) -> parts.SortedPart:
        """Slot -> rows in sort order."""
        return self._joined(name, parts.SortedPart(_cold(parent), types, order, unique), parent)

    def row_queue(self, name: str, parent: KeyIndex, types: Sequence[Any]) -> ResidentRowQueue:
        """Rows of all slots in one order: they stay in memory, and so do their slots."""
        made = ResidentRowQueue(_cold(parent), types)
        _cold(parent).region.queues.append(made)
        return self._named(name, made, parent)

    def extreme_values(self, name: str, parent: KeyIndex, type_: Any, largest_first: bool) -> parts.ExtremesPart:
        """Slot -> multiset of values."""
        return self._joined(name, parts.ExtremesPart(_cold(parent), type_, largest_first), parent)

    def timers(self, name: str, index: KeyIndex) -> parts.TimersPart:
        """Times that slots wait for."""
        times = _cold(index).region.times()
        return self._joined(name, parts.TimersPart(_cold(index), times), index, times)

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
            store.entries = ColdEntries(store, self._number(), self._database, self._settings.get(SWEEP_PIECE))
            self._entries.append(store.entries)
            if store.expiry is not None and store.expiry.piece is not None:
                self._database.compact_files_older_than(store.expiry.compaction_ms)
        super().register_objects(name, store)

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
        for entries in self._entries:
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
            self.settle()

    # -- snapshots

    def snapshot(self) -> dict[str, Any]:
        """Per name a table with ``__key_group`` first."""
        self._write_gone()
        cold = self._cold_tables(self._database, dict(enumerate(self._cold_indexes)))
        return _together(super().snapshot(), cold, self._grouped_of)

    def snapshot_async(self) -> KeyedSnapshot:
        """What is in memory is frozen; RocksDB is read as it is now."""
        self._write_gone()
        moment = Moment()
        frozen = {number: moment.of(index) for number, index in enumerate(self._cold_indexes) if index.region.cold}
        present = self._database.present(self._cold_indexes[number].region.prefix for number in frozen)
        return _RocksDBSnapshot(self, super().snapshot_async(), moment, frozen, present)

    def _write_gone(self) -> None:
        for index in self._cold_indexes:
            index.region.write_gone()

    def _grouped_of(self, name: str, table: Any) -> Any:
        return self._grouped(table, self._stores[name][1])

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
        self, backend: RocksDBBackend, resident: KeyedSnapshot, moment: Moment, frozen: dict[int, Any], present: Present
    ) -> None:
        self._backend = backend
        self._resident = resident
        self._moment = moment
        self._frozen = frozen
        self._present = present

    def tables(self) -> dict[str, Any]:
        """The tables."""
        indexes = {number: frozen.shadow() for number, frozen in self._frozen.items()}
        cold = self._backend._cold_tables(self._present, indexes)
        found = _together(self._resident.tables(), cold, self._backend._grouped_of)
        self.release()
        return found

    def release(self) -> None:
        """Nobody reads it any more."""
        self._moment.release()
        self._resident.release()
        self._present.release()
        self._frozen = {}


def _together(tables: dict[str, Any], cold: Iterator[tuple[str, Any]], grouped: Any) -> dict[str, Any]:
    """The tables of what is in memory, each with its pieces of what is not."""
    pieces: dict[str, list[Any]] = {}
    for name, table in cold:
        pieces.setdefault(name, [tables[name]]).append(grouped(name, table))
    return tables | {name: pa.concat_tables(found) for name, found in pieces.items()}


def _cold(index: KeyIndex) -> ColdKeyIndex | ColdWindowIndex:
    assert isinstance(index, ColdKeyIndex | ColdWindowIndex), "stores of one operator come from one factory"
    return index
