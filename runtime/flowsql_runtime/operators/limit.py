"""LIMIT without ORDER BY."""

from __future__ import annotations

import struct
from typing import Final

from flowsql_core.batch import ChangelogBatch
from flowsql_core.element import Watermark
from flowsql_core.graph.specs import LimitSpec
from flowsql_runtime.operators.base import Operator, OperatorContext, OperatorSnapshot

_SEEN: Final = "seen"


class LimitOperator(Operator[LimitSpec]):
    """Pass the rows ``offset .. offset + fetch`` by arrival, then tell the task to stop its input. Runs in one subtask.

    In     append-only.
    Out    append-only.
    State  rows seen.
    """

    def open(self, ctx: OperatorContext) -> None:
        """Nothing seen yet."""
        self._seen = 0

    def initialize_state(self, snapshot: OperatorSnapshot | None) -> None:
        """Go on counting."""
        if snapshot is not None:
            self._seen = sum(struct.unpack("<q", part)[0] for part in snapshot.lists.get(_SEEN, ()))
        self._stop_when_full()

    def process_batch(self, input_index: int, batch: ChangelogBatch) -> None:
        """The part of the batch that lies within the limit."""
        track = self.advance_track(input_index, batch.track)
        first, self._seen = self._seen, self._seen + batch.num_rows
        start = min(max(0, self.spec.offset - first), batch.num_rows)
        stop = batch.num_rows
        if self.spec.fetch is not None:
            stop = max(start, min(stop, self.spec.offset + self.spec.fetch - first))
        if start < stop:
            self.output.collect(batch.with_track(None).slice(start, stop))
        if track is not None:
            self.output.emit_watermark(Watermark(track.last_ms))
        self._stop_when_full()

    def _stop_when_full(self) -> None:
        if self.spec.fetch is not None and self._seen >= self.spec.offset + self.spec.fetch:
            self.ctx.stop_input()

    def snapshot_state(self, checkpoint_id: int) -> OperatorSnapshot:
        """The count."""
        return OperatorSnapshot(
            lists={_SEEN: (struct.pack("<q", self._seen),)},
            watermarks_ms=self.watermarks_ms,
        )
