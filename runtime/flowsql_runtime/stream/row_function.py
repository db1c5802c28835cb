"""Functions of one stream without keys: map, flat_map, filter, process."""

from __future__ import annotations

from typing import Any

import numpy as np

from flowsql_core.batch import ChangelogBatch
from flowsql_core.graph.stream_specs import VALUE, RowCall, RowFunctionSpec
from flowsql_runtime.operators.base import OperatorContext
from flowsql_runtime.stream.base import ObjectOperator, Rows, UserFunction
from flowsql_runtime.stream.context import PlainContext, StreamRuntimeContext, TimeService
from flowsql_runtime.stream.emitter import object_column
from flowsql_runtime.stream.failure import USER_ERRORS


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
                self.output.collect(self._told(batch).with_columns((object_column(self._mapped(batch)),)))
            case RowCall.FILTER:
                only = self._told(batch).with_columns((batch.columns[VALUE],))
                self.output.collect(only.filter(self._mask(batch)))
            case RowCall.FLAT_MAP | RowCall.PROCESS:
                super().process_batch(input_index, batch)

    def _told(self, batch: ChangelogBatch) -> ChangelogBatch:
        track = self.advance_track(0, batch.track)
        self.time.watermark_ms = self.current_watermark
        return batch.with_track(track)

    def _mapped(self, batch: ChangelogBatch) -> list[Any]:
        function, own = self._method, self.emitter.own
        found: list[Any] = []
        append = found.append
        value: Any = None
        try:
            for value in batch.columns[VALUE].values.tolist():
                append(own(function(value)))
        except USER_ERRORS as error:
            self._function.fail(error, self._call.value, value)
        return found

    def _mask(self, batch: ChangelogBatch) -> Any:
        function = self._method
        mask = np.zeros(batch.num_rows, np.bool_)
        value: Any = None
        try:
            for row, value in enumerate(batch.columns[VALUE].values.tolist()):
                if function(value):
                    mask[row] = True
        except USER_ERRORS as error:
            self._function.fail(error, self._call.value, value)
        return mask

    def process_rows(self, input_index: int, rows: Rows) -> None:
        """What each element becomes."""
        values, _, _, times = rows
        method, emit, context = self._method, self.emitter.emit, self._context
        value: Any = None
        try:
            if self._call is RowCall.FLAT_MAP:
                for value, time in zip(values, times, strict=True):
                    results = method(value)
                    if results:
                        emit(results, time)
            else:
                for value, context.time in zip(values, times, strict=True):
                    results = method(value, context)
                    if results:
                        emit(results, context.time)
        except USER_ERRORS as error:
            self._function.fail(error, self._call.value, value)
