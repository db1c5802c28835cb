"""Aggregates that call Python: what Flink's planner makes of them in streaming.

Source: ``StreamPhysicalPythonGroupAggregateRule``: a window of a table function is a group like any other there, and
functions of pandas see whole groups, so that they need a window which ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from flowsql_core.errors import NotSupportedYetError, PlanError
from flowsql_core.expr import AggregateCall
from flowsql_core.graph.specs import WindowKind
from flowsql_core.python_call import aggregate_name, aggregated_with, spoken_name
from flowsql_core.types import logical as t
from flowsql_core.types.logical import Column
from flowsql_core.udf import FunctionKind, ImperativeAggregateFunction
from flowsql_planner.logical.nodes import Aggregate, TableAggregate
from flowsql_planner.physical.context import PlanContext
from flowsql_planner.physical.group_aggregate import exchange, hinted_ttl_ms
from flowsql_planner.physical.group_window import plan_group_window
from flowsql_planner.physical.materialize_time import materialize_time
from flowsql_planner.physical.nodes import Physical, PythonGroupAggregate, PythonGroupTableAggregate
from flowsql_planner.physical.nodes.group_window import CountWindowAggregate
from flowsql_planner.physical.nodes.python_aggregate import PythonGroupWindowAggregate


def calls_python_aggregates(calls: Sequence[AggregateCall]) -> bool:
    """Whether one of the calls is of Python."""
    return any(aggregated_with(call) is not None for call in calls)


def plan_python_aggregate(rel: Aggregate, source: Physical, context: PlanContext) -> Physical:
    """Unbounded aggregate of an input.

    Raises:
        PlanError: functions of pandas, or DISTINCT over values that cannot be compared.
    """
    for call in rel.calls:
        function = aggregated_with(call)
        if function is None:
            continue
        if function.kind == FunctionKind.PANDAS.value:
            raise PlanError(
                "pandas-aggregate",
                "Pandas UDAFs are not supported in streaming mode currently.",
                call.span or rel.span,
                "they aggregate windows: table.window(Tumble.over(...)...), in batch mode groups as well",
            )
        if call.distinct:
            _check_distinct(call)
    return PythonGroupAggregate(
        inputs=(exchange(source, rel.grouping),),
        schema=rel.schema,
        grouping=rel.grouping,
        calls=rel.calls,
        state_ttl_ms=hinted_ttl_ms(rel.hints, "STATE_TTL"),
        span=rel.span,
    )


def plan_python_window(rel: Aggregate, source: Physical, context: PlanContext) -> Physical:
    """Aggregate over group windows.

    Raises:
        PlanError: what Flink refuses, in its words (``StreamPhysicalPythonGroupWindowAggregateRule``).
        NotSupportedYetError: DISTINCT and FILTER of functions of pandas, which Flink takes and ignores.
    """
    kinds = {function.kind for call in rel.calls if (function := aggregated_with(call)) is not None}
    at = next(call.span for call in rel.calls if aggregated_with(call) is not None) or rel.span
    pandas = FunctionKind.PANDAS.value in kinds
    if len(kinds) > 1:
        message = "Pandas UDAFs and General Python UDAFs are not supported in used together currently."
        raise PlanError("python-window", message, at, "aggregate with one kind in a query of its own")
    made = plan_group_window(rel, source, context)
    if made.emit.updates:
        message = "Python Group Window Aggregate Function is currently not supported for early fired or lately fired."
        raise PlanError("python-window", message, at)
    if pandas and made.window.kind is WindowKind.SESSION:
        message = "Session Group Window is currently not supported for Pandas UDAF."
        raise PlanError("python-window", message, at, "a general Python aggregate function takes sessions")
    for call in rel.calls:
        if pandas and aggregated_with(call) is not None and (call.distinct or call.filter_index is not None):
            word = "DISTINCT" if call.distinct else "FILTER"
            name = spoken_name(aggregate_name(call))
            raise NotSupportedYetError(f"{word} of {name}, a function of pandas,", call.span, "Flink ignores it")
        if call.distinct and aggregated_with(call) is not None:
            _check_distinct(call)
    if isinstance(made, CountWindowAggregate):
        return made
    return PythonGroupWindowAggregate(
        inputs=made.inputs,
        schema=made.schema,
        grouping=made.grouping,
        calls=made.calls,
        window=made.window,
        properties=made.properties,
        merges=not pandas and all(map(_merges, rel.calls)),
        span=made.span,
    )


def _merges(call: AggregateCall) -> bool:
    """Whether accumulators of a call combine; those of built-in ones their operator knows."""
    function = aggregated_with(call)
    if function is None:
        return True
    own = type(function.function.function)
    return not call.distinct and own.merge is not ImperativeAggregateFunction.merge


def plan_table_aggregate(rel: TableAggregate, source: Physical) -> Physical:
    """The rows that a function makes of each group; time attributes that it reads are plain moments."""
    plain = materialize_time(source, frozenset(rel.grouping) | {arg.index for arg in rel.call.args})
    args = tuple(replace(arg, type=plain.schema[arg.index].type) for arg in rel.call.args)
    groups = tuple(Column(rel.schema[i].name, plain.schema[index].type) for i, index in enumerate(rel.grouping))
    return PythonGroupTableAggregate(
        inputs=(exchange(plain, rel.grouping),),
        schema=groups + rel.schema[len(groups) :],
        grouping=rel.grouping,
        call=replace(rel.call, args=args),
        span=rel.span,
    )


def _check_distinct(call: AggregateCall) -> None:
    for arg in call.args:
        if t.is_nested(arg.type):
            raise PlanError(
                "distinct-values",
                f"DISTINCT of a Python aggregate function takes no values of type {arg.type.as_nullable()}.",
                call.span,
            )
