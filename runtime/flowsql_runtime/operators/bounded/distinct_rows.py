"""The first phase of an aggregate with DISTINCT calls: values and folded rows on their way to other tasks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flowsql_compute.keys import key_hash64
from flowsql_core.batch import ChangelogBatch
from flowsql_core.graph.bounded_specs import BoundedLocalAggregateSpec, DistinctRowsSpec
from flowsql_core.types.arrow import to_arrow
from flowsql_runtime.operators.base import OperatorContext
from flowsql_runtime.operators.bounded.base import BoundedOperator
from flowsql_runtime.operators.bounded.distinct_sets import SeenValues, rows_of_set, value_types
from flowsql_runtime.operators.bounded.groups import Groups

Int32s = npt.NDArray[np.int32]

#: Rows of a set after which its values travel as they come if more than this share of them were new.
SAMPLED_ROWS: Final = 100_000
NEW_SHARE: Final = 0.5


class DistinctRowsOperator(BoundedOperator[DistinctRowsSpec]):
    """Values leave when they come to this task for the first time; what sees each row is folded, and leaves at the end.

    Values that are mostly new are not looked up. All is forgotten when it takes the operator's share: the next phase
    takes a value and a group any number of times.

    In     insert-only, as the rows stand in the task.
    Out    rows of one set each, and rows with accumulators.

    Source: Flink, ``HashAggCodeGenerator`` (a local aggregate stops where it does not reduce).
    """

    def open(self, ctx: OperatorContext) -> None:
        """No group yet."""
        spec = self.spec
        every = tuple(call for call, place in zip(spec.calls, spec.set_of, strict=True) if place < 0)
        keys = len(spec.grouping)
        self._types = [to_arrow(column.type) for column in spec.output]
        number = keys + sum(len(own.columns) for own in spec.sets)
        output = (*spec.output[:keys], *spec.output[number + 2 :])
        self._local = BoundedLocalAggregateSpec(spec.grouping, every, spec.input, output)
        self._sampled = [0] * len(spec.sets)
        self._new = [0] * len(spec.sets)
        self._clear()

    def _clear(self) -> None:
        self._groups = Groups(self._local)
        self._seen = SeenValues(value_types(self.spec))

    def process_batch(self, input_index: int, batch: ChangelogBatch) -> None:
        """Fold rows; first values leave."""
        n = batch.num_rows
        if not n:
            return
        slots = self._groups.fold_all(batch)
        for number, own in enumerate(self.spec.sets):
            taken = rows_of_set(own, batch.columns)
            if self._sampled[number] > SAMPLED_ROWS and self._new[number] > NEW_SHARE * self._sampled[number]:
                self._emit(number, batch, None if taken is None else np.flatnonzero(taken))
                continue
            values = [batch.columns[column] for column in own.columns]
            first = self._seen.first_rows(number, slots, values, taken)
            self._sampled[number] += n if taken is None else int(np.count_nonzero(taken))
            self._new[number] += len(first)
            self._emit(number, batch, first)
        size = self._groups.nbytes + self._seen.nbytes
        if size > self.share_bytes or not self.ctx.memory.try_resize(size):
            self.answer()

    def answer(self) -> None:
        """Folded rows leave, and memory is free."""
        keys = len(self.spec.grouping)
        for batch in self._groups.partial_batches():
            self._send(len(self.spec.sets), batch.columns[:keys], (), batch.columns[keys:], batch.num_rows)
        self._clear()
        self.ctx.memory.resize(0)

    def _emit(self, number: int, batch: ChangelogBatch, rows: npt.NDArray[Any] | None) -> None:
        """Rows of a set with their keys; None: all of them."""
        columns = (*self.spec.grouping, *self.spec.sets[number].columns)
        count = batch.num_rows if rows is None else len(rows)
        if not count:
            return
        made = [batch.columns[column] for column in columns]
        if count < batch.num_rows:
            places = pa.array(rows)
            made = [column.take(places) for column in made]
        keys = len(self.spec.grouping)
        self._send(number, made[:keys], made[keys:], (), count)

    def _send(
        self, number: int, keys: Sequence[Any], values: Sequence[Any], accumulators: Sequence[Any], count: int
    ) -> None:
        columns: list[Any] = [*keys]
        for place, own in enumerate(self.spec.sets):
            width = len(own.columns)
            types = self._types[len(columns) : len(columns) + width]
            columns += values if place == number else [pa.nulls(count, type_) for type_ in types]
        columns.append(pa.array(np.full(count, number, np.int32)))
        own_columns = [*keys, *values]
        hashes = key_hash64(own_columns, count).view(np.int64) if own_columns else np.zeros(count, np.int64)
        columns.append(pa.array(hashes))
        columns += accumulators or [pa.nulls(count, type_) for type_ in self._types[len(columns) :]]
        self.collect_within_offsets(ChangelogBatch(tuple(columns), count))
