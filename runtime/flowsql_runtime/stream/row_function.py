"""Functions of one stream without keys: map, flat_map, filter, process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from flowsql_core.batch import ChangelogBatch
from flowsql_core.graph.stream_specs import VALUE, RowCall, RowFunctionSpec
from flowsql_runtime.operators.base import OperatorContext
from flowsql_runtime.stream.base import ObjectOperator, Rows, UserFunction
from flowsql_runtime.stream.context import PlainContext, StreamRuntimeContext, TimeService
from flowsql_runtime.stream.emitter import object_column
from flowsql_runtime.stream.failure import USER_ERRORS
from flowsql_runtime.stream.pieces import in_pieces


class RowFunctionOperator(ObjectOperator[RowFunctionSpec]):
    """Calls a function for each element.

    In     objects; keys are not used.
    Out    what the function emits, with the element's timestamp.
    State  none.
    """

    def open(self, ctx: OperatorContext) -> None:
        """Open the function."""
        super().open(ctx)
        self._call = self.spec.call
        self._function = UserFunction(ctx, self.spec.function)
        self._method = self._function.method(self._call.value)
        self._context = PlainContext(TimeService(self.time))
        self._function.open(StreamRuntimeContext(ctx))

    def close(self) -> None:
        """Close the function."""
        self._function.close()

    def process_batch(self, input_index: int, batch: ChangelogBatch) -> None:
        """Map and filter keep rows where they are; the others emit."""
        match self._call:
            case RowCall.MAP:
                self._keep_rows(batch, self._mapped, self._map)
            case RowCall.FILTER:
                self._keep_rows(batch, self._passed, self._filter)
            case RowCall.FLAT_MAP | RowCall.PROCESS:
                super().process_batch(input_index, batch)

    def _keep_rows(
        self,
        batch: ChangelogBatch,
        loop: Callable[[Iterator[Any]], list[Any]],
        hand_on: Callable[[ChangelogBatch, list[Any]], None],
    ) -> None:
        track = self.advance_track(0, batch.track)
        self.time.watermark_ms = self.current_watermark
        told = batch.with_track(track).with_columns((batch.columns[VALUE],))
        rows = iter(batch.columns[VALUE].values.tolist())
        if batch.num_rows:
            in_pieces(told, rows, loop, hand_on, self._pace, self.ctx.time_slice)
        else:
            self.output.collect(told)

    def _map(self, piece: ChangelogBatch, made: list[Any]) -> None:
        self.output.collect(piece.with_columns((object_column(made),)))

    def _filter(self, piece: ChangelogBatch, made: list[Any]) -> None:
        self.output.collect(piece.filter(np.fromiter(made, np.bool_, len(made))))

    def _mapped(self, values: Iterator[Any]) -> list[Any]:
        function, own, over = self._method, self.emitter.own, self.over
        found: list[Any] = []
        append = found.append
        value: Any = None
        try:
            for value in values:
                append(own(function(value)))
                if over:
                    break
        except USER_ERRORS as error:
            self._function.fail(error, self._call.value, value)
        return found

    def _passed(self, values: Iterator[Any]) -> list[bool]:
        function, over = self._method, self.over
        found: list[bool] = []
        append = found.append
        value: Any = None
        try:
            for value in values:
                append(True if function(value) else False)  # noqa: SIM210 - bool() costs a call
                if over:
                    break
        except USER_ERRORS as error:
            self._function.fail(error, self._call.value, value)
        return found

    def process_rows(self, input_index: int, rows: Rows) -> None:
        """What each element becomes."""
        values, _, _, times = rows
        method, emit, context, over = self._method, self.emitter.emit, self._context, self.over
        value: Any = None
        try:
            if self._call is RowCall.FLAT_MAP:
                for value, time in zip(values, times, strict=True):
                    results = method(value)
                    if results:
                        emit(results, time)
                    if over:
                        self.breathe()
            else:
                for value, context.time in zip(values, times, strict=True):
                    results = method(value, context)
                    if results:
                        emit(results, context.time)
                    if over:
                        self.breathe()
        except USER_ERRORS as error:
            self._function.fail(error, self._call.value, value)
