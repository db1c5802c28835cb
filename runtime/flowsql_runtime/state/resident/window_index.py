"""A key index that knows its keys by namespace, and numbers them whatever their namespace: what windows wait."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from flowsql_runtime.kernels import slices as kernels
from flowsql_runtime.state.resident.growing import grow
from flowsql_runtime.state.resident.key_index import ResidentKeyIndex
from flowsql_runtime.state.resident.slot_lists import SlotLists

Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]


class ResidentWindowIndex(ResidentKeyIndex):
    """Implements ``WindowIndex``; see there."""

    def __init__(self, types: Sequence[Any]) -> None:
        super().__init__(types, namespaced=True)
        self._by_namespace = SlotLists()
        #: Namespaces that have keys, rising, and the number of the list of each.
        self._namespaces: Int64s = np.zeros(0, np.int64)
        self._lists: Int32s = np.zeros(0, np.int32)
        self._free_lists: list[int] = []
        self._keys: KeyNumbers | None = None

    @property
    def nbytes(self) -> int:
        """Bytes allocated."""
        return super().nbytes + self._by_namespace.nbytes + (0 if self._keys is None else self._keys.nbytes)

    def _came(self, slots: Int32s) -> None:
        super()._came(slots)
        found = self.namespaces_at(slots)
        at, known = self._find(found)
        if not known.all():
            self._put(np.unique(found[~known]))
            at = np.searchsorted(self._namespaces, found)
        self._by_namespace.add(slots, self._lists[at])
        if self._keys is not None:
            self._keys.add(slots, self)

    def _find(self, namespaces: Int64s) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
        """Where namespaces stand, and which do."""
        at = np.searchsorted(self._namespaces, namespaces)
        if not len(self._namespaces):
            return at, np.zeros(len(at), np.bool_)
        return at, self._namespaces[np.minimum(at, len(self._namespaces) - 1)] == namespaces

    def _put(self, fresh: Int64s) -> None:
        """Give new namespaces, rising, a list each."""
        used = len(self._namespaces) + len(self._free_lists)
        again = [self._free_lists.pop() for _ in range(min(len(fresh), len(self._free_lists)))]
        numbers = np.array([*again, *range(used, used + len(fresh) - len(again))], np.int32)
        at = np.searchsorted(self._namespaces, fresh)
        self._namespaces = np.insert(self._namespaces, at, fresh)
        self._lists = np.insert(self._lists, at, numbers)

    def remove(self, slots: Int32s) -> None:
        """Forget the keys of live, distinct slots."""
        if not len(slots):
            return
        at = np.searchsorted(self._namespaces, self.namespaces_at(slots))
        self._by_namespace.remove(slots, self._lists[at])
        touched = np.flatnonzero(np.bincount(at))
        gone = touched[self._by_namespace.counts(self._lists[touched]) == 0]
        if len(gone):
            self._free_lists += self._lists[gone].tolist()
            self._namespaces = np.delete(self._namespaces, gone)
            self._lists = np.delete(self._lists, gone)
        if self._keys is not None:
            self._keys.remove(slots)
        super().remove(slots)

    def earliest(self) -> int | None:
        """The smallest namespace, None without keys."""
        return int(self._namespaces[0]) if len(self._namespaces) else None

    def namespaces(self) -> Int64s:
        """All namespaces that have keys, rising."""
        return self._namespaces

    def up_to(self, namespace: int) -> tuple[Int64s, Int32s]:
        """Namespaces and slots of all keys at or before a namespace."""
        count = int(np.searchsorted(self._namespaces, namespace, side="right"))
        places, slots = self._by_namespace.members_of(self._lists[:count])
        return self._namespaces[places], slots

    def numbered(self, slots: Int32s) -> Int32s:
        """A number for the key of each slot, whatever its namespace."""
        if self._keys is None:
            self._keys = KeyNumbers(self.types)
            self._keys.add(self.live_slots(), self)
        return self._keys.numbers[slots]

    def most_numbers(self) -> int:
        """Above every number that :meth:`numbered` gives."""
        return 0 if self._keys is None else self._keys.high_water


class KeyNumbers:
    """Numbers of keys without their namespaces; made when somebody first asks, then kept up."""

    def __init__(self, types: Sequence[Any]) -> None:
        self._keys = ResidentKeyIndex(types, namespaced=True)
        #: By slot: the number of its key. By number: how many slots have it.
        self.numbers: Int32s = np.zeros(0, np.int32)
        self._uses: Int32s = np.zeros(0, np.int32)

    @property
    def high_water(self) -> int:
        """Above every number."""
        return self._keys.high_water

    @property
    def nbytes(self) -> int:
        """Bytes allocated."""
        return int(self._keys.nbytes + self.numbers.nbytes + self._uses.nbytes)

    def add(self, slots: Int32s, index: ResidentKeyIndex) -> None:
        """Number the keys of new slots."""
        if not len(slots):
            return
        keys = index.encoded_at(slots).with_namespaces(np.zeros(len(slots), np.int64))
        numbers, _ = self._keys.find_or_insert(keys)
        if index.high_water > len(self.numbers):
            grow(self, "numbers", index.high_water)
        if self._keys.high_water > len(self._uses):
            grow(self, "_uses", self._keys.high_water)
        self.numbers[slots] = numbers
        kernels.count_in(numbers, self._uses)

    def remove(self, slots: Int32s) -> None:
        """Free the numbers of keys that no slot has any more."""
        numbers = self.numbers[slots]
        unused = np.empty(len(numbers), np.int32)
        self._keys.remove(unused[: kernels.count_out(numbers, self._uses, unused)])
