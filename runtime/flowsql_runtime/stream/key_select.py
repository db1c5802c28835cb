"""The key column of a keyed stream."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from flowsql_core.batch import ChangelogBatch
from flowsql_core.graph.stream_specs import VALUE, KeySelectSpec
from flowsql_runtime.operators.base import Operator, OperatorContext
from flowsql_runtime.operators.pace import begin_slices
from flowsql_runtime.stream.base import UserFunction
from flowsql_runtime.stream.context import StreamRuntimeContext
from flowsql_runtime.stream.emitter import object_column
from flowsql_runtime.stream.failure import USER_ERRORS
from flowsql_runtime.stream.pieces import in_pieces


class KeySelectOperator(Operator[KeySelectSpec]):
    """Adds the key of each element.

    In     objects, with or without keys.
    Out    the same objects with their new keys, timestamps and watermarks as they were.
    State  none.
    """

    def open(self, ctx: OperatorContext) -> None:
        """Open the selector."""
        self._pace = begin_slices(ctx)
        self._function = UserFunction(ctx, self.spec.selector)
        self._key = self._function.method("get_key")
        self._function.open(StreamRuntimeContext(ctx))

    def close(self) -> None:
        """Close the selector."""
        self._function.close()

    def process_batch(self, input_index: int, batch: ChangelogBatch) -> None:
        """Rows with keys."""
        told = batch.with_track(self.advance_track(input_index, batch.track))
        if not batch.num_rows:
            self._hand_on(told, [])
            return
        rows = iter(batch.columns[VALUE].values.tolist())
        in_pieces(told, rows, self._keys, self._hand_on, self._pace, self.ctx.time_slice)

    def _hand_on(self, piece: ChangelogBatch, keys: list[Any]) -> None:
        self.output.collect(piece.with_columns((piece.columns[VALUE], object_column(keys))))

    def _keys(self, values: Iterator[Any]) -> list[Any]:
        key, over = self._key, self.ctx.time_slice.over
        keys: list[Any] = []
        append = keys.append
        value: Any = None
        try:
            for value in values:
                append(key(value))
                if over:
                    break
        except USER_ERRORS as error:
            self._function.fail(error, "get_key", value)
        return keys
