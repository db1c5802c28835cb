"""State entries of a process table function: objects, lists and maps beside the slots of its partitions.

While an element (batch, watermark) is worked on, the objects of each partition that takes part are Python objects;
what changed of them is written in one call an entry when the element is done. A field of a type whose values come back
as they were is a column of that type, any other one a pickle.
"""

from __future__ import annotations

import pickle
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flowsql_compute.eval.columns import values_and_validity
from flowsql_core.data_view import ListView, MapView
from flowsql_core.errors import ExecutionError
from flowsql_core.process_function import StateEntry, StateField
from flowsql_core.types.arrow import to_arrow
from flowsql_runtime.python.failure import value_text
from flowsql_runtime.python.values_in import reader
from flowsql_runtime.python.values_out import WrongValueError, writer
from flowsql_runtime.state.backend import StoreFactory
from flowsql_runtime.state.names import TableNames
from flowsql_runtime.state.object_store import pickled
from flowsql_runtime.state.stores import KeyIndex, StoredColumn

Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

_NO_SLOTS: Final = np.zeros(0, np.int32)
_MISSING: Final = object()


class _Field:
    """A value of an entry as a column, and back."""

    def __init__(self, owner: str, field: StateField, zone: str) -> None:
        self._where = f"{owner}.{field.name}"
        self._type = field.type
        self.arrow = pa.binary() if field.type is None else to_arrow(field.type)
        if field.type is not None:
            self._read, self._write = reader(field.type, zone), writer(field.type, zone)

    def values(self, column: Any) -> list[Any]:
        """Python values."""
        if self._type is None:
            return [None if blob is None else pickle.loads(blob) for blob in column.to_pylist()]
        return self._read(column)

    def column(self, values: Sequence[Any]) -> Any:
        """The column of values.

        Raises:
            ExecutionError: one is none of the declared type, or cannot be pickled.
        """
        if self._type is None:
            blobs = [None if value is None else self._bytes(value) for value in values]
            return pa.array(blobs, pa.binary())
        try:
            return self._write(values)
        except WrongValueError as error:
            raise ExecutionError(
                "state-value",
                f"The state '{self._where}' is of the type {self._type} and got {value_text(error.value)}"
                f" ({type(error.value).__name__}).",
                hint="declare another type for it: int is BIGINT, 64 bits",
            ) from None

    def _bytes(self, value: Any) -> bytes:
        try:
            return pickle.dumps(value, protocol=5)
        except Exception:  # pickle raises many kinds; functions and local classes need cloudpickle
            return pickled(self._where, value)


class Entry(ABC):
    """One state entry of all partitions. Objects are made by slot and live until :meth:`keep`."""

    def __init__(self, declared: StateEntry, ttl_ms: int, zone: str) -> None:
        self.name = declared.name
        self.declared = declared
        self.ttl_ms = ttl_ms
        self.fields = [_Field(declared.name, field, zone) for field in declared.fields]
        self._objects: dict[int, Any] = {}

    @property
    def table(self) -> str:
        """Name of the store."""
        return f"state.{self.name}"

    @abstractmethod
    def open(self, states: StoreFactory, index: KeyIndex) -> None:
        """Make the store."""

    @abstractmethod
    def table_names(self) -> dict[str, TableNames]:
        """What the stores mean."""

    @abstractmethod
    def expire(self, now_ms: int) -> Int32s:
        """Forget what nobody wrote to for ``ttl_ms``; the slots concerned."""

    def load(self, slots: Int32s) -> None:
        """Partitions that take part."""

    @abstractmethod
    def at(self, slot: int) -> Any:
        """The object of a partition, as the function sees it."""

    @abstractmethod
    def clear(self, slot: int) -> None:
        """Forget what a partition has."""

    @abstractmethod
    def keep(self, slots: Int32s, now_ms: int) -> Bools:
        """Write what changed at distinct slots; whether anything is kept of each."""

    @abstractmethod
    def holds(self, slots: Int32s) -> Bools:
        """Whether anything is kept of slots."""

    def forget(self, slots: Int32s) -> None:
        """Before slots of which nothing is kept are removed."""


class ValueEntry(Entry):
    """An object of fields, read and written whole."""

    def __init__(self, declared: StateEntry, ttl_ms: int, zone: str, make: Callable[..., Any]) -> None:
        super().__init__(declared, ttl_ms, zone)
        self._make = make
        self._names = [field.name for field in declared.fields]

    def open(self, states: StoreFactory, index: KeyIndex) -> None:
        """A column a field, and one that says whether there is an object."""
        columns = [StoredColumn(name, f.arrow) for name, f in zip(self._names, self.fields, strict=True)]
        self._store = states.column_store(self.table, index, [StoredColumn("kept", pa.int64(), False), *columns])
        self._written = states.slot_times(f"{self.table} written", index) if self.ttl_ms else None

    def table_names(self) -> dict[str, TableNames]:
        """Fields by name."""
        texts = {f"v:{name}": f"{self.name}.{name}" for name in self._names} | {"v:kept": f"{self.name} is there"}
        tables = {self.table: TableNames(f"state {self.name}", texts, grows=True)}
        if self.ttl_ms:
            tables[f"{self.table} written"] = TableNames(f"when state {self.name} was written")
        return tables

    def expire(self, now_ms: int) -> Int32s:
        """Whole objects."""
        if self._written is None:
            return _NO_SLOTS
        slots = self._written.expired(now_ms - self.ttl_ms)
        if len(slots):
            self._store.clear(slots)
        return slots

    def load(self, slots: Int32s) -> None:
        """All objects at once."""
        kept, *columns = self._store.gather(slots)
        there = values_and_validity(kept)[0].tolist()
        values = [field.values(column) for field, column in zip(self.fields, columns, strict=True)]
        for row, slot in enumerate(slots.tolist()):
            if there[row]:
                given = {name: column[row] for name, column in zip(self._names, values, strict=True)}
                self._objects[slot] = self._make(**given)

    def at(self, slot: int) -> Any:
        """The object; an empty one where there is none."""
        found = self._objects.get(slot, _MISSING)
        if found is _MISSING:
            found = self._objects[slot] = self._make()
        return found

    def clear(self, slot: int) -> None:
        """The object goes."""
        self._objects.pop(slot, None)

    def keep(self, slots: Int32s, now_ms: int) -> Bools:
        """Objects that are there; the others' fields are cleared."""
        there = np.array([slot in self._objects for slot in slots.tolist()], np.bool_)
        kept = slots[there]
        if len(kept):
            objects = [self._objects[slot] for slot in kept.tolist()]
            columns = [
                field.column([_field_of(each, name) for each in objects])
                for field, name in zip(self.fields, self._names, strict=True)
            ]
            self._store.scatter(kept, [pa.array(np.ones(len(kept), np.int64)), *columns])
        gone = slots[~there]
        if len(gone):
            self._store.clear(gone)
        if self._written is not None:
            self._written.touch(kept, now_ms)
            self._written.drop_slots(gone)
        self._objects.clear()
        return there

    def holds(self, slots: Int32s) -> Bools:
        """Whether there is an object."""
        there: Bools = values_and_validity(self._store.gather(slots)[0])[0] > 0
        return there


def _field_of(value: Any, name: str) -> Any:
    # Fields of a Row may have names that are none of Python's.
    return value[name] if hasattr(value, "get_row_kind") else getattr(value, name)


class ListEntry(Entry):
    """A list, whose values are read when the function asks for them."""

    def open(self, states: StoreFactory, index: KeyIndex) -> None:
        """Values in order."""
        expires = self.ttl_ms > 0
        self._store = states.row_list(self.table, index, [self.fields[0].arrow], removable=expires, stamped=expires)

    def table_names(self) -> dict[str, TableNames]:
        """Values."""
        return {self.table: TableNames(f"state {self.name}", {"r0": f"{self.name} values"})}

    def expire(self, now_ms: int) -> Int32s:
        """Value by value."""
        return np.unique(self._store.remove_older(now_ms - self.ttl_ms)) if self.ttl_ms else _NO_SLOTS

    def at(self, slot: int) -> StoredList:
        """The list."""
        found: StoredList | None = self._objects.get(slot)
        if found is None:
            found = self._objects[slot] = StoredList(lambda: self._read(slot))
        return found

    def _read(self, slot: int) -> list[Any]:
        _, rows = self._store.rows_of(np.array([slot], np.int32))
        return self.fields[0].values(self._store.gather(rows)[0]) if len(rows) else []

    def clear(self, slot: int) -> None:
        """All values go."""
        self.at(slot).clear()

    def keep(self, slots: Int32s, now_ms: int) -> Bools:
        """What was added; lists that were cleared start over."""
        cleared = [slot for slot, view in self._objects.items() if view.cleared]
        if cleared:
            self._store.drop_slots(np.array(cleared, np.int32))
        owners: list[int] = []
        values: list[Any] = []
        for slot, view in self._objects.items():
            values += view.added
            owners += [slot] * len(view.added)
        if owners:
            at, columns = np.array(owners, np.int32), [self.fields[0].column(values)]
            if self.ttl_ms:
                self._store.apply(np.ones(len(at), np.int8), at, columns, now_ms)
            else:
                self._store.append(at, columns)
        self._objects.clear()
        return self.holds(slots)

    def holds(self, slots: Int32s) -> Bools:
        """Whether there is a value."""
        there: Bools = self._store.counts(slots) > 0
        return there


class StoredList(ListView[Any]):
    """A list in state. ``cleared``: what was kept is void; ``added``: what came since."""

    def __init__(self, read: Callable[[], list[Any]]) -> None:
        self._read = read
        self._kept: list[Any] | None = None
        self.cleared = False
        self.added: list[Any] = []

    def get(self) -> list[Any]:
        """The values in order."""
        if self._kept is None:
            self._kept = self._read()
        return [*self._kept, *self.added]

    def add(self, value: Any) -> None:
        """Add one."""
        self.added.append(value)

    def add_all(self, values: Iterable[Any]) -> None:
        """Add several."""
        self.added.extend(values)

    def clear(self) -> None:
        """Remove everything."""
        self._kept, self.cleared, self.added = [], True, []


class MapEntry(Entry):
    """A map, whose entries are read one by one, or all where the function wants them all."""

    def __init__(self, declared: StateEntry, ttl_ms: int, zone: str) -> None:
        super().__init__(declared, ttl_ms, zone)
        assert declared.key is not None
        self._key = _Field(declared.name, StateField("key", declared.key), zone)
        self._now_ms = 0

    def open(self, states: StoreFactory, index: KeyIndex) -> None:
        """Values by key, with the moment at which each was written where they expire; and how many there are."""
        columns = [StoredColumn("value", self.fields[0].arrow)]
        if self.ttl_ms:
            columns.append(StoredColumn("written", pa.int64(), False))
        self._store = states.map_store(self.table, index, [self._key.arrow], columns)
        self._sizes = states.column_store(f"{self.table} size", index, [StoredColumn("entries", pa.int64(), False)])
        self._written = states.slot_times(f"{self.table} written", index) if self.ttl_ms else None

    def table_names(self) -> dict[str, TableNames]:
        """Keys, values and their number."""
        texts = {"m0": f"{self.name} keys", "v:value": f"{self.name} values"}
        if self.ttl_ms:
            texts["v:written"] = f"when {self.name} values were written"
        tables = {
            self.table: TableNames(f"state {self.name}", texts),
            f"{self.table} size": TableNames(f"size of state {self.name}", {"v:entries": "entries"}),
        }
        if self.ttl_ms:
            tables[f"{self.table} written"] = TableNames(f"when state {self.name} was written")
        return tables

    def expire(self, now_ms: int) -> Int32s:
        """Maps that nobody wrote to; single entries when they are met."""
        self._now_ms = now_ms
        if self._written is None:
            return _NO_SLOTS
        slots = self._written.expired(now_ms - self.ttl_ms)
        if len(slots):
            self._store.drop_slots(slots)
            self._sizes.clear(slots)
        return slots

    def at(self, slot: int) -> StoredMap:
        """The map."""
        found: StoredMap | None = self._objects.get(slot)
        if found is None:
            found = self._objects[slot] = StoredMap(lambda key: self._one(slot, key), lambda: self._all(slot))
        return found

    def _one(self, slot: int, key: Any) -> Any:
        entries = self._store.lookup(np.array([slot], np.int32), [self._key.column([key])])
        return self._values(entries)[0] if entries[0] >= 0 else _MISSING

    def _all(self, slot: int) -> dict[Any, Any]:
        _, entries = self._store.iterate_slot(np.array([slot], np.int32))
        if not len(entries):
            return {}
        keys = self._key.values(self._store.keys_at(entries)[0])
        pairs = zip(keys, self._values(entries), strict=True)
        return {key: value for key, value in pairs if value is not _MISSING}

    def _values(self, entries: Int32s) -> list[Any]:
        value, *written = self._store.gather(entries)
        made = self.fields[0].values(value)
        if not written:
            return made
        alive = values_and_validity(written[0])[0] > self._now_ms - self.ttl_ms
        return [one if lives else _MISSING for one, lives in zip(made, alive.tolist(), strict=True)]

    def clear(self, slot: int) -> None:
        """All entries go."""
        self.at(slot).clear()

    def keep(self, slots: Int32s, now_ms: int) -> Bools:
        """Entries that were put or removed; maps that were cleared start over."""
        cleared = [slot for slot, view in self._objects.items() if view.cleared]
        if cleared:
            at = np.array(cleared, np.int32)
            self._store.drop_slots(at)
            self._sizes.clear(at)
        gone, put = self._changed(removed=True), self._changed(removed=False)
        if len(gone[0]):
            entries = self._store.lookup(gone[0], [self._key.column(gone[1])])
            there = entries >= 0
            self._count(gone[0][there], -1)
            self._store.remove(entries[there])
        if len(put[0]):
            at, keys, values = put
            entries, fresh = self._store.find_or_insert(at, [self._key.column(keys)])
            self._count(at[fresh], 1)
            columns = [self.fields[0].column(values)]
            if self.ttl_ms:
                columns.append(pa.array(np.full(len(at), now_ms)))
            self._store.scatter(entries, columns)
            if self._written is not None:
                self._written.touch(np.unique(at), now_ms)
        self._objects.clear()
        there = self.holds(slots)
        if self._written is not None:
            self._written.drop_slots(slots[~there])
        return there

    def holds(self, slots: Int32s) -> Bools:
        """Whether there is an entry."""
        there: Bools = values_and_validity(self._sizes.gather(slots)[0])[0] > 0
        return there

    def forget(self, slots: Int32s) -> None:
        """Before slots without entries are removed."""
        self._sizes.clear(slots)

    def _changed(self, removed: bool) -> tuple[Int32s, list[Any], list[Any]]:
        owners: list[int] = []
        keys: list[Any] = []
        values: list[Any] = []
        for slot, view in self._objects.items():
            for key, value in view.changes.items():
                if (value is _MISSING) is removed:
                    owners.append(slot)
                    keys.append(key)
                    values.append(value)
        return np.array(owners, np.int32), keys, values

    def _count(self, slots: Int32s, by: int) -> None:
        """How many entries each slot has."""
        if not len(slots):
            return
        distinct, counts = np.unique(slots, return_counts=True)
        before = values_and_validity(self._sizes.gather(distinct)[0])[0]
        self._sizes.scatter(distinct, [pa.array(before + by * counts)])


class StoredMap(MapView[Any, Any]):
    """A map in state. ``changes``: values that were put, and keys that were removed."""

    def __init__(self, one: Callable[[Any], Any], every: Callable[[], dict[Any, Any]]) -> None:
        self._one = one
        self._every = every
        self._known: dict[Any, Any] = {}
        self._complete = False
        self.cleared = False
        self.changes: dict[Any, Any] = {}

    def _find(self, key: Any) -> Any:
        found = self.changes.get(key, self._known.get(key, _MISSING))
        if found is _MISSING and key not in self.changes and key not in self._known and not self._complete:
            found = self._known[key] = self._one(key)
        return found

    def _content(self) -> Mapping[Any, Any]:
        if not self._complete:
            self._known, self._complete = self._every(), True
        both = {**self._known, **self.changes}
        return {key: value for key, value in both.items() if value is not _MISSING}

    def get(self, key: Any) -> Any:
        """The value of a key; KeyError where there is none."""
        found = self._find(key)
        if found is _MISSING:
            raise KeyError(key)
        return found

    def put(self, key: Any, value: Any) -> None:
        """Set the value of a key."""
        self.changes[key] = value

    def put_all(self, dict_value: Mapping[Any, Any]) -> None:
        """Set the values of several keys."""
        self.changes.update(dict_value)

    def remove(self, key: Any) -> None:
        """Remove a key; KeyError where there is none."""
        self.get(key)
        self.changes[key] = _MISSING

    def contains(self, key: Any) -> bool:
        """Whether a key has a value."""
        return self._find(key) is not _MISSING

    def items(self) -> Iterable[tuple[Any, Any]]:
        """Keys with their values."""
        return self._content().items()

    def keys(self) -> Iterable[Any]:
        """The keys."""
        return self._content().keys()

    def values(self) -> Iterable[Any]:
        """The values."""
        return self._content().values()

    def is_empty(self) -> bool:
        """Whether there is no key."""
        return not self._content()

    def clear(self) -> None:
        """Remove everything."""
        self._known, self._complete, self.cleared, self.changes = {}, True, True, {}

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, MapView) and dict(self.items()) == dict(other.items())

    __hash__ = None

    def __iter__(self) -> Iterator[Any]:
        return iter(self.keys())


def make_entry(declared: StateEntry, ttl_ms: int, zone: str, makers: Mapping[str, Callable[..., Any]]) -> Entry:
    """The entry of a declaration."""
    match declared.kind:
        case "list":
            return ListEntry(declared, ttl_ms, zone)
        case "map":
            return MapEntry(declared, ttl_ms, zone)
        case "value":
            return ValueEntry(declared, ttl_ms, zone, makers[declared.name])
