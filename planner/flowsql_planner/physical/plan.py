"""Logical plan -> physical plan, node by node, inputs first."""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

from flowsql_core.errors import InternalError, NotSupportedYetError, PlanError
from flowsql_core.expr import Cast, Expr, InputRef, Literal, children, conjuncts, transform
from flowsql_core.row import INSERT_ONLY
from flowsql_core.types.logical import Column, is_proctime, is_rowtime, is_time_attribute, without_attribute
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
from flowsql_planner.logical.rewrite import ref
from flowsql_planner.physical.bounded.plan import plan_bounded
from flowsql_planner.physical.calc import make_calc, make_filter
from flowsql_planner.physical.context import PlanContext
from flowsql_planner.physical.group_aggregate import exchange, plan_group_aggregate
from flowsql_planner.physical.group_window import plan_group_window
from flowsql_planner.physical.join import plan_join
from flowsql_planner.physical.joins.multi_join import plan_multi_join
from flowsql_planner.physical.joins.temporal_join import plan_temporal_join
from flowsql_planner.physical.match import plan_match
from flowsql_planner.physical.materialize_time import materialize_time, read_clocks
from flowsql_planner.physical.nodes import (
    ChangelogFunctionNode,
    CorrelateNode,
    ExpandNode,
    Limit,
    Physical,
    SinkNode,
    SortNode,
    TemporalSort,
    UnionNode,
    ValuesNode,
    WatermarkAssignerNode,
)
from flowsql_planner.physical.order import order_keys
from flowsql_planner.physical.over import plan_over
from flowsql_planner.physical.process_function import plan_process, require_time_attribute
from flowsql_planner.physical.python_aggregate import (
    calls_python_aggregates,
    plan_python_aggregate,
    plan_python_window,
    plan_table_aggregate,
)
from flowsql_planner.physical.rank import plan_rank, plan_sort_limit
from flowsql_planner.physical.scan import plan_scan
from flowsql_planner.physical.window import plan_window_aggregate, plan_window_function


def plan_physical(rel: Rel, context: PlanContext) -> Physical:
    """The physical tree of an optimized logical one, without changelog modes yet."""
    sources = tuple(plan_physical(child, context) for child in inputs(rel))
    bounded = plan_bounded(rel, sources, context) if context.bounded else None
    return _plan_node(rel, sources, context) if bounded is None else bounded


def _plan_node(rel: Rel, sources: tuple[Physical, ...], context: PlanContext) -> Physical:
    """A node over its planned inputs."""
    match rel:
        case Scan():
            return plan_scan(rel, context)
        case Values():
            return ValuesNode(inputs=(), schema=rel.schema, rows=rel.rows, span=rel.span)
        case Project():
            source = sources[0]
            return make_calc(source, tuple(_as_in(source, expr) for expr in rel.exprs), rel.names, rel.span)
        case Filter():
            kept = tuple(part for part in conjuncts(rel.condition) if part != Literal(True, part.type))
            return make_filter(sources[0], _as_in(sources[0], rel.condition), rel.span) if kept else sources[0]
        case WatermarkAssigner():
            return WatermarkAssignerNode(
                inputs=sources,
                schema=rel.schema,
                rowtime_index=rel.rowtime_index,
                expression=rel.expression,
                options=rel.options,
                span=rel.span,
            )
        case Aggregate():
            return _aggregate(rel, sources[0], context)
        case TableAggregate():
            return plan_table_aggregate(rel, sources[0])
        case Expand():
            return ExpandNode(inputs=sources, schema=rel.schema, projections=rel.projections, span=rel.span)
        case WindowTableFunction():
            return plan_window_function(rel, sources[0], context)
        case ChangelogFunction():
            return _changelog_function(rel, sources[0], context)
        case ProcessTableFunction():
            return plan_process(rel, sources)
        case Join():
            return plan_join(rel, sources[0], sources[1], context)
        case MultiJoin():
            return plan_multi_join(rel, sources)
        case TemporalJoin():
            return plan_temporal_join(rel, sources[0], sources[1], context)
        case Apply():
            raise InternalError("a query that was not decorrelated")
        case Correlate():
            below = sources[0].schema
            taken = (_with_kind_of(column, own) for column, own in zip(rel.schema, below, strict=False))
            return CorrelateNode(
                inputs=sources,
                schema=(*taken, *rel.schema[len(below) :]),
                collection=rel.collection,
                added=rel.added,
                ordinality=rel.ordinality,
                outer=rel.outer,
                condition=rel.condition,
                span=rel.span,
            )
        case Union():
            return _union(rel, sources)
        case SetOperation():
            raise NotSupportedYetError(rel.construct, rel.span)
        case Match():
            return plan_match(rel, sources[0], streaming=True)
        case Over():
            return plan_over(rel, sources[0])
        case Rank():
            return plan_rank(rel, sources[0], context)
        case Sort():
            return _sort(rel, sources[0])
        case Sink():
            return _sink(rel, sources[0], context)
        case _:
            assert_never(rel)


def _as_in(source: Physical, expr: Expr) -> Expr:
    """An expression that knows which time attributes are plain timestamps by now.

    Columns behind a regular join are, and what functions make of attributes.
    """

    def change(node: Expr) -> Expr:
        if not is_time_attribute(node.type):
            return node
        if isinstance(node, InputRef):
            kept = is_time_attribute(source.schema[node.index].type)
        else:
            # PROCTIME() has no operands; a CAST to an attribute is that of a branch of UNION.
            kept = isinstance(node, Cast | Literal) or not children(node)
        return node if kept else replace(node, type=without_attribute(node.type))

    return transform(expr, change)


def _union(rel: Union, sources: tuple[Physical, ...]) -> Physical:
    schema = list(rel.schema)
    for index, column in enumerate(rel.schema):
        if not is_time_attribute(column.type):
            continue
        types = dict.fromkeys(str(source.schema[index].type.as_nullable()) for source in sources)
        if len(types) > 1:
            raise PlanError(
                "set-operation-types",
                f"Union fields with time attributes requires same types, but the types are {' and '.join(types)}.",
                rel.span,
                f"CAST '{column.name}' to a plain timestamp",
            )
        schema[index] = _with_kind_of(column, sources[0].schema[index])
    made = replace(rel, schema=tuple(schema))
    alike = tuple(_as_nullable_as(source, made) for source in sources)
    return UnionNode(inputs=alike, schema=made.schema, span=rel.span)


def _with_kind_of(column: Column, source: Column) -> Column:
    """The column as a plain timestamp where it is one in the input."""
    if is_time_attribute(source.type):
        return column
    return replace(column, type=without_attribute(column.type))


def _as_nullable_as(source: Physical, union: Union) -> Physical:
    """An input of a union, NOT NULL columns cast where the union's column may be NULL."""
    exprs: list[Expr] = []
    for index, column in enumerate(union.schema):
        own = ref(source.schema, index)
        cast = own.type.nullable is not column.type.nullable and not is_time_attribute(own.type)
        exprs.append(Cast(own, own.type.as_nullable(column.type.nullable), implicit=True) if cast else own)
    return make_calc(source, tuple(exprs), tuple(column.name for column in source.schema), source.span)


def _aggregate(rel: Aggregate, source: Physical, context: PlanContext) -> Physical:
    rel = _with_plain_results(rel)
    in_python = calls_python_aggregates(rel.calls)
    if rel.window is not None:
        return (plan_python_window if in_python else plan_group_window)(rel, source, context)
    windowed = None if in_python else plan_window_aggregate(rel, source, context)
    if windowed is not None:
        return windowed
    group_aggregate = plan_python_aggregate if in_python else plan_group_aggregate
    used = frozenset(rel.grouping) | {arg.index for call in rel.calls for arg in call.args}
    plain = materialize_time(source, used)
    if plain is source and not any(is_time_attribute(column.type) for column in rel.schema):
        return group_aggregate(rel, source, context)
    calls = tuple(
        replace(call, args=tuple(replace(arg, type=plain.schema[arg.index].type) for arg in call.args))
        for call in rel.calls
    )
    groups = tuple(Column(rel.schema[i].name, plain.schema[index].type) for i, index in enumerate(rel.grouping))
    moved = replace(rel, calls=calls, schema=groups + rel.schema[len(groups) :])
    return group_aggregate(moved, plain, context)


def _with_plain_results(rel: Aggregate) -> Aggregate:
    """What is made of a time attribute is a plain timestamp; keys and a window's times may stay what they are."""
    calls = tuple(replace(call, type=without_attribute(call.type)) for call in rel.calls)
    schema = list(rel.schema)
    for index, call in enumerate(calls, len(rel.grouping)):
        schema[index] = replace(schema[index], type=call.type)
    return replace(rel, calls=calls, schema=tuple(schema))


def _changelog_function(rel: ChangelogFunction, source: Physical, context: PlanContext) -> Physical:
    """The function; row times go through it, processing times are read before it."""
    if rel.time_index is not None and not context.bounded:
        require_time_attribute(source.schema[rel.time_index], rel.span)
    clocks = frozenset(index for index, column in enumerate(source.schema) if is_proctime(column.type))
    schema = tuple(
        Column(column.name, without_attribute(column.type)) if is_proctime(column.type) else column
        for column in rel.schema
    )
    return ChangelogFunctionNode(
        inputs=(materialize_time(source, clocks),),
        schema=schema,
        codes=rel.codes,
        invocation=rel.invocation,
        op_index=rel.op_index,
        time_index=rel.time_index,
        uid=rel.uid,
        span=rel.span,
    )


def _sort(rel: Sort, source: Physical) -> Physical:
    keys = order_keys(rel.keys, source.schema, rel.span)
    single = exchange(source, ())
    schema = source.schema
    if not keys:
        return Limit(inputs=(single,), schema=schema, offset=rel.offset, fetch=rel.fetch, span=rel.span)
    if rel.fetch is not None or rel.offset:
        return plan_sort_limit(rel, single)
    first = rel.keys[0]
    if is_time_attribute(schema[first.index].type) and not first.descending:
        return TemporalSort(inputs=(single,), schema=schema, keys=keys, span=rel.span)
    return SortNode(inputs=(single,), schema=schema, keys=keys, span=rel.span)


def _sink(rel: Sink, source: Physical, context: PlanContext) -> Physical:
    written = read_clocks(source)
    rowtimes = [column.name for column in written.schema if is_rowtime(column.type)]
    if rel.table is not None and len(rowtimes) > 1:
        raise PlanError(
            "several-rowtimes",
            f"The query contains more than one rowtime attribute column [{', '.join(rowtimes)}] for writing into table "
            f"'{rel.name}'.",
            rel.span,
            "CAST all but one of them to TIMESTAMP or TIMESTAMP_LTZ",
        )
    schema = (
        tuple(Column(name.name, column.type) for name, column in zip(rel.schema, written.schema, strict=True))
        if rel.table is None
        else written.schema
    )
    sink = SinkNode(
        inputs=(written,),
        schema=schema,
        table=rel.table,
        name=rel.name,
        overwrite=rel.overwrite,
        static_partition=rel.static_partition,
        on_conflict=rel.on_conflict,
        target_columns=rel.target_columns,
        expectations=rel.expectations,
        metadata=rel.metadata,
        span=rel.span,
    )
    keys = sink.written_partition_keys()
    if keys and context.sink(sink.writing(INSERT_ONLY), sink.span).shuffles_by_partition():
        return replace(sink, inputs=(exchange(written, keys),))
    return sink
