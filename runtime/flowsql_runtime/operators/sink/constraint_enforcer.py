"""The constraints of a table, in front of its sink."""

from __future__ import annotations

from flowsql_compute.eval.columns import Bools
from flowsql_core.batch import ChangelogBatch
from flowsql_core.element import Watermark
from flowsql_core.errors import FlowSqlError
from flowsql_core.graph.specs import ConstraintEnforcerSpec
from flowsql_runtime.operators.base import Operator, OperatorContext
from flowsql_runtime.operators.failure import trace_row
from flowsql_runtime.operators.sink.constraints import Judge
from flowsql_runtime.operators.sink.expectations import ExpectationJudge


class ConstraintEnforcerOperator(Operator[ConstraintEnforcerSpec]):
    """Fail, drop, cut or pad rows that a table does not allow; then judge them by what it expects.

    In     any changelog; changes of every kind are judged.
    Out    the same changes, without the rows to drop; updates as -D and +I where expectations leave rows out.
    State  none.
    """

    def open(self, ctx: OperatorContext) -> None:
        """Make the judges."""
        self._judge = Judge(self.spec.constraints, self.spec.input)
        self._expectations = ExpectationJudge(self.spec, ctx)

    def process_batch(self, input_index: int, batch: ChangelogBatch) -> None:
        """Rows that pass go on, and all time."""
        track = self.advance_track(input_index, batch.track)
        if track is not batch.track:
            batch = batch.with_track(track)
        passed, kept = self._judge.check(batch)
        try:
            passed, expected = self._expectations.check(passed)
        except FlowSqlError as error:
            trace_row(error, batch, passed, kept)
            raise
        kept = _both(kept, expected)
        if not passed.num_rows:
            if passed.track is not None:
                self.output.emit_watermark(Watermark(passed.track.last_ms))
            return
        try:
            self.output.collect(passed)
        except FlowSqlError as error:
            trace_row(error, batch, passed, kept)
            raise


def _both(kept: Bools | None, of_these: Bools | None) -> Bools | None:
    """Which rows two steps kept, of those that came to the first."""
    if kept is None or of_these is None:
        return of_these if kept is None else kept
    both = kept.copy()
    both[kept] = of_these
    return both
