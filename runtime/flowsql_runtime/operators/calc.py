"""Filter and project."""

from __future__ import annotations

from flowsql_core.batch import ChangelogBatch
from flowsql_core.element import Watermark
from flowsql_core.eval.compile import compile_condition, compile_projections
from flowsql_core.expr import InputRef
from flowsql_core.graph.specs import CalcSpec
from flowsql_runtime.operators.base import Operator, OperatorContext
from flowsql_runtime.operators.evaluation import eval_context


class CalcOperator(Operator[CalcSpec]):
    """Keep the rows where the condition is TRUE, then project the kept ones.

    In     any changelog.
    Out    the projections; kinds, row times and the watermark track stay with their rows.
    State  none.
    Late   not judged.
    """

    def open(self, ctx: OperatorContext) -> None:
        """Compile both expressions."""
        context = eval_context(ctx, lambda: self.current_watermark)
        condition = self.spec.condition
        self._condition = None if condition is None else compile_condition(condition, context)
        self._refs: tuple[int, ...] | None = None
        projections = self.spec.projections
        if all(isinstance(expr, InputRef) for expr in projections):
            # Renaming and pruning only: no kernel, and Python objects pass too.
            self._refs = tuple(expr.index for expr in projections if isinstance(expr, InputRef))
        else:
            self._project = compile_projections(projections, context)

    def process_batch(self, input_index: int, batch: ChangelogBatch) -> None:
        """One batch in, at most one out."""
        track = self.advance_track(input_index, batch.track)
        if track is not batch.track:
            batch = batch.with_track(track)
        if self._condition is not None:
            batch = batch.filter(self._condition(batch.columns, batch.num_rows))
            if not batch.num_rows:
                if batch.track is not None:
                    self.output.emit_watermark(Watermark(batch.track.last_ms))
                return
        if self._refs is not None:
            columns = [batch.columns[index] for index in self._refs]
        else:
            columns = self._project(batch.columns, batch.num_rows)
        self.output.collect(batch.with_columns(columns))
