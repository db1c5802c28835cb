"""Unbounded aggregation by key with Python functions: one net change of a group and bundle."""

from __future__ import annotations

from collections.abc import Sequence

from flowsql_core.batch import ChangelogBatch, columns_of
from flowsql_core.graph.lineage import Lineage
from flowsql_core.graph.python_specs import PythonGroupAggregateSpec
from flowsql_runtime.operators.aggregate.emit import changelog_of
from flowsql_runtime.operators.aggregate.group import KeyedAggregation, signs_of
from flowsql_runtime.operators.base import OperatorContext
from flowsql_runtime.operators.evaluation import eval_context
from flowsql_runtime.operators.python_aggregate.bundle import BundleOperator
from flowsql_runtime.operators.python_aggregate.program import PythonAggregateProgram
from flowsql_runtime.state.names import StateNames


class PythonGroupAggregateOperator(BundleOperator[PythonGroupAggregateSpec]):
    """Aggregate per key, for ever.

    In     any changelog, hash-partitioned by ``spec.grouping`` (no grouping: one subtask).
    Out    of each bundle: +I for a new group; -U/+U (or +U alone) where a result changed; -D where the last row went.
    State  per key one accumulator row of the built-in calls, the pickled accumulators of the others, DISTINCT values.
    Late   not judged. Retractions of unknown groups are ignored. A group idle for ``state_ttl_ms`` starts over.

    Source: PyFlink, ``GroupAggFunction`` of ``aggregate_slow.py``.
    """

    def __init__(self, spec: PythonGroupAggregateSpec) -> None:
        super().__init__(spec)
        self._program = PythonAggregateProgram(spec.calls, spec.input, spec.input_retracts)

    def open(self, ctx: OperatorContext) -> None:
        """Make the groups, open the functions."""
        super().open(ctx)
        self._groups = KeyedAggregation(ctx, self._program, self.spec.grouping, self.spec.input, self.spec.state_ttl_ms)
        self._program.python.load(ctx, eval_context(ctx).zone)

    def state_names(self, arriving: Sequence[Lineage]) -> StateNames:
        """Accumulators by group."""
        return self._groups.names(arriving[0].columns, self.spec.grouping)

    def expect(self, input_index: int, batches: Sequence[ChangelogBatch]) -> None:
        """Groups of rows that come."""
        self._groups.index.expect(*columns_of(batches, self.spec.grouping))

    def process_bundle(self, batch: ChangelogBatch) -> None:
        """Fold and emit."""
        keys = [batch.columns[column] for column in self.spec.grouping]
        slots = self._groups.slots_of(keys, batch.num_rows)
        signs = signs_of(batch)
        if self.spec.input_retracts and batch.kinds is not None:
            signs = self._program.known_signs(slots, signs)
        changes = self._program.fold(slots, batch.columns, signs)
        out = changelog_of(
            changes,
            keys,
            None,
            emit_update_before=self.spec.emit_update_before,
            emit_unchanged=self.spec.state_ttl_ms > 0,
            in_order=False,
        )
        if self.spec.input_retracts:
            self._groups.release(changes)
        if out.num_rows:
            self.collect_within_offsets(out)

    def finish(self) -> None:
        """Close the functions, which says whether that went well."""
        self._program.python.close()

    def close(self) -> None:
        """Close the functions of a job that failed."""
        self._program.python.close()
