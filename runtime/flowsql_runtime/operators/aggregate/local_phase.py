"""The first of two phases: one accumulator row per key and batch, before the exchange."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from flowsql_compute.functions.aggregate import is_mergeable
from flowsql_core.batch import ChangelogBatch, WatermarkTrack
from flowsql_core.errors import NotSupportedYetError
from flowsql_core.graph.specs import LocalGroupAggregateSpec
from flowsql_core.types.arrow import to_arrow
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
