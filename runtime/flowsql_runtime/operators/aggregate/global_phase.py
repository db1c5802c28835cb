"""The second of two phases: merges accumulator rows of ``LocalGroupAggregateOperator`` into the groups."""

from __future__ import annotations

from collections.abc import Sequence

from flowsql_core.batch import ChangelogBatch, columns_of
from flowsql_core.element import Watermark
from flowsql_core.graph.lineage import Lineage
from flowsql_core.graph.specs import GlobalGroupAggregateSpec
from flowsql_runtime.operators.aggregate.distinct_sets import MergingProgram
from flowsql_runtime.operators.aggregate.emit import changelog_of
from flowsql_runtime.operators.aggregate.group import KeyedAggregation, MiniBatchOperator
from flowsql_runtime.operators.base import OperatorContext
from flowsql_runtime.state.names import StateNames


class GlobalGroupAggregateOperator(MiniBatchOperator):
    """Merge and emit what changed.

    In     +I rows of accumulators, hash-partitioned by the grouping columns, which come first.
    Out    as ``GroupAggregateOperator``, one net change per key and (mini-)batch.
    State  as there; all of it mergeable.
    """

    def __init__(self, spec: GlobalGroupAggregateSpec) -> None:
        super().__init__(spec)
        self._mini_batch = spec.mini_batch
        local = spec.local
        self._grouping = tuple(range(len(local.grouping)))
        self._program = MergingProgram(local.calls, local.input, local.input_retracts)

    def open(self, ctx: OperatorContext) -> None:
        """Make the groups."""
        super().open(ctx)
        schema = self.spec.local.output
        self._groups = KeyedAggregation(ctx, self._program, self._grouping, schema, self.spec.state_ttl_ms)

    def state_names(self, arriving: Sequence[Lineage]) -> StateNames:
        """As of one phase: ``arriving`` is what the first phase reads."""
        return self._groups.names(arriving[0].columns, self.spec.local.grouping)

    def expect(self, input_index: int, batches: Sequence[ChangelogBatch]) -> None:
        """Groups of rows that come."""
        self._groups.index.expect(*columns_of(batches, self._grouping))

    def process_rows(self, batch: ChangelogBatch) -> None:
        """Merge and emit."""
        if not batch.num_rows:
            if batch.track is not None:
                self.output.emit_watermark(Watermark(batch.track.last_ms))
            return
        keys = [batch.columns[column] for column in self._grouping]
        slots = self._groups.slots_of(keys, batch.num_rows)
        accumulators = self._program.rows_of_accumulators(batch.columns[len(keys) :], batch.num_rows)
        changes = self._program.merge_rows(slots, accumulators)
        out = changelog_of(
            changes,
            keys,
            batch.track,
            emit_update_before=self.spec.emit_update_before,
            emit_unchanged=False,
            in_order=False,
        )
        if self.spec.local.input_retracts:
            self._groups.release(changes)
        if out.num_rows or out.track is not None:
            self.collect_within_offsets(out)
