"""The functions of one subtask: found by path, text or key, copied, and what their ``open`` is given."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flowsql_core.python_call import PythonFunction
from flowsql_core.udf import FunctionContext, MetricGroup, ScalarUdf
from flowsql_core.udf_source import load_path, load_source
from flowsql_runtime.operators.base import OperatorContext
from flowsql_runtime.python.options import job_parameters


def load_function(function: PythonFunction, resources: Mapping[str, Any]) -> ScalarUdf:
    """The declared function behind a call."""
    if function.source is not None:
        return load_source(function.source, function.name)
    if function.path is not None:
        return load_path(function.path)
    found: ScalarUdf = resources[function.key]
    return found


def function_context(ctx: OperatorContext) -> FunctionContext:
    """What ``open`` of a function is given that runs in the task."""
    parameters = job_parameters(dict(ctx.parameters))
    return FunctionContext(
        MetricGroup(ctx.metrics),
        parameters,
        ctx.task_name,
        ctx.subtask,
        ctx.parallelism,
        ctx.max_parallelism,
        ctx.attempt,
    )
