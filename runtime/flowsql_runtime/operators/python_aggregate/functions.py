"""The objects of Python aggregate functions in one subtask: loaded, opened, called with care, closed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from flowsql_core.errors import ExecutionError
from flowsql_core.expr import AggregateCall
from flowsql_core.python_call import aggregate_name, aggregated_with, spoken_name
from flowsql_core.udf import ImperativeAggregateFunction
from flowsql_runtime.operators.base import OperatorContext
from flowsql_runtime.python.evaluate import RAISED
from flowsql_runtime.python.failure import describe_failure
from flowsql_runtime.python.functions import function_context, load_function
from flowsql_runtime.stream.copies import user_copy


class LoadedFunctions:
    """An object for each Python call of one operator."""

    def __init__(self, calls: Sequence[AggregateCall]) -> None:
        self.calls = tuple(calls)
        self._opened: list[int] = []
        self._objects: list[ImperativeAggregateFunction] = []

    def load(self, ctx: OperatorContext, zone: str) -> None:
        """Make the functions of this subtask, and open them."""
        for call in self.calls:
            named = aggregated_with(call)
            assert named is not None
            self._objects.append(user_copy(load_function(named, ctx.resources).function))
        context = function_context(ctx)
        for place, function in enumerate(self._objects):
            # Closed also when opening fails half-way.
            self._opened.append(place)
            self.guarded(place, "open", function.open, context)

    def close(self) -> None:
        """Close every function that was opened; the first failure is raised after all were tried."""
        first: ExecutionError | None = None
        opened, self._opened = self._opened, []
        for place in opened:
            try:
                self.guarded(place, "close", self._objects[place].close)
            except ExecutionError as error:
                first = first or error
        if first is not None:
            raise first

    def guarded(self, place: int, method: str, call: Callable[..., Any], *args: Any) -> Any:
        """What a function's method gives; its exception as the job's error."""
        try:
            return call(*args)
        except Exception as error:
            raise self._failed(error, f"{method}() of {self._named(place)}", place) from error

    def _named(self, place: int) -> str:
        return f"the Python function '{spoken_name(aggregate_name(self.calls[place]))}'"

    def _failed(self, error: Exception, where: str, place: int) -> ExecutionError:
        return ExecutionError(RAISED, describe_failure(error, where), self.calls[place].span)
