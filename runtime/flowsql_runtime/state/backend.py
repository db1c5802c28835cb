"""Where state lives, as operators see it: a backend makes, saves and restores keyed state by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from flowsql_runtime.state.column_store import ColumnStore, StoredColumn
from flowsql_runtime.state.key_index import KeyIndex
from flowsql_runtime.state.map_store import MapStore
from flowsql_runtime.state.row_list import RowList
from flowsql_runtime.state.sorted_list import SortedList


class KeyedStateBackend(Protocol):
    """Keyed state of one operator's key groups. Names are unique within the operator.

    Whatever was restored for a name is in the state that the factory method returns, whether ``restore`` came before
    or comes after it. Stores of one operator share the ``KeyIndex`` that gives their slots.
    """

    max_parallelism: int
    key_groups: range

    def key_index(self, types: Sequence[Any], namespaced: bool = False) -> KeyIndex:
        """A new index. It is saved with the stores that hang on it."""
        ...

    def column_store(self, name: str, index: KeyIndex, columns: Sequence[StoredColumn]) -> ColumnStore:
        """Columns by slot."""
        ...

    def map_store(
        self, name: str, parent: KeyIndex, key_types: Sequence[Any], columns: Sequence[StoredColumn]
    ) -> MapStore:
        """(slot of ``parent``, key) -> columns."""
        ...

    def row_list(self, name: str, parent: KeyIndex, types: Sequence[Any]) -> RowList:
        """Slot of ``parent`` -> rows in arrival order."""
        ...

    def sorted_list(self, name: str, parent: KeyIndex, type_: Any, largest_first: bool) -> SortedList:
        """Slot of ``parent`` -> sorted multiset of values."""
        ...

    def register(self, name: str, store: Any, index: KeyIndex) -> Any:
        """Put an operator's own store (``nbytes``, ``save``, ``load``) under a name; returns it, filled if restored."""
        ...

    def snapshot(self) -> dict[str, Any]:
        """A consistent copy: per name an Arrow table whose first column ``__key_group`` is int32."""
        ...

    def restore(self, tables: Mapping[str, Any], key_groups: range | None = None) -> None:
        """Take over the rows of ``key_groups`` from saved tables (of any parallelism, concatenated by name)."""
        ...

    @property
    def nbytes(self) -> int:
        """Bytes allocated for state."""
        ...


class OperatorStateBackend:
    """State of a subtask that belongs to no key: byte strings by name, dealt out by one of three rules."""

    def __init__(self) -> None:
        self._lists: dict[str, list[bytes]] = {}
        self._unions: dict[str, list[bytes]] = {}
        self._broadcasts: dict[str, bytes] = {}

    def list_state(self, name: str) -> list[bytes]:
        """The live list under a name; on restore its elements are split over the subtasks."""
        return self._lists.setdefault(name, [])

    def union_state(self, name: str) -> list[bytes]:
        """The live list under a name; on restore every subtask gets the elements of all."""
        return self._unions.setdefault(name, [])

    def broadcast(self, name: str) -> bytes | None:
        """The value that all subtasks share, or None."""
        return self._broadcasts.get(name)

    def set_broadcast(self, name: str, value: bytes) -> None:
        """Put the value that all subtasks share."""
        self._broadcasts[name] = value

    def lists(self) -> dict[str, tuple[bytes, ...]]:
        """A copy for a snapshot."""
        return {name: tuple(values) for name, values in self._lists.items()}

    def unions(self) -> dict[str, tuple[bytes, ...]]:
        """A copy for a snapshot."""
        return {name: tuple(values) for name, values in self._unions.items()}

    def broadcasts(self) -> dict[str, bytes]:
        """A copy for a snapshot."""
        return dict(self._broadcasts)

    def restore(
        self,
        lists: Mapping[str, Sequence[bytes]],
        unions: Mapping[str, Sequence[bytes]],
        broadcasts: Mapping[str, bytes],
    ) -> None:
        """Put what this subtask gets; lists handed out before stay the same objects."""
        for mine, given in ((self._lists, lists), (self._unions, unions)):
            for name, values in given.items():
                mine.setdefault(name, [])[:] = list(values)
        self._broadcasts.update(broadcasts)
