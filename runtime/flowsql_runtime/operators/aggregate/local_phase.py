"""The first phase of an aggregate: one accumulator row per key and batch, before the exchange."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from flowsql_compute.eval.columns import values_and_validity
from flowsql_compute.functions.aggregate import is_mergeable
from flowsql_compute.functions.distinct_sets import DistinctSet, distinct_sets
from flowsql_core.arrow import compute as pc
from flowsql_core.batch import ChangelogBatch, ColumnData, WatermarkTrack
from flowsql_core.errors import NotSupportedYetError
from flowsql_core.expr import AggregateCall
from flowsql_core.graph.aggregate_specs import LocalSetAggregateSpec
from flowsql_core.graph.specs import LocalGroupAggregateSpec
from flowsql_core.types.arrow import to_arrow
from flowsql_core.types.logical import BIGINT, Column
from flowsql_runtime.operators.aggregate.group import signs_of
from flowsql_runtime.operators.aggregate.program import AggregateProgram
from flowsql_runtime.operators.base import Operator, OperatorContext
from flowsql_runtime.state.scratch import scratch_stores


class LocalGroupAggregateOperator(Operator[LocalGroupAggregateSpec]):
    """Pre-aggregate each batch.

    In     any changelog; every call merges.
    Out    +I rows: grouping columns, accumulators of each call (``local_columns``), ``count1$`` if the input retracts.
    State  none: nothing outlives a batch.
    """

    def __init__(self, spec: LocalGroupAggregateSpec) -> None:
        super().__init__(spec)
        for call in spec.calls:
            if not is_mergeable(call, spec.input_retracts):
                raise NotSupportedYetError(f"two-phase {call.function}", at=call.span)

    def open(self, ctx: OperatorContext) -> None:
        """One program for all batches: memory that was written before is cheaper than new one."""
        spec = self.spec
        self._program = AggregateProgram(spec.calls, spec.input, spec.input_retracts, clear_at_zero=False)
        stores = scratch_stores()
        self._index = stores.key_index([to_arrow(spec.input[column].type) for column in spec.grouping])
        self._program.open(stores, self._index)

    def process_batch(self, input_index: int, batch: ChangelogBatch) -> None:
        """Aggregate and emit."""
        track = self.advance_track(input_index, batch.track)
        program, index = self._program, self._index
        program.reset()
        keys = [batch.columns[column] for column in self.spec.grouping]
        slots, fresh = index.find_or_insert(index.encode(keys, num_rows=batch.num_rows))
        program.take_in(slots, batch.columns, signs_of(batch))
        at = slots[fresh]
        rows = pa.array(fresh)
        columns: list[Any] = [key.take(rows) for key in keys]
        columns.extend(program.accumulators_at(at))
        if track is not None:
            track = WatermarkTrack(np.full(len(track), len(at), np.int32), track.wm_ms)
        self.collect_within_offsets(ChangelogBatch(tuple(columns), len(at), None, None, track))


class LocalSetAggregateOperator(LocalGroupAggregateOperator):
    """Pre-aggregate each batch per key and distinct value.

    In     any changelog; every call merges but for DISTINCT.
    Out    +I rows: see ``local_set_columns``. A value that no FILTER of its set takes is NULL, so that such rows meet.
    State  none.
    """

    def __init__(self, spec: LocalSetAggregateSpec) -> None:
        self._sets = distinct_sets(spec.calls)
        first = len(spec.input)
        values = [
            Column(f"distinct${i}", spec.input[one.column].type.as_nullable()) for i, one in enumerate(self._sets)
        ]
        counts = [_count(spec, one, chosen) for one in self._sets for chosen in one.filters]
        super().__init__(
            LocalGroupAggregateSpec(
                (*spec.grouping, *range(first, first + len(values))),
                (*counts, *(call for call in spec.calls if not call.distinct)),
                (*spec.input, *values),
                spec.output,
                spec.input_retracts,
            )
        )

    def process_batch(self, input_index: int, batch: ChangelogBatch) -> None:
        """Aggregate and emit."""
        columns = (*batch.columns, *(_counted_values(batch, one) for one in self._sets))
        super().process_batch(input_index, ChangelogBatch(columns, batch.num_rows, batch.kinds, None, batch.track))


def _count(spec: LocalSetAggregateSpec, one: DistinctSet, chosen: int | None) -> AggregateCall:
    """How often a value comes under one FILTER: a NULL never."""
    argument = next(call.args for call in spec.calls if call.distinct and call.args[0].index == one.column)
    return AggregateCall("COUNT", argument, BIGINT.as_nullable(False), "", False, chosen)


def _counted_values(batch: ChangelogBatch, one: DistinctSet) -> ColumnData:
    """A set's column, NULL where no FILTER takes the row."""
    column = batch.columns[one.column]
    taken = np.zeros(batch.num_rows, np.bool_)
    for chosen in one.filters:
        if chosen is None:
            return column
        values, valid = values_and_validity(batch.columns[chosen])
        taken |= values if valid is None else values & valid
    return column if taken.all() else pc.if_else(pa.array(taken), column, pa.scalar(None, column.type))
