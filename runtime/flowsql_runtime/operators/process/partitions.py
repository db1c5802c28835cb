"""The partitions of a process table function: their keys, state entries and timers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from flowsql_core.process_function import StateEntry
from flowsql_core.types.arrow import to_arrow
from flowsql_core.types.logical import Schema
from flowsql_runtime.operators.base import OperatorContext
from flowsql_runtime.operators.process.entries import Entry, make_entry
from flowsql_runtime.operators.process.timers import PartitionTimers
from flowsql_runtime.state.names import TableNames

Int32s = npt.NDArray[np.int32]


class Partitions:
    """State by partition key. An element is worked on between :meth:`begin` and :meth:`end`.

    Args:
        keys: columns of the key.
        ttl_ms: of each state entry.
    """

    def __init__(
        self,
        ctx: OperatorContext,
        keys: Schema,
        states: Sequence[StateEntry],
        ttl_ms: Sequence[int],
        makers: Mapping[str, Callable[..., Any]],
        with_timers: bool,
        zone: str,
    ) -> None:
        self._clock = ctx.clock
        self.index = ctx.state.key_index([to_arrow(column.type) for column in keys])
        self.entries: list[Entry] = [
            make_entry(declared, ttl, zone, makers) for declared, ttl in zip(states, ttl_ms, strict=True)
        ]
        for entry in self.entries:
            entry.open(ctx.state, self.index)
        self.timers = PartitionTimers(ctx.state, self.index) if with_timers else None
        self._touched = np.zeros(0, np.int32)
        self._expired = np.zeros(0, np.int32)

    def table_names(self) -> dict[str, TableNames]:
        """What the stores mean."""
        tables: dict[str, TableNames] = {}
        for entry in self.entries:
            tables |= entry.table_names()
        return tables if self.timers is None else tables | self.timers.table_names()

    def expire(self) -> None:
        """Forget what is too old, before the slots of an element's rows are asked for."""
        now = self._clock.now_ms()
        gone = [entry.expire(now) for entry in self.entries if entry.ttl_ms]
        self._expired = np.unique(np.concatenate([self._expired, *gone])).astype(np.int32)

    def slots_of(self, keys: Sequence[Any], num_rows: int) -> Int32s:
        """The partition of each row."""
        return self.index.find_or_insert(self.index.encode(keys, num_rows=num_rows))[0]

    def begin(self, slots: Int32s, until_ms: int | None) -> None:
        """Load the partitions of rows, and of timers that fire until a watermark."""
        self.expire()
        touched = np.unique(slots)
        if self.timers is not None:
            touched = np.union1d(touched, self.timers.begin(until_ms))
        self._touched = touched.astype(np.int32)
        for entry in self.entries:
            entry.load(self._touched)

    def objects(self, slot: int) -> list[Any]:
        """The state entries of a partition, as functions see them."""
        return [entry.at(slot) for entry in self.entries]

    def clear(self, slot: int, names: Sequence[str]) -> None:
        """Forget state entries."""
        for entry in self.entries:
            if entry.name in names:
                entry.clear(slot)

    def end(self) -> None:
        """Write what changed, and give back partitions of which nothing is kept."""
        now = self._clock.now_ms()
        touched = self._touched
        kept = np.zeros(len(touched), np.bool_)
        for entry in self.entries:
            kept |= entry.keep(touched, now)
        if self.timers is not None:
            kept |= self.timers.keep(touched)
        gone = touched[~kept]
        others = np.setdiff1d(self._expired, touched).astype(np.int32)
        self._expired = np.zeros(0, np.int32)
        if len(others):
            gone = np.concatenate((gone, others[~self._holds(others)])).astype(np.int32)
        if len(gone):
            for entry in self.entries:
                entry.forget(gone)
            if self.timers is not None:
                self.timers.forget(gone)
            self.index.remove(gone)

    def _holds(self, slots: Int32s) -> npt.NDArray[np.bool_]:
        """Whether anything is kept of partitions that took no part."""
        found = np.zeros(len(slots), np.bool_)
        for entry in self.entries:
            found |= entry.holds(slots)
        if self.timers is not None:
            found |= self.timers.holds(slots)
        return found
