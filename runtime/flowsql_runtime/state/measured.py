"""Stores that nobody saves, and that know how much memory they take."""

from __future__ import annotations

from typing import TypeVar

from flowsql_runtime.state.backend import Saved
from flowsql_runtime.state.resident.factory import ResidentStores
from flowsql_runtime.state.resident.key_index import ResidentKeyIndex
from flowsql_runtime.state.stores import KeyIndex

S = TypeVar("S", bound=Saved)


class MeasuredStores(ResidentStores):
    """A factory of stores in memory."""

    def __init__(self) -> None:
        self._indexes: list[ResidentKeyIndex] = []
        self._stores: list[Saved] = []

    @property
    def nbytes(self) -> int:
        """Bytes allocated by all of them."""
        return sum(index.nbytes for index in self._indexes) + sum(store.nbytes for store in self._stores)

    def _indexed(self, index: ResidentKeyIndex) -> ResidentKeyIndex:
        self._indexes.append(index)
        return index

    def _named(self, name: str, store: S, index: KeyIndex) -> S:
        self._stores.append(store)
        return store
