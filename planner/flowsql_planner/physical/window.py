"""Window table functions and aggregates over them: recognition, the pull-up of the window into the aggregate, phases.

Source: Flink's ``StreamPhysicalWindowAggregateRule``, ``PullUpWindowTableFunctionIntoWindowAggregateRule`` and
``TwoStageOptimizedWindowAggregateRule``.
"""

from __future__ import annotations

from dataclasses import replace

from flowsql_core.errors import PlanError
from flowsql_core.expr import AggregateCall, Expr, InputRef, input_refs, remap_inputs
from flowsql_core.graph.specs import WindowKind, WindowProperty, WindowSpec
from flowsql_core.record import record
from flowsql_core.types.logical import Column, Schema, TimestampLtzType, is_proctime, is_time_attribute
from flowsql_planner.logical.nodes import Aggregate, WindowTableFunction
from flowsql_planner.logical.rewrite import unique_names
from flowsql_planner.physical.aggregate_functions import two_phase_in_flink
from flowsql_planner.physical.calc import make_calc, select
from flowsql_planner.physical.context import PlanContext
from flowsql_planner.physical.group_aggregate import exchange
from flowsql_planner.physical.nodes import (
    Calc,
    Exchange,
    ExpandNode,
    Physical,
    WindowAggregate,
    WindowTableFunctionNode,
)
from flowsql_planner.physical.options import AGG_PHASE_STRATEGY, EARLY_FIRE, LATE_FIRE, AggPhaseStrategy
from flowsql_planner.physical.refusals import refuse_approximate
from flowsql_planner.traits.window import WindowColumns

_ORDER = (WindowProperty.START, WindowProperty.END, WindowProperty.TIME)


def plan_window_function(rel: WindowTableFunction, source: Physical, context: PlanContext) -> Physical:
    """The window's columns appended to each row."""
    time_type = source.schema[rel.time_index].type
    if is_time_attribute(rel.schema[-1].type) and not is_time_attribute(time_type):
        # It was one where it was bound; an operator in between, such as a join, keeps plain timestamps.
        raise PlanError(
            "not-a-time-attribute",
            f"The window function requires the timecol is a time attribute type, but is {time_type}.",
            rel.span,
            f"'{source.names[rel.time_index]}' is none behind a join, an aggregate or a ranking",
        )
    window = WindowSpec(
        kind=rel.kind,
        size_ms=rel.size_ms,
        step_ms=rel.step_ms,
        offset_ms=rel.offset_ms,
        time_index=rel.time_index,
        processing_time=is_proctime(time_type),
        zone=context.zone if isinstance(time_type, TimestampLtzType) else None,
    )
    if rel.kind is WindowKind.SESSION:
        source = exchange(source, rel.partition)
    schema = (*source.schema, *rel.schema[len(source.schema) :])
    return WindowTableFunctionNode(
        inputs=(source,), schema=schema, window=window, partition=rel.partition, span=rel.span
    )


def plan_window_aggregate(rel: Aggregate, source: Physical, context: PlanContext) -> Physical | None:
    """The aggregate as a window aggregate, when it groups by start and end of a window of its input; else None."""
    windows = source.window_columns()
    if windows is None:
        return None
    # Flink's planner fails where a padded column becomes a window's ("Type mismatch"): here it is a plain one.
    windows = windows.in_every_row()
    grouped = frozenset(rel.grouping)
    starts, ends = sorted(grouped & windows.starts), sorted(grouped & windows.ends)
    if not starts or not ends:
        return None
    if not _sessions_of_the_keys(rel, windows):
        return None
    if context.configuration.get(EARLY_FIRE) or context.configuration.get(LATE_FIRE):
        raise PlanError(
            "window-emit",
            "Currently, window table function based aggregate doesn't support early-fire and late-fire configuration "
            f"'{EARLY_FIRE.key}' and '{LATE_FIRE.key}'.",
            rel.span,
        )
    refuse_approximate(rel.calls)
    _check_slices(rel, windows.window)
    parts = _pull_up(rel, source, windows)
    if parts is None:
        parts = _Parts(
            source,
            tuple(index for index in rel.grouping if index not in windows.all),
            rel.calls,
            windows.attached(starts[0], ends[0]),
            tuple(min(places & frozenset(rel.grouping)) for places in windows.partition),
        )
    properties = tuple(role for role in _ORDER if any(windows.role(index) is role for index in rel.grouping))
    width = len(parts.grouping)
    schema = (
        tuple(parts.source.schema[index] for index in parts.grouping)
        + rel.schema[len(rel.grouping) :]
        + tuple(_property_column(role, rel, source.schema, windows) for role in properties)
    )
    names = unique_names(tuple(column.name for column in schema))
    schema = tuple(Column(name, column.type) for name, column in zip(names, schema, strict=True))
    made = WindowAggregate(
        inputs=(exchange(parts.source, parts.grouping),),
        schema=schema,
        grouping=parts.grouping,
        calls=parts.calls,
        window=parts.window,
        properties=properties,
        partition=parts.partition,
        two_phase=_two_phase(parts, context),
        span=rel.span,
    )
    return _in_original_order(rel, made, windows, width, properties)


def _sessions_of_the_keys(rel: Aggregate, windows: WindowColumns) -> bool:
    """Whether an aggregate over sessions groups by what the sessions are by, and nothing else."""
    if windows.window.kind is not WindowKind.SESSION:
        return True
    return windows.partitioned_by(frozenset(rel.grouping) - windows.all)


def _check_slices(rel: Aggregate, window: WindowSpec) -> None:
    """Windows are aggregated in slices: a window must be whole slices."""
    if window.size_ms % max(window.step_ms, 1) == 0:
        return
    match window.kind:
        case WindowKind.HOP:
            size, step = "size", "slide"
        case WindowKind.CUMULATE:
            size, step = "maxSize", "step"
        case _:
            return
    raise PlanError(
        "window-size-not-multiple",
        f"{window.kind.value} table function based aggregate requires {size} must be an integral multiple of {step}, "
        f"but got {size} {window.size_ms} ms and {step} {window.step_ms} ms",
        rel.span,
    )


@record
class _Parts:
    """An aggregate's input, keys and calls once the window is settled."""

    source: Physical
    grouping: tuple[int, ...]
    calls: tuple[AggregateCall, ...]
    window: WindowSpec
    partition: tuple[int, ...] = ()


def _two_phase(parts: _Parts, context: PlanContext) -> bool:
    return (
        context.configuration.get(AGG_PHASE_STRATEGY) is not AggPhaseStrategy.ONE_PHASE
        and not parts.window.processing_time
        and parts.window.kind is not WindowKind.SESSION
        and two_phase_in_flink(parts.calls)
    )


def _property_column(role: WindowProperty, rel: Aggregate, schema: Schema, windows: WindowColumns) -> Column:
    index = next(index for index in rel.grouping if windows.role(index) is role)
    return schema[index]


def _in_original_order(
    rel: Aggregate,
    made: WindowAggregate,
    windows: WindowColumns,
    width: int,
    properties: tuple[WindowProperty, ...],
) -> Physical:
    base = width + len(made.calls)
    columns: list[int] = []
    key = 0
    for index in rel.grouping:
        role = windows.role(index)
        if role is None:
            columns.append(key)
            key += 1
        else:
            columns.append(base + properties.index(role))
    columns.extend(range(width, base))
    exprs = tuple(InputRef(index, made.schema[index].type) for index in columns)
    return make_calc(made, exprs, tuple(column.name for column in rel.schema), rel.span)


def _pull_up(rel: Aggregate, source: Physical, windows: WindowColumns) -> _Parts | None:
    """The aggregate over the window function's own input, assigning windows by itself.

    Only where nothing between them reads the window's columns except the grouping.
    """
    expand = source if isinstance(source, ExpandNode) else None
    below = source.inputs[0] if expand is not None else source
    calc = below if isinstance(below, Calc) else None
    function = below.inputs[0] if calc is not None else below
    if not isinstance(function, WindowTableFunctionNode):
        return None
    used = {arg.index for call in rel.calls for arg in call.args}
    used |= {call.filter_index for call in rel.calls if call.filter_index is not None}
    used |= {index for call in rel.calls for index, _ in call.order_by}
    if used & windows.all:
        return None
    inner = function.inputs[0]
    if function.window.kind is WindowKind.SESSION and isinstance(inner, Exchange):
        # The aggregate has one of its own.
        inner = inner.inputs[0]
    base = len(inner.schema)
    keys = tuple(index for index in rel.grouping if index not in windows.all)
    if calc is not None and not _free_of_windows(calc, base):
        return None
    if calc is None:
        if function.window.time_index is None:
            return None
        projected: Physical = inner
        place = {index: index for index in range(base)} | {-1: function.window.time_index}
    else:
        projected, place = _calc_over(calc, inner, function, base)
    if expand is not None:
        projected, place = _expand_over(expand, projected, place)
    time = place[-1]
    wanted = sorted({place[index] for index in (*keys, *used)} | {time})
    narrowed = select(projected, tuple(wanted)) if expand is None else projected
    if expand is None:
        place = {index: wanted.index(position) for index, position in place.items() if position in wanted}
        time = wanted.index(time)
    window = replace(function.window, time_index=time)
    partition = _partition(function, calc, expand, place)
    if partition is None:
        return None
    calls = tuple(_moved(call, place) for call in rel.calls)
    return _Parts(narrowed, tuple(place[index] for index in keys), calls, window, partition)


def _partition(
    function: WindowTableFunctionNode, calc: Calc | None, expand: ExpandNode | None, place: dict[int, int]
) -> tuple[int, ...] | None:
    """A session's keys in the aggregate's input; None where one of them did not come along."""
    found: list[int] = []
    for key in function.partition:
        if calc is None:
            position = key if key in place else None
        else:
            position = next(
                (
                    out
                    for out, expr in enumerate(calc.projections)
                    if isinstance(expr, InputRef) and expr.index == key and out in place
                ),
                None,
            )
        if position is None or expand is not None:
            return None
        found.append(place[position])
    return tuple(found)


def _free_of_windows(calc: Calc, base: int) -> bool:
    if calc.condition is not None and any(index >= base for index in input_refs(calc.condition)):
        return False
    for expr in calc.projections:
        if isinstance(expr, InputRef):
            continue
        if any(index >= base for index in input_refs(expr)):
            return False
    return True


def _calc_over(
    calc: Calc, inner: Physical, function: WindowTableFunctionNode, base: int
) -> tuple[Physical, dict[int, int]]:
    """The Calc moved below the window function, with the time attribute beside; key -1 is the time's position."""
    exprs: list[Expr] = []
    names: list[str] = []
    place: dict[int, int] = {}
    for out, expr in enumerate(calc.projections):
        if isinstance(expr, InputRef) and expr.index >= base:
            continue
        place[out] = len(exprs)
        exprs.append(expr)
        names.append(calc.schema[out].name)
    time = function.window.time_index
    assert time is not None
    known = next((i for i, expr in enumerate(exprs) if isinstance(expr, InputRef) and expr.index == time), None)
    if known is None:
        known = len(exprs)
        exprs.append(InputRef(time, inner.schema[time].type))
        names.append(inner.schema[time].name)
    place[-1] = known
    source: Physical = inner
    if calc.condition is not None:
        source = Calc(
            inputs=(inner,),
            schema=tuple(Column(n, e.type) for n, e in zip(unique_names(tuple(names)), exprs, strict=True)),
            projections=tuple(exprs),
            condition=calc.condition,
            span=calc.span,
        )
    else:
        source = make_calc(inner, tuple(exprs), unique_names(tuple(names)), calc.span)
    return source, place


def _expand_over(expand: ExpandNode, source: Physical, place: dict[int, int]) -> tuple[Physical, dict[int, int]]:
    """The Expand without the window's columns, the time attribute beside."""
    outs = [
        out
        for out in range(len(expand.schema))
        if all(index in place for row in expand.projections for index in input_refs(row[out]))
    ]
    time = place[-1]
    rows = tuple(
        (
            *(remap_inputs(row[out], lambda index: place[index]) for out in outs),
            InputRef(time, source.schema[time].type),
        )
        for row in expand.projections
    )
    schema = (*(expand.schema[out] for out in outs), source.schema[time])
    names = unique_names(tuple(column.name for column in schema))
    made = ExpandNode(
        inputs=(source,),
        schema=tuple(Column(name, column.type) for name, column in zip(names, schema, strict=True)),
        projections=rows,
        span=expand.span,
    )
    moved = {out: position for position, out in enumerate(outs)}
    moved[-1] = len(outs)
    return made, moved


def _moved(call: AggregateCall, place: dict[int, int]) -> AggregateCall:
    return replace(
        call,
        args=tuple(replace(arg, index=place[arg.index]) for arg in call.args),
        filter_index=None if call.filter_index is None else place[call.filter_index],
        order_by=tuple((place[index], descending) for index, descending in call.order_by),
    )
