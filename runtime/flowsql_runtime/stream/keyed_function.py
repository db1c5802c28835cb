"""Functions of a keyed stream: process, and map, flat_map, filter and reduce with state."""

from __future__ import annotations

from typing import Any, Final, assert_never

from flowsql_core.element import MAX_WATERMARK
from flowsql_core.graph.stream_specs import KeyedCall, KeyedFunctionSpec
from flowsql_core.stream.state import ReducingStateDescriptor
from flowsql_core.stream.timer import TimeDomain
from flowsql_runtime.operators.base import OperatorContext
from flowsql_runtime.state.api import NO_SLOT
from flowsql_runtime.stream.base import KeyedObjectOperator, Rows, UserFunction
from flowsql_runtime.stream.failure import USER_ERRORS

#: The name of the state of ``reduce``.
_REDUCED: Final = "_reduce_state"


class KeyedFunctionOperator(KeyedObjectOperator[KeyedFunctionSpec]):
    """Calls a function for each element with its key's state, and for each timer.

    In     objects with keys, hash-partitioned by them.
    Out    what the function emits, with the timestamp of the element or timer.
    State  the function's, by name; timers; for reduce what each key came to.
    """

    def open(self, ctx: OperatorContext) -> None:
        """Open the function."""
        super().open(ctx)
        self._function = UserFunction(ctx, self.spec.function)
        self._method = self._function.method(self.spec.call.value)
        self._on_timer = getattr(self._function.object, "on_timer", None)
        self._function.open(self.runtime_context)
        if self.spec.call is KeyedCall.REDUCE:
            self._reduced = self.states.handle(ReducingStateDescriptor(_REDUCED, self._function.object))
        self.states.refuse_without_key()

    def close(self) -> None:
        """Close the function."""
        self.cell[0] = NO_SLOT
        self._function.close()

    def process_rows(self, input_index: int, rows: Rows) -> None:
        """One element after the other."""
        try:
            match self.spec.call:
                case KeyedCall.PROCESS:
                    self._process(rows)
                case KeyedCall.MAP | KeyedCall.FILTER:
                    self._map(rows)
                case KeyedCall.FLAT_MAP:
                    self._flat_map(rows)
                case KeyedCall.REDUCE:
                    self._reduce(rows)
                case _:
                    assert_never(self.spec.call)
        except USER_ERRORS as error:
            self._function.fail(error, self.spec.call.value, self._value, self.context.key)

    def _process(self, rows: Rows) -> None:
        values, keys, tokens, times = rows
        process, emit, context, cell = self._method, self.emitter.emit, self.context, self.cell
        over = self.over
        value: Any = None
        try:
            for value, context.key, cell[0], context.time in zip(values, keys, tokens, times, strict=True):
                results = process(value, context)
                if results:
                    emit(results, context.time)
                if over:
                    self.breathe()
        finally:
            self._value = value

    def _map(self, rows: Rows) -> None:
        values, keys, tokens, times = rows
        function, context, cell, emitter = self._method, self.context, self.cell, self.emitter
        append, own = emitter.values.append, emitter.own
        filters, over = self.spec.call is KeyedCall.FILTER, self.over
        value: Any = None
        try:
            for value, context.key, cell[0], time in zip(values, keys, tokens, times, strict=True):
                result = function(value)
                if not filters:
                    append(own(result))
                    emitter.times.append(time)
                elif result:
                    append(value)
                    emitter.times.append(time)
                if over:
                    self.breathe()
        finally:
            self._value = value

    def _flat_map(self, rows: Rows) -> None:
        values, keys, tokens, times = rows
        function, emit, context, cell = self._method, self.emitter.emit, self.context, self.cell
        over = self.over
        value: Any = None
        try:
            for value, context.key, cell[0], time in zip(values, keys, tokens, times, strict=True):
                results = function(value)
                if results:
                    emit(results, time)
                if over:
                    self.breathe()
        finally:
            self._value = value

    def _reduce(self, rows: Rows) -> None:
        values, keys, tokens, times = rows
        reduced, context, cell, emitter = self._reduced, self.context, self.cell, self.emitter
        own, final, over = emitter.own, self.spec.final_only, self.over
        value: Any = None
        try:
            for value, context.key, cell[0], time in zip(values, keys, tokens, times, strict=True):
                reduced.add(value)
                if final:
                    self.time.event.register(MAX_WATERMARK, cell[0], context.key)
                else:
                    emitter.values.append(own(reduced.get()))
                    emitter.times.append(time)
                if over:
                    self.breathe()
        finally:
            self._value = value

    def fire(self, domain: TimeDomain, time_ms: int, slot: Any, key: Any) -> None:
        """One timer: the function's, or the end of a reduction."""
        context = self.context
        self.cell[0], context.key, context.time, context.domain = slot, key, time_ms, domain
        try:
            if self.spec.call is KeyedCall.REDUCE:
                self.emitter.emit((self._reduced.get(),), time_ms)
            elif self._on_timer is not None:
                results = self._on_timer(time_ms, context)
                if results:
                    self.emitter.emit(results, time_ms)
        except USER_ERRORS as error:
            self._function.fail(error, "on_timer", time_ms, key)
