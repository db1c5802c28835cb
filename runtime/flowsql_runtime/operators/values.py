"""Rows written in the query."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from flowsql_core.batch import ChangelogBatch
from flowsql_core.errors import ExecutionError, FlowSqlError
from flowsql_core.expr import Literal
from flowsql_core.graph.specs import ValuesSpec
from flowsql_core.types.arrow import to_arrow
from flowsql_core.types.logical import LogicalType, TimestampLtzType, TimestampType
from flowsql_runtime.operators.base import OperatorContext, OperatorSnapshot, SourceOperator, SourceStatus
from flowsql_runtime.operators.failure import note_source

#: Rows of one batch.
BATCH_ROWS = 65_536
_POSITION = "position"


class ValuesOperator(SourceOperator[ValuesSpec]):
    """Emit the rows in order, from subtask 0.

    Out    insert-only.
    State  rows already emitted.
    """

    def __init__(self, spec: ValuesSpec) -> None:
        super().__init__(spec)
        self._stop_at: int | None = None

    def open(self, ctx: OperatorContext) -> None:
        """Build the columns once."""
        rows = self.spec.rows if ctx.subtask == 0 else ()
        columns = [
            literal_column([row[index] for row in rows], column.type) for index, column in enumerate(self.spec.output)
        ]
        self._all = ChangelogBatch.of(columns, num_rows=len(rows))
        self._position = 0

    def initialize_state(self, snapshot: OperatorSnapshot | None) -> None:
        """Go on behind the rows that were emitted."""
        if snapshot is not None and self.ctx.subtask == 0:
            self._position = sum(struct.unpack("<q", part)[0] for part in snapshot.union.get(_POSITION, ()))

    def emit_next(self) -> SourceStatus:
        """The next batch."""
        left = self._all.num_rows - self._position
        if not left:
            return SourceStatus.END if self._stop_at is None else SourceStatus.DRAINED
        if self._stop_at is not None:
            left = min(left, self._stop_at)
            if not left:
                return SourceStatus.SUSPENDED
        count = min(left, BATCH_ROWS)
        batch = self._all.slice(self._position, self._position + count)
        self._position += count
        if self._stop_at is not None:
            self._stop_at -= count
        try:
            self.output.collect(batch)
        except FlowSqlError as error:
            note_source(error, batch, self._position - count, self.ctx.subtask)
            raise
        return SourceStatus.MORE

    def wake_when_available(self, wake: Callable[[], None]) -> None:
        """Never waits."""
        wake()

    def stop_at(self, rows: int) -> None:
        """Suspend after so many rows of this run."""
        self._stop_at = rows

    def snapshot_state(self, checkpoint_id: int) -> OperatorSnapshot:
        """The position; union state, because any subtask may be the one that emits."""
        return OperatorSnapshot(union={_POSITION: (struct.pack("<q", self._position),)})


def literal_column(cells: Sequence[Literal], type_: LogicalType) -> Any:
    """An Arrow array of literals of one column type."""
    values = [cell.value for cell in cells]
    target = to_arrow(type_)
    if isinstance(type_, TimestampType | TimestampLtzType):
        # Literals count nanoseconds; the column's unit is the coarsest that holds its digits.
        per_unit = {"ms": 1_000_000, "us": 1_000, "ns": 1}[target.unit]
        values = [None if value is None else value // per_unit for value in values]
    try:
        return pa.array(values, type=target)
    except OverflowError as error:
        if not isinstance(type_, TimestampType | TimestampLtzType):
            raise
        raise ExecutionError(
            "timestamp-range", f"A moment is outside the range of {type_}: more than 6 digits reach from 1677 to 2262."
        ) from error
