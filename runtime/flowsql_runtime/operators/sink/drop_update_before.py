"""Dropping -U rows where upserts suffice."""

from __future__ import annotations

from flowsql_core.batch import ChangelogBatch
from flowsql_core.element import Watermark
from flowsql_core.graph.specs import DropUpdateBeforeSpec
from flowsql_core.row import UPDATE_BEFORE
from flowsql_runtime.operators.base import Operator


class DropUpdateBeforeOperator(Operator[DropUpdateBeforeSpec]):
    """Everything but ``-U``.

    In     any changelog.
    Out    the same without -U.
    State  none.
    """

    def process_batch(self, input_index: int, batch: ChangelogBatch) -> None:
        """Filter by kind."""
        track = self.advance_track(input_index, batch.track)
        batch = batch.with_track(track)
        if batch.kinds is not None:
            batch = batch.filter(batch.kinds != UPDATE_BEFORE)
        if batch.num_rows:
            self.output.collect(batch)
        elif track is not None:
            self.output.emit_watermark(Watermark(track.last_ms))
