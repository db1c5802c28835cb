"""Key indexes whose keys may be outside memory: what is asked for comes back first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from flowsql_runtime.state.resident.growing import grow
from flowsql_runtime.state.resident.key_index import KeyWords, ResidentKeyIndex
from flowsql_runtime.state.resident.window_index import ResidentWindowIndex
from flowsql_runtime.state.rocksdb.database import Database
from flowsql_runtime.state.rocksdb.packing import PackedRows
from flowsql_runtime.state.rocksdb.region import Region
from flowsql_runtime.state.stores import NO_BYTES, EncodedKeys

Bytes = npt.NDArray[np.uint8]
Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]


class _Cold(ResidentKeyIndex):
    """The parts of both indexes that know of the region."""

    region: Region

    def __len__(self) -> int:
        return super().__len__() + self.region.cold

    def in_memory(self) -> int:
        """Keys in memory."""
        return super().__len__()

    def lookup(self, keys: EncodedKeys, skip: Bytes = NO_BYTES) -> Int32s:
        """Slot of each row; -1 where the key is not there or is skipped."""
        slots = super().lookup(keys, skip)
        if self.region.cold:
            assert isinstance(keys, KeyWords)
            if self.region.load_missing(keys, slots, skip):
                slots = super().lookup(keys, skip)
        self.region.named(slots)
        return slots

    def find_or_insert(self, keys: EncodedKeys, skip: Bytes = NO_BYTES) -> tuple[Int32s, Int32s]:
        """Slot of each row, and the rows whose keys were new."""
        if self.region.cold:
            assert isinstance(keys, KeyWords)
            self.region.load_missing(keys, super().lookup(keys, skip), skip)
        slots, fresh = super().find_or_insert(keys, skip)
        self.region.named(slots)
        return slots, fresh

    def expect(self, columns: Sequence[Any], num_rows: int) -> None:
        """Bring keys that will be asked for soon, so that many batches read a page once."""
        if self.region.cold:
            keys = self.encode(columns, num_rows=num_rows)
            slots = super().lookup(keys)
            self.region.named(slots)
            self.region.load_expected(keys.take(np.flatnonzero(slots < 0)))

    def remove(self, slots: Int32s) -> None:
        """Forget the keys of live, distinct slots."""
        self.region.removed(slots)
        super().remove(slots)

    def clear(self) -> None:
        """Forget every key."""
        self.region.cleared()
        super().clear()

    def resident(self, keys: KeyWords) -> Int32s:
        """Slots of keys in memory, else -1."""
        return super().lookup(keys)

    def came_back(self, keys: KeyWords) -> Int32s:
        """Slots of keys that are put into memory."""
        return super().find_or_insert(keys)[0]

    def left(self, slots: Int32s) -> None:
        """Slots that leave memory."""
        super().remove(slots)


class ColdKeyIndex(_Cold):
    """Implements ``KeyIndex``."""

    def __init__(self, types: Sequence[Any], number: int, database: Database) -> None:
        ResidentKeyIndex.__init__(self, types)
        self.region = Region(number, self, self._width, self._var, database)


class ColdWindowIndex(_Cold, ResidentWindowIndex):
    """Implements ``WindowIndex``."""

    def __init__(self, types: Sequence[Any], number: int, database: Database) -> None:
        ResidentWindowIndex.__init__(self, types)
        self._arrivals = _Arrivals()
        self.region = Region(number, self, self._width, self._var, database)
        self.region.join(self._arrivals, None)

    def _came(self, slots: Int32s) -> None:
        super()._came(slots)
        self._arrivals.number(slots, self.high_water)

    def earliest(self) -> int | None:
        """The smallest namespace, None without keys."""
        found = super().earliest()
        return min([*self.region.namespaces, *([] if found is None else [found])], default=None)

    def namespaces(self) -> Int64s:
        """All namespaces that have keys, rising."""
        found = super().namespaces()
        if not self.region.namespaces:
            return found
        return np.union1d(found, np.fromiter(self.region.namespaces, np.int64))

    def up_to(self, namespace: int) -> tuple[Int64s, Int32s]:
        """Namespaces and slots of all keys at or before a namespace."""
        self.region.load_up_to(namespace)
        namespaces, slots = super().up_to(namespace)
        order = np.lexsort((self._arrivals.numbers[slots], namespaces))
        namespaces, slots = namespaces[order], slots[order]
        self.region.named(slots)
        return namespaces, slots


class _Arrivals:
    """Which key came before which, kept while they are outside memory."""

    part_name = ""
    cold_rows = 0
    part_width = 1
    part_refs = np.zeros(1, np.uint8)
    time_word = None

    def __init__(self) -> None:
        self.numbers = np.zeros(0, np.int64)
        self._next = 0

    def number(self, slots: Int32s, high_water: int) -> None:
        """Slots whose keys came."""
        if high_water > len(self.numbers):
            grow(self, "numbers", high_water)
        self.numbers[slots] = np.arange(self._next, self._next + len(slots))
        self._next += len(slots)

    def take(self, slots: Int32s) -> PackedRows:
        """Numbers of slots."""
        rows = self.numbers[slots].reshape(-1, 1)
        return PackedRows(np.arange(len(slots), dtype=np.int32), rows, self.part_refs, NO_BYTES)

    def put(self, slots: Int32s, packed: PackedRows) -> None:
        """Numbers of slots that were outside memory."""
        self.numbers[slots] = packed.rows[:, 0]

    def forget(self, slots: Int32s) -> None:
        """The next key of a slot gets a number of its own."""

    def shrink(self) -> None:
        """Nothing is left of what left."""

    def labelled(self, packed: PackedRows) -> tuple[list[str], list[Any]]:
        """In no snapshot."""
        return [], []
