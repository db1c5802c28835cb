"""DISTINCT apart from what is aggregated: the values that were seen in one place, the accumulators in another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from flowsql_core.expr import AggregateCall
from flowsql_core.types.logical import Schema
from flowsql_runtime.operators.aggregate.changes import Changes
from flowsql_runtime.operators.aggregate.program import AggregateProgram
from flowsql_runtime.state.stores import NO_BYTES

Int8s = npt.NDArray[np.int8]
Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]


class DistinctSets(AggregateProgram):
    """The values that the DISTINCT calls among ``calls`` have seen, and how many rows a slot has; no accumulators."""

    def __init__(self, calls: Sequence[AggregateCall], input: Schema, retracts: bool) -> None:
        super().__init__((), input, retracts)
        self.calls = tuple(call for call in calls if call.distinct)
        self._group_calls()

    def signs(self, number: int, slots: Int32s, values: Any, counts: Int64s) -> Int8s:
        """Where values come into a set, 1, and go out of it, -1.

        Args:
            number: of the set.
            values: Arrow array (n,).
            counts: (f, n): how often each came more than it went, by FILTER.

        Returns:
            (f, n).
        """
        store = self._distinct[number]
        absent: npt.NDArray[np.bool_] = np.asarray(~counts.any(axis=0))
        skip: npt.NDArray[np.uint8] = absent.view(np.uint8) if absent.any() else NO_BYTES
        entries, _ = store.find_or_insert(slots, [values], skip)
        if self.retracts:
            return store.count_distinct_net(entries, counts)
        return store.count_distinct(entries, (counts > 0).astype(np.int8), bits=True)

    def count_rows(self, slots: Int32s, counts: Int64s) -> Changes:
        """Change how many rows slots have, by (n,)."""
        self.store.prepare()
        return self.merge_rows(slots, np.ascontiguousarray(counts).reshape(-1, 1))


class MergingProgram(AggregateProgram):
    """Calls whose DISTINCT values others keep: their signs are given, or accumulator rows are merged."""

    def __init__(
        self, calls: Sequence[AggregateCall], input: Schema, retracts: bool, clear_at_zero: bool = True
    ) -> None:
        super().__init__(calls, input, retracts, clear_at_zero)
        self._kept_sets = []
        self._given: Sequence[Int8s] = ()

    def take_in_distinct(self, slots: Int32s, columns: Sequence[Any], sets: Sequence[Int8s]) -> None:
        """Take rows in by the signs of each set, (f, n), as :meth:`DistinctSets.signs` has them."""
        self._given = sets
        self.take_in(slots, columns, np.ones(len(slots), np.int8))

    def _distinct_signs(self, number: int, group: Any, slots: Int32s, columns: Sequence[Any]) -> Any:
        return self._given[number]
