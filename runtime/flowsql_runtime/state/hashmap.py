"""``hashmap``: keyed state in memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from flowsql_compute.keys import key_groups
from flowsql_core.arrow import compute as pc
from flowsql_core.errors import InternalError
from flowsql_runtime.state.backend import Saved
from flowsql_runtime.state.resident.column_store import flat
from flowsql_runtime.state.resident.factory import ResidentStores
from flowsql_runtime.state.resident.key_index import ResidentKeyIndex
from flowsql_runtime.state.stores import KeyIndex

KEY_GROUP = "__key_group"

S = TypeVar("S", bound=Saved)


class HashMapBackend(ResidentStores):
    """Implements ``KeyedStateBackend``; see there."""

    def __init__(self, max_parallelism: int = 128, key_groups: range | None = None) -> None:
        self.max_parallelism = max_parallelism
        self.key_groups = range(max_parallelism) if key_groups is None else key_groups
        self._stores: dict[str, tuple[Saved, int]] = {}
        self._indexes: list[ResidentKeyIndex] = []
        self._restored: dict[str, Any] = {}

    def settle(self) -> None:
        """Nothing ever leaves memory."""

    def register_objects(self, name: str, store: Saved) -> None:
        """Save and restore a store of Python objects."""
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
            store.load(self._restored.pop(name))

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
