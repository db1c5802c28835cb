"""The window assigners that come with the system."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from flowsql_core.stream.state import ValueStateDescriptor
from flowsql_core.stream.time import Span, span_ms
from flowsql_core.stream.triggers import (
    CountTrigger,
    EventTimeTrigger,
    NeverTrigger,
    ProcessingTimeTrigger,
    PurgingTrigger,
)
from flowsql_core.stream.window import (
    MIN_LONG,
    CountWindow,
    GlobalWindow,
    MergingWindowAssigner,
    SessionWindowTimeGapExtractor,
    TimeWindow,
    Trigger,
    WindowAssigner,
)


def _needs_timestamp() -> ValueError:
    return ValueError(
        "Record has no timestamp: event-time windows need assign_timestamps_and_watermarks with a timestamp assigner "
        "before them"
    )


class _Tumbling(WindowAssigner[Any, TimeWindow]):
    def __init__(self, size: int, offset: int) -> None:
        if abs(offset) >= size:
            raise ValueError(f"{type(self).__name__} parameters must satisfy abs(offset) < size")
        self._size = size
        self._offset = offset

    def _window(self, time: int) -> list[TimeWindow]:
        start = time - (time - self._offset) % self._size
        return [TimeWindow(start, start + self._size)]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._size}, {self._offset})"


class TumblingEventTimeWindows(_Tumbling):
    """Windows of one size side by side, by event time."""

    @staticmethod
    def of(size: Span, offset: Span | None = None) -> TumblingEventTimeWindows:
        """Windows of ``size`` that start at multiples of it, shifted by ``offset``."""
        return TumblingEventTimeWindows(span_ms(size), 0 if offset is None else span_ms(offset))

    def assign_windows(
        self, element: Any, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> Collection[TimeWindow]:
        """The one window."""
        if timestamp == MIN_LONG:
            raise _needs_timestamp()
        return self._window(timestamp)

    def get_default_trigger(self, env: Any) -> Trigger[Any, Any]:
        """The end of the window."""
        return EventTimeTrigger()

    def is_event_time(self) -> bool:
        """Yes."""
        return True


class TumblingProcessingTimeWindows(_Tumbling):
    """Windows of one size side by side, by the clock."""

    @staticmethod
    def of(size: Span, offset: Span | None = None) -> TumblingProcessingTimeWindows:
        """Windows of ``size`` that start at multiples of it, shifted by ``offset``."""
        return TumblingProcessingTimeWindows(span_ms(size), 0 if offset is None else span_ms(offset))

    def assign_windows(
        self, element: Any, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> Collection[TimeWindow]:
        """The one window."""
        return self._window(context.get_current_processing_time())

    def get_default_trigger(self, env: Any) -> Trigger[Any, Any]:
        """The end of the window."""
        return ProcessingTimeTrigger()

    def is_event_time(self) -> bool:
        """No."""
        return False


class _Sliding(WindowAssigner[Any, TimeWindow]):
    def __init__(self, size: int, slide: int, offset: int) -> None:
        if abs(offset) >= slide or size <= 0:
            raise ValueError(f"{type(self).__name__} parameters must satisfy abs(offset) < slide and size > 0")
        self._size = size
        self._slide = slide
        self._offset = offset

    def _windows(self, time: int) -> list[TimeWindow]:
        last = time - (time - self._offset) % self._slide
        size = self._size
        return [TimeWindow(start, start + size) for start in range(last, time - size, -self._slide)]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._size}, {self._slide}, {self._offset})"


class SlidingEventTimeWindows(_Sliding):
    """Windows of one size, one every slide, by event time."""

    @staticmethod
    def of(size: Span, slide: Span, offset: Span | None = None) -> SlidingEventTimeWindows:
        """Windows of ``size`` that start at multiples of ``slide``, shifted by ``offset``."""
        return SlidingEventTimeWindows(span_ms(size), span_ms(slide), 0 if offset is None else span_ms(offset))

    def assign_windows(
        self, element: Any, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> Collection[TimeWindow]:
        """All that hold the timestamp, the latest first."""
        if timestamp == MIN_LONG:
            raise _needs_timestamp()
        return self._windows(timestamp)

    def get_default_trigger(self, env: Any) -> Trigger[Any, Any]:
        """The end of the window."""
        return EventTimeTrigger()

    def is_event_time(self) -> bool:
        """Yes."""
        return True


class SlidingProcessingTimeWindows(_Sliding):
    """Windows of one size, one every slide, by the clock."""

    @staticmethod
    def of(size: Span, slide: Span, offset: Span | None = None) -> SlidingProcessingTimeWindows:
        """Windows of ``size`` that start at multiples of ``slide``, shifted by ``offset``."""
        return SlidingProcessingTimeWindows(span_ms(size), span_ms(slide), 0 if offset is None else span_ms(offset))

    def assign_windows(
        self, element: Any, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> Collection[TimeWindow]:
        """All that hold the present moment, the latest first."""
        return self._windows(context.get_current_processing_time())

    def get_default_trigger(self, env: Any) -> Trigger[Any, Any]:
        """The end of the window."""
        return ProcessingTimeTrigger()

    def is_event_time(self) -> bool:
        """No."""
        return False


class _Sessions(MergingWindowAssigner[Any, TimeWindow]):
    """A window from each element to its gap; what overlaps or touches grows together."""

    def merge_windows(
        self, windows: Iterable[TimeWindow], callback: MergingWindowAssigner.MergeCallback[TimeWindow]
    ) -> None:
        """Those that overlap or touch."""
        TimeWindow.merge_windows(windows, callback)

    def _gap(self, element: Any) -> int:
        raise NotImplementedError


class _StaticGap(_Sessions):
    def __init__(self, session_gap: int) -> None:
        if session_gap <= 0:
            raise ValueError(f"{type(self).__name__} parameters must satisfy 0 < size")
        self._session_gap = session_gap

    def _gap(self, element: Any) -> int:
        return self._session_gap

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._session_gap})"


class _DynamicGap(_Sessions):
    def __init__(self, session_window_time_gap_extractor: SessionWindowTimeGapExtractor) -> None:
        self._extractor = session_window_time_gap_extractor

    def _gap(self, element: Any) -> int:
        gap = self._extractor.extract(element)
        if gap <= 0:
            raise ValueError("Dynamic session time gap must satisfy 0 < gap")
        return gap

    def __repr__(self) -> str:
        return f"{type(self).__name__}({type(self._extractor).__name__})"


class _EventTimeSessions(_Sessions):
    def assign_windows(
        self, element: Any, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> Collection[TimeWindow]:
        """From the timestamp to the gap's end."""
        if timestamp == MIN_LONG:
            raise _needs_timestamp()
        return [TimeWindow(timestamp, timestamp + self._gap(element))]

    def get_default_trigger(self, env: Any) -> Trigger[Any, Any]:
        """The end of the session."""
        return EventTimeTrigger()

    def is_event_time(self) -> bool:
        """Yes."""
        return True


class _ProcessingTimeSessions(_Sessions):
    def assign_windows(
        self, element: Any, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> Collection[TimeWindow]:
        """From the present moment to the gap's end."""
        now = context.get_current_processing_time()
        return [TimeWindow(now, now + self._gap(element))]

    def get_default_trigger(self, env: Any) -> Trigger[Any, Any]:
        """The end of the session."""
        return ProcessingTimeTrigger()

    def is_event_time(self) -> bool:
        """No."""
        return False


class DynamicEventTimeSessionWindows(_DynamicGap, _EventTimeSessions):
    """Sessions by event time whose gap each element says."""

    @staticmethod
    def with_dynamic_gap(extractor: SessionWindowTimeGapExtractor) -> DynamicEventTimeSessionWindows:
        """The gap of an element, in milliseconds."""
        return DynamicEventTimeSessionWindows(extractor)


class DynamicProcessingTimeSessionWindows(_DynamicGap, _ProcessingTimeSessions):
    """Sessions by the clock whose gap each element says."""

    @staticmethod
    def with_dynamic_gap(extractor: SessionWindowTimeGapExtractor) -> DynamicProcessingTimeSessionWindows:
        """The gap of an element, in milliseconds."""
        return DynamicProcessingTimeSessionWindows(extractor)


class EventTimeSessionWindows(_StaticGap, _EventTimeSessions):
    """Sessions by event time: elements closer than the gap belong together."""

    @staticmethod
    def with_gap(size: Span) -> EventTimeSessionWindows:
        """One gap for all."""
        return EventTimeSessionWindows(span_ms(size))

    @staticmethod
    def with_dynamic_gap(extractor: SessionWindowTimeGapExtractor) -> DynamicEventTimeSessionWindows:
        """The gap of an element, in milliseconds."""
        return DynamicEventTimeSessionWindows(extractor)


class ProcessingTimeSessionWindows(_StaticGap, _ProcessingTimeSessions):
    """Sessions by the clock: elements closer than the gap belong together."""

    @staticmethod
    def with_gap(size: Span) -> ProcessingTimeSessionWindows:
        """One gap for all."""
        return ProcessingTimeSessionWindows(span_ms(size))

    @staticmethod
    def with_dynamic_gap(extractor: SessionWindowTimeGapExtractor) -> DynamicProcessingTimeSessionWindows:
        """The gap of an element, in milliseconds."""
        return DynamicProcessingTimeSessionWindows(extractor)


class GlobalWindows(WindowAssigner[Any, GlobalWindow]):
    """Everything in one window."""

    @staticmethod
    def create() -> GlobalWindows:
        """The assigner."""
        return GlobalWindows()

    def assign_windows(
        self, element: Any, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> Collection[GlobalWindow]:
        """The one window."""
        return [GlobalWindow.get()]

    def get_default_trigger(self, env: Any) -> Trigger[Any, Any]:
        """Never: a program names one."""
        return NeverTrigger()

    def is_event_time(self) -> bool:
        """No."""
        return False

    def __repr__(self) -> str:
        return "GlobalWindows()"


class CountTumblingWindowAssigner(WindowAssigner[Any, CountWindow]):
    """Windows of so many elements of a key."""

    def __init__(self, window_size: int) -> None:
        self._window_size = window_size
        self._count = ValueStateDescriptor("tumble-count-assigner")

    @staticmethod
    def of(window_size: int) -> CountTumblingWindowAssigner:
        """Windows of ``window_size`` elements."""
        return CountTumblingWindowAssigner(window_size)

    def assign_windows(
        self, element: Any, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> Collection[CountWindow]:
        """By the number of the element."""
        state = context.get_runtime_context().get_state(self._count)
        count = state.value() or 0
        state.update(count + 1)
        return [CountWindow(count // self._window_size)]

    def get_default_trigger(self, env: Any) -> Trigger[Any, Any]:
        """When full; no element comes after that, so nothing is kept."""
        return PurgingTrigger(CountTrigger(self._window_size))

    def is_event_time(self) -> bool:
        """No."""
        return False

    def __repr__(self) -> str:
        return f"CountTumblingWindowAssigner({self._window_size})"


class CountSlidingWindowAssigner(WindowAssigner[Any, CountWindow]):
    """Windows of so many elements of a key, one every so many."""

    def __init__(self, window_size: int, window_slide: int) -> None:
        self._window_size = window_size
        self._window_slide = window_slide
        self._count = ValueStateDescriptor("slide-count-assigner")

    @staticmethod
    def of(window_size: int, window_slide: int) -> CountSlidingWindowAssigner:
        """Windows of ``window_size`` elements, one every ``window_slide``."""
        return CountSlidingWindowAssigner(window_size, window_slide)

    def assign_windows(
        self, element: Any, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> Collection[CountWindow]:
        """By the number of the element, the latest first."""
        state = context.get_runtime_context().get_state(self._count)
        count = state.value() or 0
        state.update(count + 1)
        number = count // self._window_slide
        windows: list[CountWindow] = []
        while number >= 0 and count < number * self._window_slide + self._window_size:
            windows.append(CountWindow(number))
            number -= 1
        return windows

    def get_default_trigger(self, env: Any) -> Trigger[Any, Any]:
        """When full; no element comes after that, so nothing is kept."""
        return PurgingTrigger(CountTrigger(self._window_size))

    def is_event_time(self) -> bool:
        """No."""
        return False

    def __repr__(self) -> str:
        return f"CountSlidingWindowAssigner({self._window_size}, {self._window_slide})"
