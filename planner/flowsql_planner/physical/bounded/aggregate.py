"""GROUP BY in batch mode: by hash or by sorting."""

from __future__ import annotations

from dataclasses import replace

from flowsql_core.errors import NotSupportedYetError, PlanError
from flowsql_core.python_call import aggregate_name, aggregated_with, spoken_name
from flowsql_core.types import logical as t
from flowsql_planner.logical.nodes import Aggregate
from flowsql_planner.physical.aggregate_functions import two_phase_in_batch
from flowsql_planner.physical.bounded.distinct import plan_distinct, takes_distinct
from flowsql_planner.physical.bounded.sorts import sorts_groups
from flowsql_planner.physical.context import PlanContext
from flowsql_planner.physical.group_aggregate import exchange
from flowsql_planner.physical.nodes import Physical
from flowsql_planner.physical.nodes.bounded import BoundedAggregate, PandasAggregate
from flowsql_planner.physical.options import AGG_PHASE_STRATEGY, AggPhaseStrategy
from flowsql_planner.physical.refusals import refuse_approximate_groups, refuse_python_in_batch


def group_node(
    rel: Aggregate,
    source: Physical,
    grouping: tuple[int, ...],
    schema: t.Schema,
    order: tuple[int, ...],
    context: PlanContext,
) -> Physical:
    """The operator of groups. ``order``: columns by which functions of pandas see the rows of a group sorted.

    Raises:
        PlanError: options leave no operator, or Python and built-in functions are mixed.
        NotSupportedYetError: general Python functions, and DISTINCT or FILTER of those of pandas, which Flink ignores.
    """
    inputs = (exchange(source, grouping),)
    python = [aggregated_with(call) is not None for call in rel.calls]
    if not any(python):
        # DISTINCT does not change what each call sees.
        rel = replace(rel, calls=tuple(replace(call, distinct=takes_distinct(call)) for call in rel.calls))
        refuse_approximate_groups(rel)
        if any(call.distinct for call in rel.calls):
            split = plan_distinct(replace(rel, grouping=grouping), source, schema, context)
            if split is not None:
                return split
        return BoundedAggregate(
            inputs=inputs,
            schema=schema,
            grouping=grouping,
            calls=rel.calls,
            sorts=sorts_groups(rel.calls, source, grouping, rel.span, context),
            two_phase=two_phase_in_batch(rel.calls)
            and context.configuration.get(AGG_PHASE_STRATEGY) is not AggPhaseStrategy.ONE_PHASE,
            span=rel.span,
        )
    refuse_python_in_batch(rel.calls)
    if not all(python):
        message = "Python UDAF and Java/Scala UDAF cannot be used together."
        raise PlanError(
            "python-aggregate", message, rel.span, "aggregate with built-in functions in a query of its own"
        )
    for call in rel.calls:
        if call.distinct or call.filter_index is not None:
            word, name = "DISTINCT" if call.distinct else "FILTER", spoken_name(aggregate_name(call))
            raise NotSupportedYetError(f"{word} of {name}, a function of pandas,", call.span, "Flink ignores it")
    return PandasAggregate(inputs=inputs, schema=schema, grouping=grouping, calls=rel.calls, order=order, span=rel.span)
