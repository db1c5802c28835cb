"""Windows of a keyed stream, or of a whole one: assigner, trigger and lateness are collected, a function ends it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self

from flowsql.common.public_api import public_api
from flowsql.common.typeinfo import TypeInformation
from flowsql.datastream.plan import operators
from flowsql.datastream.plan.operators import WindowParts
from flowsql.datastream.plan.transformations import Wishes
from flowsql.datastream.values.result_type import OutputType, result_type
from flowsql.datastream.values.typed_functions import typed
from flowsql_core.stream.functions import (
    AggregateFunction,
    AllWindowFunction,
    Function,
    ProcessAllWindowFunction,
    ProcessWindowFunction,
    ReduceFunction,
    WindowFunction,
)
from flowsql_core.stream.output_tag import OutputTag
from flowsql_core.stream.window import MergingWindowAssigner, Trigger, WindowAssigner
from flowsql_core.stream.window_assigners import CountSlidingWindowAssigner, CountTumblingWindowAssigner

if TYPE_CHECKING:
    from flowsql.datastream.data_stream import DataStream, KeyedStream
    from flowsql.datastream.stream_execution_environment import StreamExecutionEnvironment


def count_assigner(size: int, slide: int) -> WindowAssigner[Any, Any]:
    """Return the assigner of count windows, tumbling ones for a slide of 0."""
    return CountSlidingWindowAssigner(size, slide) if slide else CountTumblingWindowAssigner(size)


@public_api
class _Windowed:
    """What windows of keys and of whole streams share.

    ``_plain`` and ``_process``: the two kinds of functions that evaluate a window.
    """

    _whole_stream: bool
    _plain: type[Function]
    _process: type[Function]

    def __init__(self, keyed_stream: KeyedStream, window_assigner: WindowAssigner[Any, Any]) -> None:
        if not isinstance(window_assigner, WindowAssigner):
            raise TypeError(f"{window_assigner!r} is not a WindowAssigner")
        self._stream = keyed_stream
        self._assigner = window_assigner
        self._trigger: Trigger[Any, Any] | None = None
        self._lateness_ms = 0
        self._late_tag: OutputTag | None = None

    def get_execution_environment(self) -> StreamExecutionEnvironment:
        """Where the stream belongs."""
        return self._stream.environment

    def get_input_type(self) -> TypeInformation:
        """The type of the values in the windows."""
        return self._stream.get_type()

    def trigger(self, trigger: Trigger[Any, Any]) -> Self:
        """When windows are evaluated, instead of the assigner's own rule."""
        if isinstance(self._assigner, MergingWindowAssigner) and not trigger.can_merge():
            raise TypeError("A merging window assigner cannot be used with a trigger that does not support merging.")
        self._trigger = trigger
        return self

    def allowed_lateness(self, time_ms: int) -> Self:
        """Milliseconds of event time for which a window takes values after its end; each evaluates it again."""
        if time_ms < 0:
            raise ValueError("The allowed lateness cannot be negative.")
        self._lateness_ms = time_ms
        return self

    def side_output_late_data(self, output_tag: OutputTag) -> Self:
        """Values that come too late go to a side output of the result."""
        self._late_tag = output_tag
        return self

    def reduce(
        self,
        reduce_function: Callable[[Any, Any], Any] | ReduceFunction,
        window_function: Any = None,
        output_type: OutputType = None,
    ) -> DataStream:
        """One value of a window's values, folded as they come; ``window_function`` sees that one value."""
        if not isinstance(reduce_function, ReduceFunction) and not callable(reduce_function):
            raise TypeError("The input must be a ReduceFunction or a callable function")
        if window_function is None:
            type_ = self.get_input_type() if output_type is None else result_type(output_type)
            return self._result(typed(reduce_function, ReduceFunction, type_), None, type_, reduce_function)
        return self._evaluated(reduce_function, window_function, output_type)

    def aggregate(
        self,
        aggregate_function: AggregateFunction,
        window_function: Any = None,
        accumulator_type: TypeInformation | None = None,
        output_type: OutputType = None,
    ) -> DataStream:
        """What an AggregateFunction makes of a window's values as they come; ``window_function`` sees its result.

        ``accumulator_type`` is PyFlink's: accumulators are Python objects here and stay as the function makes them.
        """
        if not isinstance(aggregate_function, AggregateFunction):
            raise TypeError("The input must be an AggregateFunction")
        if window_function is None:
            type_ = result_type(output_type)
            return self._result(typed(aggregate_function, AggregateFunction, type_), None, type_, aggregate_function)
        return self._evaluated(aggregate_function, window_function, output_type)

    def apply(self, window_function: Any, output_type: OutputType = None) -> DataStream:
        """What a window function makes of all values of a window."""
        if not isinstance(window_function, self._plain):
            raise TypeError(f"The input must be a {self._plain.__name__}")
        return self._evaluated(None, window_function, output_type)

    def process(self, process_window_function: Any, output_type: OutputType = None) -> DataStream:
        """What a process window function makes of all values of a window; it sees time and state."""
        if not isinstance(process_window_function, self._process):
            raise TypeError(f"The input must be a {self._process.__name__}")
        return self._evaluated(None, process_window_function, output_type)

    def _evaluated(self, aggregation: Any, function: Any, output_type: OutputType) -> DataStream:
        for kind in (self._plain, self._process):
            if isinstance(function, kind):
                type_ = result_type(output_type)
                return self._result(aggregation, typed(function, kind, type_), type_, aggregation, function)
        names = f"{self._plain.__name__} or {self._process.__name__}"
        raise TypeError(f"window_function should be a {names}")

    def _result(self, aggregation: Any, function: Any, type_: TypeInformation, *shown: Any) -> DataStream:
        stream = self._stream
        parts = WindowParts(
            self._assigner,
            self._trigger,
            aggregation,
            function,
            self._lateness_ms,
            None if self._late_tag is None else self._late_tag.tag_id,
            self._whole_stream,
        )
        trigger = self._trigger or self._assigner.get_default_trigger(stream.environment)
        names = [type(part).__name__ for part in shown if part is not None]
        wishes = Wishes(
            description=f"Window({self._assigner}, {type(trigger).__name__}, {', '.join(names)})",
            parallelism=1 if self._whole_stream else stream.environment.get_parallelism(),
            parallelism_fixed=self._whole_stream,
        )
        return stream.transform(
            type(self._assigner).__name__,
            operators.window(parts, stream.key_type),
            type_,
            wishes=wishes,
        )


@public_api
class WindowedStream(_Windowed):
    """Windows of each key. Made by :meth:`KeyedStream.window` and :meth:`KeyedStream.count_window`."""

    _whole_stream = False
    _plain = WindowFunction
    _process = ProcessWindowFunction


@public_api
class AllWindowedStream(_Windowed):
    """Windows of a whole stream, in one subtask. Made by :meth:`DataStream.window_all`."""

    _whole_stream = True
    _plain = AllWindowFunction
    _process = ProcessAllWindowFunction
