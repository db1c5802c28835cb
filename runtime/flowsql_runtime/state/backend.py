"""Where state lives, as operators see it: a backend makes, saves and restores keyed state by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from flowsql_runtime.state.native import NativeFiles, NativeSource
from flowsql_runtime.state.stores import (
    AccumulatorStore,
    ColumnStore,
    ExtremeValues,
    KeyIndex,
    MapStore,
    RowFifo,
    RowList,
    RowQueue,
    Rows,
    SlotTimes,
    SortColumn,
    SortedList,
    StoredColumn,
    Timers,
    WindowIndex,
)


class Saved(Protocol):
    """What a backend asks of a store that it saves."""

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


class StoreFactory(Protocol):
    """Makes stores. Stores of one operator share the index that gives their slots; names are unique within it."""

    def key_index(self, types: Sequence[Any]) -> KeyIndex:
        """A new index over key columns of the given Arrow types; none: one global key."""
        ...

    def window_index(self, types: Sequence[Any]) -> WindowIndex:
        """A new index whose keys have a namespace."""
        ...

    def column_store(self, name: str, index: KeyIndex, columns: Sequence[StoredColumn]) -> ColumnStore:
        """Columns by slot."""
        ...

    def accumulators(self, name: str, index: KeyIndex, columns: Sequence[StoredColumn]) -> AccumulatorStore:
        """Accumulators of aggregates by slot."""
        ...

    def map_store(
        self, name: str, parent: KeyIndex, key_types: Sequence[Any], columns: Sequence[StoredColumn]
    ) -> MapStore:
        """(slot of ``parent``, key) -> columns."""
        ...

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
    ) -> RowList:
        """Slot of ``parent`` -> rows in arrival order.

        Args:
            removable: rows may be taken out by an equal row (the oldest equal one goes).
            unique: columns that identify a row within its slot: a new row overwrites, removal goes by these columns.
                () means one row a slot.
            stamped: rows keep the time at which they were put in.
            counted: rows keep how many partners they have on the other side of an outer join.
        """
        ...

    def row_fifo(self, name: str, parent: KeyIndex, types: Sequence[Any]) -> RowFifo:
        """Slot of ``parent`` -> rows that leave in the order in which they came."""
        ...

    def kept_rows(
        self, name: str, parent: KeyIndex, types: Sequence[Any], sharers: int = 1, counted: bool = False
    ) -> Rows:
        """Slot of ``parent`` -> rows in arrival order that never go.

        ``sharers``: how many subtasks keep rows of the same batches (those of a hash exchange). ``counted`` as of
        :meth:`row_list`.
        """
        ...

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
    ) -> SortedList:
        """Slot of ``parent`` -> rows in sort order. ``unique`` and ``counted`` as of :meth:`row_list`.

        ``numbered``: rows are taken out by number alone, so that nothing is kept to find equal ones.
        ``keeps_best``: for ``rank`` alone, which forgets rows behind the last place (``Keeping.BEST``; with ``unique``
        ``REPLACED``); no row is taken out by an equal one.
        """
        ...

    def row_queue(self, name: str, parent: KeyIndex, types: Sequence[Any]) -> RowQueue:
        """Rows of all slots in one order."""
        ...

    def extreme_values(self, name: str, parent: KeyIndex, type_: Any, largest_first: bool) -> ExtremeValues:
        """Slot of ``parent`` -> multiset of values that knows its extreme."""
        ...

    def timers(self, name: str, index: KeyIndex) -> Timers:
        """Times that slots wait for. The operator asks ``due`` when the watermark or the clock moves."""
        ...

    def slot_times(self, name: str, index: KeyIndex) -> SlotTimes:
        """When each slot was written to last."""
        ...


class KeyedSnapshot(Protocol):
    """State at one moment. Whoever holds one calls :meth:`tables` or :meth:`release`: until then writing costs more."""

    def tables(self) -> dict[str, Any]:
        """The tables of ``KeyedStateBackend.snapshot`` at that moment. Any thread, once.

        Raises:
            InternalError: the snapshot was released before, or while they were made.
        """
        ...

    def native(self) -> NativeFiles | None:
        """State that is in none of the tables: files of the backend. Only of snapshots that may have them."""
        ...

    def release(self) -> None:
        """Nobody wants the snapshot (any more). Any thread, any number of times."""
        ...


class KeyedStateBackend(StoreFactory, Protocol):
    """Keyed state of one operator's key groups.

    Whatever was restored for a name is in the state that the factory method returns, whether ``restore`` came before
    or comes after it. An index is saved with the stores that hang on it.
    """

    max_parallelism: int
    key_groups: range

    def settle(self) -> None:
        """The operator has dealt with an element: slots that it was given are void, and what is cold may leave memory.

        Called by the task between two elements; never while an operator runs.
        """
        ...

    @property
    def rows_ahead(self) -> int:
        """How many rows that wait the operator should tell its indexes of (``KeyIndex.expect``); 0: none."""
        ...

    def register_objects(self, name: str, store: Saved) -> None:
        """Save and restore a store of Python objects whose tables have one key column ``k0`` of bytes."""
        ...

    def snapshot(self) -> dict[str, Any]:
        """A consistent copy: per name an Arrow table whose first column ``__key_group`` is int32."""
        ...

    def snapshot_async(self, native: bool = False) -> KeyedSnapshot:
        """The same as of now, made while the operator goes on. What it costs here does not grow with the state.

        Args:
            native: a part of the state may stay in files of the backend.
        """
        ...

    def restore(
        self, tables: Mapping[str, Any], key_groups: range | None = None, native: Sequence[NativeSource] = ()
    ) -> None:
        """Take over the rows of ``key_groups`` from saved tables (of any parallelism, concatenated by name).

        Args:
            native: state of old subtasks that is in none of the tables; before the stores are made, see :meth:`opened`.
        """
        ...

    def opened(self) -> None:
        """The operator made its stores and has not used them: what files hold of their state is in them from now on.

        Raises:
            ConnectorError: such a file is missing or damaged.
        """
        ...

    @property
    def nbytes(self) -> int:
        """Bytes allocated for state."""
        ...

    def close(self) -> None:
        """The operator is over: local files go. Snapshots that are being written are finished."""
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
