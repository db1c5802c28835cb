"""Aggregates over group windows. Source: Flink, ``StreamPhysicalGroupWindowAggregateRule``."""

from __future__ import annotations

from flowsql_core.config import STATE_TTL_MS
from flowsql_core.errors import BindError, NotSupportedYetError, PlanError
from flowsql_core.graph.specs import WindowKind, WindowProperty, WindowSpec
from flowsql_core.types.logical import TimestampLtzType, is_proctime
from flowsql_planner.logical.nodes import Aggregate
from flowsql_planner.physical.context import PlanContext
from flowsql_planner.physical.group_aggregate import exchange
from flowsql_planner.physical.nodes import Physical
from flowsql_planner.physical.nodes.group_window import CountWindowAggregate, Emission, GroupWindowAggregate
from flowsql_planner.physical.options import (
    ALLOW_LATENESS_MS,
    EARLY_FIRE,
    EARLY_FIRE_DELAY_MS,
    LATE_FIRE,
    LATE_FIRE_DELAY_MS,
)
from flowsql_planner.physical.refusals import refuse_approximate

_ROW_TIME = (WindowProperty.START, WindowProperty.END, WindowProperty.TIME, WindowProperty.PROCTIME)
_CLOCK = (WindowProperty.START, WindowProperty.END, WindowProperty.PROCTIME)


def plan_group_window(rel: Aggregate, source: Physical, context: PlanContext) -> GroupWindowAggregate:
    """The aggregate; ``rel.window`` is set."""
    given = rel.window
    assert given is not None
    refuse_approximate(rel.calls)
    time = source.schema[given.time_index].type
    clock = is_proctime(time)
    if given.counts_rows and not clock:
        message = "Event-time grouping windows on row intervals are currently not supported."
        raise PlanError(
            "count-window", message, rel.span, "count rows in processing time: .on() of a PROCTIME() column"
        )
    if given.counts_rows and given.properties:
        kind = "tumble" if given.kind is WindowKind.TUMBLE else "slide"
        message = f"Window start and Window end cannot be selected for a row-count {kind} window."
        raise BindError("count-window", message, rel.span)
    window = WindowSpec(
        kind=given.kind,
        size_ms=given.size_ms,
        step_ms=given.step_ms,
        time_index=given.time_index,
        processing_time=clock,
        zone=context.zone if isinstance(time, TimestampLtzType) else None,
    )
    properties = (_CLOCK if clock else _ROW_TIME) if given.properties else ()
    emit = emission(given.kind, clock, context, rel)
    if given.counts_rows and emit.updates:
        raise NotSupportedYetError("early or late answers of windows that count rows", rel.span)
    return (CountWindowAggregate if given.counts_rows else GroupWindowAggregate)(
        inputs=(exchange(source, rel.grouping),),
        schema=rel.schema,
        grouping=rel.grouping,
        calls=rel.calls,
        window=window,
        properties=properties,
        emit=emit,
        span=rel.span,
    )


def emission(kind: WindowKind, clock: bool, context: PlanContext, rel: Aggregate) -> Emission:
    """When windows answer besides their end.

    Raises:
        PlanError: options that do not go together; in Flink's words.

    Source: Flink, ``WindowEmitStrategy``.
    """
    configuration = context.configuration
    early, late = configuration.get(EARLY_FIRE), configuration.get(LATE_FIRE)
    lateness = 0
    if late and kind is not WindowKind.SESSION:
        given = configuration.get(ALLOW_LATENESS_MS)
        lateness = given if given >= 0 else configuration.get(STATE_TTL_MS)
    delays = {"Early": configuration.get(EARLY_FIRE_DELAY_MS), "Late": configuration.get(LATE_FIRE_DELAY_MS)}
    wanted = {"Early": early, "Late": late}
    if kind is WindowKind.SESSION and (early or late):
        raise PlanError("window-emit", "Session window doesn't support EMIT strategy currently.", rel.span)
    if late and not clock and lateness <= 0:
        raise PlanError(
            "window-emit",
            "The 'AFTER WATERMARK' emit strategy requires set 'allow-lateness' or 'minIdleStateRetentionTime' in table "
            "config.",
            rel.span,
        )
    for word, delay in delays.items():
        if wanted[word] and delay < 0:
            raise PlanError(
                "window-emit",
                f"{word}-fire delay should not be null or negative value when enable {word.lower()}-fire emit "
                "strategy.",
                rel.span,
            )
    # The clock knows no late rows: plans show the option all the same.
    return Emission(
        early,
        late and (early or not clock),
        0 if clock else lateness,
        delays["Early"] if early else 0,
        delays["Late"] if late else 0,
    )
