"""Groups of a bounded input in memory: their accumulators fold rows or merge, and give results once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from flowsql_core.batch import ChangelogBatch
from flowsql_core.graph.bounded_specs import BoundedAggregateSpec, BoundedLocalAggregateSpec, SortAggregateSpec
from flowsql_core.types.arrow import to_arrow
from flowsql_runtime.operators.aggregate.program import AggregateProgram
from flowsql_runtime.operators.bounded.approximate import Registers
from flowsql_runtime.operators.bounded.base import OUTPUT_ROWS
from flowsql_runtime.state.measured import MeasuredStores
from flowsql_runtime.state.stores import EncodedKeys

Int32s = npt.NDArray[np.int32]


class Groups:
    """The groups of an input, or of a part of it: slots are numbers in order of first sight."""

    def __init__(self, spec: BoundedAggregateSpec | SortAggregateSpec | BoundedLocalAggregateSpec) -> None:
        self._merges = not isinstance(spec, BoundedLocalAggregateSpec) and spec.merges
        self._grouping = arriving_keys(spec)
        self._stores = MeasuredStores()
        self._index = self._stores.key_index([to_arrow(spec.input[column].type) for column in spec.grouping])
        self._registers = Registers(spec.calls, spec.input)
        self._program = AggregateProgram(self._registers.calls, self._registers.input, retracts=False)
        self._program.open(self._stores, self._index)

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self._index)

    @property
    def nbytes(self) -> int:
        """Bytes that they take."""
        return self._stores.nbytes

    def make_global(self) -> None:
        """The group of all rows, also where there is none."""
        self._index.find_or_insert(self._index.encode([], num_rows=1))

    def _encoded(self, batch: ChangelogBatch) -> EncodedKeys:
        columns = [batch.columns[column] for column in self._grouping]
        return self._index.encode(columns, num_rows=batch.num_rows)

    def fold(self, batch: ChangelogBatch, only_known: bool) -> ChangelogBatch | None:
        """Take rows in. ``only_known``: rows of other groups come back."""
        keys = self._encoded(batch)
        left = None
        if only_known:
            slots = self._index.lookup(keys)
            known = slots >= 0
            if not known.all():
                left = batch.part(np.flatnonzero(~known))
                batch, slots = batch.part(np.flatnonzero(known)), slots[known]
        else:
            slots, _ = self._index.find_or_insert(keys)
        if batch.num_rows:
            signs = np.ones(batch.num_rows, np.int8)
            if self._merges:
                accumulators = batch.columns[len(self._grouping) :]
                self._program.merge_rows(slots, self._program.rows_of_accumulators(accumulators, batch.num_rows))
            else:
                self._program.take_in(slots, self._registers.added(batch.columns), signs)
        return left

    def fold_all(self, batch: ChangelogBatch) -> Int32s:
        """Take rows in; returns the slot of each. Only where calls merge."""
        keys = self._encoded(batch)
        slots, _ = self._index.find_or_insert(keys)
        if self._program.calls:
            self._program.take_in(slots, batch.columns, np.ones(batch.num_rows, np.int8))
        return slots

    def batches(self) -> Iterator[ChangelogBatch]:
        """Keys and results of all groups."""
        return self._rows(self._program.results_at)

    def partial_batches(self) -> Iterator[ChangelogBatch]:
        """Keys and accumulators of all groups."""
        return self._rows(self._program.accumulators_at)

    def _rows(self, values_at: Callable[[Int32s], Sequence[Any]]) -> Iterator[ChangelogBatch]:
        for first in range(0, self.count, OUTPUT_ROWS):
            slots = np.arange(first, min(first + OUTPUT_ROWS, self.count), dtype=np.int32)
            keys = self._index.columns_at(slots) if self._grouping else []
            yield ChangelogBatch((*keys, *values_at(slots)), len(slots))


def arriving_keys(spec: BoundedAggregateSpec | SortAggregateSpec | BoundedLocalAggregateSpec) -> tuple[int, ...]:
    """Where the keys stand in rows that arrive: those of a local aggregate have them in front."""
    if isinstance(spec, BoundedLocalAggregateSpec) or not spec.merges:
        return spec.grouping
    return tuple(range(len(spec.grouping)))
