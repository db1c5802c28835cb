"""FlowSQL's kernels as Arrow functions of a Spark session, and the failures of their rows on the way back."""

from __future__ import annotations

import base64
import importlib
import json
import re
from collections.abc import Sequence
from typing import Any, Final

import pyarrow as pa

from flowsql_compute.eval.compile import Projector, compile_projections
from flowsql_compute.eval.context import EvalContext
from flowsql_core.config import Configuration
from flowsql_core.errors import ExecutionError, FailedRow, FlowSqlError
from flowsql_core.expr import walk
from flowsql_core.graph.spark import KernelFunction
from flowsql_core.span import Span
from flowsql_core.types.logical import without_attribute
from flowsql_runtime.operators.evaluation import zone_and_start
from flowsql_runtime.spark.rows import as_carried, as_logical

#: A failure stands so in the text of the error that Spark makes of it.
_FAILURE: Final = re.compile(r"FLOWSQL-FAILURE ([A-Za-z0-9+/=]+)")


def register(session: Any, functions: Sequence[KernelFunction], configuration: Configuration) -> None:
    """Make a job's kernel functions known to the session, where they take the place of those of the job before."""
    # Its declarations know functions with a fixed number of parameters.
    arrow_udf: Any = importlib.import_module("pyspark.sql.pandas.functions").arrow_udf
    zone, query_start_ms = zone_and_start(dict(configuration.items()))
    for function in functions:
        kernel = _Kernel(function, zone, query_start_ms)
        session.udf.register(function.name, arrow_udf(kernel.function(), function.type_text))


def failure_in(text: str, functions: Sequence[KernelFunction]) -> FlowSqlError | None:
    """The failure of one of the functions that the text of an error of Spark holds."""
    found = _FAILURE.search(text)
    if found is None:
        return None
    told = json.loads(base64.b64decode(found[1]))
    error = ExecutionError(
        told["code"], told["message"], None if told["at"] is None else Span(*told["at"]), told["hint"]
    )
    function = next((function for function in functions if function.name == told["function"]), None)
    if function is not None and told["row"] is not None:
        values = {int(index): value for index, value in told["values"].items()}
        expr = list(walk(function.expr))[told["node"]]
        error.row = FailedRow(told["row"], values, expr, function.names)
    return error


class _Kernel:
    """What travels to the processes that run a function; there it is compiled for the first batch."""

    def __init__(self, function: KernelFunction, zone: str, query_start_ms: int | None) -> None:
        self._function = function
        self._types = [without_attribute(type_) for type_ in function.arguments]
        self._zone = zone
        self._query_start_ms = query_start_ms
        self._project: Projector | None = None

    def function(self) -> Any:
        """The function of Arrow arrays."""

        # Spark looks at the parameters of a function, which an object has not.
        def evaluate(*arrays: pa.Array) -> pa.Array:
            return self.evaluate(arrays)

        return evaluate

    def evaluate(self, arrays: Sequence[pa.Array]) -> pa.Array:
        """The expression over columns as Spark has them, in the type that Spark expects."""
        if self._project is None:
            context = EvalContext(zone=self._zone, query_start_ms=self._query_start_ms)
            self._project = compile_projections((self._function.expr,), context)
        columns = [as_logical(array, type_) for array, type_ in zip(arrays, self._types, strict=False)]
        try:
            (made,) = self._project(columns, len(arrays[0]))
        except FlowSqlError as error:
            raise RuntimeError(_told(error, self._function)) from None
        return as_carried(made, without_attribute(self._function.expr.type))


def _told(error: FlowSqlError, function: KernelFunction) -> str:
    """The failure as text, which is data alone: whoever reads it runs nothing."""
    told: dict[str, Any] = {
        "function": function.name,
        "code": error.code,
        "message": error.message,
        "at": None if error.at is None else [error.at.start, error.at.end],
        "hint": error.hint,
        "row": None,
    }
    row = error.row
    if row is not None:
        nodes = list(walk(function.expr))
        told |= {
            "row": row.row,
            "values": dict(row.values),
            # What failed may stand there in the form that it was compiled in; then it is the whole.
            "node": nodes.index(row.expr) if row.expr in nodes else 0,
        }
    return f"{error.message}\nFLOWSQL-FAILURE {base64.b64encode(json.dumps(told).encode()).decode()}"
