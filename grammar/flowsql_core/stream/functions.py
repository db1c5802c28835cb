"""Base classes of user functions, under PyFlink's names and signatures.

A function emits by ``yield``, or by returning an iterable or None. ``(OutputTag, value)`` goes to a side output. The
contexts are valid during the call only: the runtime has one of each and reuses it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

from flowsql_core.stream.state import (
    AggregatingState,
    AggregatingStateDescriptor,
    ListState,
    ListStateDescriptor,
    MapState,
    MapStateDescriptor,
    ReducingState,
    ReducingStateDescriptor,
    ValueState,
    ValueStateDescriptor,
)
from flowsql_core.stream.timer import TimeDomain, TimerService

IN = TypeVar("IN")
OUT = TypeVar("OUT")
KEY = TypeVar("KEY")
W = TypeVar("W")


@runtime_checkable
class Metric(Protocol):
    """Something that a function counts or measures."""


@runtime_checkable
class Counter(Metric, Protocol):
    """A number that goes up and down."""

    def inc(self, n: int = 1) -> None:
        """Add."""

    def dec(self, n: int = 1) -> None:
        """Take away."""

    def get_count(self) -> int:
        """The number."""


@runtime_checkable
class Meter(Metric, Protocol):
    """Counts events; the rate a second is derived from it."""

    def mark_event(self, value: int = 1) -> None:
        """Note events."""

    def get_count(self) -> int:
        """All events so far."""


@runtime_checkable
class Distribution(Metric, Protocol):
    """Count, sum, smallest and largest of what it was told."""

    def update(self, value: int) -> None:
        """Note a value."""


@runtime_checkable
class MetricGroup(Protocol):
    """Metrics of a function, by name."""

    def add_group(self, name: str, extra: str | None = None) -> MetricGroup:
        """A group below this one; with ``extra``, the pair of a key and a value."""

    def counter(self, name: str) -> Counter:
        """A counter."""

    def gauge(self, name: str, obj: Callable[[], int]) -> None:
        """A value that is asked for when somebody looks."""

    def meter(self, name: str, time_span_in_seconds: int = 60) -> Meter:
        """A meter."""

    def distribution(self, name: str) -> Distribution:
        """A distribution."""


class KeyedStateStore(ABC):
    """Hands out state of the current key."""

    @abstractmethod
    def get_state(self, state_descriptor: ValueStateDescriptor) -> ValueState[Any]:
        """One value a key."""

    @abstractmethod
    def get_list_state(self, state_descriptor: ListStateDescriptor) -> ListState[Any]:
        """A list a key."""

    @abstractmethod
    def get_map_state(self, state_descriptor: MapStateDescriptor) -> MapState[Any, Any]:
        """A map a key."""

    @abstractmethod
    def get_reducing_state(self, state_descriptor: ReducingStateDescriptor) -> ReducingState[Any]:
        """The reduction of what was added, a key."""

    @abstractmethod
    def get_aggregating_state(self, state_descriptor: AggregatingStateDescriptor) -> AggregatingState[Any, Any]:
        """The aggregate of what was added, a key."""


class RuntimeContext(KeyedStateStore):
    """Where a function runs, and its state (on keyed streams)."""

    @abstractmethod
    def get_task_name(self) -> str:
        """Name of the task: the names of its operators, in a chain, with ``->`` between."""

    @abstractmethod
    def get_number_of_parallel_subtasks(self) -> int:
        """Parallelism of the operator."""

    @abstractmethod
    def get_max_number_of_parallel_subtasks(self) -> int:
        """Number of key groups."""

    @abstractmethod
    def get_index_of_this_subtask(self) -> int:
        """From 0."""

    @abstractmethod
    def get_attempt_number(self) -> int:
        """How often the subtask was started before: 0, and one more after each restart."""

    @abstractmethod
    def get_task_name_with_subtasks(self) -> str:
        """``name (3/6)#0``: the subtask counts from 1 there, the attempt from 0."""

    @abstractmethod
    def get_job_parameter(self, key: str, default_value: str) -> str:
        """A parameter of the job as text."""

    @abstractmethod
    def get_metrics_group(self) -> MetricGroup:
        """Metrics of this subtask of the function."""


class Function:
    """Base of all user functions: each subtask works with a copy of its own."""

    def open(self, runtime_context: RuntimeContext) -> None:
        """Before the first element."""

    def close(self) -> None:
        """After the last element, and after a failure."""


class MapFunction(Function, ABC):
    """One element in, one out."""

    @abstractmethod
    def map(self, value: Any) -> Any:
        """The new element."""


class CoMapFunction(Function, ABC):
    """:class:`MapFunction` of two connected streams."""

    @abstractmethod
    def map1(self, value: Any) -> Any:
        """For an element of the first stream; None emits nothing."""

    @abstractmethod
    def map2(self, value: Any) -> Any:
        """For an element of the second stream; None emits nothing."""


class FlatMapFunction(Function, ABC):
    """One element in, any number out."""

    @abstractmethod
    def flat_map(self, value: Any) -> Any:
        """The new elements."""


class CoFlatMapFunction(Function, ABC):
    """:class:`FlatMapFunction` of two connected streams."""

    @abstractmethod
    def flat_map1(self, value: Any) -> Any:
        """For an element of the first stream."""

    @abstractmethod
    def flat_map2(self, value: Any) -> Any:
        """For an element of the second stream."""


class FilterFunction(Function, ABC):
    """Keeps or drops an element."""

    @abstractmethod
    def filter(self, value: Any) -> bool:
        """True keeps it."""


class ReduceFunction(Function, ABC):
    """Makes one of two elements of one type."""

    @abstractmethod
    def reduce(self, value1: Any, value2: Any) -> Any:
        """``value1`` is what was reduced so far."""


class AggregateFunction(Function, ABC):
    """Folds elements into an accumulator."""

    @abstractmethod
    def create_accumulator(self) -> Any:
        """The accumulator of no elements."""

    @abstractmethod
    def add(self, value: Any, accumulator: Any) -> Any:
        """The accumulator with one more element."""

    @abstractmethod
    def get_result(self, accumulator: Any) -> Any:
        """The result."""

    @abstractmethod
    def merge(self, acc_a: Any, acc_b: Any) -> Any:
        """Both accumulators in one: merging windows need it."""


class KeySelector(Function, ABC):
    """Says to which key an element belongs; the same element must always get the same key."""

    @abstractmethod
    def get_key(self, value: Any) -> Any:
        """The key."""


class NullByteKeySelector(KeySelector):
    """One key for all: windows over a whole stream."""

    def get_key(self, value: Any) -> int:
        """Always 0."""
        return 0


class Partitioner(Function, ABC):
    """Says to which subtask a key goes."""

    @abstractmethod
    def partition(self, key: Any, num_partitions: int) -> int:
        """From 0, below ``num_partitions``."""


class ProcessFunction(Function, ABC):
    """Elements in, any number out, with access to time."""

    class Context(ABC):
        """Valid during the call."""

        @abstractmethod
        def timer_service(self) -> TimerService:
            """The time; timers need a keyed stream."""

        @abstractmethod
        def timestamp(self) -> int:
            """Of the element, epoch ms; the smallest long where it has none."""

    @abstractmethod
    def process_element(self, value: Any, ctx: ProcessFunction.Context) -> Any:
        """For each element."""


class KeyedProcessFunction(Function, ABC):
    """:class:`ProcessFunction` on a keyed stream: with state and timers."""

    class Context(ABC):
        """Valid during the call."""

        @abstractmethod
        def get_current_key(self) -> Any:
            """The key of the element, or of the timer."""

        @abstractmethod
        def timer_service(self) -> TimerService:
            """The time and timers."""

        @abstractmethod
        def timestamp(self) -> int:
            """Of the element or the timer, epoch ms; the smallest long where the element has none."""

    class OnTimerContext(Context):
        """Valid during the call."""

        @abstractmethod
        def time_domain(self) -> TimeDomain:
            """Of the timer."""

    @abstractmethod
    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Any:
        """For each element."""

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Any:
        """For each timer, in order of time."""


class CoProcessFunction(Function, ABC):
    """:class:`ProcessFunction` of two connected streams."""

    class Context(ABC):
        """Valid during the call."""

        @abstractmethod
        def timer_service(self) -> TimerService:
            """The time; timers need keyed streams."""

        @abstractmethod
        def timestamp(self) -> int:
            """Of the element, epoch ms; the smallest long where it has none."""

    @abstractmethod
    def process_element1(self, value: Any, ctx: CoProcessFunction.Context) -> Any:
        """For each element of the first stream."""

    @abstractmethod
    def process_element2(self, value: Any, ctx: CoProcessFunction.Context) -> Any:
        """For each element of the second stream."""


class KeyedCoProcessFunction(Function, ABC):
    """:class:`KeyedProcessFunction` of two streams keyed alike: both sides share state and timers."""

    class Context(ABC):
        """Valid during the call."""

        @abstractmethod
        def get_current_key(self) -> Any:
            """The key of the element, or of the timer."""

        @abstractmethod
        def timer_service(self) -> TimerService:
            """The time and timers."""

        @abstractmethod
        def timestamp(self) -> int:
            """Of the element or the timer, epoch ms; the smallest long where the element has none."""

    class OnTimerContext(Context):
        """Valid during the call."""

        @abstractmethod
        def time_domain(self) -> TimeDomain:
            """Of the timer."""

    @abstractmethod
    def process_element1(self, value: Any, ctx: KeyedCoProcessFunction.Context) -> Any:
        """For each element of the first stream."""

    @abstractmethod
    def process_element2(self, value: Any, ctx: KeyedCoProcessFunction.Context) -> Any:
        """For each element of the second stream."""

    def on_timer(self, timestamp: int, ctx: KeyedCoProcessFunction.OnTimerContext) -> Any:
        """For each timer, in order of time."""


class WindowFunction(Function, ABC, Generic[IN, OUT, KEY, W]):
    """Evaluates a window of one key."""

    @abstractmethod
    def apply(self, key: KEY, window: W, inputs: Iterable[IN]) -> Iterable[OUT]:
        """When the trigger fires."""


class AllWindowFunction(Function, ABC, Generic[IN, OUT, W]):
    """Evaluates a window of the whole stream."""

    @abstractmethod
    def apply(self, window: W, inputs: Iterable[IN]) -> Iterable[OUT]:
        """When the trigger fires."""


class ProcessWindowFunction(Function, ABC, Generic[IN, OUT, KEY, W]):
    """Evaluates a window of one key, with time and state."""

    W2 = TypeVar("W2")

    class Context(ABC, Generic[W2]):
        """Valid during the call."""

        @abstractmethod
        def window(self) -> Any:
            """The window."""

        @abstractmethod
        def current_processing_time(self) -> int:
            """The clock, epoch ms."""

        @abstractmethod
        def current_watermark(self) -> int:
            """The watermark, epoch ms."""

        @abstractmethod
        def window_state(self) -> KeyedStateStore:
            """State of this key and window; remove it in ``clear``. Merging windows have none."""

        @abstractmethod
        def global_state(self) -> KeyedStateStore:
            """State of this key over all windows."""

    @abstractmethod
    def process(self, key: KEY, context: ProcessWindowFunction.Context[Any], elements: Iterable[IN]) -> Iterable[OUT]:
        """When the trigger fires."""

    def clear(self, context: ProcessWindowFunction.Context[Any]) -> None:
        """When the window is removed: remove its state here."""


class ProcessAllWindowFunction(Function, ABC, Generic[IN, OUT, W]):
    """Evaluates a window of the whole stream, with state."""

    W2 = TypeVar("W2")

    class Context(ABC, Generic[W2]):
        """Valid during the call."""

        @abstractmethod
        def window(self) -> Any:
            """The window."""

        @abstractmethod
        def window_state(self) -> KeyedStateStore:
            """State of this window; remove it in ``clear``. Merging windows have none."""

        @abstractmethod
        def global_state(self) -> KeyedStateStore:
            """State over all windows."""

    @abstractmethod
    def process(self, context: ProcessAllWindowFunction.Context[Any], elements: Iterable[IN]) -> Iterable[OUT]:
        """When the trigger fires."""

    def clear(self, context: ProcessAllWindowFunction.Context[Any]) -> None:
        """When the window is removed: remove its state here."""
