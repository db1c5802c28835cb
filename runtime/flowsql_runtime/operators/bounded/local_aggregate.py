"""The first phase of an aggregate of a bounded input: groups are folded before rows travel."""

from __future__ import annotations

from flowsql_core.batch import ChangelogBatch
from flowsql_core.graph.bounded_specs import BoundedLocalAggregateSpec
from flowsql_runtime.operators.base import OperatorContext
from flowsql_runtime.operators.bounded.base import BoundedOperator
from flowsql_runtime.operators.bounded.groups import Groups


class BoundedLocalAggregateOperator(BoundedOperator[BoundedLocalAggregateSpec]):
    """Groups in memory, which leave when they take the operator's share: the second phase takes a group in many parts.

    In     insert-only, as the rows stand in the task; every call merges.
    Out    keys and accumulators (``local_columns``), at least one row a group.

    Source: Flink, ``HashAggCodeGenerator`` (a local aggregate flushes its map where memory ends).
    """

    def open(self, ctx: OperatorContext) -> None:
        """No group yet."""
        self._groups = Groups(self.spec)

    def process_batch(self, input_index: int, batch: ChangelogBatch) -> None:
        """Fold rows."""
        if not batch.num_rows:
            return
        self._groups.fold(batch, only_known=False)
        size = self._groups.nbytes
        if size > self.share_bytes or not self.ctx.memory.try_resize(size):
            self.answer()

    def answer(self) -> None:
        """Groups as they stand leave, and memory is free."""
        for batch in self._groups.partial_batches():
            self.collect_within_offsets(batch)
        self._groups = Groups(self.spec)
        self.ctx.memory.resize(0)
