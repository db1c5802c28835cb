"""What is known to have no rows is VALUES without rows, and so is what needs rows from it."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from flowsql_core.expr import Literal, conjuncts
from flowsql_core.graph.specs import JoinKind
from flowsql_planner.logical.nodes import (
    Aggregate,
    Correlate,
    Filter,
    Join,
    Project,
    Rel,
    SetOperation,
    SetOperator,
    Sort,
    TemporalJoin,
    Union,
    Values,
    WatermarkAssigner,
)

#: Aggregates whose value of no rows Flink knows before the job runs (AVG is a sum and a count to it).
_OF_NOTHING: Final = {
    "COUNT": 0,
    "APPROX_COUNT_DISTINCT": 0,
    "$SUM0": 0,
    "SUM": None,
    "MIN": None,
    "MAX": None,
    "AVG": None,
}


def prune_empty(rel: Rel) -> Rel | None:
    """Filter(x, FALSE)  =>  VALUES (); and upwards through what keeps empty empty.

    A global aggregate of nothing is its one row, as in Flink where that is known before the job runs. A source that is
    not read makes no watermarks either: there is nothing left that waits for them.
    """
    match rel:
        case Filter(condition=condition) if any(
            isinstance(part, Literal) and not part.value for part in conjuncts(condition)
        ):
            return _empty(rel)
        case Sort(fetch=0):
            return _empty(rel)
        case Filter(input=source) | Project(input=source) | Sort(input=source) | Correlate(input=source):
            return _empty(rel) if _is_empty(source) else None
        case WatermarkAssigner(input=source):
            return _empty(rel) if _is_empty(source) else None
        case Aggregate(input=source, grouping=grouping) if grouping and rel.grouping_sets is None:
            return _empty(rel) if _is_empty(source) else None
        case Aggregate(input=source, grouping=(), grouping_sets=None, window=None, calls=calls) if _is_empty(source):
            if not all(call.function in _OF_NOTHING for call in calls):
                return None
            row = tuple(Literal(_OF_NOTHING[call.function], call.type) for call in calls)
            return Values((row,), rel.schema, rel.span)
        case Join(left=left, right=right, kind=kind):
            gone = {
                JoinKind.INNER: _is_empty(left) or _is_empty(right),
                JoinKind.SEMI: _is_empty(left) or _is_empty(right),
                JoinKind.LEFT: _is_empty(left),
                JoinKind.ANTI: _is_empty(left),
                JoinKind.RIGHT: _is_empty(right),
                JoinKind.FULL: _is_empty(left) and _is_empty(right),
            }
            return _empty(rel) if gone[kind] else None
        case TemporalJoin(left=left):
            return _empty(rel) if _is_empty(left) else None
        case SetOperation(left=left, right=right, operator=operator, all=all_rows):
            if _is_empty(left) or (operator is SetOperator.INTERSECT and _is_empty(right)):
                return _empty(rel)
            if not _is_empty(right):
                return None
            return left if all_rows else Aggregate(left, tuple(range(len(left.schema))), (), rel.schema, span=rel.span)
        case Union(inputs=all_inputs):
            kept = tuple(child for child in all_inputs if not _is_empty(child))
            if len(kept) == len(all_inputs):
                return None
            if not kept:
                return _empty(rel)
            return kept[0] if len(kept) == 1 else replace(rel, inputs=kept)
    return None


def _is_empty(rel: Rel) -> bool:
    return isinstance(rel, Values) and not rel.rows


def _empty(rel: Rel) -> Values:
    return Values((), rel.schema, rel.span)
