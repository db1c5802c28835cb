"""Lineage of plans as they were bound, from the scans up: one case for each logical node."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, assert_never

from flowsql_core.expr import AggregateCall, Expr, InputRef
from flowsql_core.graph.expectation import ViolationAction
from flowsql_core.graph.match_specs import MatchTime, PatternAggregate, PatternColumn, PatternExpression
from flowsql_core.graph.specs import JoinKind
from flowsql_planner.lineage.influence import Expressions, merged, of_columns, through
from flowsql_planner.lineage.model import (
    NONE,
    Dataset,
    Flow,
    How,
    Influence,
    Influences,
    Lineage,
    SourceColumn,
    dataset_of,
)
from flowsql_planner.logical.nodes import (
    Aggregate,
    Apply,
    ChangelogFunction,
    Correlate,
    Expand,
    Filter,
    Join,
    Match,
    MultiJoin,
    Over,
    OverCall,
    ProcessTableFunction,
    Project,
    Rank,
    Rel,
    Scan,
    SetOperation,
    SetOperator,
    Sink,
    Sort,
    TableAggregate,
    TemporalJoin,
    Union,
    Values,
    WatermarkAssigner,
    WindowTableFunction,
    inputs,
)

#: Window functions that give a value of one other row.
_PICKS: Final = frozenset({"LAG", "LEAD", "FIRST_VALUE", "LAST_VALUE", "NTH_VALUE"})
#: Functions of grouping sets: they tell which columns a row is grouped by, whatever these hold.
_OF_SETS: Final = frozenset({"GROUPING", "GROUPING_ID"})
_ONE_SIDE: Final = (JoinKind.SEMI, JoinKind.ANTI)


def lineage_of(root: Rel) -> Lineage:
    """Where the rows of an INSERT, or of a query, come from."""
    flow = Flows().of(root)
    target, names = None, [column.name for column in root.schema]
    if isinstance(root, Sink) and root.table is not None:
        target = dataset_of(root.table)
        names = [column.name for column in root.table.columns]
    columns = tuple(zip(names, flow.columns, strict=True))
    return Lineage(target, columns, flow.rows, tuple(sorted(flow.tables, key=lambda each: each.path)))


class Flows:
    """Finds lineage of plans. ``outer``: of what ``$OUTER`` calls read of the row around the plan."""

    def __init__(self, outer: Sequence[Influences] = ()) -> None:
        self._expressions = Expressions(outer, self._subplan)
        #: Tables that queries inside of expressions read.
        self._read: set[Dataset] = set()

    def of(self, rel: Rel) -> Flow:
        """The lineage of a plan."""
        flow = self._node(rel, self._inputs(rel))
        return Flow(flow.columns, flow.rows, flow.tables | self._read)

    def _subplan(self, rel: Rel, outer: Sequence[Influences]) -> Flow:
        flow = Flows(outer).of(rel)
        self._read |= flow.tables
        return flow

    def _inputs(self, rel: Rel) -> list[Flow]:
        if isinstance(rel, Apply):
            left = self.of(rel.left)
            parameters = [self._expressions.of(expr, left.columns) for expr in rel.parameters]
            return [left, Flows(parameters).of(rel.right)]
        return [self.of(source) for source in inputs(rel)]

    def _node(self, rel: Rel, below: list[Flow]) -> Flow:
        """A node's output, given what flows into it."""
        columns = tuple(column for flow in below for column in flow.columns)
        rows = merged(flow.rows for flow in below)
        of = self._expressions.of
        match rel:
            case Scan():
                return _scan(rel, self._expressions)
            case Values(schema=schema):
                columns = (NONE,) * len(schema)
            case Project(exprs=exprs):
                columns = tuple(of(expr, columns) for expr in exprs)
            case Filter(condition=condition):
                rows |= through(How.FILTER, of(condition, columns))
            case WatermarkAssigner():
                pass
            case Aggregate():
                columns, rows = _aggregate(rel, columns, rows)
            case TableAggregate(grouping=grouping, call=call):
                rows |= of_columns(How.GROUP_BY, columns, grouping)
                made = _aggregated(call, columns)
                groups = tuple(columns[index] for index in grouping)
                columns = (*groups, *(made for _ in rel.schema[len(grouping) :]))
            case Expand(projections=projections):
                columns = tuple(merged(of(expr, columns) for expr in place) for place in zip(*projections, strict=True))
            case WindowTableFunction(time_index=time, partition=partition):
                bounds = of_columns(How.TRANSFORMATION, columns, (time,)) | of_columns(How.WINDOW, columns, partition)
                columns += (bounds,) * (len(rel.schema) - len(columns))
            case ChangelogFunction():
                columns, rows = _changelog(rel, columns, rows)
            case ProcessTableFunction():
                columns, rows = _process(rel, below, rows)
            case Join(kind=kind, condition=condition):
                rows |= self._joined([condition], columns)
                columns = below[0].columns if kind in _ONE_SIDE else columns
            case MultiJoin(conditions=conditions):
                rows |= self._joined(conditions, columns)
            case TemporalJoin(condition=condition, period=period, version_time=version):
                rows |= self._joined([condition], columns) | of_columns(How.JOIN, columns, (period,))
                if version is not None:
                    rows |= of_columns(How.JOIN, below[1].columns, (version,))
            case Apply(kind=kind, condition=condition):
                rows |= self._joined([condition], columns)
                columns = below[0].columns if kind in _ONE_SIDE else columns
            case Correlate(collection=collection, condition=condition):
                elements = through(How.TRANSFORMATION, of(collection, columns))
                added = (elements,) * (len(rel.schema) - len(columns))
                # An empty collection drops the row, a long one repeats it.
                rows |= through(How.JOIN, elements)
                rows |= NONE if condition is None else through(How.FILTER, of(condition, added))
                columns += added
            case Union():
                columns = _side_by_side(below)
            case SetOperation(operator=operator):
                rows |= through(How.FILTER, merged(columns))
                columns = below[0].columns if operator is SetOperator.EXCEPT else _side_by_side(below)
            case Sort(keys=keys):
                rows |= of_columns(How.SORT, columns, (key.index for key in keys))
            case Over(calls=calls):
                columns += tuple(_over(call, columns) for call in calls)
            case Rank(number=number):
                places = of_columns(How.WINDOW, columns, rel.reads())
                rows |= places
                columns += () if number is None else (places,)
            case Match():
                columns, rows = self._match(rel, columns, rows)
            case Sink(expectations=expectations):
                dropping = [each.condition for each in expectations if each.action is ViolationAction.DROP]
                rows |= merged(through(How.FILTER, of(condition, columns)) for condition in dropping)
            case _:
                assert_never(rel)
        return Flow(columns, rows, frozenset().union(*(flow.tables for flow in below)))

    def _joined(self, conditions: Sequence[Expr | None], columns: Sequence[Influences]) -> Influences:
        written = [condition for condition in conditions if condition is not None]
        return through(How.JOIN, merged(self._expressions.of(condition, columns) for condition in written))

    def _match(
        self, rel: Match, columns: tuple[Influences, ...], rows: Influences
    ) -> tuple[tuple[Influences, ...], Influences]:
        """The partition, then the measures; the pattern's conditions, partition and order decide which matches are."""
        stored = (*columns, *(self._expressions.of(expr, columns) for expr in rel.computed))
        time = of_columns(How.TRANSFORMATION, columns, (key.index for key in rel.order[:1]))

        def read(found: PatternColumn | PatternAggregate | MatchTime) -> Influences:
            match found:
                case PatternColumn(column=column):
                    return stored[column]
                case PatternAggregate(call=call):
                    return _aggregated(call, stored)
                case MatchTime():
                    return time
                case _:
                    assert_never(found)

        def value(measure: PatternExpression) -> Influences:
            return self._expressions.of(measure.expression, [read(found) for found in measure.reads])

        places = (*rel.partition, *(key.index for key in rel.order))
        rows |= of_columns(How.WINDOW, columns, places)
        for variable in rel.variables:
            if variable.row_condition is not None:
                rows |= through(How.FILTER, stored[variable.row_condition])
            if variable.path_condition is not None:
                rows |= through(How.FILTER, value(variable.path_condition))
        return (*(columns[index] for index in rel.partition), *map(value, rel.measures)), rows


def _scan(rel: Scan, expressions: Expressions) -> Flow:
    dataset = dataset_of(rel.table)

    def copied(name: str) -> Influences:
        return frozenset({Influence(SourceColumn(dataset, name), How.IDENTITY)})

    physical = [copied(column.name) for column in rel.table.columns]
    filters = merged(expressions.of(condition, physical) for condition in rel.filters)
    columns = tuple(copied(column.name) for column in rel.schema)
    return Flow(columns, through(How.FILTER, filters), frozenset({dataset}))


def _aggregate(
    rel: Aggregate, columns: Sequence[Influences], rows: Influences
) -> tuple[tuple[Influences, ...], Influences]:
    groups = tuple(columns[index] for index in rel.grouping)
    rows |= through(How.GROUP_BY, merged(groups))
    made = tuple(_aggregated(call, columns) for call in rel.calls)
    if rel.window is None:
        return (*groups, *made), rows
    time = (rel.window.time_index,)
    rows |= of_columns(How.WINDOW, columns, time)
    bounds = of_columns(How.TRANSFORMATION, columns, time)
    return (*groups, *made, *(bounds for _ in rel.window.properties)), rows


def _aggregated(call: AggregateCall, columns: Sequence[Influences]) -> Influences:
    if call.function in _OF_SETS:
        return NONE
    found = of_columns(How.AGGREGATION, columns, (arg.index for arg in call.args))
    if call.filter_index is not None:
        found |= of_columns(How.FILTER, columns, (call.filter_index,))
    return found | of_columns(How.SORT, columns, (index for index, _ in call.order_by))


def _over(call: OverCall, columns: Sequence[Influences]) -> Influences:
    how = How.TRANSFORMATION if call.function in _PICKS else How.AGGREGATION
    args = frozenset(arg.index for arg in call.args if isinstance(arg, InputRef))
    places = (*call.partition, *(key.index for key in call.order))
    return of_columns(how, columns, args) | of_columns(How.WINDOW, columns, places)


def _changelog(
    rel: ChangelogFunction, columns: tuple[Influences, ...], rows: Influences
) -> tuple[tuple[Influences, ...], Influences]:
    """TO_CHANGELOG puts the kind of change in front, which is of no column; FROM_CHANGELOG takes it away."""
    time = () if rel.time_index is None else (columns[rel.time_index],)
    if rel.op_index is None:
        return (NONE, *columns, *time), rows
    kinds = of_columns(How.FILTER, columns, (rel.op_index,))
    return (*columns[: rel.op_index], *columns[rel.op_index + 1 :], *time), rows | kinds


def _process(
    rel: ProcessTableFunction, below: Sequence[Flow], rows: Influences
) -> tuple[tuple[Influences, ...], Influences]:
    """What a function of Python makes may come from every column that it is shown."""
    columns: list[Influences] = []
    for table, flow in zip(rel.call.tables, below, strict=True):
        shown = range(len(flow.columns)) if table.through else table.partition or ()
        columns += (flow.columns[index] for index in shown)
        rows |= of_columns(How.GROUP_BY, flow.columns, table.partition or ())
        rows |= of_columns(How.SORT, flow.columns, (index for index, _, _ in table.order))
    seen = through(How.TRANSFORMATION, merged(column for flow in below for column in flow.columns))
    columns += (seen for _ in rel.call.result)
    if rel.call.row_time is not None:
        times = zip(rel.call.tables, below, strict=True)
        columns.append(merged(flow.columns[t.time_index] for t, flow in times if t.time_index is not None))
    return tuple(columns), rows


def _side_by_side(below: Sequence[Flow]) -> tuple[Influences, ...]:
    """Columns of several inputs, place by place."""
    return tuple(merged(place) for place in zip(*(flow.columns for flow in below), strict=True))
