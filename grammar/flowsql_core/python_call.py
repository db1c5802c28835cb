"""A user's Python function in an expression: a :class:`~flowsql_core.expr.Call` of :data:`PYTHON`.

The call's options name one :class:`PythonFunction`. No kernel runs it: the planner puts such calls into an operator of
their own, and nothing else may evaluate, fold or push them.
"""

from __future__ import annotations

from dataclasses import field
from typing import Any, Final

from flowsql_core.expr import AggregateCall, Call, Expr, walk
from flowsql_core.record import record
from flowsql_core.span import Span
from flowsql_core.types.logical import LogicalType

#: Registry name of every call of a Python function; the registry itself has no such function.
PYTHON: Final = "PYTHON"
_FUNCTION: Final = "function"


@record
class PythonFunction:
    """A Python function as plans carry it; the result type is the call's.

    ``name``: as EXPLAIN shows it. ``kind``: value of :class:`flowsql_core.udf.FunctionKind`. Where the function comes
    from is one of: ``path`` (``package.module.name``, imported), ``source`` (its text), or the resource table's object
    under ``key``. ``function``: that object while the plan is made; never part of equality or of the encoded bytes.
    """

    name: str
    key: str
    kind: str
    deterministic: bool = True
    path: str | None = None
    source: str | None = None
    function: Any = field(default=None, compare=False, repr=False)


def spoken_name(name: str) -> str:
    """The name of a function as messages say it: of one that stands in an expression as an object, the name that the
    program gave it, without the number that tells plans several of one name apart (``f$3``)."""
    own, mark, number = name.rpartition("$")
    return own if mark and own and number.isdecimal() else name


def python_call(function: PythonFunction, args: tuple[Expr, ...], type_: LogicalType, span: Span | None) -> Call:
    """The call of a function."""
    return Call(PYTHON, args, type_, ((_FUNCTION, function),), span)


def called_function(expr: Expr) -> PythonFunction | None:
    """The function that an expression itself calls; None for anything else."""
    if isinstance(expr, Call) and expr.function == PYTHON:
        found: PythonFunction = expr.option(_FUNCTION)
        return found
    return None


def calls_python(expr: Expr) -> bool:
    """Whether a Python function is called anywhere in an expression."""
    return any(isinstance(node, Call) and node.function == PYTHON for node in walk(expr))


def aggregated_with(call: AggregateCall) -> PythonFunction | None:
    """The Python function of an aggregate call; None for a built-in one."""
    return named_function(call.function, call.options)


def named_function(function: str, options: tuple[tuple[str, Any], ...]) -> PythonFunction | None:
    """The Python function that a call of :data:`PYTHON` names by its options; None for another function."""
    if function != PYTHON:
        return None
    found: PythonFunction = dict(options)[_FUNCTION]
    return found


def aggregate_options(function: PythonFunction) -> tuple[tuple[str, Any], ...]:
    """The options of the aggregate call, named :data:`PYTHON`, of a function."""
    return ((_FUNCTION, function),)


def aggregate_name(call: AggregateCall) -> str:
    """The name of an aggregate call's function, as EXPLAIN shows it."""
    function = aggregated_with(call)
    return call.function if function is None else function.name
