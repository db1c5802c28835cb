"""Logical nodes that only bounded inputs have a plan for yet: INTERSECT, EXCEPT and window functions.

Also the calls that stand for queries inside of expressions: the binder makes them in batch mode, homes that run them
print or rewrite them, and no rule looks into them.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator
from dataclasses import field
from typing import TYPE_CHECKING, Final

from flowsql_core.expr import Call, Expr, InputRef, Literal, walk
from flowsql_core.record import record
from flowsql_core.span import Span
from flowsql_core.types.logical import Column, LogicalType, Schema

if TYPE_CHECKING:
    from flowsql_planner.logical.nodes import Rel, SortKey

#: ``EXISTS (query)``: the arguments are what the query reads of the row around it. Option ``plan``: the query's plan.
EXISTS: Final = "$EXISTS"
#: ``x IN (query)``: the operand, then as for EXISTS.
IN_QUERY: Final = "$IN"
#: ``(query)`` as a value: as for EXISTS.
SCALAR: Final = "$SCALAR"
#: Inside of such a query: the argument number ``slot`` of the call around it.
OUTER: Final = "$OUTER"
#: A window function before it becomes an :class:`Over`; never leaves the binder.
OVER: Final = "$OVER"
#: Calls with a plan in them, and how messages call them.
QUERY_CALLS: Final = {EXISTS: "EXISTS (subquery)", IN_QUERY: "IN (subquery)", SCALAR: "a scalar subquery"}


class SetOperator(enum.Enum):
    """Set operations beyond UNION."""

    INTERSECT = "INTERSECT"
    EXCEPT = "EXCEPT"


@record
class SetOperation:
    """INTERSECT or EXCEPT of two inputs whose types are equal column by column; NULL equals NULL."""

    left: Rel
    right: Rel
    operator: SetOperator
    all: bool
    schema: Schema
    span: Span | None = field(default=None, compare=False, repr=False)

    @property
    def construct(self) -> str:
        """The operation as it is written."""
        return f"{self.operator.value}{' ALL' if self.all else ''}"


class FrameUnit(enum.Enum):
    """ROWS counts rows, RANGE measures the sort key."""

    ROWS = "ROWS"
    RANGE = "RANGE"


class BoundKind(enum.Enum):
    """Where a frame starts or ends, in the order in which they lie."""

    UNBOUNDED_PRECEDING = "UNBOUNDED PRECEDING"
    PRECEDING = "PRECEDING"
    CURRENT_ROW = "CURRENT ROW"
    FOLLOWING = "FOLLOWING"
    UNBOUNDED_FOLLOWING = "UNBOUNDED FOLLOWING"


@record
class FrameBound:
    """A bound; ``offset`` only for PRECEDING and FOLLOWING: a number of rows, a number, or an interval."""

    kind: BoundKind
    offset: Literal | None = None


@record
class Frame:
    """``ROWS BETWEEN start AND end``."""

    unit: FrameUnit
    start: FrameBound
    end: FrameBound


@record
class OverCall:
    """A window function over columns of the input.

    ``partition``: columns. ``order``: sort keys. ``frame`` None: Flink's default, which is up to the current row with
    an order and the whole partition without one. Arguments are columns or constants.
    """

    function: str
    args: tuple[InputRef | Literal, ...]
    type: LogicalType
    name: str
    partition: tuple[int, ...] = ()
    order: tuple[SortKey, ...] = ()
    frame: Frame | None = None
    span: Span | None = field(default=None, compare=False, repr=False)

    def reads(self) -> frozenset[int]:
        """Columns of the input that the call looks at."""
        used = {arg.index for arg in self.args if isinstance(arg, InputRef)}
        return frozenset(used | set(self.partition) | {key.index for key in self.order})


@record
class Over:
    """Window functions: the input's columns, then one column per call."""

    input: Rel
    calls: tuple[OverCall, ...]
    span: Span | None = field(default=None, compare=False, repr=False)

    @property
    def schema(self) -> Schema:
        """The input's, then the calls'."""
        return (*self.input.schema, *(Column(call.name, call.type) for call in self.calls))


def query_calls(expr: Expr) -> Iterator[Call]:
    """Calls with a plan in them, in an expression."""
    for node in walk(expr):
        if isinstance(node, Call) and node.function in QUERY_CALLS:
            yield node


def is_internal(function: str) -> bool:
    """Whether a function's name is one that nobody can write: its result type is not the registry's to say."""
    return function.startswith("$")
