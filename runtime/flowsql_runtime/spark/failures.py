"""FlowSQL's errors on their way out of the processes of Spark: data in the text of the error that Spark makes of them.

Whoever reads them runs nothing of what they hold: no pickle.
"""

from __future__ import annotations

import base64
import dataclasses
import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

from flowsql_core.errors import ConnectorError, ExecutionError, FailedRow, FlowSqlError, InternalError
from flowsql_core.expr import Expr, walk
from flowsql_core.graph.job import JobGraph
from flowsql_core.graph.spark import KernelFunction
from flowsql_core.span import Span

_FAILURE: Final = re.compile(r"FLOWSQL-FAILURE ([A-Za-z0-9+/=]+)")
#: What an error is to the driver.
_KINDS: Final = {"execution": ExecutionError, "connector": ConnectorError}


class TaskFailedError(RuntimeError):
    """Ends a task of Spark; its text holds the failure."""


def kernel_failure(error: FlowSqlError, function: KernelFunction) -> TaskFailedError:
    """What a kernel raises."""
    return _told(error, {"function": function.name}, list(walk(function.expr)))


def job_failure(error: FlowSqlError, graph: JobGraph) -> TaskFailedError:
    """What a task raises that runs a job of FlowSQL."""
    return _told(error, {"operator": error.operator}, list(_expressions(graph, error.operator)))


def _told(error: FlowSqlError, where: dict[str, Any], nodes: Sequence[Expr]) -> TaskFailedError:
    told: dict[str, Any] = {
        **where,
        "kind": next((kind for kind, made in _KINDS.items() if isinstance(error, made)), "internal"),
        "code": error.code,
        "message": error.message,
        "at": None if error.at is None else [error.at.start, error.at.end],
        "hint": error.hint,
        "row": None,
    }
    row = error.row
    if row is not None:
        told |= {
            "row": row.row,
            "values": dict(row.values),
            "names": row.names,
            # What failed may stand there in the form that it was compiled in; then it is the whole.
            "node": None if row.expr is None else nodes.index(row.expr) if row.expr in nodes else 0,
        }
    return TaskFailedError(f"{error.message}\nFLOWSQL-FAILURE {base64.b64encode(json.dumps(told).encode()).decode()}")


def failure_in(text: str, functions: Sequence[KernelFunction], graphs: Sequence[JobGraph] = ()) -> FlowSqlError | None:
    """The failure of a function, or of a job, that the text of an error of Spark holds.

    Args:
        functions: kernels that the query calls.
        graphs: what runs in tasks.
    """
    found = _FAILURE.search(text)
    if found is None:
        return None
    told = json.loads(base64.b64decode(found[1]))
    made: type[FlowSqlError] | None = _KINDS.get(told["kind"])
    if made is None:
        return InternalError(told["message"].removesuffix(InternalError.SUFFIX))
    error = made(told["code"], told["message"], None if told["at"] is None else Span(*told["at"]), told["hint"])
    operator = told.get("operator")
    if operator is not None:
        error.in_operator(operator)
    if told["row"] is None:
        return error
    function = next((function for function in functions if function.name == told.get("function")), None)
    if function is not None:
        nodes = list(walk(function.expr))
    elif operator is not None:
        nodes = [node for graph in graphs for node in _expressions(graph, operator)]
    else:
        return error
    known: Sequence[str] | None = told["names"] if function is None else function.names
    names = None if known is None else tuple(known)
    place = told["node"]
    expr = nodes[place] if place is not None and place < len(nodes) else None
    error.row = FailedRow(told["row"], {int(index): value for index, value in told["values"].items()}, expr, names)
    return error


def _expressions(graph: JobGraph, operator: str | None) -> Iterator[Expr]:
    """All that an operator evaluates, in the order of its description."""
    for vertex in graph.vertices:
        for node in vertex.operators:
            if node.name == operator:
                yield from _inside(node.spec)
                return


def _inside(thing: Any) -> Iterator[Expr]:
    if isinstance(thing, Expr):
        yield from walk(thing)
    elif isinstance(thing, tuple):
        for one in thing:
            yield from _inside(one)
    elif dataclasses.is_dataclass(thing):
        for field in dataclasses.fields(thing):
            yield from _inside(getattr(thing, field.name))
