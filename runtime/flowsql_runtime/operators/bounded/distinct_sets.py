"""The values that DISTINCT calls of a bounded aggregate have seen, group by group."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from flowsql_compute.eval.columns import validity, values_and_validity
from flowsql_core.graph.bounded_specs import DistinctAggregateSpec, DistinctRowsSpec, DistinctValues
from flowsql_core.types.arrow import to_arrow
from flowsql_runtime.state.scratch import ScratchEntries, scratch_entries
from flowsql_runtime.state.stores import NO_BYTES, EncodedKeys

Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


class SeenValues:
    """Values of each set, each once for a group. Groups are slots.

    Args:
        types: of the columns of each set.
    """

    def __init__(self, types: Sequence[Sequence[Any]]) -> None:
        self._types = types
        self.clear()

    def clear(self) -> None:
        """Nothing was seen, and memory is free."""
        self._indexes = [scratch_entries(own) for own in self._types]

    @property
    def nbytes(self) -> int:
        """Bytes that they take."""
        return sum(index.nbytes for index in self._indexes)

    def first_rows(self, number: int, slots: Int32s, values: Sequence[Any], taken: Bools | None) -> Int32s:
        """Rows (rising) whose value comes to its group for the first time, of those that are ``taken``."""
        index = self._indexes[number]
        return index.find_or_insert(self._encoded(index, slots, values), _skip(taken))[1]

    def unknown(self, number: int, slots: Int32s, values: Sequence[Any], taken: Bools | None) -> Int64s:
        """Rows whose value their group has not seen, of those that are ``taken``; they are not put in."""
        index = self._indexes[number]
        entries = index.lookup(self._encoded(index, slots, values), _skip(taken))
        missing = entries < 0
        return np.flatnonzero(missing if taken is None else missing & taken)

    def _encoded(self, index: ScratchEntries, slots: Int32s, values: Sequence[Any]) -> EncodedKeys:
        return index.encode(values, slots.astype(np.int64))


def _skip(taken: Bools | None) -> npt.NDArray[np.uint8]:
    return NO_BYTES if taken is None else (~taken).view(np.uint8)


def value_types(spec: DistinctAggregateSpec | DistinctRowsSpec) -> list[list[Any]]:
    """Arrow types of the columns of each set."""
    return [[to_arrow(spec.input[column].type) for column in own.columns] for own in spec.sets]


def rows_of_set(own: DistinctValues, columns: Sequence[Any]) -> Bools | None:
    """Which rows have a value of a set: none of its columns NULL, its filter TRUE; None where all do."""
    taken: Bools | None = None
    parts = [validity(columns[column]) for column in own.columns]
    if own.filter_index is not None:
        values, valid = values_and_validity(columns[own.filter_index])
        parts += [values, valid]
    for part in parts:
        if part is not None:
            taken = part if taken is None else taken & part
    return taken
