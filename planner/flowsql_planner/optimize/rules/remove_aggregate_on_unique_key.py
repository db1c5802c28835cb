"""An aggregate whose groups have one row each is a projection."""

from __future__ import annotations

from flowsql_core.expr import AggregateCall, Cast, Expr, InputRef
from flowsql_core.graph.specs import JoinKind
from flowsql_planner.logical.nodes import Aggregate, Filter, Join, Project, Rel, Scan, WatermarkAssigner
from flowsql_planner.logical.rewrite import ref

#: Flink's list: with one row a group these are their argument.
_SINGLE_ROW = frozenset({"SUM", "MIN", "MAX"})


def remove_aggregate_on_unique_key(rel: Rel) -> Rel | None:
    """Aggregate(x, keys that hold a unique key of x, SUM(a))  =>  Project(x, keys, a).

    Declared keys are trusted, as in Flink. Each change of the row is a change of its group.
    """
    if not isinstance(rel, Aggregate) or rel.grouping_sets is not None or not rel.grouping or rel.window:
        return None
    if not all(_is_its_argument(call) for call in rel.calls):
        return None
    grouped = frozenset(rel.grouping)
    if not any(key <= grouped for key in unique_keys(rel.input)):
        return None
    exprs: list[Expr] = [ref(rel.input.schema, index) for index in rel.grouping]
    for call in rel.calls:
        argument = ref(rel.input.schema, call.args[0].index)
        exprs.append(argument if argument.type == call.type else Cast(argument, call.type, implicit=True))
    return Project(rel.input, tuple(exprs), tuple(column.name for column in rel.schema), rel.span)


def _is_its_argument(call: AggregateCall) -> bool:
    return call.function in _SINGLE_ROW and call.filter_index is None


def unique_keys(rel: Rel) -> frozenset[frozenset[int]]:
    """Sets of columns that no two rows share."""
    match rel:
        case Scan(table=table, projection=projection) if table.primary_key:
            place = {table.columns[index].name: out for out, index in enumerate(projection)}
            if all(name in place for name in table.primary_key):
                return frozenset({frozenset(place[name] for name in table.primary_key)})
            return frozenset()
        case Join(kind=JoinKind.SEMI | JoinKind.ANTI, left=source):
            return unique_keys(source)
        case Filter(input=source) | WatermarkAssigner(input=source):
            return unique_keys(source)
        case Aggregate(grouping=grouping, grouping_sets=None, window=None) if grouping:
            return frozenset({frozenset(range(len(grouping)))})
        case Project(input=source, exprs=exprs):
            places: dict[int, int] = {}
            for out, expr in enumerate(exprs):
                if isinstance(expr, InputRef):
                    places.setdefault(expr.index, out)
            return frozenset(
                frozenset(places[index] for index in key) for key in unique_keys(source) if key <= places.keys()
            )
        case _:
            return frozenset()
