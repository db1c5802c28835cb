"""Elements as lines of text."""

from __future__ import annotations

import sys
from typing import Any

from flowsql_core.batch import ChangelogBatch
from flowsql_core.graph.stream_specs import VALUE, PrintObjectsSpec
from flowsql_runtime.operators.base import Operator, OperatorContext
from flowsql_runtime.stream.failure import user_failure


class PrintObjectsOperator(Operator[PrintObjectsSpec]):
    """Print each element, one line each, to where ``sys.stdout`` (or ``sys.stderr``) leads then.

    In     objects.
    Out    nothing.
    State  none.
    """

    def open(self, ctx: OperatorContext) -> None:
        """Make the prefix."""
        text = self.spec.text
        self._text: Any = str if text is None else ctx.resources[text]
        subtask = str(ctx.subtask + 1) if ctx.parallelism > 1 else ""
        prefix = ":".join(part for part in (self.spec.identifier, subtask) if part)
        self._prefix = f"{prefix}> " if prefix else ""

    def process_batch(self, input_index: int, batch: ChangelogBatch) -> None:
        """The lines of a batch at once."""
        self.advance_track(input_index, batch.track)
        if not batch.num_rows:
            return
        text, prefix = self._text, self._prefix
        lines: list[str] = []
        value: Any = None
        try:
            for value in batch.columns[VALUE].values.tolist():
                lines.append(f"{prefix}{text(value)}\n")
        except Exception as error:
            raise user_failure(error, text, "", value) from error
        stream = sys.stderr if self.spec.to_error else sys.stdout
        stream.write("".join(lines))
        stream.flush()
