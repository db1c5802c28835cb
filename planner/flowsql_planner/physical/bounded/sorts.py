"""Whether groups of batch mode are found by sorting."""

from __future__ import annotations

from typing import Final

from flowsql_core.errors import PlanError
from flowsql_core.expr import AggregateCall
from flowsql_core.span import Span
from flowsql_core.types import logical as t
from flowsql_planner.physical.bounded.sortable import sortable
from flowsql_planner.physical.context import PlanContext
from flowsql_planner.physical.nodes import Physical
from flowsql_planner.physical.options import DISABLED_OPERATORS, BatchOperator

#: Functions whose accumulator holds values of the argument, each with those that are of fixed length in Flink.
_KEEPS_VALUES: Final = frozenset({"MIN", "MAX", "SINGLE_VALUE"})
_COUNTS: Final = frozenset({"COUNT", "SUM", "$SUM0", "AVG"})


def sorts_groups(
    calls: tuple[AggregateCall, ...],
    source: Physical,
    grouping: tuple[int, ...],
    span: Span | None,
    context: PlanContext,
) -> bool:
    """Whether groups are sorted: where an accumulator has no fixed length, or hashing is disabled.

    Raises:
        PlanError: options leave no operator.

    Source: Flink, ``BatchPhysicalHashAggRule`` and ``BatchPhysicalSortAggRule``.
    """
    disabled = context.configuration.get(DISABLED_OPERATORS)
    # What has no order is grouped by hash whatever the accumulators are.
    can_sort = all(sortable(source.schema[index].type) for index in grouping)
    can_hash = not can_sort or fixed_accumulators(calls, source)
    hashes = can_hash and BatchOperator.HASH_AGG not in disabled
    sorts = can_sort and BatchOperator.SORT_AGG not in disabled
    if not hashes and not sorts:
        names = ", ".join(sorted(operator.value for operator in disabled))
        raise PlanError(
            "no-operator",
            f"Cannot generate a valid execution plan: an aggregate has no operator without {names}.",
            span,
            f"take one out of '{DISABLED_OPERATORS.key}'",
        )
    return not hashes


def fixed_accumulators(calls: tuple[AggregateCall, ...], source: Physical) -> bool:
    """Whether the accumulators of all calls have a fixed length in Flink."""
    return all(
        call.function in _COUNTS
        or (call.function in _KEEPS_VALUES and all(_fixed(source.schema[arg.index].type) for arg in call.args))
        for call in calls
    )


def _fixed(type_: t.LogicalType) -> bool:
    """Whether all values take the same bytes."""
    return not (t.is_nested(type_) or isinstance(type_, t.CharType | t.VarCharType | t.BinaryType | t.VarBinaryType))
