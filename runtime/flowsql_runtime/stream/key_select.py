"""The key column of a keyed stream."""

from __future__ import annotations

from typing import Any

from flowsql_core.batch import ChangelogBatch
from flowsql_core.graph.stream_specs import VALUE, KeySelectSpec
from flowsql_runtime.operators.base import Operator, OperatorContext
from flowsql_runtime.stream.base import UserFunction
from flowsql_runtime.stream.context import StreamRuntimeContext
from flowsql_runtime.stream.emitter import object_column
from flowsql_runtime.stream.failure import USER_ERRORS


class KeySelectOperator(Operator[KeySelectSpec]):
    """Adds the key of each element.

    In     objects, with or without keys.
    Out    the same objects with their new keys, timestamps and watermarks as they were.
    State  none.
    """

    def open(self, ctx: OperatorContext) -> None:
        """Open the selector."""
        self._function = UserFunction(ctx, self.spec.selector)
        self._key = self._function.method("get_key")
        self._function.open(StreamRuntimeContext(ctx))

    def close(self) -> None:
        """Close the selector."""
        self._function.close()

    def process_batch(self, input_index: int, batch: ChangelogBatch) -> None:
        """Rows with keys."""
        track = self.advance_track(input_index, batch.track)
        values = batch.columns[VALUE]
        key = self._key
        keys: list[Any] = []
        append = keys.append
        value: Any = None
        try:
            for value in values.values.tolist():
                append(key(value))
        except USER_ERRORS as error:
            self._function.fail(error, "get_key", value)
        self.output.collect(batch.with_track(track).with_columns((values, object_column(keys))))
