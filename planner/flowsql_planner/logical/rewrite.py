"""Walking and rewriting of logical trees: new inputs for a node, schemas derived anew, types carried upwards."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import assert_never

from flowsql_core.errors import InternalError
from flowsql_core.expr import AggregateCall, Expr, InputRef, transform
from flowsql_core.graph.specs import JoinKind
from flowsql_core.types.logical import Column, LogicalType, Schema
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
    ProcessTableFunction,
    Project,
    Rank,
    Rel,
    Scan,
    SetOperation,
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


def walk(rel: Rel) -> Iterator[Rel]:
    """The node and all below it, top-down, left to right."""
    waiting = [rel]
    while waiting:
        node = waiting.pop()
        yield node
        waiting.extend(reversed(inputs(node)))


def with_inputs(rel: Rel, new: tuple[Rel, ...]) -> Rel:
    """The same node over other inputs, which have as many columns as the old ones."""
    if all(a is b for a, b in zip(inputs(rel), new, strict=True)):
        return rel
    match rel:
        case Scan() | Values():
            return rel
        case Join() | TemporalJoin() | Apply() | SetOperation():
            return replace(rel, left=new[0], right=new[1])
        case Union() | MultiJoin() | ProcessTableFunction():
            return replace(rel, inputs=new)
        case (
            Project()
            | Filter()
            | WatermarkAssigner()
            | Aggregate()
            | TableAggregate()
            | Expand()
            | WindowTableFunction()
            | ChangelogFunction()
            | Correlate()
            | Sort()
            | Over()
            | Rank()
            | Match()
            | Sink()
        ):
            return replace(rel, input=new[0])
        case _:
            assert_never(rel)


def transform_up(rel: Rel, change: Callable[[Rel], Rel]) -> Rel:
    """Rewrite bottom-up: ``change`` sees each node after its inputs were rewritten."""
    return change(with_inputs(rel, tuple(transform_up(child, change) for child in inputs(rel))))


def ref(schema: Schema, index: int) -> InputRef:
    """A reference to a column of a schema."""
    return InputRef(index, schema[index].type)


def refs(schema: Schema) -> tuple[InputRef, ...]:
    """References to all columns in order."""
    return tuple(ref(schema, index) for index in range(len(schema)))


def select(rel: Rel, columns: tuple[int, ...], names: tuple[str, ...] | None = None) -> Rel:
    """The columns of a node, as a projection; the node itself when they are all its columns in order.

    ``names``: of the projection, if there is one; default: those of the columns.
    """
    if columns == tuple(range(len(rel.schema))):
        return rel
    if names is None:
        names = tuple(rel.schema[index].name for index in columns)
    return Project(rel, tuple(ref(rel.schema, index) for index in columns), names)


def is_trivial(project: Project) -> bool:
    """Whether a projection passes its input on as it is, apart from the names."""
    return len(project.exprs) == len(project.input.schema) and all(
        isinstance(expr, InputRef) and expr.index == index for index, expr in enumerate(project.exprs)
    )


def unique_names(names: Iterable[str], mark: str = "") -> tuple[str, ...]:
    """Later equal names get 0, 1, ... appended, as Flink names fields; ``mark`` stands before these numbers."""
    taken: set[str] = set()
    result = []
    for name in names:
        candidate, number = name, 0
        while candidate in taken:
            candidate, number = f"{name}{mark}{number}", number + 1
        taken.add(candidate)
        result.append(candidate)
    return tuple(result)


def join_schema(left: Schema, right: Schema, kind: JoinKind) -> Schema:
    """Columns of a join: both sides with unique names, the side that may be padded nullable."""
    if kind in (JoinKind.SEMI, JoinKind.ANTI):
        return left
    left_nullable = kind in (JoinKind.RIGHT, JoinKind.FULL)
    right_nullable = kind in (JoinKind.LEFT, JoinKind.FULL)
    types = [c.type.as_nullable() if left_nullable else c.type for c in left]
    types += [c.type.as_nullable() if right_nullable else c.type for c in right]
    names = unique_names(tuple(c.name for c in (*left, *right)))
    return tuple(Column(name, type_) for name, type_ in zip(names, types, strict=True))


def make_join(original: Join, left: Rel, right: Rel, condition: Expr | None, kind: JoinKind | None = None) -> Join:
    """A join like ``original`` over other inputs."""
    chosen = original.kind if kind is None else kind
    return replace(
        original,
        left=left,
        right=right,
        condition=condition,
        kind=chosen,
        schema=join_schema(left.schema, right.schema, chosen),
    )


def make_multi_join(original: MultiJoin, new: tuple[Rel, ...], conditions: tuple[Expr | None, ...]) -> MultiJoin:
    """Joins like ``original`` over other inputs; ``conditions`` are typed by their columns."""
    schema = new[0].schema
    typed: list[Expr | None] = []
    for kind, condition, added in zip(original.kinds, conditions, new[1:], strict=True):
        typed.append(None if condition is None else retype_expr(condition, schema + added.schema))
        schema = join_schema(schema, added.schema, kind)
    return replace(original, inputs=new, conditions=tuple(typed), schema=schema)


def make_temporal_join(
    original: TemporalJoin, left: Rel, right: Rel, condition: Expr | None, period: int, version_time: int | None
) -> TemporalJoin:
    """A temporal join like ``original`` over other inputs."""
    schema = join_schema(left.schema, right.schema, original.kind)
    return replace(
        original,
        left=left,
        right=right,
        condition=condition,
        period=period,
        version_time=version_time,
        schema=schema,
    )


def make_correlate(original: Correlate, input_: Rel, collection: Expr) -> Correlate:
    """A correlate like ``original`` over another input, whose elements have the same columns."""
    schema = correlate_schema(input_.schema, original.added, original.outer)
    return replace(original, input=input_, collection=collection, schema=schema)


def correlate_schema(left: Schema, added: Schema, outer: bool) -> Schema:
    """Columns of a correlate: the row's, then the element's, which may be padded where ``outer``."""
    names = unique_names(tuple(column.name for column in (*left, *added)))
    types = [column.type for column in left] + [c.type.as_nullable() if outer else c.type for c in added]
    return tuple(Column(name, type_) for name, type_ in zip(names, types, strict=True))


def make_aggregate(
    original: Aggregate, input_: Rel, grouping: tuple[int, ...], calls: tuple[AggregateCall, ...]
) -> Aggregate:
    """An aggregate like ``original`` with other columns; grouping columns keep the names they had in the output."""
    schema = tuple(
        Column(input_.schema[index].name, _group_type(original, input_.schema[index].type)) for index in grouping
    ) + tuple(Column(call.name, call.type) for call in calls)
    schema += () if original.window is None else original.window.properties
    return replace(original, input=input_, grouping=grouping, calls=calls, schema=schema)


def _group_type(aggregate: Aggregate, type_: LogicalType) -> LogicalType:
    return type_.as_nullable() if aggregate.grouping_sets is not None else type_


def retype(rel: Rel) -> Rel:
    """Carry the types of the scans upwards, after a rewrite changed the type of a column (not its meaning).

    Only references take the new type; what a function returns stays as it was resolved.
    """
    return transform_up(rel, _retype_node)


def _retype_node(rel: Rel) -> Rel:
    match rel:
        case Scan() | Values() | Sort() | Sink() | SetOperation() | Over() | Rank() | Match():
            return rel
        case Project(input=source, exprs=exprs):
            return replace(rel, exprs=tuple(retype_expr(expr, source.schema) for expr in exprs))
        case Filter(input=source, condition=condition):
            return replace(rel, condition=retype_expr(condition, source.schema))
        case WatermarkAssigner(input=source, schema=schema):
            kept = tuple(
                schema[i] if i == rel.rowtime_index else Column(schema[i].name, column.type)
                for i, column in enumerate(source.schema)
            )
            return replace(rel, expression=retype_expr(rel.expression, source.schema), schema=kept)
        case Aggregate(input=source):
            calls = tuple(
                replace(call, args=tuple(ref(source.schema, arg.index) for arg in call.args)) for call in rel.calls
            )
            groups = tuple(
                Column(rel.schema[i].name, _group_type(rel, source.schema[index].type))
                for i, index in enumerate(rel.grouping)
            )
            return replace(rel, calls=calls, schema=groups + rel.schema[len(groups) :])
        case TableAggregate(input=source, call=call, grouping=grouping, schema=schema):
            groups = tuple(Column(schema[i].name, source.schema[index].type) for i, index in enumerate(grouping))
            moved = replace(call, args=tuple(ref(source.schema, arg.index) for arg in call.args))
            return replace(rel, call=moved, schema=groups + schema[len(groups) :])
        case Expand(input=source):
            projections = tuple(tuple(retype_expr(expr, source.schema) for expr in row) for row in rel.projections)
            schema = tuple(
                Column(column.name, projections[0][i].type.as_nullable(column.type.nullable))
                for i, column in enumerate(rel.schema)
            )
            return replace(rel, projections=projections, schema=schema)
        case WindowTableFunction(input=source):
            width = len(source.schema)
            return replace(rel, schema=source.schema + rel.schema[width:])
        case ChangelogFunction(input=source, op_index=op, time_index=time):
            types = [column.type for column in source.schema]
            made = [rel.schema[0].type, *types] if op is None else types[:op] + types[op + 1 :]
            if time is not None:
                made.append(types[time].as_nullable(False))
            own = (Column(column.name, type_) for column, type_ in zip(rel.schema, made, strict=True))
            return replace(rel, schema=tuple(own))
        case ProcessTableFunction(inputs=all_inputs):
            of_tables = rel.call.retyped([source.schema for source in all_inputs])
            output = of_tables.output([source.schema for source in all_inputs])
            own = (Column(old.name, new.type) for old, new in zip(rel.schema, output, strict=True))
            return replace(rel, call=of_tables, schema=tuple(own))
        case Correlate(input=source, collection=collection):
            return make_correlate(rel, source, retype_expr(collection, source.schema))
        case Apply():
            raise InternalError("a query that was not decorrelated")
        case Join(left=left, right=right):
            columns = left.schema + right.schema
            on = None if rel.condition is None else retype_expr(rel.condition, columns)
            return make_join(rel, left, right, on)
        case MultiJoin(inputs=all_inputs):
            return make_multi_join(rel, all_inputs, rel.conditions)
        case TemporalJoin(left=left, right=right):
            on = None if rel.condition is None else retype_expr(rel.condition, left.schema + right.schema)
            return make_temporal_join(rel, left, right, on, rel.period, rel.version_time)
        case Union(inputs=all_inputs):
            names = tuple(column.name for column in rel.schema)
            first = all_inputs[0].schema
            merged = tuple(
                Column(name, first[i].type.as_nullable(any(r.schema[i].type.nullable for r in all_inputs)))
                for i, name in enumerate(names)
            )
            return replace(rel, schema=merged)
        case _:
            assert_never(rel)


def retype_expr(expr: Expr, schema: Schema) -> Expr:
    """The expression with each reference typed by the schema."""

    def change(node: Expr) -> Expr:
        if isinstance(node, InputRef) and node.type != schema[node.index].type:
            return replace(node, type=schema[node.index].type)
        return node

    return transform(expr, change)
