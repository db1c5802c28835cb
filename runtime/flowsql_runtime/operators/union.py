"""UNION ALL."""

from __future__ import annotations

from flowsql_core.batch import ChangelogBatch
from flowsql_core.element import Watermark
from flowsql_core.graph.specs import UnionSpec
from flowsql_runtime.operators.base import Operator


class UnionOperator(Operator[UnionSpec]):
    """All rows of all inputs in the order of their arrival; the watermark is the minimum over the inputs.

    In     any changelogs of the same columns.
    Out    the same rows.
    State  none.
    """

    def __init__(self, spec: UnionSpec) -> None:
        super().__init__(spec)
        self.number_of_inputs = spec.inputs

    def process_batch(self, input_index: int, batch: ChangelogBatch) -> None:
        """Hand on with the merged track."""
        track = self.advance_track(input_index, batch.track)
        if batch.num_rows:
            self.output.collect(batch.with_track(track))
        elif track is not None:
            self.output.emit_watermark(Watermark(track.last_ms))
