"""A key index whose namespace is the slot of a parent: the entries of a map or a multiset, found by slot as well."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from flowsql_runtime.state.resident.key_index import ResidentKeyIndex
from flowsql_runtime.state.resident.slot_lists import SlotLists

Int32s = npt.NDArray[np.int32]


class EntryIndex(ResidentKeyIndex):
    """Entries (slot of the parent, key).

    Entries are linked by slot from the first time on that somebody asks by slot: the one scan that this takes reads
    each entry once, and who never asks pays nothing.
    """

    def __init__(self, types: Sequence[Any]) -> None:
        super().__init__(types, namespaced=True)
        self._by_slot: SlotLists | None = None

    @property
    def nbytes(self) -> int:
        """Bytes allocated."""
        return super().nbytes + (0 if self._by_slot is None else self._by_slot.nbytes)

    def owners_at(self, entries: Int32s) -> Int32s:
        """Slot of the parent of each entry."""
        return self.namespaces_at(entries).astype(np.int32)

    def entries_of(self, slots: Int32s) -> tuple[Int32s, Int32s]:
        """Pairs (position in ``slots``, entry), by position, then as entries were put in."""
        if self._by_slot is None:
            self._by_slot = SlotLists()
            live = self.live_slots()
            self._by_slot.add(live, self.owners_at(live))
        return self._by_slot.members_of(slots)

    def _came(self, slots: Int32s) -> None:
        super()._came(slots)
        if self._by_slot is not None:
            self._by_slot.add(slots, self.owners_at(slots))

    def remove(self, slots: Int32s) -> None:
        """Forget entries."""
        if self._by_slot is not None and len(slots):
            self._by_slot.remove(slots, self.owners_at(slots))
        super().remove(slots)
