"""The keys of one index outside memory: how slots leave, come back and are counted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, Protocol

import numpy as np
import numpy.typing as npt

from flowsql_runtime.state.resident.column_store import key_table_of
from flowsql_runtime.state.resident.growing import grow
from flowsql_runtime.state.resident.key_index import KeyWords, ResidentKeyIndex
from flowsql_runtime.state.resident.row_queue import ResidentRowQueue
from flowsql_runtime.state.rocksdb.cold_times import ColdTimes
from flowsql_runtime.state.rocksdb.database import Database, Reader, after
from flowsql_runtime.state.rocksdb.packing import KeyFormat, PackedRows, Part, first_times, pack_values, unpack_values

Bytes = npt.NDArray[np.uint8]
Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]

_VALUES: Final = b"\x00"
_TIMES: Final = b"\x01"
#: Keys that are read or written in one piece at most, and about how many bytes.
_PIECE: Final = 4096
_PIECE_BYTES: Final = 1 << 20


class ColdIndex(Protocol):
    """What a region asks of its index."""

    namespaced: bool

    @property
    def high_water(self) -> int:
        """One more than the highest slot ever given out."""
        ...

    def resident(self, keys: KeyWords) -> Int32s:
        """Slots of keys in memory, else -1."""
        ...

    def came_back(self, keys: KeyWords) -> Int32s:
        """Slots of keys that are put into memory."""
        ...

    def left(self, slots: Int32s) -> None:
        """Slots that leave memory."""
        ...

    def encoded_at(self, slots: Int32s) -> KeyWords:
        """The keys of slots."""
        ...

    def live_slots(self) -> Int32s:
        """All slots in memory."""
        ...


class Region:
    """One index with its stores.

    Args:
        number: of the region in the database.
        index: in memory.
        width, var: how its keys are made, as in ``ResidentKeyIndex``.
        database: where slots go.
    """

    def __init__(self, number: int, index: ColdIndex, width: int, var: Bytes, database: Database) -> None:
        self._index = index
        self._database = database
        self._width = width
        self._base = number.to_bytes(2, "big")
        self.keys = KeyFormat(self._base + _VALUES, width, var, index.namespaced)
        self.parts: list[Part] = []
        self._times: list[ColdTimes | None] = []
        self.queues: list[ResidentRowQueue] = []
        #: Keys that are outside memory alone.
        self.cold = 0
        #: How many of them each namespace has.
        self.namespaces: dict[int, int] = {}
        #: By slot: whether the database has an old state of its key; when it was named last.
        self._stored = np.zeros(0, np.uint8)
        self._named = np.zeros(0, np.int64)
        self._now = 0
        #: Keys that are read or written in one piece.
        self._piece = 256

    def times(self) -> ColdTimes:
        """The times of the store that joins next."""
        return ColdTimes(self._base + _TIMES + len(self.parts).to_bytes(2, "big"), self._database, self._load_packed)

    def join(self, part: Part, times: ColdTimes | None) -> None:
        """One more store of the index. States that left before it joined have no rows of it."""
        self.parts.append(part)
        self._times.append(times)

    def named(self, slots: Int32s) -> None:
        """Slots that the operator was given; -1 counts for nothing."""
        needed = self._index.high_water + 1
        if len(self._named) < needed:
            grow(self, "_named", needed)
            grow(self, "_stored", len(self._named))
        # Behind all slots there is one more: that of -1.
        self._named[slots] = self._now

    def tick(self) -> None:
        """An element is over."""
        self._now += 1

    # -- in

    def load_missing(self, keys: KeyWords, slots: Int32s, skip: Bytes) -> bool:
        """Bring those of a batch's keys that are outside memory back; says whether any came."""
        absent = slots < 0
        if skip.size:
            absent &= skip == 0
        if self._index.namespaced and absent.any():
            known = np.fromiter(self.namespaces, np.int64, len(self.namespaces))
            absent &= np.isin(keys.words[:, 0].view(np.int64), known)
        rows = np.flatnonzero(absent)
        came = False
        # What came with a piece is in memory for the next: each key is asked for once in its own.
        step = self._piece
        for start in range(0, len(rows), step):
            piece = keys.take(rows[start : start + step])
            if start:
                piece = piece.take(np.flatnonzero(self._index.resident(piece) < 0))
            came |= self._load(list(dict.fromkeys(self.keys.pack(piece))))
        return came

    def _load_packed(self, keys: Sequence[bytes]) -> None:
        self._load([self.keys.prefix + key for key in keys])

    def _load(self, keys: list[bytes]) -> bool:
        values = self._database.get_many(keys)
        found = [(key, value) for key, value in zip(keys, values, strict=True) if value is not None]
        if not found:
            return False
        self._put([key for key, _ in found], [value for _, value in found])
        return True

    def _put(self, packed: list[bytes], values: list[bytes]) -> None:
        keys = self.keys.unpack(packed)
        slots = self._index.came_back(keys)
        self.named(slots)
        self._stored[slots] = 1
        self.cold -= len(slots)
        if self._index.namespaced:
            self._count(keys.words[:, 0].view(np.int64), -1)
        gone: list[bytes] = []
        for part, times, rows in zip(self.parts, self._times, unpack_values(values, self.parts), strict=True):
            part.put(slots[rows.positions], rows)
            if times is not None:
                gone += self._entries(times, part, rows, packed, -1)
        if gone:
            self._database.write((), (), gone)

    def _entries(
        self, times: ColdTimes, part: Part, rows: PackedRows, packed: Sequence[bytes], change: int
    ) -> list[bytes]:
        assert part.time_word is not None
        start = len(self.keys.prefix)
        first = first_times(rows, part.time_word, len(packed)).tolist()
        entries = times.entries(first, [key[start:] for key in packed])
        times.count += change * len(entries)
        return entries

    def _count(self, namespaces: Int64s, sign: int) -> None:
        found, counts = np.unique(namespaces, return_counts=True)
        for namespace, count in zip(found.tolist(), counts.tolist(), strict=True):
            left = self.namespaces.get(namespace, 0) + sign * count
            if left:
                self.namespaces[namespace] = left
            else:
                self.namespaces.pop(namespace, None)

    def load_up_to(self, namespace: int) -> None:
        """Bring all keys of namespaces at or before one back."""
        if not any(known <= namespace for known in self.namespaces):
            return
        prefix = self.keys.prefix
        end = prefix + (namespace + (1 << 63)).to_bytes(8, "big") + b"\xff" * 9
        for packed, values in self._database.scan(prefix, end, _PIECE):
            away = np.flatnonzero(self._index.resident(self.keys.unpack(packed)) < 0).tolist()
            if away:
                self._put([packed[row] for row in away], [values[row] for row in away])

    # -- out

    def removed(self, slots: Int32s) -> None:
        """The operator removes slots: nothing of them stays."""
        old = slots[self._stored[slots] != 0] if len(self._stored) else slots[:0]
        if len(old):
            self._stored[old] = 0
            self._database.write((), (), self.keys.pack(self._index.encoded_at(old)))

    def cleared(self) -> None:
        """The operator removes all keys."""
        self._database.delete_prefix(self._base)
        self._stored[:] = 0
        self.cold = 0
        self.namespaces.clear()
        for times in self._times:
            if times is not None:
                times.count = 0

    def evict(self, keep: int) -> None:
        """Slots that were not named for longest leave, until ``keep`` are left; those in queues stay."""
        live = self._index.live_slots()
        if len(live) <= keep:
            return
        self.named(live[:0])
        pinned = [queue.slots() for queue in self.queues]
        if any(len(slots) for slots in pinned):
            live = np.setdiff1d(live, np.concatenate(pinned))
        count = len(live) - keep
        if count <= 0:
            return
        if keep:
            live = live[np.argpartition(self._named[live], count - 1)[:count]]
        start = 0
        while start < len(live):
            stop = start + self._piece
            self._evict(np.ascontiguousarray(live[start:stop]))
            start = stop
        for part in self.parts:
            part.shrink()

    def _evict(self, slots: Int32s) -> None:
        keys = self._index.encoded_at(slots)
        packed = self.keys.pack(keys)
        taken = [part.take(slots) for part in self.parts]
        entries: list[bytes] = []
        for part, times, rows in zip(self.parts, self._times, taken, strict=True):
            if times is not None:
                entries += self._entries(times, part, rows, packed, 1)
        values = pack_values(taken, len(slots))
        self._piece = min(_PIECE, max(64, _PIECE_BYTES * len(slots) // (sum(map(len, values)) + 1)))
        self._database.write([*packed, *entries], [*values, *([b""] * len(entries))], ())
        if self._index.namespaced:
            self._count(keys.words[:, 0].view(np.int64), 1)
        for part in self.parts:
            part.forget(slots)
        self._index.left(slots)
        self._stored[slots] = 0
        self.cold += len(slots)

    # -- snapshots

    def cold_tables(
        self, reader: Reader, resident: ResidentKeyIndex, types: Sequence[Any]
    ) -> Iterator[tuple[str, Any]]:
        """Names and tables of what is outside memory alone, in pieces; ``resident`` has the keys in memory."""
        parts = list(self.parts)
        for packed, values in reader.scan(self.keys.prefix, after(self.keys.prefix), _PIECE):
            away = np.flatnonzero(resident.lookup(self.keys.unpack(packed)) < 0).tolist()
            if not away:
                continue
            scratch = ResidentKeyIndex(types, namespaced=self._index.namespaced)
            slots, _ = scratch.find_or_insert(self.keys.unpack([packed[row] for row in away]))
            for part, rows in zip(parts, unpack_values([values[row] for row in away], parts), strict=True):
                if part.part_name:
                    names, columns = part.labelled(rows)
                    yield part.part_name, key_table_of(scratch, slots[rows.positions], columns, names)
