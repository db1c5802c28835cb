"""Where an aggregate program gets its stores: a keyed state backend, or memory that nobody saves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from flowsql_runtime.state.column_store import ColumnStore, StoredColumn
from flowsql_runtime.state.key_index import KeyIndex
from flowsql_runtime.state.map_store import MapStore
from flowsql_runtime.state.sorted_list import SortedList


class StateFactory(Protocol):
    """Where a program gets its stores: a keyed state backend, or nothing for a batch's own work."""

    def column_store(self, name: str, index: KeyIndex, columns: Sequence[StoredColumn]) -> ColumnStore:
        """See ``KeyedStateBackend``."""
        ...

    def map_store(
        self, name: str, parent: KeyIndex, key_types: Sequence[Any], columns: Sequence[StoredColumn]
    ) -> MapStore:
        """See ``KeyedStateBackend``."""
        ...

    def sorted_list(self, name: str, parent: KeyIndex, type_: Any, largest_first: bool) -> SortedList:
        """See ``KeyedStateBackend``."""
        ...

    def register(self, name: str, store: Any, index: KeyIndex) -> Any:
        """Save and restore a store under a name."""
        ...


class TransientStates:
    """Stores that nobody saves: the work of one batch or one firing."""

    def column_store(self, name: str, index: KeyIndex, columns: Sequence[StoredColumn]) -> ColumnStore:
        """A store outside any backend."""
        return ColumnStore(index, columns)

    def map_store(
        self, name: str, parent: KeyIndex, key_types: Sequence[Any], columns: Sequence[StoredColumn]
    ) -> MapStore:
        """A store outside any backend."""
        return MapStore(parent, key_types, columns)

    def sorted_list(self, name: str, parent: KeyIndex, type_: Any, largest_first: bool) -> SortedList:
        """A store outside any backend."""
        return SortedList(parent, type_, largest_first)

    def register(self, name: str, store: Any, index: KeyIndex) -> Any:
        """The store itself."""
        return store
