"""What a query reads of the row around it: ``$OUTER`` calls in a plan, which count the parameters of the query."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from flowsql_core.expr import Call, Expr, transform, walk
from flowsql_planner.logical.internal_calls import OUTER
from flowsql_planner.logical.nodes import Apply, Rel, expressions, inputs


def outer_call(expr: Expr) -> Call | None:
    """The expression as a reference to the row around the query; None for any other one."""
    return expr if isinstance(expr, Call) and expr.function == OUTER else None


def slot_of(call: Call) -> int:
    """Which parameter a reference means."""
    return int(call.option("slot"))


def outer_calls(expr: Expr) -> Iterator[Call]:
    """References to the row around the query in an expression.

    Queries inside of the expression name what they read among their own parameters, which are part of it.
    """
    for node in walk(expr):
        found = outer_call(node)
        if found is not None:
            yield found


def outer_slots(rel: Rel) -> frozenset[int]:
    """The parameters that a plan reads; the right side of an :class:`Apply` has parameters of its own."""
    return frozenset(slot_of(call) for call in _outer_calls_of(rel))


def is_correlated(rel: Rel) -> bool:
    """Whether a plan reads anything of the row around it."""
    return next(_outer_calls_of(rel), None) is not None


def first_outer_call(rel: Rel) -> Call | None:
    """The first reference of a plan, for messages."""
    return next(_outer_calls_of(rel), None)


def replace_outer(expr: Expr, value: Callable[[Call], Expr]) -> Expr:
    """The expression with each reference replaced."""

    def change(node: Expr) -> Expr:
        found = outer_call(node)
        return node if found is None else value(found)

    return transform(expr, change)


def _outer_calls_of(rel: Rel) -> Iterator[Call]:
    for expr in expressions(rel):
        yield from outer_calls(expr)
    for child in inputs(rel)[:1] if isinstance(rel, Apply) else inputs(rel):
        yield from _outer_calls_of(child)
