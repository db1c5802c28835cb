"""GROUP BY in batch mode: by hash or by sorting."""

from __future__ import annotations

from typing import Final

from flowsql_core.errors import NotSupportedYetError, PlanError
from flowsql_core.python_call import aggregate_name, aggregated_with, spoken_name
from flowsql_core.types import logical as t
from flowsql_planner.logical.nodes import Aggregate
from flowsql_planner.physical.aggregate_functions import two_phase_in_batch
from flowsql_planner.physical.bounded.sortable import sortable
from flowsql_planner.physical.context import PlanContext
from flowsql_planner.physical.group_aggregate import exchange
from flowsql_planner.physical.nodes import Physical
from flowsql_planner.physical.nodes.bounded import BoundedAggregate, PandasAggregate
from flowsql_planner.physical.options import AGG_PHASE_STRATEGY, DISABLED_OPERATORS, AggPhaseStrategy, BatchOperator
from flowsql_planner.physical.refusals import refuse_python_in_batch

#: Functions whose accumulator holds values of the argument, each with those that are of fixed length in Flink.
_KEEPS_VALUES: Final = frozenset({"MIN", "MAX", "SINGLE_VALUE"})
_COUNTS: Final = frozenset({"COUNT", "SUM", "$SUM0", "AVG"})


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
        return BoundedAggregate(
            inputs=inputs,
            schema=schema,
            grouping=grouping,
            calls=rel.calls,
            sorts=sorts_groups(rel, source, grouping, context),
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


def sorts_groups(rel: Aggregate, source: Physical, grouping: tuple[int, ...], context: PlanContext) -> bool:
    """Whether groups are sorted: where an accumulator has no fixed length, or hashing is disabled.

    Raises:
        PlanError: options leave no operator.

    Source: Flink, ``BatchPhysicalHashAggRule`` and ``BatchPhysicalSortAggRule``.
    """
    disabled = context.configuration.get(DISABLED_OPERATORS)
    # What has no order is grouped by hash whatever the accumulators are.
    can_sort = all(sortable(source.schema[index].type) for index in grouping)
    can_hash = not can_sort or all(
        call.function in _COUNTS
        or (call.function in _KEEPS_VALUES and all(_fixed(source.schema[arg.index].type) for arg in call.args))
        for call in rel.calls
    )
    hashes = can_hash and BatchOperator.HASH_AGG not in disabled
    sorts = can_sort and BatchOperator.SORT_AGG not in disabled
    if not hashes and not sorts:
        names = ", ".join(sorted(operator.value for operator in disabled))
        raise PlanError(
            "no-operator",
            f"Cannot generate a valid execution plan: an aggregate has no operator without {names}.",
            rel.span,
            f"take one out of '{DISABLED_OPERATORS.key}'",
        )
    return not hashes


def _fixed(type_: t.LogicalType) -> bool:
    """Whether all values take the same bytes."""
    return not (t.is_nested(type_) or isinstance(type_, t.CharType | t.VarCharType | t.BinaryType | t.VarBinaryType))
