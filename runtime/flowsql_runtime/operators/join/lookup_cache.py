"""Rows of keys that were looked up, kept for a while."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from flowsql_connectors.spi.lookup import FoundRows, PartialCache
from flowsql_core.clock import Clock
from flowsql_runtime.state.flat_rows import flat_columns, flat_types, whole_columns
from flowsql_runtime.state.scratch import scratch_stores

Bools = npt.NDArray[np.bool_]
Int32s = npt.NDArray[np.int32]


class LookupCache:
    """Keys with their rows, until they are too old or too many.

    Args:
        key_types, types: Arrow types of the key columns and of the rows.

    Source: Flink, ``DefaultLookupCache``.
    """

    def __init__(self, options: PartialCache, key_types: Sequence[Any], types: Sequence[Any], clock: Clock) -> None:
        self._options = options
        self._types = list(types)
        self._clock = clock
        stores = scratch_stores()
        self._index = stores.key_index(key_types)
        self._rows = stores.row_list("rows", self._index, [part for type_ in types for part in flat_types(type_)])
        self._written = stores.slot_times("written", self._index)
        self._asked = stores.slot_times("asked", self._index)
        #: By slot: the number of the request that asked for it last, 0 where no key is.
        self._requested = np.zeros(0, np.int64)
        self._request = 0

    def __len__(self) -> int:
        return len(self._index)

    def find(self, keys: Sequence[Any]) -> tuple[Bools, FoundRows]:
        """Which of distinct keys are known, and their rows."""
        self._expire()
        slots = self._index.lookup(self._index.encode(keys))
        self._touch(slots)
        positions, rows = self._rows.rows_of(slots)
        return slots >= 0, FoundRows(positions, whole_columns(self._types, self._rows.gather(rows)))

    def put(self, keys: Sequence[Any], found: FoundRows) -> None:
        """Keep the rows of distinct keys that were not known."""
        n = len(keys[0])
        skip = np.zeros(n, np.uint8)
        if not self._options.missing_keys:
            skip = (np.bincount(found.positions, minlength=n) == 0).astype(np.uint8)
        slots, _ = self._index.find_or_insert(self._index.encode(keys), skip)
        flat = [part for column in found.columns for part in flat_columns(column)]
        self._rows.append(np.ascontiguousarray(slots[found.positions]), flat)
        self._written.touch(slots[slots >= 0], self._clock.now_ms())
        self._touch(slots)
        self._evict()

    def _touch(self, slots: Int32s) -> None:
        known = slots[slots >= 0]
        self._request += 1
        self._asked.touch(known, self._clock.now_ms())
        most = int(known.max(initial=-1)) + 1
        if most > len(self._requested):
            self._requested = np.concatenate((self._requested, np.zeros(most, np.int64)))
        self._requested[known] = self._request

    def _expire(self) -> None:
        now = self._clock.now_ms()
        if self._options.expire_after_write_ms is not None:
            self._drop(self._written.expired(now - self._options.expire_after_write_ms))
        if self._options.expire_after_access_ms is not None:
            self._drop(self._asked.expired(now - self._options.expire_after_access_ms))

    def _evict(self) -> None:
        """Make room once there are too many keys: those that were not asked for longest leave, a tenth at least."""
        most = self._options.max_keys
        if most is not None and len(self._index) > most:
            slots = np.flatnonzero(self._requested).astype(np.int32)
            gone = len(slots) - (most - most // 10)
            self._drop(slots[np.argsort(self._requested[slots], kind="stable")[:gone]])

    def _drop(self, slots: Int32s) -> None:
        if len(slots):
            for times in (self._written, self._asked):
                times.drop_slots(slots)
            self._requested[slots] = 0
            self._rows.drop_slots(slots)
            self._index.remove(slots)
