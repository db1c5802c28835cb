"""Spark's failures as FlowSQL's errors: by their condition, never with a stack of Java."""

from __future__ import annotations

import re
from typing import Any

from flowsql_core.errors import ExecutionError, FlowSqlError, NotSupportedYetError
from flowsql_core.graph.spark import SparkJob
from flowsql_runtime.spark.failures import failure_in

_CONDITION = re.compile(r"\[([A-Z][A-Z0-9_.]+)\]\s*([^\n]*)")
_STATE = re.compile(r"\s*SQLSTATE: \w+.*$")
_MAX_MESSAGE = 300
_MAX_CAUSES = 10


def translate(error: Exception, job: SparkJob, *, planning: bool) -> FlowSqlError:
    """The error that a user sees.

    Args:
        error: what pyspark or its gateway raised.
        job: what was running.
        planning: Spark had only looked at the query: it is one that it cannot run.
    """
    graphs = [staged.job for staged in job.inputs] + [query.then for query in job.queries if query.then is not None]
    failure = failure_in(text_of(error), job.kernels, graphs)
    if failure is not None:
        return failure
    condition, message = condition_of(error)
    if condition == "USER_RAISED_EXCEPTION":
        return ExecutionError("division-by-zero" if "zero" in message else "failed", message)
    if condition == "SCALAR_SUBQUERY_TOO_MANY_ROWS":
        return ExecutionError(
            "subquery-rows", "A scalar subquery gave more than one row.", job.subqueries[0] if job.subqueries else None
        )
    if planning:
        at = job.subqueries[0] if job.subqueries else None
        what = "a query inside of an expression in this place" if at is not None else "this query"
        return NotSupportedYetError(f"{what} on Spark", at, _shown(condition, message))
    return spark_failed(error)


def condition_of(error: Exception) -> tuple[str, str]:
    """Spark's name for what happened, and its first line without codes; the name is empty when it has none."""
    asked: Any = getattr(error, "getCondition", None)
    condition = ""
    if asked is not None:
        condition = asked() or ""
    text = text_of(error)
    found = list(_CONDITION.finditer(text))
    if not condition and found:
        condition = found[0][1]
    for match in found:
        # The condition of the cause stands further below that of the stage that it broke.
        if match[1] in ("USER_RAISED_EXCEPTION", "SCALAR_SUBQUERY_TOO_MANY_ROWS"):
            return match[1], _STATE.sub("", match[2]).strip()
    first = next((match[2] for match in found if match[1] == condition), text.strip().partition("\n")[0])
    return condition, _STATE.sub("", first).strip()


def spark_failed(error: Exception) -> ExecutionError:
    """A failure that is Spark's own."""
    return ExecutionError("spark-failed", f"Spark failed: {_shown(*condition_of(error))}")


def failed_by_itself(error: Exception) -> ExecutionError:
    """The error of a DataFrame whose rows were asked for outside of any job."""
    condition, message = condition_of(error)
    return ExecutionError("failed", message) if condition == "USER_RAISED_EXCEPTION" else spark_failed(error)


def text_of(error: BaseException) -> str:
    """What Java said; its gateway puts a sentence of its own in front."""
    java: Any = getattr(error, "java_exception", None)
    if java is None:
        return str(error)
    parts: list[str] = []
    while java is not None and len(parts) < _MAX_CAUSES:
        parts.append(str(java.toString()))
        java = java.getCause()
    return "\n".join(parts)


def _shown(condition: str, message: str) -> str:
    text = f"{condition}: {message}" if condition else message
    return text if len(text) <= _MAX_MESSAGE else text[: _MAX_MESSAGE - 3] + "..."
