"""The sink behind a SELECT: rows go to the program that asked."""

from __future__ import annotations

from flowsql_core.batch import ChangelogBatch
from flowsql_core.graph.specs import CollectSinkSpec
from flowsql_runtime.operators.base import Operator, OperatorContext
from flowsql_runtime.operators.sink.constraints import Judge


class CollectSinkOperator(Operator[CollectSinkSpec]):
    """Hand batches to the resource of the spec, which has ``accept(batch)`` and ``finish()``.

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
            self._receiver.accept(batch)

    def finish(self) -> None:
        """The receiver hears the end from the job: other subtasks may still send."""
