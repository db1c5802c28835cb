"""FlowSQL's kernels as Arrow functions of a Spark session."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from flowsql_compute.eval.compile import Projector, compile_projections
from flowsql_compute.eval.context import EvalContext
from flowsql_core.config import Configuration
from flowsql_core.errors import FlowSqlError
from flowsql_core.graph.spark import KernelFunction
from flowsql_core.types.logical import without_attribute
from flowsql_runtime.operators.evaluation import zone_and_start
from flowsql_runtime.spark.failures import kernel_failure
from flowsql_runtime.spark.rows import as_carried, as_logical
from flowsql_runtime.spark.sessions.host import SparkHost


def register(host: SparkHost, functions: Sequence[KernelFunction], configuration: Configuration) -> None:
    """Make a job's kernel functions known to a session, where they take the place of those of the job before."""
    zone, query_start_ms = zone_and_start(dict(configuration.items()))
    for function in functions:
        there = host.at_the_task(_Kernel(function, zone, query_start_ms))
        host.register(function.name, _function_of(there), function.type_text)


def _function_of(there: Callable[[], Any]) -> Callable[..., Any]:
    # Spark looks at the parameters of a function, which an object has not.
    def evaluate(*arrays: pa.Array) -> pa.Array:
        return there().evaluate(arrays)

    return evaluate


class _Kernel:
    """What travels to the processes that run a function; there it is compiled for the first batch."""

    def __init__(self, function: KernelFunction, zone: str, query_start_ms: int | None) -> None:
        self._function = function
        self._types = [without_attribute(type_) for type_ in function.arguments]
        self._zone = zone
        self._query_start_ms = query_start_ms
        self._project: Projector | None = None

    def evaluate(self, arrays: Sequence[pa.Array]) -> pa.Array:
        """The expression over columns as Spark has them, in the type that Spark expects."""
        if self._project is None:
            context = EvalContext(zone=self._zone, query_start_ms=self._query_start_ms)
            self._project = compile_projections((self._function.expr,), context)
        columns = [as_logical(array, type_) for array, type_ in zip(arrays, self._types, strict=False)]
        try:
            (made,) = self._project(columns, len(arrays[0]))
        except FlowSqlError as error:
            raise kernel_failure(error, self._function) from None
        return as_carried(made, without_attribute(self._function.expr.type))
