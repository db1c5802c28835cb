"""Rank -> Top-N or deduplication, over all rows of a partition or over those of a window."""

from __future__ import annotations

from flowsql_core.errors import PlanError
from flowsql_core.types.logical import Schema, is_rowtime, is_time_attribute
from flowsql_planner.logical.nodes import Rank, Sort
from flowsql_planner.physical.context import PlanContext
from flowsql_planner.physical.group_aggregate import exchange
from flowsql_planner.physical.nodes import Physical, RankNode, SortLimit, WindowDeduplicate, WindowRank
from flowsql_planner.physical.order import order_keys


def plan_rank(rel: Rank, source: Physical, context: PlanContext) -> Physical:
    """The rows of a ranking."""
    schema = source.schema if rel.number is None else (*source.schema, rel.number)
    windowed = _window_rank(rel, source, schema)
    if windowed is not None:
        return windowed
    if rel.last_index is not None and not rel.partition:
        raise PlanError(
            "rank-end",
            f"The end of a ranking is column '{source.names[rel.last_index]}', and there is no PARTITION BY: "
            "Rank end index can't greater than input field count.",
            rel.span,
            "rank in partitions of that column, or write a constant",
        )
    order = order_keys(rel.order, source.schema, rel.span)
    return RankNode(
        inputs=(exchange(source, rel.partition),),
        schema=schema,
        partition=rel.partition,
        order=order,
        ends_in_time=len(order) > 1 and is_rowtime(rel.input.schema[order[-1][0]].type),
        first=rel.first,
        last=rel.last,
        last_index=rel.last_index,
        numbered=rel.number is not None,
        mini_batch=context.mini_batch is not None,
        span=rel.span,
    )


def _window_rank(rel: Rank, source: Physical, schema: Schema) -> Physical | None:
    """The ranking of each window, where the partition has start and end of one; else None."""
    windows = source.window_columns()
    partition = frozenset(rel.partition)
    if windows is None or not partition & windows.starts or not partition & windows.ends:
        return None
    window = windows.attached(min(partition & windows.starts), min(partition & windows.ends))
    order = order_keys(rel.order, source.schema, rel.span)
    one = (rel.first, rel.last) == (1, 1) and rel.number is None
    by_time = len(order) == 1 and is_time_attribute(source.schema[order[0][0]].type)
    kind = WindowDeduplicate if one and by_time else WindowRank
    keys = tuple(index for index in rel.partition if index not in windows.all)
    if rel.last is None:
        raise PlanError(
            "window-rank-end",
            "Rank strategy with variable rank range is not supported in window TopN.",
            rel.span,
            "limit the ROW_NUMBER by a constant",
        )
    return kind(
        inputs=(exchange(source, keys),),
        schema=schema,
        window=window,
        partition=keys,
        order=order,
        first=rel.first,
        last=rel.last,
        numbered=rel.number is not None,
        span=rel.span,
    )


def plan_sort_limit(rel: Sort, source: Physical) -> Physical:
    """The first rows of all. ``source``: an Exchange that brings all rows together."""
    return SortLimit(
        inputs=(source,),
        schema=source.schema,
        order=order_keys(rel.keys, source.schema, rel.span),
        first=rel.offset + 1,
        last=None if rel.fetch is None else rel.offset + rel.fetch,
        offset=rel.offset,
        fetch=rel.fetch,
        span=rel.span,
    )
