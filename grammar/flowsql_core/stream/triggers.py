"""The triggers that come with the system."""

from __future__ import annotations

from typing import Any, cast

from flowsql_core.stream.functions import ReduceFunction
from flowsql_core.stream.state import ReducingState, ReducingStateDescriptor
from flowsql_core.stream.time import Span, span_ms
from flowsql_core.stream.window import Trigger, TriggerResult

_CONTINUE = TriggerResult.CONTINUE
_FIRE = TriggerResult.FIRE


class EventTimeTrigger(Trigger[Any, Any]):
    """Fires when the watermark passes the end of the window, and for each late element after that."""

    @staticmethod
    def create() -> EventTimeTrigger:
        """A trigger."""
        return EventTimeTrigger()

    def on_element(self, element: Any, timestamp: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        """Late: fire at once; else wait for the end."""
        end = window.max_timestamp()
        if end <= ctx.get_current_watermark():
            return _FIRE
        ctx.register_event_time_timer(end)
        return _CONTINUE

    def on_processing_time(self, time: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        """The clock does not matter."""
        return _CONTINUE

    def on_event_time(self, time: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        """The end fires; the clean-up timer does not."""
        return _FIRE if time == window.max_timestamp() else _CONTINUE

    def can_merge(self) -> bool:
        """Yes."""
        return True

    def on_merge(self, window: Any, ctx: Trigger.OnMergeContext) -> None:
        """Wait for the new end."""
        end = window.max_timestamp()
        if end > ctx.get_current_watermark():
            ctx.register_event_time_timer(end)

    def clear(self, window: Any, ctx: Trigger.TriggerContext) -> None:
        """Forget the timer."""
        ctx.delete_event_time_timer(window.max_timestamp())


class ProcessingTimeTrigger(Trigger[Any, Any]):
    """Fires when the clock passes the end of the window."""

    @staticmethod
    def create() -> ProcessingTimeTrigger:
        """A trigger."""
        return ProcessingTimeTrigger()

    def on_element(self, element: Any, timestamp: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        """Wait for the end."""
        ctx.register_processing_time_timer(window.max_timestamp())
        return _CONTINUE

    def on_processing_time(self, time: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        """The end."""
        return _FIRE

    def on_event_time(self, time: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        """The watermark does not matter."""
        return _CONTINUE

    def can_merge(self) -> bool:
        """Yes."""
        return True

    def on_merge(self, window: Any, ctx: Trigger.OnMergeContext) -> None:
        """Wait for the new end."""
        end = window.max_timestamp()
        if end > ctx.get_current_processing_time():
            ctx.register_processing_time_timer(end)

    def clear(self, window: Any, ctx: Trigger.TriggerContext) -> None:
        """Forget the timer."""
        ctx.delete_processing_time_timer(window.max_timestamp())


class _Earliest(ReduceFunction):
    def reduce(self, value1: int, value2: int) -> int:
        return min(value1, value2)


class _Sum(ReduceFunction):
    def reduce(self, value1: int, value2: int) -> int:
        return value1 + value2


class ContinuousEventTimeTrigger(Trigger[Any, Any]):
    """Fires every interval of event time, and at the end of the window."""

    def __init__(self, interval: int) -> None:
        self.interval = interval
        self._fire_time = ReducingStateDescriptor("fire-time", _Earliest())

    @staticmethod
    def of(interval: Span) -> ContinuousEventTimeTrigger:
        """Every ``interval``."""
        return ContinuousEventTimeTrigger(span_ms(interval))

    def on_element(self, element: Any, timestamp: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        """Wait for the end and for the next multiple of the interval."""
        end = window.max_timestamp()
        if end <= ctx.get_current_watermark():
            return _FIRE
        ctx.register_event_time_timer(end)
        if self._state(ctx).get() is None:
            self._wait(timestamp - timestamp % self.interval, window, ctx)
        return _CONTINUE

    def on_processing_time(self, time: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        """The clock does not matter."""
        return _CONTINUE

    def on_event_time(self, time: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        """The end, or the interval."""
        if time == window.max_timestamp():
            return _FIRE
        state = self._state(ctx)
        if state.get() != time:
            return _CONTINUE
        state.clear()
        self._wait(time, window, ctx)
        return _FIRE

    def can_merge(self) -> bool:
        """Yes."""
        return True

    def on_merge(self, window: Any, ctx: Trigger.OnMergeContext) -> None:
        """The earliest of all counts."""
        ctx.merge_partitioned_state(self._fire_time)
        at = self._state(ctx).get()
        if at is not None:
            ctx.register_event_time_timer(at)

    def clear(self, window: Any, ctx: Trigger.TriggerContext) -> None:
        """Forget timer and state."""
        state = self._state(ctx)
        at = state.get()
        if at is not None:
            ctx.delete_event_time_timer(at)
            state.clear()

    def _state(self, ctx: Trigger.TriggerContext) -> ReducingState[Any]:
        return cast("ReducingState[Any]", ctx.get_partitioned_state(self._fire_time))

    def _wait(self, time: int, window: Any, ctx: Trigger.TriggerContext) -> None:
        at = min(time + self.interval, window.max_timestamp())
        self._state(ctx).add(at)
        ctx.register_event_time_timer(at)


class ContinuousProcessingTimeTrigger(Trigger[Any, Any]):
    """Fires every interval of the clock."""

    def __init__(self, interval: int) -> None:
        self.interval = interval
        self._fire_time = ReducingStateDescriptor("fire-time", _Earliest())

    @staticmethod
    def of(interval: Span) -> ContinuousProcessingTimeTrigger:
        """Every ``interval``."""
        return ContinuousProcessingTimeTrigger(span_ms(interval))

    def on_element(self, element: Any, timestamp: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        """Wait for the next multiple of the interval."""
        now = ctx.get_current_processing_time()
        if self._state(ctx).get() is None:
            self._wait(now - now % self.interval, window, ctx)
        return _CONTINUE

    def on_processing_time(self, time: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        """The interval."""
        state = self._state(ctx)
        if state.get() != time:
            return _CONTINUE
        state.clear()
        self._wait(time, window, ctx)
        return _FIRE

    def on_event_time(self, time: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        """The watermark does not matter."""
        return _CONTINUE

    def can_merge(self) -> bool:
        """Yes."""
        return True

    def on_merge(self, window: Any, ctx: Trigger.OnMergeContext) -> None:
        """The earliest of all counts."""
        ctx.merge_partitioned_state(self._fire_time)
        at = self._state(ctx).get()
        if at is not None:
            ctx.register_processing_time_timer(at)

    def clear(self, window: Any, ctx: Trigger.TriggerContext) -> None:
        """Forget timer and state."""
        state = self._state(ctx)
        at = state.get()
        if at is not None:
            ctx.delete_processing_time_timer(at)
            state.clear()

    def _state(self, ctx: Trigger.TriggerContext) -> ReducingState[Any]:
        return cast("ReducingState[Any]", ctx.get_partitioned_state(self._fire_time))

    def _wait(self, time: int, window: Any, ctx: Trigger.TriggerContext) -> None:
        at = min(time + self.interval, window.max_timestamp())
        self._state(ctx).add(at)
        ctx.register_processing_time_timer(at)


class PurgingTrigger(Trigger[Any, Any]):
    """Another trigger that throws the elements away whenever it fires."""

    def __init__(self, nested_trigger: Trigger[Any, Any]) -> None:
        self.nested_trigger = nested_trigger

    @staticmethod
    def of(nested_trigger: Trigger[Any, Any]) -> PurgingTrigger:
        """Around a trigger."""
        return PurgingTrigger(nested_trigger)

    def on_element(self, element: Any, timestamp: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        """What the other says, purging."""
        return _purging(self.nested_trigger.on_element(element, timestamp, window, ctx))

    def on_event_time(self, time: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        """What the other says, purging."""
        return _purging(self.nested_trigger.on_event_time(time, window, ctx))

    def on_processing_time(self, time: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        """What the other says, purging."""
        return _purging(self.nested_trigger.on_processing_time(time, window, ctx))

    def can_merge(self) -> bool:
        """If the other can."""
        return self.nested_trigger.can_merge()

    def on_merge(self, window: Any, ctx: Trigger.OnMergeContext) -> None:
        """As the other does."""
        self.nested_trigger.on_merge(window, ctx)

    def clear(self, window: Any, ctx: Trigger.TriggerContext) -> None:
        """As the other does."""
        self.nested_trigger.clear(window, ctx)


def _purging(result: TriggerResult) -> TriggerResult:
    return TriggerResult.FIRE_AND_PURGE if result.is_fire() else result


class CountTrigger(Trigger[Any, Any]):
    """Fires whenever so many elements came."""

    def __init__(self, window_size: int) -> None:
        self._window_size = window_size
        self._count = ReducingStateDescriptor("count", _Sum())

    @staticmethod
    def of(window_size: int) -> CountTrigger:
        """Every ``window_size`` elements."""
        return CountTrigger(window_size)

    def on_element(self, element: Any, timestamp: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        """Count."""
        count = cast("ReducingState[Any]", ctx.get_partitioned_state(self._count))
        count.add(1)
        if count.get() < self._window_size:
            return _CONTINUE
        count.clear()
        return _FIRE

    def on_processing_time(self, time: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        """Time does not matter."""
        return _CONTINUE

    def on_event_time(self, time: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        """Time does not matter."""
        return _CONTINUE

    def can_merge(self) -> bool:
        """Yes."""
        return True

    def on_merge(self, window: Any, ctx: Trigger.OnMergeContext) -> None:
        """Counts are added."""
        ctx.merge_partitioned_state(self._count)

    def clear(self, window: Any, ctx: Trigger.TriggerContext) -> None:
        """Forget the count."""
        ctx.get_partitioned_state(self._count).clear()


class NeverTrigger(Trigger[Any, Any]):
    """Never fires: the default of global windows."""

    def on_element(self, element: Any, timestamp: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        """Never."""
        return _CONTINUE

    def on_processing_time(self, time: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        """Never."""
        return _CONTINUE

    def on_event_time(self, time: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        """Never."""
        return _CONTINUE

    def clear(self, window: Any, ctx: Trigger.TriggerContext) -> None:
        """Nothing to forget."""
