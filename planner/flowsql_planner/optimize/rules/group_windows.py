"""Group windows: from grouping calls to a part of the aggregate, and their properties to its columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from flowsql_core.errors import PlanError
from flowsql_core.expr import Call, Expr, InputRef, Literal, substitute, transform, walk
from flowsql_core.graph.specs import WindowKind
from flowsql_core.types import logical as t
from flowsql_planner.logical.group_window import AUXILIARY, PARTS, PROPERTIES, WINDOWS, GroupWindow
from flowsql_planner.logical.nodes import Aggregate, Filter, Project, Rel
from flowsql_planner.logical.rewrite import ref, unique_names

_BOUND = t.TimestampType(precision=3, nullable=False)


def group_windows(rel: Rel) -> Rel | None:
    """GROUP BY of a group window  =>  an aggregate with the window and columns of its properties.

    The window is decided row by row, before anything is aggregated: which changes the rows carry makes no difference.
    """
    return _in_aggregate(rel) or _properties(rel)


def _in_aggregate(rel: Rel) -> Rel | None:
    """Aggregate(Project(x, k, $TUMBLE(ts)), {k, w})  =>  Project(Aggregate(Project(x, k, ts), {k}, w), k, $WINDOW)."""
    if not isinstance(rel, Aggregate) or not isinstance(rel.input, Project) or rel.window is not None:
        return None
    below = rel.input
    found = [index for index in rel.grouping if _is_window(below.exprs[index])]
    if not found:
        return None
    if len(found) > 1:
        raise PlanError("group-windows", "Only a single window group function may be used in GROUP BY", rel.span)
    if rel.grouping_sets is not None:
        raise PlanError("window-grouping-sets", "A group window function cannot stand in grouping sets", rel.span)
    (place,) = found
    call = below.exprs[place]
    assert isinstance(call, Call)
    exprs, names = list(below.exprs), list(below.names)
    exprs[place] = call.args[0]
    if isinstance(call.args[0], InputRef):
        names[place] = below.input.schema[call.args[0].index].name
    source = Project(below.input, tuple(exprs), unique_names(tuple(names)), below.span)
    window = _window(call, place)
    grouping = tuple(index for index in rel.grouping if index != place)
    keys = [column for index, column in zip(rel.grouping, rel.schema, strict=False) if index != place]
    schema = (*keys, *rel.schema[len(rel.grouping) :], *window.properties)
    made = replace(rel, input=source, grouping=grouping, schema=schema, window=window)
    first = len(schema) - len(window.properties)
    properties = [ref(schema, first + i) for i in range(len(window.properties))]
    if t.is_proctime(call.type):
        properties.insert(2, properties[-1])
    shown: list[Expr] = []
    for index in rel.grouping:
        key = grouping.index(index) if index != place else None
        shown.append(Call(PROPERTIES, tuple(properties), call.type) if key is None else ref(schema, key))
    shown += [ref(schema, len(keys) + i) for i in range(len(rel.calls))]
    return Project(made, tuple(shown), tuple(column.name for column in rel.schema), rel.span)


def _properties(rel: Rel) -> Rel | None:
    """Project(Project(Aggregate, $WINDOW(start, ..)), TUMBLE_START(w))  =>  Project(Aggregate, start); so filters."""
    match rel:
        case Project(input=Project() as below) if _has_properties(below):
            exprs = tuple(_resolved(substitute(expr, below.exprs)) for expr in rel.exprs)
            return replace(rel, input=below.input, exprs=exprs)
        case Filter(input=Project() as below) if _has_properties(below):
            condition = _resolved(substitute(rel.condition, below.exprs))
            return replace(below, input=Filter(below.input, condition, rel.span))
    return None


def _is_window(expr: Expr) -> bool:
    return isinstance(expr, Call) and expr.function in WINDOWS


def _has_properties(rel: Project) -> bool:
    return any(isinstance(node, Call) and node.function == PROPERTIES for expr in rel.exprs for node in walk(expr))


def _resolved(expr: Expr) -> Expr:
    def change(node: Expr) -> Expr:
        if isinstance(node, Call) and node.function in AUXILIARY:
            (window,) = node.args
            assert isinstance(window, Call)
            return window.args[PARTS.index(AUXILIARY[node.function].part)]
        return node

    return transform(expr, change)


def _window(call: Call, place: int) -> GroupWindow:
    counts_rows = any(isinstance(length, Call) for length in call.args[1:])
    amounts = [length.args[0] if isinstance(length, Call) else length for length in call.args[1:]]
    lengths = [int(length.value) for length in amounts if isinstance(length, Literal)]
    step, size = lengths[0], lengths[-1]
    time = call.type
    names = ["w$start", "w$end", "w$rowtime", "w$proctime"]
    types: Sequence[t.LogicalType] = (_BOUND, _BOUND, time)
    if t.is_proctime(time):
        del names[2]
    else:
        assert isinstance(time, t.TimestampType | t.TimestampLtzType)
        moment = replace(time.as_nullable() if t.is_time_attribute(time) else time, precision=3)
        types = (_BOUND, _BOUND, moment, moment)
    columns = tuple(t.Column(name, type_) for name, type_ in zip(names, types, strict=True))
    kind: WindowKind = WINDOWS[call.function]
    return GroupWindow(kind, place, size, step, columns, counts_rows)
