"""What a user's function is to every floor: base classes, the context that ``open`` gets, and how it was declared.

Users meet these names in ``flowsql.table.udf``, which adds the decorators. How a function's types follow from its hints
stands in ``udf_types``, how one is found by its path or text in ``udf_source``.
"""

from __future__ import annotations

import copy
import enum
import inspect
import itertools
import types
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, Protocol

from flowsql_core.types.logical import LogicalType

#: The class of the rows that functions take and give, ``module:name``: loaded where a type of theirs is a ROW. It
#: stands in the roof, where programs import it; the floors know it by this name only.
ROW_CLASS: Final = "flowsql.common.row:Row"


class FunctionKind(enum.Enum):
    """What a function takes and gives; values are those of ``func_type``, but ASYNC: coroutines, row by row."""

    GENERAL = "general"
    ASYNC = "async"
    PANDAS = "pandas"
    ARROW = "arrow"


class MetricSink(Protocol):
    """Where the metrics of a function end up."""

    def count(self, name: str, by: int = 1) -> None:
        """Add to a counter."""
        ...

    def gauge(self, name: str, read: Callable[[], int | float]) -> None:
        """Register a value that is read when somebody looks."""
        ...


class Counter:
    """A count of this subtask. ``JobClient.get_metric`` sums it over all subtasks."""

    __slots__ = ("_count", "_name", "_sink")

    def __init__(self, sink: MetricSink, name: str) -> None:
        self._sink = sink
        self._name = name
        self._count = 0

    def inc(self, n: int = 1) -> None:
        """Add ``n``."""
        self._count += n
        self._sink.count(self._name, n)

    def dec(self, n: int = 1) -> None:
        """Take ``n`` away."""
        self.inc(-n)

    def get_count(self) -> int:
        """What this subtask has counted."""
        return self._count


class Meter:
    """Counts events of this subtask; whoever looks derives the rate from two looks at the count."""

    __slots__ = ("_counter",)

    def __init__(self, counter: Counter) -> None:
        self._counter = counter

    def mark_event(self, value: int = 1) -> None:
        """Note events."""
        self._counter.inc(value)

    def get_count(self) -> int:
        """All events of this subtask."""
        return self._counter.get_count()


class Distribution:
    """Values of this subtask: how many, their sum, extremes and mean, each a gauge under its own name."""

    __slots__ = ("_count", "_max", "_min", "_sum")

    def __init__(self, sink: MetricSink, name: str) -> None:
        self._count = 0
        self._sum: int | float = 0
        self._min: int | float = 0
        self._max: int | float = 0
        sink.gauge(f"{name}.count", lambda: self._count)
        sink.gauge(f"{name}.sum", lambda: self._sum)
        sink.gauge(f"{name}.min", lambda: self._min)
        sink.gauge(f"{name}.max", lambda: self._max)
        sink.gauge(f"{name}.mean", lambda: self._sum / self._count if self._count else 0)

    def update(self, value: int) -> None:
        """Note a value."""
        self._min = min(self._min, value) if self._count else value
        self._max = max(self._max, value) if self._count else value
        self._sum += value
        self._count += 1


class MetricGroup:
    """Metrics of a function, under names with dots between the groups."""

    def __init__(self, sink: MetricSink, scope: tuple[str, ...] = ()) -> None:
        self._sink = sink
        self._scope = scope

    def add_group(self, name: str, extra: str | None = None) -> MetricGroup:
        """A group below this one; with ``extra`` a pair of key and value."""
        return MetricGroup(self._sink, (*self._scope, name, *(() if extra is None else (extra,))))

    def counter(self, name: str) -> Counter:
        """A new counter."""
        return Counter(self._sink, self._full(name))

    def gauge(self, name: str, obj: Callable[[], int]) -> None:
        """A value that ``obj`` tells whenever somebody looks."""
        self._sink.gauge(self._full(name), obj)

    def meter(self, name: str, time_span_in_seconds: int = 60) -> Meter:
        """A new meter: a counter whose rate is of interest."""
        return Meter(self.counter(name))

    def distribution(self, name: str) -> Distribution:
        """A new distribution: gauges ``name.count``, ``.sum``, ``.min``, ``.max``, ``.mean``."""
        return Distribution(self._sink, self._full(name))

    def _full(self, name: str) -> str:
        return ".".join((*self._scope, name))


def task_with_subtasks(task_name: str, subtask: int, parallelism: int, attempt: int) -> str:
    """As Flink's ``TaskInfo`` writes it: ``Map (2/4)#0``; the subtask counts from 1."""
    return f"{task_name} ({subtask + 1}/{parallelism})#{attempt}"


class FunctionContext:
    """What ``open`` of a function is given."""

    def __init__(
        self,
        metrics: MetricGroup,
        job_parameters: Mapping[str, str],
        task_name: str,
        subtask: int,
        parallelism: int,
        max_parallelism: int,
        attempt: int = 0,
    ) -> None:
        self._metrics = metrics
        self._job_parameters = job_parameters
        self._task_name = task_name
        self._subtask = subtask
        self._parallelism = parallelism
        self._max_parallelism = max_parallelism
        self._attempt = attempt

    def get_metric_group(self) -> MetricGroup:
        """Metrics of this subtask."""
        return self._metrics

    def get_job_parameter(self, key: str, default_value: str) -> str:
        """A parameter of the job: of ``pipeline.global-job-parameters``, else any option."""
        return self._job_parameters.get(key, default_value)

    def get_task_name(self) -> str:
        """The task's name: the names of its operators, in a chain, with ``->`` between."""
        return self._task_name

    def get_task_name_with_subtasks(self) -> str:
        """The task's name with subtask and attempt: ``name (3/6)#0``."""
        return task_with_subtasks(self._task_name, self._subtask, self._parallelism, self._attempt)

    def get_number_of_parallel_subtasks(self) -> int:
        """The parallelism of the operator."""
        return self._parallelism

    def get_max_number_of_parallel_subtasks(self) -> int:
        """The number of key groups."""
        return self._max_parallelism

    def get_index_of_this_subtask(self) -> int:
        """The subtask, from 0."""
        return self._subtask

    def get_attempt_number(self) -> int:
        """How often the subtask was started before: 0, and one more after each restart."""
        return self._attempt


class UserDefinedFunction:
    """Base of all functions that are classes."""

    def open(self, function_context: FunctionContext) -> None:
        """Called once a subtask before the first row."""

    def close(self) -> None:
        """Called once a subtask after the last row, also when the job failed."""

    def is_deterministic(self) -> bool:
        """Whether equal arguments always give equal results. Others are never merged, moved or computed twice."""
        return True


class ScalarFunction(UserDefinedFunction, ABC):
    """A function of a row's values (or of columns, by ``func_type``) that gives one value a row: ``eval``."""

    @abstractmethod
    def eval(self, *args: Any) -> Any:
        """The value of one row; of one batch for pandas and arrow functions."""


class AsyncScalarFunction(UserDefinedFunction, ABC):
    """A scalar function whose ``eval`` is a coroutine: the calls for several rows go on side by side."""

    @abstractmethod
    async def eval(self, *args: Any) -> Any:
        """The value of one row."""


class TableFunction(UserDefinedFunction, ABC):
    """A function that gives any number of rows a row: ``eval`` yields tuples, Rows, or the values of one column."""

    @abstractmethod
    def eval(self, *args: Any) -> Any:
        """The rows of one row: a generator, a list, a range; one row alone; None for no row."""


class RowsOf(ScalarFunction):
    """A table function as a scalar one: its rows are the elements of an array.

    Source: what PyFlink takes for many rows, and what for one.
    """

    def __init__(self, function: Any) -> None:
        self.inner = function

    def open(self, function_context: FunctionContext) -> None:
        """Open the function."""
        if isinstance(self.inner, UserDefinedFunction):
            self.inner.open(function_context)

    def close(self) -> None:
        """Close the function."""
        if isinstance(self.inner, UserDefinedFunction):
            self.inner.close()

    def is_deterministic(self) -> bool:
        """Whether the function is."""
        return not isinstance(self.inner, UserDefinedFunction) or self.inner.is_deterministic()

    def eval(self, *args: Any) -> list[tuple[Any, ...]]:
        """The rows of one row."""
        made = table_eval(self.inner)(*args)
        if made is None:
            return []
        several = made if isinstance(made, list | range | types.GeneratorType) else (made,)
        return [_row_values(row) for row in several]

    def __copy__(self) -> RowsOf:
        # Each subtask has its own object.
        return RowsOf(copy.copy(self.inner))


def table_eval(function: Any) -> Callable[..., Any]:
    """What of a table function is called for each row."""
    made: Callable[..., Any] = function.eval if isinstance(function, TableFunction) else function
    return made


def _row_values(row: Any) -> tuple[Any, ...]:
    if isinstance(row, tuple):
        return row
    # A Row, whose class stands in the roof.
    return tuple(row) if hasattr(row, "get_row_kind") else (row,)


class ImperativeAggregateFunction(UserDefinedFunction, ABC):
    """What aggregate functions have in common: an accumulator for each group, a Python object of any type."""

    @abstractmethod
    def create_accumulator(self) -> Any:
        """An empty accumulator."""

    @abstractmethod
    def accumulate(self, accumulator: Any, *args: Any) -> None:
        """Take a row in."""

    def retract(self, accumulator: Any, *args: Any) -> None:
        """Take a row out."""
        raise RuntimeError("Method retract is not implemented")

    def merge(self, accumulator: Any, accumulators: Iterable[Any]) -> None:
        """Take other accumulators in."""
        raise RuntimeError("Method merge is not implemented")

    def get_result_type(self) -> Any:
        """The type of the result."""
        raise RuntimeError("Method get_result_type is not implemented")

    def get_accumulator_type(self) -> Any:
        """The type of the accumulator."""
        raise RuntimeError("Method get_accumulator_type is not implemented")


class AggregateFunction(ImperativeAggregateFunction):
    """One value for many rows."""

    @abstractmethod
    def get_value(self, accumulator: Any) -> Any:
        """The result of an accumulator."""


class TableAggregateFunction(ImperativeAggregateFunction):
    """Any number of rows for many rows."""

    @abstractmethod
    def emit_value(self, accumulator: Any) -> Iterable[Any]:
        """The results of an accumulator."""


class ScalarUdf:
    """A scalar function with its declaration: what a session registers and a plan calls.

    ``function``: a callable, or a :class:`ScalarFunction`. ``input_types`` None: arguments are taken as they come, or
    as ``input_hints`` say. ``key``: names the object in this process.
    """

    def __init__(
        self,
        function: Any,
        name: str,
        result_type: LogicalType,
        *,
        input_types: tuple[LogicalType, ...] | None = None,
        input_hints: tuple[Any, ...] | None = None,
        kind: FunctionKind = FunctionKind.GENERAL,
        deterministic: bool = True,
    ) -> None:
        self.function = function
        self.name = name
        self.result_type = result_type
        self.input_types = input_types
        self.input_hints = input_hints
        self.kind = kind
        self.deterministic = deterministic
        self.key = f"python-function-{next(_KEYS)}"

    def accepts_count(self, count: int) -> bool:
        """Whether the function may be called with so many arguments, as far as Python tells."""
        return accepts(called(self.function), self.input_types, count)


class TableUdf(ScalarUdf):
    """A table function with its declaration. ``function``: :class:`RowsOf` it; ``result_type``: an ARRAY of ROWs."""

    def accepts_count(self, count: int) -> bool:
        """Whether the function may be called with so many arguments, as far as Python tells."""
        return accepts(table_eval(self.function.inner), self.input_types, count)


def accepts(function: Callable[..., Any], input_types: tuple[LogicalType, ...] | None, count: int) -> bool:
    """Whether a function of these declared types may be called with so many arguments."""
    if input_types is not None:
        return count == len(input_types)
    try:
        inspect.signature(function).bind(*range(count))
    except TypeError:
        return False
    except ValueError:  # a function written in C that tells nothing
        return True
    return True


_KEYS = itertools.count(1)


def called(function: Any) -> Callable[..., Any]:
    """What is called for each row, or each batch."""
    made: Callable[..., Any] = function.eval if isinstance(function, ScalarFunction | AsyncScalarFunction) else function
    return made


def is_asynchronous(function: Any) -> bool:
    """Whether calls give coroutines, as PyFlink judges it: an :class:`AsyncScalarFunction`, or an ``async def``."""
    return isinstance(function, AsyncScalarFunction) or inspect.iscoroutinefunction(function)


def function_name(function: Any) -> str:
    """The name of a function that nobody named: its own, or that of its class."""
    name = getattr(function, "__name__", None)
    if name is None and hasattr(function, "func"):  # functools.partial
        name = getattr(function.func, "__name__", None)
    return str(name or type(function).__name__)
