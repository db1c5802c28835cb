"""The second of three phases: which distinct values are new, and the accumulators of what that changes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from flowsql_compute.functions.aggregate import accumulator_columns
from flowsql_compute.functions.distinct_sets import distinct_sets
from flowsql_core.batch import ChangelogBatch, WatermarkTrack, columns_of
from flowsql_core.element import Watermark
from flowsql_core.graph.aggregate_specs import IncrementalGroupAggregateSpec
from flowsql_core.graph.lineage import Lineage
from flowsql_core.types.arrow import to_arrow
from flowsql_runtime.operators.aggregate.distinct_sets import DistinctSets, MergingProgram
from flowsql_runtime.operators.aggregate.group import KeyedAggregation, MiniBatchOperator
from flowsql_runtime.operators.base import OperatorContext
from flowsql_runtime.state.arrow_words import value_words
from flowsql_runtime.state.names import StateNames
from flowsql_runtime.state.scratch import scratch_stores


class IncrementalGroupAggregateOperator(MiniBatchOperator):
    """Count the values of a bucket, hand on what changed per key.

    In     +I rows of ``LocalSetAggregateOperator``, hash-partitioned by keys and buckets, which come first.
    Out    +I rows: keys and accumulators of one mini-batch, to be merged by ``GlobalGroupAggregateOperator``.
    State  per key and bucket the values that DISTINCT calls have seen, and how many rows there are if they may go.
    Late   not judged. A bucket idle for ``state_ttl_ms`` forgets its values.

    Source: Flink, ``MiniBatchIncrementalGroupAggFunction``.
    """

    def __init__(self, spec: IncrementalGroupAggregateSpec) -> None:
        super().__init__(spec)
        self._mini_batch = spec.mini_batch
        local = spec.local
        self._grouping = tuple(range(len(local.grouping)))
        self._sets = distinct_sets(local.calls)
        self._seen = DistinctSets(local.calls, local.input, local.input_retracts)
        counted = tuple(call for call in local.calls if call.distinct)
        merged = tuple(call for call in local.calls if not call.distinct)
        self._counted = MergingProgram(counted, local.input, local.input_retracts, clear_at_zero=False)
        self._merged = MergingProgram(merged, local.input, local.input_retracts, clear_at_zero=False)

    def open(self, ctx: OperatorContext) -> None:
        """Make the sets, and memory for what one mini-batch changes."""
        super().open(ctx)
        local = self.spec.local
        self._groups = KeyedAggregation(ctx, self._seen, self._grouping, local.output, self.spec.state_ttl_ms)
        stores = scratch_stores()
        self._keys = stores.key_index([to_arrow(column.type) for column in local.output[: self.spec.keys]])
        self._counted.open(stores, self._keys, "counted")
        self._merged.open(stores, self._keys, "merged")

    def state_names(self, arriving: Sequence[Lineage]) -> StateNames:
        """Sets by key and bucket: ``arriving`` is what the first phase reads."""
        return self._groups.names(arriving[0].columns, self.spec.local.grouping)

    def expect(self, input_index: int, batches: Sequence[ChangelogBatch]) -> None:
        """Buckets of rows that come."""
        self._groups.index.expect(*columns_of(batches, self._grouping))

    def process_rows(self, batch: ChangelogBatch) -> None:
        """Count, merge per key and emit."""
        n = batch.num_rows
        if not n:
            if batch.track is not None:
                self.output.emit_watermark(Watermark(batch.track.last_ms))
            return
        columns = list(batch.columns)
        slots = self._groups.slots_of([columns[column] for column in self._grouping], n)
        at = len(self._grouping)
        values, at = columns[at : at + len(self._sets)], at + len(self._sets)
        signs = []
        for number, one in enumerate(self._sets):
            counts = np.stack([value_words(array).words[0] for array in columns[at : at + len(one.filters)]])
            at += len(one.filters)
            signs.append(self._seen.signs(number, slots, values[number], counts))
        if self.spec.local.input_retracts:
            self._groups.release(self._seen.count_rows(slots, value_words(columns[-1]).words[0]))
        out = self._per_key(columns, values, signs, columns[at:], n)
        track = batch.track
        if track is not None:
            track = WatermarkTrack(np.full(len(track), out.num_rows, np.int32), track.wm_ms)
        self.collect_within_offsets(out.with_track(track))

    def _per_key(
        self, columns: list[Any], values: list[Any], signs: list[Any], accumulators: list[Any], n: int
    ) -> ChangelogBatch:
        """Accumulators of the rows of each key."""
        self._counted.store.clear_all()
        self._merged.reset()
        keys = columns[: self.spec.keys]
        slots, fresh = self._keys.find_or_insert(self._keys.encode(keys, num_rows=n))
        arguments: list[Any] = [None] * len(self.spec.local.input)
        for one, array in zip(self._sets, values, strict=True):
            arguments[one.column] = array
        self._counted.take_in_distinct(slots, arguments, signs)
        self._merged.merge_rows(slots, self._merged.rows_of_accumulators(accumulators, n))
        at = slots[fresh]
        counted = iter(self._counted.accumulators_at(at))
        merged = iter(self._merged.accumulators_at(at))
        out = [key.take(pa.array(fresh)) for key in keys]
        for call in self.spec.local.calls:
            source: Iterator[Any] = counted if call.distinct else merged
            out += [next(source) for _ in accumulator_columns(call)]
        if self.spec.local.input_retracts:
            out.append(next(merged))
        return ChangelogBatch(tuple(out), len(at))
