"""Windows of keyed streams: assign, keep or fold, fire by trigger, clean up."""

from __future__ import annotations

from typing import Any, Final

from flowsql_core.errors import ExecutionError
from flowsql_core.graph.stream_specs import StreamWindowSpec
from flowsql_core.stream import functions as f
from flowsql_core.stream.timer import TimeDomain
from flowsql_core.stream.triggers import EventTimeTrigger, ProcessingTimeTrigger
from flowsql_core.stream.window import MAX_LONG, MergingWindowAssigner, TriggerResult
from flowsql_runtime.operators.base import OperatorContext
from flowsql_runtime.state.api import NO_SLOT, Cell, ObjectStates
from flowsql_runtime.stream.base import KeyedObjectOperator, Rows, UserFunction
from flowsql_runtime.stream.copies import user_copy
from flowsql_runtime.stream.failure import USER_ERRORS, user_failure
from flowsql_runtime.stream.merging_windows import MergingWindows
from flowsql_runtime.stream.metrics import UserMetricGroup
from flowsql_runtime.stream.window_contents import Aggregated, AllElements, Reduced, WindowContents, evaluate
from flowsql_runtime.stream.window_context import AssignerContext, TriggerContext, WindowContext, WindowStateStore

_CONTENTS: Final = "window-contents"
_MERGING: Final = "merging-window-set"
_LATE_METRIC: Final = "numLateRecordsDropped"


class WindowOperator(KeyedObjectOperator[StreamWindowSpec]):
    """Flink's WindowOperator, element by element.

    In     objects with keys, hash-partitioned by them.
    Out    what the window function emits, with the timestamp of the element or timer that fired the window.
    State  contents by key and window; of the trigger, the assigner and the function, by name; timers.
    Late   an element all of whose windows were cleaned up goes to ``late_tag``, or is dropped and counted.

    Source: Flink, ``WindowOperator``.
    """

    namespaced = True

    def open(self, ctx: OperatorContext) -> None:
        """Open the functions, make assigner, trigger and state."""
        super().open(ctx)
        spec = self.spec
        self._assigner = user_copy(ctx.resources[spec.assigner])
        self._trigger = (
            self._assigner.get_default_trigger(None) if spec.trigger is None else user_copy(ctx.resources[spec.trigger])
        )
        self._event_time: bool = self._assigner.is_event_time()
        #: The trigger does nothing for an element of an open window but wait for its end.
        self._waits_for_end = type(self._trigger) is (EventTimeTrigger if self._event_time else ProcessingTimeTrigger)
        merging = isinstance(self._assigner, MergingWindowAssigner)
        if merging and not self._trigger.can_merge():
            raise ExecutionError(
                "trigger-cannot-merge",
                "A merging window assigner cannot be used with a trigger that does not support merging.",
                hint=f"{type(self._trigger).__name__}.can_merge() says False",
            )
        #: The pair of key token and window, for timers and for state of a window.
        self._slot: Cell = [NO_SLOT]
        self._window_states = ObjectStates(ctx.state, "window", self._slot, ctx.clock, namespaced=True)
        metrics = UserMetricGroup(ctx.metrics)
        self._late = metrics.counter(_LATE_METRIC)
        self._trigger_context = TriggerContext(self.time, self._slot, self._window_states, metrics)
        self._assigner_context = AssignerContext(self.time, self.runtime_context)
        self._window_context = WindowContext(
            self.time, WindowStateStore(None if merging else self._window_states), self.runtime_context
        )
        self._function = None if spec.function is None else self._window_function(ctx, spec.function)
        self._contents = self._make_contents(ctx)
        self._merging = MergingWindows(self._assigner, self.states.store(_MERGING)) if merging else None
        if self._function is not None:
            self._function.open(self.runtime_context)
        self.states.refuse_without_key()

    def _end_piece(self) -> None:
        super()._end_piece()
        self._window_states.recorded(self._piece - self._left)

    def forget_key(self) -> None:
        """Remove the state of the key and of its windows."""
        super().forget_key()
        self._window_states.forget_all()

    def _window_function(self, ctx: OperatorContext, resource: str) -> UserFunction:
        """The function, which must be of the kind that the stream needs."""
        function = UserFunction(ctx, resource)
        of_key, of_all = (f.WindowFunction, f.ProcessWindowFunction), (f.AllWindowFunction, f.ProcessAllWindowFunction)
        if not isinstance(function.object, of_all if self.spec.whole_stream else of_key):
            stream = "a whole stream" if self.spec.whole_stream else "a keyed stream"
            raise ExecutionError(
                "window-function", f"{type(function.object).__name__} is no window function of {stream}"
            )
        return function

    def _make_contents(self, ctx: OperatorContext) -> WindowContents:
        entries = self._window_states.store(_CONTENTS)
        self._aggregation = None
        if self.spec.aggregation is None:
            return AllElements(entries)
        self._aggregation = UserFunction(ctx, self.spec.aggregation)
        folding = self._aggregation.object
        return (
            Aggregated(entries, folding)
            if isinstance(folding, f.AggregateFunction)
            else Reduced(entries, self._aggregation)
        )

    def close(self) -> None:
        """Close the window function."""
        self.cell[0] = self._slot[0] = NO_SLOT
        if self._function is not None:
            self._function.close()

    # -- elements

    def process_rows(self, input_index: int, rows: Rows) -> None:
        """One element after the other."""
        values, keys, tokens, times = rows
        cell, context, trigger_context = self.cell, self.context, self._trigger_context
        element = self._element if self._merging is None else self._merging_element
        assign, assigner_context = self._assigner.assign_windows, self._assigner_context
        over = self.over
        value: Any = None
        try:
            for value, context.key, cell[0], time in zip(values, keys, tokens, times, strict=True):
                trigger_context.key = context.key
                if not element(value, assign(value, time, assigner_context), time) and self._is_late(time):
                    self._drop(value, time)
                if over:
                    self.breathe()
        except USER_ERRORS as error:
            self._fail(error, "process", value, context.key)

    def _element(self, value: Any, windows: Any, time: int) -> bool:
        """Put an element into its windows; whether one still took it."""
        token, slot_cell, context, contents = self.cell[0], self._slot, self._trigger_context, self._contents
        own = self.emitter.own
        taken = False
        watermark_ms, waits = self.time.watermark_ms, self._waits_for_end
        for window in windows:
            cleanup_ms = self._cleanup_ms(window)
            if self._event_time and cleanup_ms <= watermark_ms:
                continue
            slot = slot_cell[0] = (token, window)
            if waits and slot in contents.entries and not (self._event_time and window.max_timestamp() <= watermark_ms):
                # The first element of the window registered both timers, and nothing else would happen now.
                contents.add(slot, own(value) if taken else value)
                taken = True
                continue
            # Windows must not share an object that folding may change.
            contents.add(slot, own(value) if taken else value)
            taken = True
            result = self._trigger.on_element(value, time, window, context)
            if self._acted(result, window, slot, time):
                self._register_cleanup(cleanup_ms)
        return taken

    def _merging_element(self, value: Any, windows: Any, time: int) -> bool:
        """The same where windows grow together."""
        assert self._merging is not None
        token = self.cell[0]
        taken = False
        for new in windows:
            window = self._merging.add(token, new, self._merged)
            cleanup_ms = self._cleanup_ms(window)
            if self._event_time and cleanup_ms <= self.time.watermark_ms:
                self._merging.retire(token, window)
                continue
            taken = True
            home = (token, self._merging.state_window(token, window))
            self._contents.add(home, value)
            self._slot[0] = (token, window)
            result = self._trigger.on_element(value, time, window, self._trigger_context)
            if self._acted(result, window, home, time):
                self._register_cleanup(cleanup_ms)
        return taken

    def _merged(self, window: Any, parts: list[Any], home: Any, others: list[Any]) -> None:
        """Windows of the current key became one: trigger, timers and contents move."""
        end_ms = window.max_timestamp()
        now_ms = self.time.watermark_ms if self._event_time else self.time.now_ms()
        if end_ms + (self.spec.allowed_lateness_ms if self._event_time else 0) <= now_ms:
            kind, scale = ("event", "watermark") if self._event_time else ("processing", "processing time")
            raise ExecutionError(
                "merged-window-late",
                f"The end timestamp of {kind}-time window {window} cannot become earlier than the current {scale} by "
                f"merging: {now_ms}.",
            )
        token, context = self.cell[0], self._trigger_context
        self._slot[0] = (token, window)
        context.merged = [(token, part) for part in parts]
        self._trigger.on_merge(window, context)
        for part in parts:
            self._slot[0] = (token, part)
            self._trigger.clear(part, context)
            self._delete_cleanup(self._cleanup_ms(part))
        context.merged = []
        self._contents.merge((token, home), [(token, other) for other in others])

    def _acted(self, result: TriggerResult, window: Any, home: Any, time: int) -> bool:
        """Do what the trigger wants; False where it fired an empty window."""
        if result is TriggerResult.CONTINUE:
            return True
        if result.is_fire():
            elements = self._contents.elements(home)
            if elements is None:
                return False
            self._emit(window, elements, time)
        if result.is_purge():
            self._contents.clear(home)
        return True

    def _emit(self, window: Any, elements: list[Any], time: int) -> None:
        context = self._window_context
        context.current = window
        function = None if self._function is None else self._function.object
        results = evaluate(function, self.context.key, window, context, elements)
        if results:
            self.emitter.emit(results, time)

    # -- late elements

    def _is_late(self, time: int) -> bool:
        return self._event_time and time + self.spec.allowed_lateness_ms <= self.time.watermark_ms

    def _drop(self, value: Any, time: int) -> None:
        if self.spec.late_tag is None:
            self._late.inc()
        else:
            self.emitter.emit_side(self.spec.late_tag, value, time)

    # -- timers

    def fire(self, domain: TimeDomain, time_ms: int, slot: Any, key: Any) -> None:
        """A timer of the trigger, or the clean-up of a window."""
        token, window = slot
        context = self._trigger_context
        self.cell[0], self._slot[0] = token, slot
        self.context.key = context.key = key
        try:
            home = slot
            if self._merging is not None:
                state_window = self._merging.state_window(token, window)
                if state_window is None:
                    return  # the trigger left a timer of a window that is over
                home = (token, state_window)
            by_watermark = domain is TimeDomain.EVENT_TIME
            on_time = self._trigger.on_event_time if by_watermark else self._trigger.on_processing_time
            self._acted_by_timer(on_time(time_ms, window, context), window, home, time_ms)
            if by_watermark is self._event_time and time_ms == self._cleanup_ms(window):
                self._clear(token, window, home)
        except USER_ERRORS as error:
            self._fail(error, "on_timer", time_ms, key)

    def _acted_by_timer(self, result: TriggerResult, window: Any, home: Any, time_ms: int) -> None:
        if result.is_fire():
            elements = self._contents.elements(home)
            if elements is not None:
                self._emit(window, elements, time_ms)
        if result.is_purge():
            self._contents.clear(home)

    def _clear(self, token: Any, window: Any, home: Any) -> None:
        """A window is over: nothing of it stays."""
        self._contents.clear(home)
        self._slot[0] = (token, window)
        self._trigger.clear(window, self._trigger_context)
        function = None if self._function is None else self._function.object
        if isinstance(function, f.ProcessWindowFunction | f.ProcessAllWindowFunction):
            self._window_context.current = window
            function.clear(self._window_context)
        if self._merging is not None:
            self._merging.retire(token, window)

    def _cleanup_ms(self, window: Any) -> int:
        """When a window is removed; the end of time: never by a timer."""
        end_ms: int = window.max_timestamp()
        return min(end_ms + self.spec.allowed_lateness_ms, MAX_LONG) if self._event_time else end_ms

    def _register_cleanup(self, at_ms: int) -> None:
        if at_ms == MAX_LONG:
            return
        if self._event_time:
            self._trigger_context.register_event_time_timer(at_ms)
        else:
            self._trigger_context.register_processing_time_timer(at_ms)

    def _delete_cleanup(self, at_ms: int) -> None:
        if at_ms == MAX_LONG:
            return
        if self._event_time:
            self._trigger_context.delete_event_time_timer(at_ms)
        else:
            self._trigger_context.delete_processing_time_timer(at_ms)

    def _fail(self, error: BaseException, method: str, element: Any, key: Any) -> None:
        named = self._function or self._aggregation
        subject = self._assigner if named is None else named.object
        raise user_failure(error, subject, method, element, key)
