"""Calls whose names nobody can write: queries inside of expressions, and window functions while they are bound.

The binder makes them. Rules of streaming turn queries into nodes of the plan (``lift_subqueries``); homes that run
queries inside of expressions print them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from flowsql_core.expr import Call, Expr, walk

#: ``EXISTS (query)``: the arguments are what the query reads of the row around it. Option ``plan``: the query's plan.
EXISTS: Final = "$EXISTS"
#: ``x IN (query)``: an operand for each column of the query, then as for EXISTS.
IN_QUERY: Final = "$IN"
#: ``x > SOME (query)``: the operand, then as for EXISTS. Option ``comparison``: the operator, any but ``=``.
SOME_QUERY: Final = "$SOME"
#: ``(query)`` as a value: as for EXISTS.
SCALAR: Final = "$SCALAR"
#: Inside of such a query: the argument number ``slot`` of the call around it.
OUTER: Final = "$OUTER"
#: A window function before it becomes an :class:`Over`; never leaves the binder.
OVER: Final = "$OVER"
#: Calls with a plan in them, and how messages call them.
QUERY_CALLS: Final = {
    EXISTS: "EXISTS (subquery)",
    IN_QUERY: "IN (subquery)",
    SOME_QUERY: "ANY or ALL (subquery)",
    SCALAR: "a scalar subquery",
}


def query_calls(expr: Expr) -> Iterator[Call]:
    """Calls with a plan in them, in an expression."""
    for node in walk(expr):
        if isinstance(node, Call) and node.function in QUERY_CALLS:
            yield node


def is_internal(function: str) -> bool:
    """Whether a function's name is one that nobody can write: its result type is not the registry's to say."""
    return function.startswith("$")
