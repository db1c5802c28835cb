"""``MapStore``: (slot of a parent index, key) -> columns. DISTINCT views, unique-key sides of joins, MapState."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from flowsql_runtime.state.column_store import ColumnStore, StoredColumn, flat, key_table_of, keys_of_table
from flowsql_runtime.state.key_index import NO_BYTES, KeyIndex

Int32s = npt.NDArray[np.int32]
Bytes = npt.NDArray[np.uint8]


class MapStore:
    """Entries of slots. An entry id is stable while the entry lives; ``values`` holds its columns.

    The parent's slot is the namespace of the entry's key. Whoever frees a slot of the parent drops its entries first.
    """

    def __init__(self, parent: KeyIndex, key_types: Sequence[Any], columns: Sequence[StoredColumn]) -> None:
        self.parent = parent
        self.entries = KeyIndex(key_types, namespaced=True)
        self.values = ColumnStore(self.entries, columns)

    @property
    def nbytes(self) -> int:
        """Bytes allocated."""
        return self.entries.nbytes + self.values.nbytes

    def find_or_insert(self, slots: Int32s, keys: Sequence[Any], skip: Bytes = NO_BYTES) -> tuple[Int32s, Int32s]:
        """Entry of each (slot, key), int32 (n,), -1 where skipped; and the rows whose entries are new (values zero)."""
        encoded = self.entries.encode(keys, slots.astype(np.int64))
        found, fresh = self.entries.find_or_insert(encoded, skip)
        self.values.ensure()
        return found, fresh

    def lookup(self, slots: Int32s, keys: Sequence[Any], skip: Bytes = NO_BYTES) -> Int32s:
        """Entry of each (slot, key), or -1."""
        return self.entries.lookup(self.entries.encode(keys, slots.astype(np.int64)), skip)

    def remove(self, entries: Int32s) -> None:
        """Delete live, distinct entries."""
        self.values.clear(entries)
        self.entries.remove(entries)

    def entries_of(self, slots: Int32s) -> Int32s:
        """Live entries of any of the slots. Reads every entry."""
        live = self.entries.live_slots()
        return live[np.isin(self.entries.namespaces_at(live), slots)]

    def drop_slots(self, slots: Int32s) -> None:
        """Delete every entry of the slots. Reads every entry."""
        if len(slots):
            self.remove(self.entries_of(slots))

    def save(self) -> Any:
        """Keys of the parent, keys ``m0 ..`` and columns of every entry."""
        self.values.ensure()
        live = self.entries.live_slots()
        owners = self.entries.namespaces_at(live).astype(np.int32)
        keys = self.entries.columns_at(live)
        names = [f"m{i}" for i in range(len(keys))] + [f"v:{column.name}" for column in self.values.columns]
        return key_table_of(self.parent, owners, [*keys, *self.values.gather(live)], names)

    def load(self, table: Any) -> None:
        """Insert the entries of a saved table."""
        slots = parent_slots(self.parent, table)
        keys = [flat(table.column(f"m{i}")) for i in range(len(self.entries.types))]
        entries, _ = self.find_or_insert(slots, keys)
        self.values.scatter(entries, [flat(table.column(f"v:{column.name}")) for column in self.values.columns])


def parent_slots(parent: KeyIndex, table: Any) -> Int32s:
    """Slots of the parent keys of a saved table; keys that are not there yet are put in."""
    return parent.find_or_insert(keys_of_table(parent, table))[0]
