"""UNION ALL."""

from __future__ import annotations

from flowsql_core.batch import ChangelogBatch
from flowsql_core.element import MAX_WATERMARK, Watermark
from flowsql_core.graph.specs import UnionSpec
from flowsql_runtime.operators.base import Operator, OperatorContext


class UnionOperator(Operator[UnionSpec]):
    """All rows of all inputs in the order of their arrival, or of the inputs; the watermark is the minimum over them.

    In     any changelogs of the same columns.
    Out    the same rows.
    State  none: before a snapshot all rows leave that wait for earlier inputs.
    """

    def __init__(self, spec: UnionSpec) -> None:
        super().__init__(spec)
        self.number_of_inputs = spec.inputs

    def open(self, ctx: OperatorContext) -> None:
        """Nothing waits."""
        self._waiting: list[list[ChangelogBatch]] = [[] for _ in range(self.spec.inputs)]
        self._ended = [False] * self.spec.inputs
        self._turn = 0

    def process_batch(self, input_index: int, batch: ChangelogBatch) -> None:
        """Hand on with the merged track, at once or when it is the input's turn."""
        if self.spec.in_order and input_index > self._turn:
            self._waiting[input_index].append(batch)
        else:
            self._hand_on(input_index, batch)

    def process_watermark(self, input_index: int, watermark: Watermark) -> None:
        """Merge; behind the end of time an input has no more rows."""
        if watermark.timestamp_ms == MAX_WATERMARK:
            self._end(input_index)
        super().process_watermark(input_index, watermark)

    def end_input(self, input_index: int) -> None:
        """It is the turn of the next input."""
        self._end(input_index)

    def prepare_snapshot_pre_barrier(self, checkpoint_id: int) -> None:
        """No row waits over a snapshot."""
        for index in range(self.spec.inputs):
            self._release(index)

    def _end(self, input_index: int) -> None:
        self._ended[input_index] = True
        while self._turn < self.spec.inputs and self._ended[self._turn]:
            self._turn += 1
            if self._turn < self.spec.inputs:
                self._release(self._turn)

    def _release(self, input_index: int) -> None:
        waiting, self._waiting[input_index] = self._waiting[input_index], []
        for batch in waiting:
            self._hand_on(input_index, batch)

    def _hand_on(self, input_index: int, batch: ChangelogBatch) -> None:
        track = self.advance_track(input_index, batch.track)
        if batch.num_rows:
            self.output.collect(batch.with_track(track))
        elif track is not None:
            self.output.emit_watermark(Watermark(track.last_ms))
