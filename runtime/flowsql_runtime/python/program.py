"""What a PythonCalc computes, as plain data: calls in the order in which they are made, and where arguments come from.

Nothing here holds a function, so that a program travels to a worker process beside its functions.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from flowsql_core.errors import InternalError
from flowsql_core.expr import Call, Expr, InputRef, Literal
from flowsql_core.graph.python_specs import PythonCalcSpec
from flowsql_core.python_call import PythonFunction, called_function
from flowsql_core.record import record
from flowsql_core.span import Span
from flowsql_core.types.logical import LogicalType
from flowsql_core.udf import FunctionKind
from flowsql_runtime.python.options import AsyncOptions


@record
class ColumnArgument:
    """Column ``position`` of :attr:`PythonProgram.columns`."""

    position: int


@record
class StepArgument:
    """The result of an earlier step."""

    step: int


Argument: TypeAlias = ColumnArgument | StepArgument | Literal


@record
class Step:
    """One call: ``function`` is a position in :attr:`PythonProgram.functions`, which no other call has."""

    function: int
    args: tuple[Argument, ...]
    type: LogicalType


@record
class PythonProgram:
    """The calls of one operator.

    ``columns``: types of the input columns that are handed in. ``outputs``: the steps whose results leave, one a
    computed column. ``zone``: the session's time zone. ``batch_rows``: rows of one call of a pandas or arrow function.
    ``asynchronous``: how asynchronous functions are called.
    """

    kind: FunctionKind
    functions: tuple[PythonFunction, ...]
    columns: tuple[LogicalType, ...]
    steps: tuple[Step, ...]
    outputs: tuple[int, ...]
    zone: str
    batch_rows: int
    asynchronous: AsyncOptions


@record
class Layout:
    """How a program lies in its operator: ``arguments``, the input columns that it is handed; ``forwarded``, by output
    column the input column or None where a result stands; ``spans``, of each step the place of its call."""

    program: PythonProgram
    arguments: tuple[int, ...]
    forwarded: tuple[int | None, ...]
    spans: tuple[Span | None, ...]


def make_layout(spec: PythonCalcSpec, zone: str, batch_rows: int, asynchronous: AsyncOptions) -> Layout:
    """The program of a spec."""
    maker = _Maker()
    forwarded: list[int | None] = []
    outputs: list[int] = []
    for expr in spec.projections:
        if isinstance(expr, InputRef):
            forwarded.append(expr.index)
        else:
            forwarded.append(None)
            outputs.append(maker.step(expr))
    kinds = {function.kind for function in maker.functions}
    if len(kinds) != 1:
        raise InternalError(f"one operator with Python functions of the kinds {sorted(kinds)}")
    columns = tuple(spec.input[index].type for index in maker.columns)
    program = PythonProgram(
        FunctionKind(kinds.pop()),
        tuple(maker.functions),
        columns,
        tuple(maker.steps),
        tuple(outputs),
        zone,
        batch_rows,
        asynchronous,
    )
    return Layout(program, tuple(maker.columns), tuple(forwarded), tuple(maker.spans))


class _Maker:
    def __init__(self) -> None:
        self.functions: list[PythonFunction] = []
        self.columns: list[int] = []
        self.steps: list[Step] = []
        self.spans: list[Span | None] = []
        self._known: dict[Expr, int] = {}

    def step(self, expr: Expr) -> int:
        """The position of a call; one that always gives the same is made once."""
        function = called_function(expr)
        if function is None or not isinstance(expr, Call):
            raise InternalError(f"a PythonCalc computes {expr}")
        if expr in self._known:
            return self._known[expr]
        args = tuple(self._argument(arg) for arg in expr.args)
        self.functions.append(function)
        self.steps.append(Step(len(self.functions) - 1, args, expr.type))
        self.spans.append(expr.span)
        made = len(self.steps) - 1
        if self._repeats(expr):
            self._known[expr] = made
        return made

    def _argument(self, expr: Expr) -> Argument:
        match expr:
            case InputRef(index=index):
                return ColumnArgument(_position(self.columns, index))
            case Literal():
                return expr
            case _:
                return StepArgument(self.step(expr))

    def _repeats(self, expr: Expr) -> bool:
        function = called_function(expr)
        if function is None or not isinstance(expr, Call):
            return True
        return function.deterministic and all(self._repeats(arg) for arg in expr.args)


def _position(known: list[Any], item: Any) -> int:
    if item not in known:
        known.append(item)
    return known.index(item)
