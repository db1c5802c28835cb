"""Makes stores in memory; what a backend does with them is its own matter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from flowsql_runtime.state.backend import Saved
from flowsql_runtime.state.resident.accumulators import ResidentAccumulators
from flowsql_runtime.state.resident.column_store import ResidentColumnStore
from flowsql_runtime.state.resident.extreme_values import ResidentExtremes
from flowsql_runtime.state.resident.kept_rows import KeptRows
from flowsql_runtime.state.resident.key_index import ResidentKeyIndex
from flowsql_runtime.state.resident.map_store import ResidentMapStore
from flowsql_runtime.state.resident.row_fifo import ResidentRowFifo
from flowsql_runtime.state.resident.row_list import ResidentRowList
from flowsql_runtime.state.resident.row_queue import ResidentRowQueue
from flowsql_runtime.state.resident.slot_times import ResidentSlotTimes
from flowsql_runtime.state.resident.sorted_list import ResidentSortedList
from flowsql_runtime.state.resident.timers import ResidentTimers
from flowsql_runtime.state.resident.window_index import ResidentWindowIndex
from flowsql_runtime.state.stores import KeyIndex, Rows, SortColumn, StoredColumn

S = TypeVar("S", bound=Saved)


class ResidentStores:
    """Implements ``StoreFactory``. As it is it saves nothing: the work of one batch or one firing."""

    def key_index(self, types: Sequence[Any]) -> ResidentKeyIndex:
        """A new index."""
        return self._indexed(ResidentKeyIndex(types))

    def window_index(self, types: Sequence[Any]) -> ResidentWindowIndex:
        """A new index whose keys have a namespace."""
        index = ResidentWindowIndex(types)
        self._indexed(index)
        return index

    def column_store(self, name: str, index: KeyIndex, columns: Sequence[StoredColumn]) -> ResidentColumnStore:
        """Columns by slot."""
        return self._named(name, ResidentColumnStore(_resident(index), columns), index)

    def accumulators(self, name: str, index: KeyIndex, columns: Sequence[StoredColumn]) -> ResidentAccumulators:
        """Accumulators by slot."""
        return self._named(name, ResidentAccumulators(_resident(index), columns), index)

    def map_store(
        self, name: str, parent: KeyIndex, key_types: Sequence[Any], columns: Sequence[StoredColumn]
    ) -> ResidentMapStore:
        """(slot, key) -> columns."""
        return self._named(name, ResidentMapStore(_resident(parent), key_types, columns), parent)

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
    ) -> ResidentRowList:
        """Slot -> rows that may be taken out."""
        return self._named(name, ResidentRowList(_resident(parent), types, removable, unique, stamped, counted), parent)

    def row_fifo(self, name: str, parent: KeyIndex, types: Sequence[Any]) -> ResidentRowFifo:
        """Slot -> rows that leave in their order."""
        return self._named(name, ResidentRowFifo(_resident(parent), types), parent)

    def kept_rows(
        self, name: str, parent: KeyIndex, types: Sequence[Any], sharers: int = 1, counted: bool = False
    ) -> Rows:
        """Slot -> rows that stay."""
        return self._named(name, KeptRows(_resident(parent), types, sharers, counted), parent)

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
    ) -> ResidentSortedList:
        """Slot -> rows in sort order."""
        made = ResidentSortedList(_resident(parent), types, order, unique, numbered, counted, keeps_best)
        return self._named(name, made, parent)

    def row_queue(self, name: str, parent: KeyIndex, types: Sequence[Any]) -> ResidentRowQueue:
        """Rows of all slots in one order."""
        return self._named(name, ResidentRowQueue(_resident(parent), types), parent)

    def extreme_values(self, name: str, parent: KeyIndex, type_: Any, largest_first: bool) -> ResidentExtremes:
        """Slot -> multiset of values."""
        return self._named(name, ResidentExtremes(_resident(parent), type_, largest_first), parent)

    def timers(self, name: str, index: KeyIndex) -> ResidentTimers:
        """Times that slots wait for."""
        return self._named(name, ResidentTimers(_resident(index)), index)

    def slot_times(self, name: str, index: KeyIndex) -> ResidentSlotTimes:
        """When each slot was written to last."""
        return self._named(name, ResidentSlotTimes(_resident(index)), index)

    def _indexed(self, index: ResidentKeyIndex) -> ResidentKeyIndex:
        return index

    def _named(self, name: str, store: S, index: KeyIndex) -> S:
        return store


def _resident(index: KeyIndex) -> ResidentKeyIndex:
    assert isinstance(index, ResidentKeyIndex), "stores of one operator come from one factory"
    return index
