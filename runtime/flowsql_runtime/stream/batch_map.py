"""Bridges between tables and streams: a function over whole batches."""

from __future__ import annotations

from flowsql_core.batch import ChangelogBatch
from flowsql_core.errors import InternalError
from flowsql_core.graph.stream_specs import BatchMapSpec
from flowsql_runtime.operators.base import Operator, OperatorContext


class BatchMapOperator(Operator[BatchMapSpec]):
    """Hand each batch through a function of the engine's own.

    In     any batch.
    Out    what the function makes of it: as many rows, in their order, with the same watermarks.
    State  none.
    """

    def open(self, ctx: OperatorContext) -> None:
        """Find the function."""
        self._function = ctx.resources[self.spec.function]

    def process_batch(self, input_index: int, batch: ChangelogBatch) -> None:
        """One batch."""
        track = self.advance_track(input_index, batch.track)
        made: ChangelogBatch = self._function(batch)
        if made.num_rows != batch.num_rows:
            raise InternalError("a bridge must keep all rows")
        self.output.collect(made.with_track(track))
