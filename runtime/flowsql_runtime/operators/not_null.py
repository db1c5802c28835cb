"""NOT NULL columns of sinks: ``table.exec.sink.not-null-enforcer``."""

from __future__ import annotations

import numpy as np

from flowsql_core.batch import ChangelogBatch, PyObjectColumn
from flowsql_core.config import NOT_NULL_ENFORCER, NotNullMode
from flowsql_core.errors import ExecutionError
from flowsql_core.eval.columns import validity
from flowsql_core.record import record
from flowsql_runtime.operators.base import OperatorContext


@record
class NotNullEnforcer:
    """Judges batches in front of a sink. ``columns``: indexes of the NOT NULL ones; ``names`` of all columns."""

    columns: tuple[int, ...]
    names: tuple[str, ...]
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
                raise ExecutionError(
                    "not-null-violation",
                    f"Column '{self.names[index]}' is NOT NULL, however, a null value is being written into it. "
                    f"You can set job configuration '{NOT_NULL_ENFORCER.key}'='DROP' to suppress this exception and "
                    "drop such records silently.",
                )
            valid = validity(column)
            batch = batch.filter(np.ones(batch.num_rows, np.bool_) if valid is None else valid)
        return batch
