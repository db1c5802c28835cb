"""Join -> IntervalJoin, where two comparisons of time attributes bound how far apart they are."""

from __future__ import annotations

from typing import Final

from flowsql_core.errors import BindError, PlanError
from flowsql_core.expr import Call, Cast, Expr, InputRef, Literal, conjunction
from flowsql_core.graph.specs import JoinKind
from flowsql_core.record import record
from flowsql_core.types.logical import (
    DayTimeIntervalType,
    LogicalType,
    Schema,
    is_proctime,
    is_rowtime,
    is_time_attribute,
)
from flowsql_planner.logical.nodes import Join
from flowsql_planner.physical.equi_condition import EquiCondition, split_condition
from flowsql_planner.physical.group_aggregate import exchange
from flowsql_planner.physical.nodes import IntervalJoin, Physical

_FLIPPED: Final = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "="}
_PROJECTING: Final = (JoinKind.INNER, JoinKind.LEFT, JoinKind.RIGHT, JoinKind.FULL)


@record
class _Bound:
    """``left time`` compared with ``right time + ms``: not below it, not above it, or equal."""

    left: int
    right: int
    lower_ms: int | None
    upper_ms: int | None


def plan_interval_join(rel: Join, left: Physical, right: Physical, equi: EquiCondition) -> Physical | None:
    """A lower and an upper bound of the distance of two row times (or processing times); as Flink, two comparisons of
    times or one equality."""
    found = _distance(rel, left.schema, right.schema, equi)
    if found is None or rel.condition is None:
        return None
    equi, rest, bounds, lower_ms, upper_ms = found
    left_time, right_time = bounds[0].left, bounds[0].right
    _check_times(rel, left.schema[left_time].type, right.schema[right_time].type)
    return IntervalJoin(
        inputs=(exchange(left, equi.left), exchange(right, equi.right)),
        schema=rel.schema,
        kind=rel.kind,
        left_keys=equi.left,
        right_keys=equi.right,
        null_safe=equi.null_safe,
        condition=rel.condition,
        rest=conjunction(rest),
        left_time=left_time,
        right_time=right_time,
        lower_ms=lower_ms,
        upper_ms=upper_ms,
        row_time=not is_proctime(left.schema[left_time].type),
        span=rel.span,
    )


def is_interval_join(rel: Join) -> bool:
    """Whether the condition of a logical join bounds how far apart two times are."""
    left, right = rel.left.schema, rel.right.schema
    return _distance(rel, left, right, split_condition(rel.condition, len(left))) is not None


def _distance(
    rel: Join, left: Schema, right: Schema, equi: EquiCondition
) -> tuple[EquiCondition, tuple[Expr, ...], list[_Bound], int, int] | None:
    """The keys without times, what else is asked, the bounds, and the lower and the upper one in milliseconds."""
    if rel.condition is None or rel.kind not in _PROJECTING:
        return None
    width = len(left)
    columns = left + right
    bounds: list[_Bound] = []
    times = []
    for place, (a, b) in enumerate(zip(equi.left, equi.right, strict=True)):
        if is_time_attribute(left[a].type) and is_time_attribute(right[b].type):
            bounds.append(_Bound(a, b, 0, 0))
            times.append(place)
    equi = equi.without(frozenset(times))
    rest: list[Expr] = []
    for part in equi.rest:
        bound = _bound(part, width, columns)
        if bound is None:
            rest.append(part)
        else:
            bounds.append(bound)
    if not 0 < len(bounds) <= 2 or any((b.left, b.right) != (bounds[0].left, bounds[0].right) for b in bounds):
        return None
    lowers = [bound.lower_ms for bound in bounds if bound.lower_ms is not None]
    uppers = [bound.upper_ms for bound in bounds if bound.upper_ms is not None]
    if len(lowers) != 1 or len(uppers) != 1:
        return None
    return equi, tuple(rest), bounds, lowers[0], uppers[0]


def _check_times(rel: Join, left: LogicalType, right: LogicalType) -> None:
    if is_proctime(left):
        if any(is_rowtime(column.type) for column in rel.schema):
            raise PlanError(
                "interval-join-times",
                "Interval join with proctime attribute requires no event-time attributes are in the join inputs.",
                rel.span,
                "leave the row times out before the join, or CAST them to TIMESTAMP",
            )
    elif type(left) is not type(right):
        raise BindError(
            "interval-join-times",
            f"Interval join with rowtime attribute requires same rowtime types, but the types are {left} and {right}.",
            rel.span,
        )


def _bound(part: Expr, width: int, columns: Schema) -> _Bound | None:
    if not isinstance(part, Call) or part.function not in _FLIPPED:
        return None
    a, b = _shifted_time(part.args[0], columns), _shifted_time(part.args[1], columns)
    if a is None or b is None or (a[0] < width) == (b[0] < width):
        return None
    if is_proctime(columns[a[0]].type) != is_proctime(columns[b[0]].type):
        return None
    name = part.function
    if a[0] >= width:
        a, b, name = b, a, _FLIPPED[name]
    strict = 1 if name in ("<", ">") else 0
    distance = b[1] - a[1]
    lower = distance + strict if name in (">", ">=", "=") else None
    upper = distance - strict if name in ("<", "<=", "=") else None
    return _Bound(a[0], b[0] - width, lower, upper)


def _shifted_time(expr: Expr, columns: Schema) -> tuple[int, int] | None:
    """(column, milliseconds) of ``time``, ``time + interval`` or ``time - interval`` over a time attribute."""
    match expr:
        case InputRef(index=index) if is_time_attribute(columns[index].type):
            return index, 0
        case Cast(operand=inner, implicit=True):
            # Of two kinds of timestamps that are compared; they are refused later.
            return _shifted_time(inner, columns)
        case Call(function="+" | "-" as sign, args=(inner, Literal(value=int() as amount, type=DayTimeIntervalType()))):
            found = _shifted_time(inner, columns)
            return None if found is None else (found[0], found[1] + (amount if sign == "+" else -amount))
        case _:
            return None
