"""Windows, and the contracts of what assigns and fires them. The assigners stand in ``window_assigners``."""

from __future__ import annotations

import enum
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable
from operator import itemgetter
from typing import Any, Final, Generic, TypeVar

from flowsql_core.stream.functions import MetricGroup, RuntimeContext
from flowsql_core.stream.state import State, StateDescriptor

T = TypeVar("T")
W = TypeVar("W")
W2 = TypeVar("W2")

#: The end of time: windows that end there are never cleaned up by a timer.
MAX_LONG: Final = 2**63 - 1
#: The timestamp of a record that has none.
MIN_LONG: Final = -(2**63)


class Window(ABC):
    """A bucket of elements. Equal windows are one window: subclasses compare and hash by value."""

    @abstractmethod
    def max_timestamp(self) -> int:
        """The last millisecond that belongs to it."""


class TimeWindow(tuple[int, int], Window):
    """From ``start`` (inclusive) to ``end`` (exclusive), epoch ms.

    A tuple, because every element looks its windows up in dictionaries.
    """

    __slots__ = ()

    def __new__(cls, start: int, end: int) -> TimeWindow:
        """A window."""
        return tuple.__new__(cls, (start, end))

    start = property(itemgetter(0), doc="The first millisecond.")
    end = property(itemgetter(1), doc="The first millisecond behind it.")

    def max_timestamp(self) -> int:
        """``end - 1``."""
        return self[1] - 1

    def intersects(self, other: TimeWindow) -> bool:
        """Whether both overlap or touch."""
        return self[0] <= other[1] and self[1] >= other[0]

    def cover(self, other: TimeWindow) -> TimeWindow:
        """The smallest window over both."""
        return TimeWindow(min(self[0], other[0]), max(self[1], other[1]))

    @staticmethod
    def get_window_start_with_offset(timestamp: int, offset: int, window_size: int) -> int:
        """Start of the window of ``window_size`` that holds ``timestamp``; windows start at ``offset``."""
        return timestamp - (timestamp - offset) % window_size

    @staticmethod
    def merge_windows(windows: Iterable[TimeWindow], callback: MergingWindowAssigner.MergeCallback[TimeWindow]) -> None:
        """Call back for each group of windows that overlap or touch."""
        merged: list[tuple[TimeWindow, list[TimeWindow]]] = []
        for window in sorted(set(windows)):
            if merged and merged[-1][0].intersects(window):
                cover, group = merged[-1]
                group.append(window)
                merged[-1] = (cover.cover(window), group)
            else:
                merged.append((window, [window]))
        for cover, group in merged:
            if len(group) > 1:
                callback.merge(group, cover)

    def __reduce__(self) -> tuple[Any, ...]:
        return TimeWindow, tuple(self)

    def __repr__(self) -> str:
        return f"TimeWindow(start={self.start}, end={self.end})"


class CountWindow(Window):
    """A window of a number of elements."""

    __slots__ = ("id",)

    def __init__(self, id: int) -> None:
        self.id = id

    def max_timestamp(self) -> int:
        """It has no end in time."""
        return MAX_LONG

    def __hash__(self) -> int:
        return hash(self.id)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CountWindow) and self.id == other.id

    def __reduce__(self) -> tuple[Any, ...]:
        return CountWindow, (self.id,)

    def __repr__(self) -> str:
        return f"CountWindow(id={self.id})"


class GlobalWindow(Window):
    """The one window of everything."""

    __slots__ = ()

    @staticmethod
    def get() -> GlobalWindow:
        """The window."""
        return GlobalWindow()

    def max_timestamp(self) -> int:
        """It has no end in time."""
        return MAX_LONG

    def __hash__(self) -> int:
        return 0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, GlobalWindow)

    def __reduce__(self) -> tuple[Any, ...]:
        return GlobalWindow, ()

    def __repr__(self) -> str:
        return "GlobalWindow"


class TriggerResult(enum.Enum):
    """What a trigger wants: evaluate the window, throw its elements away, both or neither."""

    CONTINUE = (False, False)
    FIRE_AND_PURGE = (True, True)
    FIRE = (True, False)
    PURGE = (False, True)

    def is_fire(self) -> bool:
        """Evaluate."""
        return self.value[0]

    def is_purge(self) -> bool:
        """Throw away."""
        return self.value[1]


class Trigger(ABC, Generic[T, W]):
    """Decides when a window of a key is evaluated. It keeps no state of its own but through its context."""

    class TriggerContext(ABC):
        """Time, timers and state of the window and key."""

        @abstractmethod
        def get_current_processing_time(self) -> int:
            """The clock, epoch ms."""

        @abstractmethod
        def get_metric_group(self) -> MetricGroup:
            """Metrics of the operator."""

        @abstractmethod
        def get_current_watermark(self) -> int:
            """The watermark, epoch ms."""

        @abstractmethod
        def register_processing_time_timer(self, time: int) -> None:
            """Call ``on_processing_time`` when the clock reaches ``time``."""

        @abstractmethod
        def register_event_time_timer(self, time: int) -> None:
            """Call ``on_event_time`` when the watermark reaches ``time``."""

        @abstractmethod
        def delete_processing_time_timer(self, time: int) -> None:
            """Forget a timer."""

        @abstractmethod
        def delete_event_time_timer(self, time: int) -> None:
            """Forget a timer."""

        @abstractmethod
        def get_partitioned_state(self, state_descriptor: StateDescriptor) -> State:
            """State of this window and key."""

    class OnMergeContext(TriggerContext):
        """What ``on_merge`` gets."""

        @abstractmethod
        def merge_partitioned_state(self, state_descriptor: StateDescriptor) -> None:
            """Merge the state of the merged windows into that of the new one."""

    @abstractmethod
    def on_element(self, element: T, timestamp: int, window: W, ctx: Trigger.TriggerContext) -> TriggerResult:
        """An element came into the window."""

    @abstractmethod
    def on_processing_time(self, time: int, window: W, ctx: Trigger.TriggerContext) -> TriggerResult:
        """A timer of the clock fired."""

    @abstractmethod
    def on_event_time(self, time: int, window: W, ctx: Trigger.TriggerContext) -> TriggerResult:
        """A timer of event time fired."""

    def can_merge(self) -> bool:
        """Whether it works on merging windows."""
        return False

    def on_merge(self, window: W, ctx: Trigger.OnMergeContext) -> None:
        """Windows became ``window``."""

    @abstractmethod
    def clear(self, window: W, ctx: Trigger.TriggerContext) -> None:
        """The window is removed: remove its timers and state."""


class WindowAssigner(ABC, Generic[T, W]):
    """Says to which windows an element belongs."""

    class WindowAssignerContext(ABC):
        """The clock, and where it runs."""

        @abstractmethod
        def get_current_processing_time(self) -> int:
            """The clock, epoch ms."""

        @abstractmethod
        def get_runtime_context(self) -> RuntimeContext:
            """With state of the key."""

    @abstractmethod
    def assign_windows(
        self, element: T, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> Collection[W]:
        """The windows of an element; ``timestamp`` is the smallest long where it has none."""

    @abstractmethod
    def get_default_trigger(self, env: Any) -> Trigger[Any, Any]:
        """The trigger unless the program names one."""

    def get_window_serializer(self) -> Any:
        """Windows are Python objects: none is needed."""
        return None

    @abstractmethod
    def is_event_time(self) -> bool:
        """Whether windows end by the watermark; else by the clock, or not in time."""


class MergingWindowAssigner(WindowAssigner[T, W]):
    """Windows may grow together: sessions."""

    class MergeCallback(ABC, Generic[W2]):
        """Hears which windows become one."""

        @abstractmethod
        def merge(self, to_be_merged: Iterable[W2], merge_result: W2) -> None:
            """These become that."""

    @abstractmethod
    def merge_windows(self, windows: Iterable[W], callback: MergingWindowAssigner.MergeCallback[W]) -> None:
        """Call back for each group of windows that become one."""


class SessionWindowTimeGapExtractor(ABC):
    """Says how long after an element its session stays open."""

    @abstractmethod
    def extract(self, element: Any) -> int:
        """Milliseconds, above 0."""
