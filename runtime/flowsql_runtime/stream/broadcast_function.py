"""Functions of a stream that is connected with a broadcast one, without keys and with."""

from __future__ import annotations

from typing import Any, Final

from flowsql_core.graph.stream_specs import BroadcastFunctionSpec, KeyedBroadcastFunctionSpec
from flowsql_core.stream.timer import TimeDomain
from flowsql_runtime.operators.base import OperatorContext, OperatorSnapshot
from flowsql_runtime.state.api import NO_KEY, NO_SLOT
from flowsql_runtime.stream.base import KeyedObjectOperator, ObjectOperator, Rows, UserFunction
from flowsql_runtime.stream.broadcast_context import BroadcastContext, KeyedReadOnlyContext, ReadOnlyContext
from flowsql_runtime.stream.broadcast_state import BroadcastStates
from flowsql_runtime.stream.context import StreamRuntimeContext
from flowsql_runtime.stream.failure import USER_ERRORS

_ELEMENT: Final = "process_element"
_BROADCAST: Final = "process_broadcast_element"


class BroadcastFunctionOperator(ObjectOperator[BroadcastFunctionSpec]):
    """Calls one method for elements of a stream, the other for those of a broadcast one.

    In     objects; objects, all of them in every subtask.
    Out    what the function emits, with the element's timestamp; the lower of the two watermarks.
    State  broadcast state, by name.
    """

    number_of_inputs = 2

    def open(self, ctx: OperatorContext) -> None:
        """Open the function."""
        super().open(ctx)
        self._function = UserFunction(ctx, self.spec.function)
        self._states = BroadcastStates(self.spec.states)
        self._calls: tuple[tuple[str, Any, Any], ...] = (
            (_ELEMENT, self._function.method(_ELEMENT), ReadOnlyContext(self.time, self._states)),
            (_BROADCAST, self._function.method(_BROADCAST), BroadcastContext(self.time, self._states)),
        )
        self._function.open(StreamRuntimeContext(ctx))

    def initialize_state(self, snapshot: OperatorSnapshot | None) -> None:
        """Take over broadcast state."""
        self._states.restore(self.ctx)

    def snapshot_state(self, checkpoint_id: int) -> OperatorSnapshot:
        """Everything, with broadcast state."""
        self._states.save(self.ctx)
        return super().snapshot_state(checkpoint_id)

    def close(self) -> None:
        """Close the function."""
        self._function.close()

    def process_rows(self, input_index: int, rows: Rows) -> None:
        """One element after the other."""
        values, _, _, times = rows
        name, method, context = self._calls[input_index]
        emit, over = self.emitter.emit, self.over
        value: Any = None
        try:
            for value, context.time in zip(values, times, strict=True):
                results = method(value, context)
                if results:
                    emit(results, context.time)
                if over:
                    self.breathe()
        except USER_ERRORS as error:
            self._function.fail(error, name, value)


class KeyedBroadcastFunctionOperator(KeyedObjectOperator[KeyedBroadcastFunctionSpec]):
    """The same where the first stream has keys: with state and timers of the key.

    In     objects with keys, hash-partitioned by them; objects, all of them in every subtask.
    Out    what the function emits, with the timestamp of the element or timer; the lower of the two watermarks.
    State  broadcast state and the function's keyed state, by name; timers.
    """

    number_of_inputs = 2
    keyed_inputs = frozenset({0})

    def open(self, ctx: OperatorContext) -> None:
        """Open the function."""
        super().open(ctx)
        self._function = UserFunction(ctx, self.spec.function)
        self._states = BroadcastStates(self.spec.states)
        self._element, self._broadcast = self._function.method(_ELEMENT), self._function.method(_BROADCAST)
        self._on_timer = getattr(self._function.object, "on_timer", None)
        self._read_context = KeyedReadOnlyContext(self.time, self.cell, self._states)
        self._broadcast_context = BroadcastContext(self.time, self._states)
        self._function.open(self.runtime_context)
        self.states.refuse_without_key()

    def initialize_state(self, snapshot: OperatorSnapshot | None) -> None:
        """Take over broadcast state; the base arms the clock."""
        super().initialize_state(snapshot)
        self._states.restore(self.ctx)

    def snapshot_state(self, checkpoint_id: int) -> OperatorSnapshot:
        """Everything, with broadcast state."""
        self._states.save(self.ctx)
        return super().snapshot_state(checkpoint_id)

    def close(self) -> None:
        """Close the function."""
        self.cell[0] = NO_SLOT
        self._function.close()

    def process_rows(self, input_index: int, rows: Rows) -> None:
        """One element after the other."""
        if input_index == 0:
            self._elements(rows)
        else:
            self._broadcast_elements(rows)

    def _elements(self, rows: Rows) -> None:
        values, keys, tokens, times = rows
        method, emit, context, cell = self._element, self.emitter.emit, self._read_context, self.cell
        over = self.over
        value: Any = None
        try:
            for value, context.key, cell[0], context.time in zip(values, keys, tokens, times, strict=True):
                results = method(value, context)
                if results:
                    emit(results, context.time)
                if over:
                    self.breathe()
        except USER_ERRORS as error:
            self._function.fail(error, _ELEMENT, value, context.key)

    def _broadcast_elements(self, rows: Rows) -> None:
        values, _, _, times = rows
        method, emit, context = self._broadcast, self.emitter.emit, self._broadcast_context
        cell, over = self.cell, self.over
        # Whoever asks for keyed state here is told that there is no key.
        cell[0] = NO_KEY
        value: Any = None
        try:
            for value, context.time in zip(values, times, strict=True):
                results = method(value, context)
                if results:
                    emit(results, context.time)
                if over:
                    self.breathe()
                    cell[0] = NO_KEY
        except USER_ERRORS as error:
            self._function.fail(error, _BROADCAST, value)

    def fire(self, domain: TimeDomain, time_ms: int, slot: Any, key: Any) -> None:
        """One timer."""
        context = self._read_context
        self.cell[0], context.key, context.time, context.domain = slot, key, time_ms, domain
        if self._on_timer is None:
            return
        try:
            results = self._on_timer(time_ms, context)
            if results:
                self.emitter.emit(results, time_ms)
        except USER_ERRORS as error:
            self._function.fail(error, "on_timer", time_ms, key)
