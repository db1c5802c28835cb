"""Aggregate calls while a SELECT is being bound: collected, and stood for by marks in the expressions around them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from flowsql_core.expr import Call, Expr, walk
from flowsql_core.record import record
from flowsql_core.span import Span
from flowsql_core.types.logical import LogicalType

#: Function name of a mark; never leaves the binder.
MARK = "$AGGREGATE"


@record
class PendingAggregate:
    """An aggregate whose arguments are still expressions over the input of the aggregation."""

    function: str
    args: tuple[Expr, ...]
    type: LogicalType
    distinct: bool = False
    filter: Expr | None = None
    order_by: tuple[tuple[Expr, bool], ...] = ()
    options: tuple[tuple[str, Any], ...] = ()
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(slots=True)
class AggregateCollector:
    """All aggregates of one SELECT, equal ones once. ``grouped``: GROUP BY names at least one item."""

    grouped: bool
    calls: list[PendingAggregate] = field(default_factory=list)

    def add(self, call: PendingAggregate) -> Call:
        """The mark that stands for the call."""
        if call not in self.calls:
            self.calls.append(call)
        return Call(MARK, (), call.type, (("index", self.calls.index(call)),), call.span)


def mark_index(expr: Expr) -> int | None:
    """Which collected aggregate a mark stands for; None for other expressions."""
    if isinstance(expr, Call) and expr.function == MARK:
        return int(expr.option("index"))
    return None


def has_mark(expr: Expr) -> bool:
    """Whether an aggregate stands somewhere below."""
    return any(mark_index(node) is not None for node in walk(expr))
