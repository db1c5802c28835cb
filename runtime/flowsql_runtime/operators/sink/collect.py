"""The sink behind a SELECT: rows go to the program that asked."""

from __future__ import annotations

from flowsql_core.batch import ChangelogBatch
from flowsql_core.graph.specs import CollectSinkSpec
from flowsql_runtime.operators.base import Operator, OperatorContext, OperatorSnapshot
from flowsql_runtime.operators.sink.constraints import Judge


class CollectSinkOperator(Operator[CollectSinkSpec]):
    """Hand batches to the resource of the spec (a ``Receiver``), at once or with the checkpoint that covers them.

    In     any changelog; the constraints of the schema are enforced, as in any sink of Flink.
    Out    nothing.
    State  none.
    """

    def open(self, ctx: OperatorContext) -> None:
        """Find the receiver."""
        self._receiver = ctx.resources[self.spec.resource]
        self._judge = Judge(self.spec.constraints, self.spec.input)

    def process_batch(self, input_index: int, batch: ChangelogBatch) -> None:
        """Rows for the receiver."""
        self.advance_track(input_index, batch.track)
        batch, _ = self._judge.check(batch)
        if batch.num_rows:
            self.ctx.job.collected.add(self._receiver, self.ctx.uid, self.ctx.subtask, batch.leave_states())

    def snapshot_state(self, checkpoint_id: int) -> OperatorSnapshot:
        """The rows so far belong to the checkpoint; the job holds them, for the program is not part of it."""
        self.ctx.job.collected.seal(self.ctx.uid, self.ctx.subtask, checkpoint_id)
        return super().snapshot_state(checkpoint_id)

    def finish(self) -> None:
        """The receiver hears the end from the job: other subtasks may still send."""
