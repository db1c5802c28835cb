"""Filters on ROW_NUMBER become rankings, which keep no more rows than are asked for.

Source: Flink's ``FlinkLogicalRankRule``, ``RankUtil.extractRankRange`` and ``ConstantRankNumberColumnRemoveRule``.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from flowsql_core.errors import PlanError
from flowsql_core.expr import Call, Cast, Expr, InputRef, Literal, conjunction, conjuncts, input_refs
from flowsql_core.record import record
from flowsql_core.span import Span
from flowsql_core.types.logical import Column, IntegerType
from flowsql_planner.logical.nodes import Filter, Over, Project, Rank, Rel, Values
from flowsql_planner.logical.rewrite import refs

_RANKS: Final = frozenset({"ROW_NUMBER", "RANK", "DENSE_RANK"})
#: Comparisons of the number with a bound, read from the other side.
_MIRRORED: Final = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "="}


@record
class _Bounds:
    """What conditions ask of the number: places from 1, or the column that tells the last one."""

    first: int = 1
    last: int | None = None
    last_index: int | None = None


def rank_filtered_numbers(rel: Rel) -> Rel | None:
    """Filter(Over(x, ROW_NUMBER), number <= n AND p)  =>  Filter(Rank(x, 1 to n), p).

    Retractions go through a ranking as through the window function below it: both give the same table.

    Raises:
        PlanError: what Flink does not rank in streaming.
    """
    match rel:
        case Filter(input=Over(calls=(call,)) as over, condition=condition) if call.function in _RANKS:
            source = over.input
            number = len(source.schema)
            rest = [part for part in conjuncts(condition) if _compared(part, number) is None]
            asked = [part for part in conjuncts(condition) if _compared(part, number) is not None]
            bounds = _bounds(asked, number)
            if bounds is None or any(number in input_refs(part) for part in rest):
                return None
            _check(call.function, bounds, call.span)
            if not call.order:
                raise PlanError(
                    "rank-without-order",
                    "Over Agg: The window rank function requires order by clause with non-constant fields. please "
                    "re-check the over window statement.",
                    call.span,
                    "add ORDER BY to OVER (...)",
                )
            if bounds.last is not None and bounds.first > bounds.last:
                return Values((), rel.schema, rel.span)
            made = _ranked(over, bounds)
            above = conjunction(tuple(rest))
            return made if above is None else replace(rel, input=made, condition=above)
    return None


def _ranked(over: Over, bounds: _Bounds) -> Rel:
    call = over.calls[0]
    column = Column(call.name, call.type)
    ranked = Rank(
        over.input,
        call.partition,
        call.order,
        bounds.first,
        bounds.last,
        bounds.last_index,
        column,
        call.span or over.span,
    )
    if bounds.first != bounds.last:
        return ranked
    # The one number that passes is known.
    source = replace(ranked, number=None)
    names = tuple(field.name for field in over.schema)
    return Project(source, (*refs(source.schema), Literal(bounds.first, call.type)), names, over.span)


def _check(function: str, bounds: _Bounds, span: Span | None) -> None:
    if function != "ROW_NUMBER":
        raise PlanError(
            "rank-function",
            f"{function}() on streaming table is not supported currently",
            span,
            "rank with ROW_NUMBER()",
        )
    if bounds.last is None and bounds.last_index is None:
        raise PlanError(
            "rank-end-missing",
            "Rank end is not specified. Currently rank only support TopN, which means the rank end must be specified.",
            span,
            "limit the ROW_NUMBER from above, too: ... AND number <= 10",
        )
    if bounds.last is not None and bounds.last <= 0:
        raise PlanError(
            "rank-end", f"Rank end should not less than zero, but now is {bounds.last}", span, "numbers start with 1"
        )


def _compared(part: Expr, number: int) -> tuple[str, Expr] | None:
    """Operator and bound of a comparison of the number, as ``number <operator> bound``; None for anything else."""
    if not isinstance(part, Call) or part.function not in _MIRRORED or len(part.args) != 2:
        return None
    left, right = part.args
    if isinstance(left, InputRef) and left.index == number and number not in input_refs(right):
        return part.function, right
    if isinstance(right, InputRef) and right.index == number and number not in input_refs(left):
        return _MIRRORED[part.function], left
    return None


def _bounds(asked: list[Expr], number: int) -> _Bounds | None:
    """The bounds that comparisons make together; None without one, or where they are no places."""
    made: _Bounds | None = None
    for part in asked:
        compared = _compared(part, number)
        assert compared is not None
        operator, bound = compared
        before = _Bounds() if made is None else made
        column = _column(bound)
        if column is not None:
            # As in Flink, such a bound stands alone, and the row at it is always in.
            if operator in (">", ">=") or len(asked) > 1:
                return None
            return _Bounds(last_index=column)
        if not isinstance(bound, Literal) or not isinstance(bound.type, IntegerType) or bound.value is None:
            return None
        first, last = _places(operator, bound.value)
        made = _Bounds(
            before.first if first is None else max(before.first, first),
            last if before.last is None else (before.last if last is None else min(before.last, last)),
        )
    return made


def _places(operator: str, value: int) -> tuple[int | None, int | None]:
    match operator:
        case "<":
            return None, value - 1
        case "<=":
            return None, value
        case ">":
            return value + 1, None
        case ">=":
            return value, None
        case _:
            return value, value


def _column(bound: Expr) -> int | None:
    """The column of whole numbers that a bound is."""
    if isinstance(bound, Cast) and bound.implicit:
        bound = bound.operand
    return bound.index if isinstance(bound, InputRef) and isinstance(bound.type, IntegerType) else None
