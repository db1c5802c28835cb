"""``hashmap``: keyed state in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeVar

import numpy as np
import pyarrow as pa

from flowsql_compute.keys import key_groups
from flowsql_core.arrow import compute as pc
from flowsql_core.errors import InternalError
from flowsql_runtime.state.column_store import ColumnStore, StoredColumn, flat
from flowsql_runtime.state.key_index import KeyIndex
from flowsql_runtime.state.map_store import MapStore
from flowsql_runtime.state.row_list import RowList
from flowsql_runtime.state.sorted_list import SortedList

KEY_GROUP = "__key_group"


class Saved(Protocol):
    """What a backend asks of a store."""

    @property
    def nbytes(self) -> int:
        """Bytes allocated."""
        ...

    def save(self) -> Any:
        """A table that starts with the key columns ``k0 ..``."""
        ...

    def load(self, table: Any) -> None:
        """Insert the rows of saved tables."""
        ...


S = TypeVar("S", bound=Saved)


class HashMapBackend:
    """Implements ``KeyedStateBackend``; see there."""

    def __init__(self, max_parallelism: int = 128, key_groups: range | None = None) -> None:
        self.max_parallelism = max_parallelism
        self.key_groups = range(max_parallelism) if key_groups is None else key_groups
        self._stores: dict[str, tuple[Saved, int]] = {}
        self._indexes: list[KeyIndex] = []
        self._restored: dict[str, Any] = {}

    def key_index(self, types: Sequence[Any], namespaced: bool = False) -> KeyIndex:
        """A new index over key columns of the given Arrow types."""
        index = KeyIndex(types, namespaced)
        self._indexes.append(index)
        return index

    def column_store(self, name: str, index: KeyIndex, columns: Sequence[StoredColumn]) -> ColumnStore:
        """Columns by slot."""
        return self._register(name, ColumnStore(index, columns), index)

    def map_store(
        self, name: str, parent: KeyIndex, key_types: Sequence[Any], columns: Sequence[StoredColumn]
    ) -> MapStore:
        """(slot, key) -> columns."""
        return self._register(name, MapStore(parent, key_types, columns), parent)

    def row_list(self, name: str, parent: KeyIndex, types: Sequence[Any]) -> RowList:
        """Slot -> rows in arrival order."""
        return self._register(name, RowList(parent, types), parent)

    def sorted_list(self, name: str, parent: KeyIndex, type_: Any, largest_first: bool) -> SortedList:
        """Slot -> sorted multiset."""
        return self._register(name, SortedList(parent, type_, largest_first), parent)

    def register(self, name: str, store: S, index: KeyIndex) -> S:
        """Put an operator's own store under a name: it is saved and restored like the others."""
        return self._register(name, store, index)

    def _register(self, name: str, store: S, index: KeyIndex) -> S:
        if name in self._stores:
            raise InternalError(f"state '{name}' exists already")
        self._stores[name] = (store, len(index.types))
        if name in self._restored:
            store.load(self._restored.pop(name))
        return store

    @property
    def nbytes(self) -> int:
        """Bytes allocated for state."""
        return sum(store.nbytes for store, _ in self._stores.values()) + sum(index.nbytes for index in self._indexes)

    def snapshot(self) -> dict[str, Any]:
        """Per name a table with ``__key_group`` first."""
        saved = {}
        for name, (store, keys) in self._stores.items():
            table = store.save()
            if keys:
                columns = [flat(table.column(f"k{position}")) for position in range(keys)]
                groups = key_groups(columns, self.max_parallelism)
            else:
                groups = np.zeros(table.num_rows, np.int32)
            saved[name] = table.add_column(0, KEY_GROUP, pa.array(groups))
        # State that was restored and not asked for yet is still state.
        return saved | {name: table for name, table in self._restored.items() if name not in saved}

    def restore(self, tables: Mapping[str, Any], key_groups: range | None = None) -> None:
        """Take over the rows of ``key_groups`` (by default those given at the start)."""
        key_groups = self.key_groups if key_groups is None else key_groups
        self.key_groups = key_groups
        for name, table in tables.items():
            if name.startswith("__"):
                continue  # timers keep themselves
            groups = table.column(KEY_GROUP)
            mine = pc.and_(pc.greater_equal(groups, key_groups.start), pc.less(groups, key_groups.stop))
            part = table.filter(mine)
            if name in self._stores:
                self._stores[name][0].load(part)
            else:
                self._restored[name] = part
