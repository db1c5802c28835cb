"""What user functions are given: the runtime context in ``open``, the contexts of calls, the timer service."""

from __future__ import annotations

from typing import Any

from flowsql_core.errors import ExecutionError
from flowsql_core.stream import functions as f
from flowsql_core.stream import state as api
from flowsql_core.stream.timer import TimeDomain, TimerService
from flowsql_core.udf import task_with_subtasks
from flowsql_runtime.operators.base import OperatorContext
from flowsql_runtime.python.options import GLOBAL_JOB_PARAMETERS, global_job_parameters
from flowsql_runtime.state.api import Cell, ObjectStates
from flowsql_runtime.stream.metrics import UserMetricGroup
from flowsql_runtime.stream.timers import TimeKeeper


class StateHandles(f.KeyedStateStore):
    """Handles of states by their descriptors. ``states`` None: there is no place for them here."""

    def __init__(self, states: ObjectStates | None) -> None:
        self._states = states

    def absent(self, name: str) -> ExecutionError:
        """Why the state of this name has no place."""
        return ExecutionError(
            "state-without-key",
            f"the state '{name}' is asked for on a stream without keys",
            hint="key_by() the stream first",
        )

    def _state(self, descriptor: api.StateDescriptor) -> Any:
        if self._states is None:
            raise self.absent(descriptor.name)
        return self._states.handle(descriptor)

    def get_state(self, state_descriptor: api.ValueStateDescriptor) -> api.ValueState[Any]:
        """One value."""
        found: api.ValueState[Any] = self._state(state_descriptor)
        return found

    def get_list_state(self, state_descriptor: api.ListStateDescriptor) -> api.ListState[Any]:
        """A list."""
        found: api.ListState[Any] = self._state(state_descriptor)
        return found

    def get_map_state(self, state_descriptor: api.MapStateDescriptor) -> api.MapState[Any, Any]:
        """A map."""
        found: api.MapState[Any, Any] = self._state(state_descriptor)
        return found

    def get_reducing_state(self, state_descriptor: api.ReducingStateDescriptor) -> api.ReducingState[Any]:
        """The reduction of what was added."""
        found: api.ReducingState[Any] = self._state(state_descriptor)
        return found

    def get_aggregating_state(self, state_descriptor: api.AggregatingStateDescriptor) -> api.AggregatingState[Any, Any]:
        """The aggregate of what was added."""
        found: api.AggregatingState[Any, Any] = self._state(state_descriptor)
        return found


class StreamRuntimeContext(StateHandles, f.RuntimeContext):
    """Where a function runs. ``states`` None: the stream has no keys."""

    def __init__(self, ctx: OperatorContext, states: ObjectStates | None = None) -> None:
        super().__init__(states)
        self._ctx = ctx
        self._parameters = global_job_parameters(ctx.parameter(GLOBAL_JOB_PARAMETERS.key))

    def get_task_name(self) -> str:
        """Name of the task: of its operators, in a chain."""
        return self._ctx.task_name

    def get_number_of_parallel_subtasks(self) -> int:
        """Parallelism of the operator."""
        return self._ctx.parallelism

    def get_max_number_of_parallel_subtasks(self) -> int:
        """Number of key groups."""
        return self._ctx.max_parallelism

    def get_index_of_this_subtask(self) -> int:
        """From 0."""
        return self._ctx.subtask

    def get_attempt_number(self) -> int:
        """How often the subtask was started before."""
        return self._ctx.attempt

    def get_task_name_with_subtasks(self) -> str:
        """``name (3/6)#0``."""
        return task_with_subtasks(self._ctx.task_name, self._ctx.subtask, self._ctx.parallelism, self._ctx.attempt)

    def get_job_parameter(self, key: str, default_value: str) -> str:
        """Of ``pipeline.global-job-parameters``."""
        return self._parameters.get(key, default_value)

    def get_metrics_group(self) -> UserMetricGroup:
        """Metrics of this subtask."""
        return UserMetricGroup(self._ctx.metrics)


class TimeService(TimerService):
    """Time without timers: streams without keys."""

    __slots__ = ("_time",)

    def __init__(self, time: TimeKeeper) -> None:
        self._time = time

    def current_processing_time(self) -> int:
        """The clock."""
        return self._time.now_ms()

    def current_watermark(self) -> int:
        """The watermark that stands before the current element."""
        return self._time.watermark_ms

    def register_processing_time_timer(self, timestamp: int) -> None:
        """Refused."""
        raise _no_timers()

    def register_event_time_timer(self, timestamp: int) -> None:
        """Refused."""
        raise _no_timers()

    def delete_processing_time_timer(self, timestamp: int) -> None:
        """Refused."""
        raise _no_timers()

    def delete_event_time_timer(self, timestamp: int) -> None:
        """Refused."""
        raise _no_timers()


def _no_timers() -> ExecutionError:
    return ExecutionError(
        "timer-without-key", "Setting timers is only supported on a keyed stream.", hint="key_by() the stream first"
    )


class KeyedTimeService(TimeService):
    """Time and the timers of the current key."""

    __slots__ = ("_cell", "_context", "_event", "_processing")

    def __init__(self, time: TimeKeeper, cell: Cell, context: KeyedContext) -> None:
        super().__init__(time)
        self._cell = cell
        self._context = context
        self._event = time.event
        self._processing = time.processing

    def register_processing_time_timer(self, timestamp: int) -> None:
        """Call ``on_timer`` when the clock reaches ``timestamp``."""
        self._time.register_processing(timestamp, self._cell[0], self._context.key)

    def register_event_time_timer(self, timestamp: int) -> None:
        """Call ``on_timer`` when the watermark reaches ``timestamp``."""
        self._event.register(timestamp, self._cell[0], self._context.key)

    def delete_processing_time_timer(self, timestamp: int) -> None:
        """Forget a timer."""
        self._processing.delete(timestamp, self._cell[0])

    def delete_event_time_timer(self, timestamp: int) -> None:
        """Forget a timer."""
        self._event.delete(timestamp, self._cell[0])


class PlainContext(f.ProcessFunction.Context, f.CoProcessFunction.Context):
    """Of a call on a stream without keys; the operator sets ``time`` before each."""

    __slots__ = ("_service", "time")

    def __init__(self, service: TimerService) -> None:
        self._service = service
        self.time = 0

    def timer_service(self) -> TimerService:
        """The time."""
        return self._service

    def timestamp(self) -> int:
        """Of the element."""
        return self.time


class KeyedContext(f.KeyedProcessFunction.OnTimerContext, f.KeyedCoProcessFunction.OnTimerContext):
    """Of a call on a keyed stream, element or timer; the operator sets ``time``, ``key`` and ``domain`` before each."""

    __slots__ = ("_service", "domain", "key", "time")

    def __init__(self, time: TimeKeeper, cell: Cell) -> None:
        self.time = 0
        self.key: Any = None
        self.domain = TimeDomain.EVENT_TIME
        self._service = KeyedTimeService(time, cell, self)

    def get_current_key(self) -> Any:
        """The key of the element or timer."""
        return self.key

    def timer_service(self) -> TimerService:
        """The time and timers."""
        return self._service

    def timestamp(self) -> int:
        """Of the element or timer."""
        return self.time

    def time_domain(self) -> TimeDomain:
        """Of the timer."""
        return self.domain
