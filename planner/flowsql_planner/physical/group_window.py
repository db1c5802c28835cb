"""Aggregates over group windows. Source: Flink, ``StreamPhysicalGroupWindowAggregateRule``."""

from __future__ import annotations

from flowsql_core.graph.specs import WindowProperty, WindowSpec
from flowsql_core.types.logical import TimestampLtzType, is_proctime
from flowsql_planner.logical.nodes import Aggregate
from flowsql_planner.physical.context import PlanContext
from flowsql_planner.physical.group_aggregate import exchange
from flowsql_planner.physical.nodes import Physical
from flowsql_planner.physical.nodes.group_window import GroupWindowAggregate

_ROW_TIME = (WindowProperty.START, WindowProperty.END, WindowProperty.TIME, WindowProperty.PROCTIME)
_CLOCK = (WindowProperty.START, WindowProperty.END, WindowProperty.PROCTIME)


def plan_group_window(rel: Aggregate, source: Physical, context: PlanContext) -> Physical:
    """The aggregate; ``rel.window`` is set."""
    given = rel.window
    assert given is not None
    time = source.schema[given.time_index].type
    clock = is_proctime(time)
    window = WindowSpec(
        kind=given.kind,
        size_ms=given.size_ms,
        step_ms=given.step_ms,
        time_index=given.time_index,
        processing_time=clock,
        zone=context.zone if isinstance(time, TimestampLtzType) else None,
    )
    properties = (_CLOCK if clock else _ROW_TIME) if given.properties else ()
    return GroupWindowAggregate(
        inputs=(exchange(source, rel.grouping),),
        schema=rel.schema,
        grouping=rel.grouping,
        calls=rel.calls,
        window=window,
        properties=properties,
        span=rel.span,
    )
