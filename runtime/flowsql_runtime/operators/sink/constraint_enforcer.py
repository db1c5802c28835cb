"""The constraints of a table, in front of its sink."""

from __future__ import annotations

from flowsql_core.batch import ChangelogBatch
from flowsql_core.element import Watermark
from flowsql_core.errors import FlowSqlError
from flowsql_core.graph.specs import ConstraintEnforcerSpec
from flowsql_runtime.operators.base import Operator, OperatorContext
from flowsql_runtime.operators.failure import trace_row
from flowsql_runtime.operators.sink.constraints import Judge


class ConstraintEnforcerOperator(Operator[ConstraintEnforcerSpec]):
    """Fail, drop, cut or pad rows that a table does not allow.

    In     any changelog; changes of every kind are judged.
    Out    the same changes, without the rows to drop.
    State  none.
    """

    def open(self, ctx: OperatorContext) -> None:
        """Make the judge."""
        self._judge = Judge(self.spec.constraints, self.spec.input)

    def process_batch(self, input_index: int, batch: ChangelogBatch) -> None:
        """Rows that pass go on, and all time."""
        track = self.advance_track(input_index, batch.track)
        if track is not batch.track:
            batch = batch.with_track(track)
        passed, kept = self._judge.check(batch)
        if not passed.num_rows:
            if passed.track is not None:
                self.output.emit_watermark(Watermark(passed.track.last_ms))
            return
        try:
            self.output.collect(passed)
        except FlowSqlError as error:
            trace_row(error, batch, passed, kept)
            raise
