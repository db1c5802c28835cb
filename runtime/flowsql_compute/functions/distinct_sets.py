"""What operators of distinct aggregates hand on to one another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from flowsql_compute.functions.aggregate import local_columns
from flowsql_core.expr import AggregateCall
from flowsql_core.record import record
from flowsql_core.types.logical import BIGINT, Column, Schema


@record
class DistinctSet:
    """The values that DISTINCT calls over one column have seen: a count of each by FILTER (None: of all rows)."""

    column: int
    filters: tuple[int | None, ...]


def distinct_sets(calls: Sequence[AggregateCall]) -> tuple[DistinctSet, ...]:
    """The sets that DISTINCT calls of one argument share, in the order of the calls."""
    found: dict[int, list[int | None]] = {}
    for call in calls:
        if call.distinct:
            filters = found.setdefault(call.args[0].index, [])
            if call.filter_index not in filters:
                filters.append(call.filter_index)
    return tuple(DistinctSet(column, tuple(filters)) for column, filters in found.items())


def local_set_columns(grouping: Schema, input: Schema, calls: Sequence[AggregateCall], input_retracts: bool) -> Schema:
    """Output of a local aggregate with DISTINCT calls of one argument.

    Grouping columns; the value of each distinct set, NULL in rows that have none; how often it came, by set and FILTER;
    accumulators of the other calls; and ``count1$`` if rows retract.
    """
    sets = distinct_sets(calls)
    values = [Column(f"distinct${i}", input[one.column].type.as_nullable()) for i, one in enumerate(sets)]
    counts = [
        Column(f"distinct${i}_{place}", BIGINT.as_nullable(False))
        for i, one in enumerate(sets)
        for place in range(len(one.filters))
    ]
    rest = tuple(call for call in calls if not call.distinct)
    return (*grouping, *values, *counts, *local_columns((), rest, input_retracts))


def merged_columns(grouping: Schema, calls: Sequence[AggregateCall], input_retracts: bool) -> Schema:
    """Output of an incremental aggregate: as :func:`local_columns`, of calls whose distinct values are known."""
    return local_columns(grouping, [replace(call, distinct=False) for call in calls], input_retracts)
