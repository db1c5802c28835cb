"""Functions of a stream that is connected with a broadcast one, under PyFlink's names and signatures.

Every subtask sees every element of the broadcast stream and keeps what it makes of them in broadcast state; elements of
the other stream read that state. Elements of the broadcast stream may come in another order in each subtask.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Generic, TypeVar

from flowsql_core.stream.functions import KEY, OUT, Function
from flowsql_core.stream.state import BroadcastState, MapStateDescriptor, ReadOnlyBroadcastState
from flowsql_core.stream.timer import TimeDomain, TimerService

IN1 = TypeVar("IN1")
IN2 = TypeVar("IN2")


class BaseBroadcastProcessFunction(Function):
    """What both kinds share."""

    class BaseContext(ABC):
        """Valid during the call."""

        @abstractmethod
        def timestamp(self) -> int:
            """Of the element or the timer, epoch ms; the smallest long where the element has none."""

        @abstractmethod
        def current_processing_time(self) -> int:
            """The clock, epoch ms."""

        @abstractmethod
        def current_watermark(self) -> int:
            """The watermark, epoch ms: the lower one of both streams."""

    class Context(BaseContext):
        """For elements of the broadcast stream."""

        @abstractmethod
        def get_broadcast_state(self, state_descriptor: MapStateDescriptor) -> BroadcastState[Any, Any]:
            """State that may be written; the descriptor must be one of those given to ``broadcast``."""

    class ReadOnlyContext(BaseContext):
        """For elements of the other stream."""

        @abstractmethod
        def get_broadcast_state(self, state_descriptor: MapStateDescriptor) -> ReadOnlyBroadcastState[Any, Any]:
            """State to read; the descriptor must be one of those given to ``broadcast``."""


class BroadcastProcessFunction(BaseBroadcastProcessFunction, ABC, Generic[IN1, IN2, OUT]):
    """Of a stream without keys and a broadcast one."""

    class Context(BaseBroadcastProcessFunction.Context, ABC):
        """For elements of the broadcast stream."""

    class ReadOnlyContext(BaseBroadcastProcessFunction.ReadOnlyContext, ABC):
        """For elements of the other stream."""

    @abstractmethod
    def process_element(self, value: IN1, ctx: BroadcastProcessFunction.ReadOnlyContext) -> Any:
        """For each element of the stream that is not broadcast."""

    @abstractmethod
    def process_broadcast_element(self, value: IN2, ctx: BroadcastProcessFunction.Context) -> Any:
        """For each element of the broadcast stream, in every subtask."""


class KeyedBroadcastProcessFunction(BaseBroadcastProcessFunction, ABC, Generic[KEY, IN1, IN2, OUT]):
    """Of a keyed stream and a broadcast one: elements of the keyed one have state and timers of their key."""

    class Context(BaseBroadcastProcessFunction.Context, ABC):
        """For elements of the broadcast stream: without a key, so without keyed state and timers."""

    class ReadOnlyContext(BaseBroadcastProcessFunction.ReadOnlyContext, ABC):
        """For elements of the keyed stream."""

        @abstractmethod
        def timer_service(self) -> TimerService:
            """The time and timers."""

        @abstractmethod
        def get_current_key(self) -> Any:
            """The key of the element, or of the timer."""

    class OnTimerContext(ReadOnlyContext, ABC):
        """For timers."""

        @abstractmethod
        def time_domain(self) -> TimeDomain:
            """Of the timer."""

    @abstractmethod
    def process_element(self, value: IN1, ctx: KeyedBroadcastProcessFunction.ReadOnlyContext) -> Any:
        """For each element of the keyed stream."""

    @abstractmethod
    def process_broadcast_element(self, value: IN2, ctx: KeyedBroadcastProcessFunction.Context) -> Any:
        """For each element of the broadcast stream, in every subtask."""

    def on_timer(self, timestamp: int, ctx: KeyedBroadcastProcessFunction.OnTimerContext) -> Any:
        """For each timer, in order of time."""
