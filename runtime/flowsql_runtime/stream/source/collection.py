"""The elements of a Python collection."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, Final

from flowsql_core.batch import ChangelogBatch
from flowsql_core.config import OBJECT_REUSE, Configuration
from flowsql_core.graph.stream_specs import CollectionSourceSpec
from flowsql_runtime.operators.base import OperatorContext, OperatorSnapshot, SourceOperator, SourceStatus
from flowsql_runtime.operators.pace import begin_slices
from flowsql_runtime.stream.copies import copied
from flowsql_runtime.stream.emitter import object_column

#: The most rows of one batch; fewer while the functions behind are slow.
BATCH_ROWS: Final = 1_024
_BATCH_ROWS_OPTION: Final = "flowsql.source.batch-rows"
_POSITION: Final = "position"


class CollectionSourceOperator(SourceOperator[CollectionSourceSpec]):
    """Emit the elements in order, from subtask 0.

    Out    objects without timestamps.
    State  elements already emitted.
    """

    def __init__(self, spec: CollectionSourceSpec) -> None:
        super().__init__(spec)
        self._stop_at: int | None = None

    def open(self, ctx: OperatorContext) -> None:
        """Find the elements."""
        self._elements: list[Any] = ctx.resources[self.spec.elements] if ctx.subtask == 0 else []
        self._position = 0
        self._batch_rows = int(ctx.parameter(_BATCH_ROWS_OPTION) or BATCH_ROWS)
        self._pace = begin_slices(ctx)
        self._reuse = Configuration(values=dict(ctx.parameters)).get(OBJECT_REUSE)

    def initialize_state(self, snapshot: OperatorSnapshot | None) -> None:
        """Go on behind the elements that were emitted."""
        if snapshot is not None and self.ctx.subtask == 0:
            self._position = sum(struct.unpack("<q", part)[0] for part in snapshot.union.get(_POSITION, ()))

    def emit_next(self) -> SourceStatus:
        """The next batch."""
        left = len(self._elements) - self._position
        if not left:
            return SourceStatus.END if self._stop_at is None else SourceStatus.DRAINED
        if self._stop_at is not None:
            left = min(left, self._stop_at)
            if not left:
                return SourceStatus.SUSPENDED
        aligned = self.ctx.progress.aligned
        if aligned is not None and aligned.waits and self._stop_at is None:
            return SourceStatus.NOTHING_NOW
        count = min(left, self._batch_rows, self._pace.rows)
        began_ms = self._pace.begin()
        part = self._elements[self._position : self._position + count]
        self._position += count
        if self._stop_at is not None:
            self._stop_at -= count
        # The program's own list must not change under it.
        values = part if self._reuse else list(map(copied, part))
        self.output.collect(ChangelogBatch((object_column(values),), count))
        self._pace.done(count, began_ms)
        return SourceStatus.MORE

    def wake_when_available(self, wake: Callable[[], None]) -> None:
        """Only for other sources; then a timer of its watermarks looks again."""

    def stop_at(self, rows: int) -> None:
        """Suspend after so many rows of this run."""
        self._stop_at = rows

    def snapshot_state(self, checkpoint_id: int) -> OperatorSnapshot:
        """The position; union state, because any subtask may be the one that emits."""
        return OperatorSnapshot(union={_POSITION: (struct.pack("<q", self._position),)})
