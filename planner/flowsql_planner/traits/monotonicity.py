"""How the values of a column move as rows of a changelog are updated.

Source: Flink's ``FlinkRelMdModifiedMonotonicity``.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence

from flowsql_core.expr import AggregateCall, Cast, Expr, InputRef, Literal
from flowsql_planner.traits.interval import Bounds


class Monotonicity(enum.Enum):
    """What updates of a row do to a column of it."""

    CONSTANT = "constant"
    INCREASING = "increasing"
    DECREASING = "decreasing"
    NONE = "none"


#: One a column; None where nothing is known, or where rows also go.
Monotonicities = tuple[Monotonicity, ...] | None

_OF_AGGREGATES = {
    "COUNT": Monotonicity.INCREASING,
    "MAX": Monotonicity.INCREASING,
    "MIN": Monotonicity.DECREASING,
}


def of_aggregate(
    grouping: int, calls: Sequence[AggregateCall], summed: Callable[[AggregateCall], Bounds]
) -> tuple[Monotonicity, ...]:
    """Columns of an aggregate whose input only grows. ``summed``: between which numbers the values of a SUM lie."""
    results = (_of_call(call, summed) for call in calls)
    return (*(Monotonicity.CONSTANT for _ in range(grouping)), *results)


def _of_call(call: AggregateCall, summed: Callable[[AggregateCall], Bounds]) -> Monotonicity:
    if call.function != "SUM":
        return _OF_AGGREGATES.get(call.function, Monotonicity.NONE)
    bounds = summed(call)
    if bounds is not None and bounds.never_negative:
        return Monotonicity.INCREASING
    return Monotonicity.DECREASING if bounds is not None and bounds.never_positive else Monotonicity.NONE


def of_projection(below: Monotonicities, projections: Sequence[Expr]) -> Monotonicities:
    """Columns of a projection: those that go on keep what they are."""
    return None if below is None else tuple(_of_expression(below, expr) for expr in projections)


def _of_expression(below: tuple[Monotonicity, ...], expr: Expr) -> Monotonicity:
    match expr:
        case Cast(implicit=True, operand=operand):
            return _of_expression(below, operand)
        case InputRef(index=index):
            return below[index]
        case Literal():
            return Monotonicity.CONSTANT
        case _:
            return Monotonicity.NONE


def never_falls(column: Monotonicity, descending: bool) -> bool:
    """Whether updates never move a row back in an order by a column."""
    match column:
        case Monotonicity.CONSTANT:
            return True
        case Monotonicity.INCREASING:
            return descending
        case Monotonicity.DECREASING:
            return not descending
        case _:
            return False
