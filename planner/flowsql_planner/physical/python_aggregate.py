"""Aggregates that call Python: what Flink's planner makes of them in streaming.

Source: ``StreamPhysicalPythonGroupAggregateRule``: a window of a table function is a group like any other there, and
functions of pandas see whole groups, so that they need a window which ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from flowsql_core.errors import NotSupportedYetError, PlanError
from flowsql_core.expr import AggregateCall
from flowsql_core.python_call import aggregate_name, aggregated_with, spoken_name
from flowsql_core.types import logical as t
from flowsql_core.types.logical import Column
from flowsql_core.udf import FunctionKind
from flowsql_planner.logical.nodes import Aggregate, TableAggregate
from flowsql_planner.physical.context import PlanContext
from flowsql_planner.physical.group_aggregate import exchange, hinted_ttl_ms
from flowsql_planner.physical.materialize_time import materialize_time
from flowsql_planner.physical.nodes import Physical, PythonGroupAggregate, PythonGroupTableAggregate


def calls_python_aggregates(calls: Sequence[AggregateCall]) -> bool:
    """Whether one of the calls is of Python."""
    return any(aggregated_with(call) is not None for call in calls)


def refuse_python_aggregates(calls: Sequence[AggregateCall], where: str) -> None:
    """NotSupportedYetError for a call of Python where no operator makes it."""
    for call in calls:
        if aggregated_with(call) is not None:
            name = spoken_name(aggregate_name(call))
            raise NotSupportedYetError(f"the Python aggregate function {name} {where}", call.span)


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
