"""``hashmap``: keyed state in memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar, cast

import numpy as np
import pyarrow as pa

from flowsql_compute.keys import key_groups
from flowsql_core.arrow import compute as pc
from flowsql_core.errors import InternalError
from flowsql_runtime.state.backend import KeyedSnapshot, Saved
from flowsql_runtime.state.native import NativeSource
from flowsql_runtime.state.resident.column_store import flat
from flowsql_runtime.state.resident.factory import ResidentStores
from flowsql_runtime.state.resident.frozen import Freezable, Frozen, Moment
from flowsql_runtime.state.resident.key_index import ResidentKeyIndex
from flowsql_runtime.state.stores import KeyIndex

KEY_GROUP = "__key_group"

S = TypeVar("S", bound=Saved)


class HashMapBackend(ResidentStores):
    """Implements ``KeyedStateBackend``; see there.

    ``folders``: for files of another backend that are read at a restore, as ``io.tmp.dirs``.
    """

    def __init__(self, max_parallelism: int = 128, key_groups: range | None = None, folders: str = "") -> None:
        self.max_parallelism = max_parallelism
        self._folders = folders
        self.key_groups = range(max_parallelism) if key_groups is None else key_groups
        self._stores: dict[str, tuple[Saved, int]] = {}
        self._indexes: list[ResidentKeyIndex] = []
        self._objects: set[str] = set()
        self._restored: dict[str, Any] = {}
        #: State in files that is not in the stores yet.
        self._native: tuple[NativeSource, ...] = ()

    @property
    def rows_ahead(self) -> int:
        """None: all keys are in memory."""
        return 0

    def settle(self) -> None:
        """Nothing ever leaves memory."""

    def close(self) -> None:
        """Memory goes with the object."""

    def register_objects(self, name: str, store: Saved) -> None:
        """Save and restore a store of Python objects."""
        self._objects.add(name)
        self._register(name, store, 1)

    def _indexed(self, index: ResidentKeyIndex) -> ResidentKeyIndex:
        self._indexes.append(index)
        return index

    def _named(self, name: str, store: S, index: KeyIndex) -> S:
        self._register(name, store, len(index.types))
        return store

    def _register(self, name: str, store: Saved, keys: int) -> None:
        if name in self._stores:
            raise InternalError(f"state '{name}' exists already")
        self._stores[name] = (store, keys)
        if name in self._restored:
            self._load(store, self._restored.pop(name))

    def _load(self, store: Saved, table: Any) -> None:
        store.load(table)

    @property
    def nbytes(self) -> int:
        """Bytes allocated for state."""
        return sum(store.nbytes for store, _ in self._stores.values()) + sum(index.nbytes for index in self._indexes)

    def snapshot(self) -> dict[str, Any]:
        """Per name a table with ``__key_group`` first."""
        saved = {name: self._grouped(store.save(), keys) for name, (store, keys) in self._stores.items()}
        # State that was restored and not asked for yet is still state.
        return saved | {name: table for name, table in self._restored.items() if name not in saved}

    def snapshot_async(self, native: bool = False) -> KeyedSnapshot:
        """Freeze the stores; those of Python objects, whose contents change unseen, are saved at once."""
        moment = Moment()
        frozen: dict[str, tuple[Frozen, int]] = {}
        ready = {name: table for name, table in self._restored.items() if name not in self._stores}
        for name, (store, keys) in self._stores.items():
            if name in self._objects:
                ready[name] = self._grouped(store.save(), keys)
            else:
                frozen[name] = (moment.of(cast(Freezable, store)), keys)
        return _HashMapSnapshot(moment, frozen, ready, self._grouped)

    def _grouped(self, table: Any, keys: int) -> Any:
        """A saved table with the key group of each row."""
        groups = np.zeros(table.num_rows, np.int32)
        if keys:
            columns = [flat(table.column(f"k{position}")) for position in range(keys)]
            groups = key_groups(columns, self.max_parallelism)
        return table.add_column(0, KEY_GROUP, pa.array(groups))

    def restore(
        self, tables: Mapping[str, Any], key_groups: range | None = None, native: Sequence[NativeSource] = ()
    ) -> None:
        """Take over the rows of ``key_groups`` (by default those given at the start)."""
        key_groups = self.key_groups if key_groups is None else key_groups
        self.key_groups = key_groups
        self._native = tuple(native)
        for name, table in tables.items():
            groups = table.column(KEY_GROUP)
            mine = pc.and_(pc.greater_equal(groups, key_groups.start), pc.less(groups, key_groups.stop))
            part = table.filter(mine)
            if name in self._stores:
                self._load(self._stores[name][0], part)
            else:
                self._restored[name] = part

    def opened(self) -> None:
        """Read state in files, piece by piece."""
        native, self._native = self._native, ()
        waiting: dict[str, list[Any]] = {}
        for source in native:
            for name, table in source.tables(self.key_groups, self._folders):
                if name in self._stores:
                    self._load(self._stores[name][0], table)
                else:
                    waiting.setdefault(name, []).append(table)
        for name, found in waiting.items():
            before = [self._restored[name]] if name in self._restored else []
            self._restored[name] = pa.concat_tables([*before, *found])


class _HashMapSnapshot:
    """Implements ``KeyedSnapshot``; see there."""

    def __init__(
        self,
        moment: Moment,
        frozen: dict[str, tuple[Frozen, int]],
        ready: dict[str, Any],
        grouped: Callable[[Any, int], Any],
    ) -> None:
        self._moment = moment
        self._frozen = frozen
        self._tables = ready
        self._grouped = grouped
        self._made = False
        self._given_up = False

    def tables(self) -> dict[str, Any]:
        """The tables; memory of a store's copy goes with its table's end."""
        try:
            for name, (frozen, keys) in self._frozen.items():
                if self._given_up:
                    break
                self._tables[name] = self._grouped(frozen.shadow().save(), keys)
                frozen.forget()
        except Exception:
            # What is released while it is read may be half there.
            if not self._given_up:
                raise
        if self._given_up:
            raise InternalError("a snapshot was given up before its tables were made")
        self._made = True
        self.release()
        return self._tables

    def native(self) -> None:
        """All state is in the tables."""

    def release(self) -> None:
        """The state is written to as if there were no snapshot."""
        self._given_up = not self._made
        self._moment.release()
