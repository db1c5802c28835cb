"""What functions of a broadcast stream are given: contexts that write broadcast state, and contexts that read it."""

from __future__ import annotations

from typing import Any

from flowsql_core.stream import state as api
from flowsql_core.stream.broadcast_functions import BroadcastProcessFunction, KeyedBroadcastProcessFunction
from flowsql_core.stream.timer import TimerService
from flowsql_runtime.state.api import Cell
from flowsql_runtime.stream.broadcast_state import BroadcastStates
from flowsql_runtime.stream.context import KeyedContext, TimeService
from flowsql_runtime.stream.timers import TimeKeeper


class _Moment:
    """Time of elements without a key; the operator sets ``time`` before each."""

    def __init__(self, time: TimeKeeper, states: BroadcastStates) -> None:
        self._time = time
        self._states = states
        self.time = 0

    def timestamp(self) -> int:
        """Of the element."""
        return self.time

    def current_processing_time(self) -> int:
        """The clock."""
        return self._time.now_ms()

    def current_watermark(self) -> int:
        """The watermark before the element."""
        return self._time.watermark_ms

    def timer_service(self) -> TimerService:
        """The time; timers need a key, which these elements do not have."""
        return TimeService(self._time)


class BroadcastContext(_Moment, BroadcastProcessFunction.Context, KeyedBroadcastProcessFunction.Context):
    """For elements of the broadcast stream."""

    def get_broadcast_state(self, state_descriptor: api.MapStateDescriptor) -> api.BroadcastState[Any, Any]:
        """To write."""
        return self._states.get_broadcast_state(state_descriptor)


class ReadOnlyContext(_Moment, BroadcastProcessFunction.ReadOnlyContext):
    """For elements of a stream without keys."""

    def get_broadcast_state(self, state_descriptor: api.MapStateDescriptor) -> api.ReadOnlyBroadcastState[Any, Any]:
        """To read."""
        return self._states.readable(state_descriptor)


class KeyedReadOnlyContext(KeyedContext, KeyedBroadcastProcessFunction.OnTimerContext):
    """For elements and timers of a keyed stream; the operator sets ``time``, ``key`` and ``domain`` before each."""

    def __init__(self, time: TimeKeeper, cell: Cell, states: BroadcastStates) -> None:
        super().__init__(time, cell)
        self._keeper = time
        self._states = states

    def current_processing_time(self) -> int:
        """The clock."""
        return self._keeper.now_ms()

    def current_watermark(self) -> int:
        """The watermark before the element."""
        return self._keeper.watermark_ms

    def get_broadcast_state(self, state_descriptor: api.MapStateDescriptor) -> api.ReadOnlyBroadcastState[Any, Any]:
        """To read."""
        return self._states.readable(state_descriptor)
