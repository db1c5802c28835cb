"""What the planner asks of aggregate functions: order, partial merging, Flink's two-phase rule."""

from __future__ import annotations

from typing import Final

from flowsql_compute.functions.aggregate import is_order_sensitive
from flowsql_core.errors import BindError
from flowsql_core.expr import AggregateCall

#: Flink's functions without ``merge``: one of them keeps an aggregate in one phase.
_WITHOUT_MERGE: Final = frozenset({"FIRST_VALUE", "LAST_VALUE", "SINGLE_VALUE", "JSON_ARRAYAGG"})
#: Those of batch mode, where SINGLE_VALUE merges.
_WITHOUT_MERGE_IN_BATCH: Final = frozenset({"FIRST_VALUE", "LAST_VALUE", "JSON_ARRAYAGG"})
_SPLITTABLE: Final = frozenset({"COUNT", "SUM", "$SUM0", "MIN", "MAX", "AVG", "FIRST_VALUE", "LAST_VALUE", "LISTAGG"})


def order_sensitive(call: AggregateCall) -> bool:
    """Whether the answer depends on the order of rows."""
    return bool(call.order_by) or is_order_sensitive(call)


def refuse_count_of_several(call: AggregateCall) -> None:
    """Streaming counts no rows by several columns; without DISTINCT those that are never NULL do not matter.

    Raises:
        BindError: it is such a call.
    """
    counted = len(call.args) if call.distinct else sum(arg.type.nullable for arg in call.args)
    if call.function != "COUNT" or min(len(call.args), counted) < 2:
        return
    written = "COUNT(DISTINCT ...)" if call.distinct else "COUNT(...)"
    hint = "COUNT(DISTINCT ROW(a, b)) counts pairs" if call.distinct else "COUNT(*) FILTER (WHERE ...) counts rows"
    raise BindError("distinct-count", f"{written} of several columns is not possible in streaming.", call.span, hint)


def two_phase_in_flink(calls: tuple[AggregateCall, ...]) -> bool:
    """Whether Flink plans Local and Global for these calls (its options permitting)."""
    return not any(call.function in _WITHOUT_MERGE or call.order_by for call in calls)


def two_phase_in_batch(calls: tuple[AggregateCall, ...]) -> bool:
    """Whether batch mode plans a local aggregate for these calls (the options permitting).

    Flink takes DISTINCT apart before, which is not done here: such calls are of one phase.
    """
    return not any(call.function in _WITHOUT_MERGE_IN_BATCH or call.order_by or call.distinct for call in calls)


def splittable(calls: tuple[AggregateCall, ...]) -> bool:
    """Whether Flink splits the distinct calls among these by buckets of their argument (its options permitting)."""
    plain = all(call.function in _SPLITTABLE and not call.order_by and len(call.args) < 2 for call in calls)
    return plain and any(call.distinct for call in calls)
