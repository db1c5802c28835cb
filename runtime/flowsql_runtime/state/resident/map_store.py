"""(Slot of a parent index, key) -> columns in memory: DISTINCT views, unique-key sides of joins, MapState."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from flowsql_runtime.kernels import accumulate as kernels
from flowsql_runtime.state.resident.column_store import ResidentColumnStore, flat, key_table_of, parent_slots
from flowsql_runtime.state.resident.entry_index import EntryIndex
from flowsql_runtime.state.resident.frozen import Freezable, Frozen, Moment, keep
from flowsql_runtime.state.resident.key_index import ResidentKeyIndex
from flowsql_runtime.state.stores import NO_BYTES, StoredColumn

Int8s = npt.NDArray[np.int8]
Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]


class ResidentMapStore:
    """Implements ``MapStore``. The parent's slot is the namespace of the entry's key.

    Whoever frees a slot of the parent drops its entries first.
    """

    def __init__(self, parent: ResidentKeyIndex, key_types: Sequence[Any], columns: Sequence[StoredColumn]) -> None:
        self.parent = parent
        self.entries = EntryIndex(key_types)
        self.values = ResidentColumnStore(self.entries, columns)
        self.watchers: tuple[Frozen, ...] = ()

    def __len__(self) -> int:
        return len(self.entries)

    @property
    def nbytes(self) -> int:
        """Bytes allocated."""
        return self.entries.nbytes + self.values.nbytes

    def find_or_insert(self, slots: Int32s, keys: Sequence[Any], skip: Bytes = NO_BYTES) -> tuple[Int32s, Int32s]:
        """Entry of each (slot, key), and the rows whose entries are new (values zero)."""
        encoded = self.entries.encode(keys, slots.astype(np.int64))
        found, fresh = self.entries.find_or_insert(encoded, skip)
        self.values.ensure()
        return found, fresh

    def lookup(self, slots: Int32s, keys: Sequence[Any], skip: Bytes = NO_BYTES) -> Int32s:
        """Entry of each (slot, key), or -1."""
        return self.entries.lookup(self.entries.encode(keys, slots.astype(np.int64)), skip)

    def gather(self, entries: Int32s) -> list[Any]:
        """Columns of entries."""
        return self.values.gather(entries)

    def scatter(self, entries: Int32s, arrays: Sequence[Any]) -> None:
        """Write the columns of entries."""
        self.values.scatter(entries, arrays)

    def keys_at(self, entries: Int32s) -> list[Any]:
        """Key columns of entries."""
        return self.entries.columns_at(entries)

    def iterate_slot(self, slots: Int32s) -> tuple[Int32s, Int32s]:
        """Pairs (position in ``slots``, entry)."""
        return self.entries.entries_of(slots)

    def count_distinct(self, entries: Int32s, signs: Int8s, bits: bool) -> Int8s:
        """Take each row's entry in or out; see ``MapStore``."""
        keep(self.values, entries)
        out = np.empty_like(signs)
        gone = np.empty(signs.size, np.int32)
        self._remove_empty(gone[: kernels.distinct(self.values.rows, entries, signs, bits, out, gone)])
        return out

    def count_distinct_net(self, entries: Int32s, changes: Int64s) -> Int8s:
        """Change the counts of each row's entry; see ``MapStore``."""
        keep(self.values, entries)
        out = np.empty(changes.shape, np.int8)
        gone = np.empty(changes.size, np.int32)
        self._remove_empty(gone[: kernels.distinct_net(self.values.rows, entries, changes, out, gone)])
        return out

    def _remove_empty(self, entries: Int32s) -> None:
        """Delete those of entries whose counts are 0."""
        if len(entries):
            empty = np.unique(entries)
            self.remove(empty[~self.values.rows[empty].any(axis=1)])

    def remove(self, entries: Int32s) -> None:
        """Delete live, distinct entries."""
        self.values.clear(entries)
        self.entries.remove(entries)

    def drop_slots(self, slots: Int32s) -> None:
        """Delete every entry of the slots."""
        if len(slots) and len(self.entries):
            self.remove(self.entries.entries_of(slots)[1])

    def freeze(self, moment: Moment) -> Frozen:
        """The entries of this moment; see ``Freezable``."""
        parts: dict[str, Freezable] = {"parent": self.parent, "entries": self.entries, "values": self.values}
        return Frozen(self, parts={name: moment.of(part) for name, part in parts.items()})

    def save(self) -> Any:
        """Keys of the parent, keys ``m0 ..`` and columns of every entry."""
        self.values.ensure()
        live = self.entries.live_slots()
        owners = self.entries.owners_at(live)
        keys = self.entries.columns_at(live)
        names = [f"m{i}" for i in range(len(keys))] + [f"v:{column.name}" for column in self.values.columns]
        return key_table_of(self.parent, owners, [*keys, *self.values.gather(live)], names)

    def load(self, table: Any) -> None:
        """Insert the entries of a saved table."""
        slots = parent_slots(self.parent, table)
        keys = [flat(table.column(f"m{i}")) for i in range(len(self.entries.types))]
        entries, _ = self.find_or_insert(slots, keys)
        self.values.scatter(entries, [flat(table.column(f"v:{column.name}")) for column in self.values.columns])
