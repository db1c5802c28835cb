"""NOT NULL columns of sinks: ``table.exec.sink.not-null-enforcer``."""

from __future__ import annotations

import numpy as np

from flowsql_core.batch import ChangelogBatch, PyObjectColumn
from flowsql_core.config import NOT_NULL_ENFORCER, NotNullMode
from flowsql_core.errors import ExecutionError, FailedRow
from flowsql_core.eval.columns import validity
from flowsql_core.record import record
from flowsql_core.types.logical import LogicalType
from flowsql_runtime.operators.base import OperatorContext


@record
class NotNullEnforcer:
    """Judges batches in front of a sink.

    ``columns``: indexes of the NOT NULL ones; ``names`` and ``types`` of all columns.
    """

    columns: tuple[int, ...]
    names: tuple[str, ...]
    types: tuple[LogicalType, ...]
    mode: NotNullMode

    @staticmethod
    def mode_of(ctx: OperatorContext) -> NotNullMode:
        """The mode that the job is configured with."""
        return NOT_NULL_ENFORCER.read(ctx.parameter(NOT_NULL_ENFORCER.key, NOT_NULL_ENFORCER.default.value))

    def check(self, batch: ChangelogBatch) -> ChangelogBatch:
        """The batch without the rows to drop; raises ExecutionError with Flink's message."""
        for index in self.columns:
            column = batch.columns[index]
            if isinstance(column, PyObjectColumn) or not column.null_count:
                continue
            if self.mode is NotNullMode.ERROR:
                error = ExecutionError(
                    "not-null-violation",
                    f"Column '{self.names[index]}' is NOT NULL, however, a null value is being written into it. "
                    f"You can set job configuration '{NOT_NULL_ENFORCER.key}'='DROP' to suppress this exception and "
                    "drop such records silently.",
                )
                error.row = self._failed_row(batch, index)
                error.row.arrived_in(batch, error.row.row)
                raise error
            valid = validity(column)
            batch = batch.filter(np.ones(batch.num_rows, np.bool_) if valid is None else valid)
        return batch

    def _failed_row(self, batch: ChangelogBatch, index: int) -> FailedRow:
        from flowsql_core.eval.blame import value_text  # after a failure only

        valid = validity(batch.columns[index])
        row = 0 if valid is None else int(np.argmin(valid))
        values = {at: value_text(batch.columns[at], type_, row) for at, type_ in enumerate(self.types)}
        return FailedRow(row, values, names=self.names)
