"""Filter and project."""

from __future__ import annotations

from typing import Any

from flowsql_compute.eval.compile import compile_condition, compile_projections
from flowsql_core.batch import ChangelogBatch, late_columns
from flowsql_core.element import Watermark
from flowsql_core.errors import ExecutionError
from flowsql_core.expr import InputRef
from flowsql_core.graph.specs import CalcSpec
from flowsql_runtime.operators.base import Operator, OperatorContext
from flowsql_runtime.operators.evaluation import eval_context, projected, read_watermarks
from flowsql_runtime.operators.failure import trace_row


class CalcOperator(Operator[CalcSpec]):
    """Keep the rows where the condition is TRUE, then project the kept ones.

    In     any changelog.
    Out    the projections; kinds, row times and the watermark track stay with their rows.
    State  none.
    Late   not judged.
    """

    def open(self, ctx: OperatorContext) -> None:
        """Compile both expressions."""
        context = eval_context(ctx)
        conditions = () if self.spec.condition is None else (self.spec.condition,)
        (condition, projections), self._watermarks = read_watermarks((conditions, self.spec.projections))
        self._condition = compile_condition(condition[0], context) if condition else None
        # Plain columns are passed on as they are, not yet gathered, and so are Python objects.
        self._places = tuple(expr.index if isinstance(expr, InputRef) else None for expr in projections)
        computed = tuple(expr for expr in projections if not isinstance(expr, InputRef))
        self._project = compile_projections(computed, context) if computed else None

    def process_batch(self, input_index: int, batch: ChangelogBatch) -> None:
        """One batch in, at most one out; several where the values of a column are too many bytes for one."""
        before = self.current_watermark
        track = self.advance_track(input_index, batch.track)
        if track is not batch.track:
            batch = batch.with_track(track)
        arrived, mask = batch, None
        batch = self._watermarks.beside(batch, before)
        try:
            if self._condition is not None:
                mask = self._condition(batch.columns, batch.num_rows)
                batch = batch.filter(mask)
                if not batch.num_rows:
                    if batch.track is not None:
                        self.output.emit_watermark(Watermark(batch.track.last_ms))
                    return
            for first, part, computed in projected(batch, self._project):
                self._hand_on(batch, first, part, computed)
        except ExecutionError as error:
            self._watermarks.restore(error)
            trace_row(error, arrived, batch, mask)
            raise

    def _hand_on(self, batch: ChangelogBatch, first: int, part: ChangelogBatch, computed: list[Any]) -> None:
        """Give out rows of a batch, from ``first`` on, with their columns."""
        values = iter(computed)
        made = part.with_columns(
            late_columns(part.columns, [next(values) if place is None else place for place in self._places])
        )
        try:
            self.output.collect(made)
        except ExecutionError as error:
            row = error.row
            if row is not None and row.batch is made:
                row.batch, row.position = batch, first + row.position
            raise
