"""When each slot was written to last, in memory: state that expires."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flowsql_runtime.state.arrow_words import value_words
from flowsql_runtime.state.resident.column_store import flat, key_table_of, parent_slots
from flowsql_runtime.state.resident.frozen import Frozen, Moment
from flowsql_runtime.state.resident.key_index import ResidentKeyIndex
from flowsql_runtime.state.resident.slot_lists import TouchOrder

Int32s = npt.NDArray[np.int32]

_AT: Final = "at"


class ResidentSlotTimes:
    """Implements ``SlotTimes``; see there."""

    def __init__(self, index: ResidentKeyIndex) -> None:
        self.index = index
        self._order = TouchOrder()
        self.watchers: tuple[Frozen, ...] = ()

    @property
    def nbytes(self) -> int:
        """Bytes allocated."""
        return self._order.nbytes

    def touch(self, slots: Int32s, now_ms: int) -> None:
        """They were written to now."""
        self._order.touch(slots, now_ms)

    def expired(self, until_ms: int) -> Int32s:
        """Take out the slots that were written to last at or before a time."""
        slots = self._order.older(until_ms)
        self._order.forget(slots)
        return slots

    def drop_slots(self, slots: Int32s) -> None:
        """Forget slots."""
        self._order.forget(slots)

    def freeze(self, moment: Moment) -> Frozen:
        """The times of this moment; see ``Freezable``."""
        return Frozen(self, parts={"index": moment.of(self.index), "_order": moment.of(self._order)})

    def save(self) -> Any:
        """Keys and times of all slots."""
        slots = self._order.ids()
        return key_table_of(self.index, slots, [pa.array(self._order.stamps_at(slots))], [_AT])

    def load(self, table: Any) -> None:
        """Insert the times of a saved table."""
        self._order.load(parent_slots(self.index, table), value_words(flat(table.column(_AT))).words[0])
