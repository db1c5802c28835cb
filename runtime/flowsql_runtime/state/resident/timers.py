"""Timers of slots by time, in memory."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flowsql_compute.eval.columns import values_and_validity
from flowsql_runtime.state.arrow_words import value_words
from flowsql_runtime.state.resident.column_store import flat, key_table_of, parent_slots
from flowsql_runtime.state.resident.frozen import Frozen, Moment
from flowsql_runtime.state.resident.key_index import ResidentKeyIndex
from flowsql_runtime.state.resident.sorted_list import ResidentSortedList
from flowsql_runtime.state.stores import SortColumn

Int8s = npt.NDArray[np.int8]
Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]

_TIME: Final = "time"
#: The one slot of the list that all timers stand in.
_ALL: Final = np.zeros(1, np.int32)


class ResidentTimers:
    """Implements ``Timers``: one sorted list of (time, slot), each pair once."""

    def __init__(self, parent: ResidentKeyIndex) -> None:
        self.parent = parent
        one = ResidentKeyIndex([])
        one.find_or_insert(one.encode([], num_rows=1))
        self._timers = ResidentSortedList(one, [pa.int64(), pa.int32()], [SortColumn(0)], unique=(0, 1))
        self.watchers: tuple[Frozen, ...] = ()

    def __len__(self) -> int:
        return len(self._timers)

    @property
    def nbytes(self) -> int:
        """Bytes allocated."""
        return self._timers.nbytes

    def register(self, times_ms: Int64s, slots: Int32s) -> None:
        """Fire at times."""
        self._apply(np.ones(len(slots), np.int8), times_ms, slots)

    def delete(self, times_ms: Int64s, slots: Int32s) -> None:
        """Forget timers."""
        self._apply(np.full(len(slots), -1, np.int8), times_ms, slots)

    def _apply(self, signs: Int8s, times_ms: Int64s, slots: Int32s) -> None:
        if len(slots):
            everywhere = np.where(slots < 0, np.int32(-1), np.int32(0))
            self._timers.apply(signs, everywhere, [pa.array(times_ms), pa.array(slots)])

    def earliest(self) -> int | None:
        """The time of the next timer, None without timers."""
        rows = self._timers.rows_of(_ALL, count=1)[1]
        return int(self._columns(rows)[0][0]) if len(rows) else None

    def due(self, until_ms: int) -> tuple[Int64s, Int32s]:
        """Take the timers at or before a time."""
        times, slots = self._columns(self._timers.between(_ALL, high=[pa.array([until_ms], pa.int64())])[1])
        self.delete(times, slots)
        return times, slots

    def all_pairs(self) -> tuple[Int64s, Int32s]:
        """Times and slots of all timers, in order of arrival."""
        return self._columns(self._timers.rows.rows_of(_ALL)[1])

    def _columns(self, rows: Int32s) -> tuple[Int64s, Int32s]:
        times, slots = (values_and_validity(column)[0] for column in self._timers.gather(rows))
        return times, slots

    def freeze(self, moment: Moment) -> Frozen:
        """The timers of this moment; see ``Freezable``."""
        return Frozen(self, parts={"parent": moment.of(self.parent), "_timers": moment.of(self._timers)})

    def save(self) -> Any:
        """Keys and times of all timers."""
        times, slots = self.all_pairs()
        return key_table_of(self.parent, slots, [pa.array(times)], [_TIME])

    def load(self, table: Any) -> None:
        """Register the timers of a saved table."""
        self.register(value_words(flat(table.column(_TIME))).words[0], parent_slots(self.parent, table))
