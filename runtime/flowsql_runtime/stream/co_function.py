"""Functions of two connected streams, without keys and with."""

from __future__ import annotations

from typing import Any

from flowsql_core.graph.stream_specs import CoCall, CoFunctionSpec, KeyedCoFunctionSpec
from flowsql_core.stream.timer import TimeDomain
from flowsql_runtime.operators.base import OperatorContext
from flowsql_runtime.state.api import NO_SLOT
from flowsql_runtime.stream.base import KeyedObjectOperator, ObjectOperator, Rows, UserFunction
from flowsql_runtime.stream.context import PlainContext, StreamRuntimeContext, TimeService
from flowsql_runtime.stream.failure import USER_ERRORS


class CoFunctionOperator(ObjectOperator[CoFunctionSpec]):
    """Calls the method of the stream that an element came from.

    In     two streams of objects.
    Out    what the function emits, with the element's timestamp; the lower of the two watermarks.
    State  none.
    """

    number_of_inputs = 2

    def open(self, ctx: OperatorContext) -> None:
        """Open the function."""
        super().open(ctx)
        self._function = UserFunction(ctx, self.spec.function)
        self._methods = [self._function.method(f"{self.spec.call.value}{side}") for side in (1, 2)]
        self._context = PlainContext(TimeService(self.time))
        self._function.open(StreamRuntimeContext(ctx))

    def close(self) -> None:
        """Close the function."""
        self._function.close()

    def process_rows(self, input_index: int, rows: Rows) -> None:
        """One element after the other."""
        values, _, _, times = rows
        method, emit, context, call = self._methods[input_index], self.emitter.emit, self._context, self.spec.call
        over = self.over
        value: Any = None
        try:
            for value, context.time in zip(values, times, strict=True):
                results = method(value, context) if call is CoCall.PROCESS else method(value)
                if call is CoCall.MAP:
                    # None is no element, as in PyFlink.
                    results = () if results is None else (results,)
                if results:
                    emit(results, context.time)
                if over:
                    self.breathe()
        except USER_ERRORS as error:
            self._function.fail(error, f"{call.value}{input_index + 1}", value)


class KeyedCoFunctionOperator(KeyedObjectOperator[KeyedCoFunctionSpec]):
    """Calls the method of the stream that an element came from, with state and timers of its key.

    In     two streams of objects with keys, both hash-partitioned by them.
    Out    what the function emits, with the timestamp of the element or timer; the lower of the two watermarks.
    State  the function's, by name, shared by both sides; timers.
    """

    number_of_inputs = 2

    def open(self, ctx: OperatorContext) -> None:
        """Open the function."""
        super().open(ctx)
        self._function = UserFunction(ctx, self.spec.function)
        self._methods = [self._function.method(f"{self.spec.call.value}{side}") for side in (1, 2)]
        self._on_timer = getattr(self._function.object, "on_timer", None)
        self._function.open(self.runtime_context)
        self.states.refuse_without_key()

    def close(self) -> None:
        """Close the function."""
        self.cell[0] = NO_SLOT
        self._function.close()

    def process_rows(self, input_index: int, rows: Rows) -> None:
        """One element after the other."""
        values, keys, tokens, times = rows
        method, emit, context, cell = self._methods[input_index], self.emitter.emit, self.context, self.cell
        call, over = self.spec.call, self.over
        value: Any = None
        try:
            for value, context.key, cell[0], context.time in zip(values, keys, tokens, times, strict=True):
                results = method(value, context) if call is CoCall.PROCESS else method(value)
                if call is CoCall.MAP:
                    # None is no element, as in PyFlink.
                    results = () if results is None else (results,)
                if results:
                    emit(results, context.time)
                if over:
                    self.breathe()
        except USER_ERRORS as error:
            self._function.fail(error, f"{call.value}{input_index + 1}", value, context.key)

    def fire(self, domain: TimeDomain, time_ms: int, slot: Any, key: Any) -> None:
        """One timer."""
        context = self.context
        self.cell[0], context.key, context.time, context.domain = slot, key, time_ms, domain
        if self._on_timer is None:
            return
        try:
            results = self._on_timer(time_ms, context)
            if results:
                self.emitter.emit(results, time_ms)
        except USER_ERRORS as error:
            self._function.fail(error, "on_timer", time_ms, key)
