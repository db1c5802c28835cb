"""What batch mode plans otherwise than streaming, node by node."""

from __future__ import annotations

from flowsql_core.errors import PlanError
from flowsql_core.expr import Expr, Literal
from flowsql_core.graph.specs import WindowKind, WindowSpec
from flowsql_core.types.logical import Column, TimestampLtzType, TimestampType
from flowsql_planner.logical.nodes import (
    Aggregate,
    Join,
    Match,
    Over,
    ProcessTableFunction,
    Rel,
    Scan,
    Sort,
    WindowTableFunction,
)
from flowsql_planner.logical.rewrite import ref, refs
from flowsql_planner.physical.bounded.aggregate import group_node
from flowsql_planner.physical.bounded.join import plan_bounded_join
from flowsql_planner.physical.bounded.over import plan_bounded_over
from flowsql_planner.physical.bounded.sorts import fixed_accumulators
from flowsql_planner.physical.calc import make_calc
from flowsql_planner.physical.context import PlanContext
from flowsql_planner.physical.group_aggregate import exchange
from flowsql_planner.physical.match import plan_match
from flowsql_planner.physical.materialize_time import materialize_time
from flowsql_planner.physical.nodes import Physical, WindowTableFunctionNode
from flowsql_planner.physical.nodes.bounded import BoundedAggregate, BoundedSort, GroupWindowAggregate
from flowsql_planner.physical.order import order_keys
from flowsql_planner.physical.refusals import process_in_batch, refuse_unbounded


def plan_bounded(rel: Rel, sources: tuple[Physical, ...], context: PlanContext) -> Physical | None:
    """The node that batch mode has for a logical one; None where it is that of streaming.

    Raises:
        PlanError: what Flink has in streaming alone.
        NotSupportedYetError: what nothing runs here yet.
    """
    match rel:
        case Scan():
            refuse_unbounded(rel, context)
        case Aggregate():
            if rel.window is not None:
                return _group_window(rel, materialize_time(sources[0]), context)
            return group_node(rel, materialize_time(sources[0]), rel.grouping, rel.schema, (), context)
        case Join():
            return plan_bounded_join(rel, sources[0], sources[1], context)
        case Over():
            return plan_bounded_over(rel, materialize_time(sources[0]))
        case Sort() if rel.keys:
            keys = order_keys(rel.keys, rel.schema, rel.span)
            return BoundedSort(
                inputs=(exchange(sources[0], ()),),
                schema=sources[0].schema,
                order=keys,
                limited=rel.fetch is not None or rel.offset > 0,
                offset=rel.offset,
                fetch=rel.fetch,
                span=rel.span,
            )
        case WindowTableFunction(kind=WindowKind.SESSION):
            message = "Unaligned windows like session are not supported in batch mode yet."
            raise PlanError("session-in-batch", message, rel.span, "a GROUP BY over gaps needs streaming mode")
        case Match():
            return plan_match(rel, sources[0], streaming=False)
        case ProcessTableFunction():
            raise process_in_batch(rel.call, rel.span)
    return None


def _group_window(rel: Aggregate, source: Physical, context: PlanContext) -> Physical:
    """GROUP BY of a legacy group window: the window's columns beside each row, then a group by these, too.

    Source: Flink, ``BatchPhysicalWindowAggregateRule``, which knows no sessions.
    """
    given = rel.window
    assert given is not None
    if given.kind is WindowKind.SESSION:
        message = "Cannot generate a valid execution plan: session windows are not supported in batch mode."
        raise PlanError("session-in-batch", message, rel.span, "SESSION needs streaming mode")
    time = source.schema[given.time_index].type
    window = WindowSpec(
        kind=given.kind,
        size_ms=given.size_ms,
        step_ms=given.step_ms,
        time_index=given.time_index,
        processing_time=False,
        zone=context.zone if isinstance(time, TimestampLtzType) else None,
    )
    width = len(source.schema)
    bound = TimestampType(precision=3, nullable=False)
    moment = TimestampLtzType(precision=3) if isinstance(time, TimestampLtzType) else TimestampType(precision=3)
    added = (Column("w$start", bound), Column("w$end", bound), Column("w$rowtime", moment.as_nullable(False)))
    windowed = WindowTableFunctionNode(inputs=(source,), schema=(*source.schema, *added), window=window, span=rel.span)
    grouping = (*rel.grouping, width, width + 1, width + 2)
    keys = len(rel.grouping)
    calls = rel.schema[keys : keys + len(rel.calls)]
    schema = (*rel.schema[:keys], *added, *calls)
    made = group_node(rel, windowed, grouping, schema, (given.time_index,), context)
    if type(made) is BoundedAggregate:
        made = GroupWindowAggregate(
            inputs=made.inputs,
            schema=made.schema,
            grouping=made.grouping,
            calls=made.calls,
            sorts=made.sorts,
            two_phase=made.two_phase,
            span=made.span,
            asks_window=bool(given.properties),
            variable=not fixed_accumulators(made.calls, source),
        )
    own = refs(schema)
    exprs: list[Expr] = [*own[:keys], *own[keys + 3 :]]
    for place, column in enumerate(given.properties):
        # Windows of batch mode have no time of the clock.
        exprs.append(ref(schema, keys + place) if place < 3 else Literal(None, column.type.as_nullable()))
    return make_calc(made, tuple(exprs), tuple(column.name for column in rel.schema), rel.span)
