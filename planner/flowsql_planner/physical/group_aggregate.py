"""Aggregate -> GroupAggregate over an Exchange (what is no window aggregate)."""

from __future__ import annotations

from flowsql_core.config import parse_duration_ms
from flowsql_core.graph.specs import MiniBatch
from flowsql_planner.logical.nodes import Aggregate
from flowsql_planner.physical.aggregate_functions import splittable, two_phase_in_flink
from flowsql_planner.physical.context import PlanContext
from flowsql_planner.physical.nodes import Exchange, GroupAggregate, Physical
from flowsql_planner.physical.options import (
    AGG_PHASE_STRATEGY,
    DISTINCT_BUCKETS,
    DISTINCT_SPLIT,
    INCREMENTAL_AGG,
    AggPhaseStrategy,
)
from flowsql_planner.physical.refusals import refuse_approximate
from flowsql_planner.physical.split_distinct import SplitForm, split_distinct


def exchange(source: Physical, keys: tuple[int, ...]) -> Exchange:
    """Rows of equal keys to one place; all rows without keys."""
    return Exchange(inputs=(source,), schema=source.schema, keys=keys, span=source.span)


def plan_group_aggregate(rel: Aggregate, source: Physical, context: PlanContext) -> Physical:
    """Unbounded aggregate of an input.

    Two phases as Flink plans them: mini-batches on, every function merges, and the strategy is not ONE_PHASE.
    """
    refuse_approximate(rel.calls)
    strategy = context.configuration.get(AGG_PHASE_STRATEGY)
    mini_batch: MiniBatch | None = context.mini_batch
    two_phase = mini_batch is not None and strategy is not AggPhaseStrategy.ONE_PHASE and two_phase_in_flink(rel.calls)
    ttl_ms = hinted_ttl_ms(rel.hints, "STATE_TTL")
    if context.configuration.get(DISTINCT_SPLIT) and splittable(rel.calls):
        form = SplitForm(
            context.configuration.get(DISTINCT_BUCKETS),
            mini_batch=mini_batch is not None,
            two_phase=two_phase,
            incremental=two_phase and context.configuration.get(INCREMENTAL_AGG),
            asked=context.configuration.text(INCREMENTAL_AGG.key) is not None,
            ttl_ms=ttl_ms,
        )
        split = split_distinct(rel, source, form)
        if split is not None:
            return split
    return GroupAggregate(
        inputs=(exchange(source, rel.grouping),),
        schema=rel.schema,
        grouping=rel.grouping,
        calls=rel.calls,
        two_phase=two_phase,
        mini_batch=mini_batch is not None,
        state_ttl_ms=ttl_ms,
        span=rel.span,
    )


def hinted_ttl_ms(hints: tuple[tuple[str, str], ...], key: str) -> int | None:
    """The state time-to-live that a STATE_TTL hint gives to an input; None without one.

    ``key``: ``STATE_TTL`` for an aggregate, ``STATE_TTL.LEFT`` and ``STATE_TTL.RIGHT`` for the sides of a join.
    """
    text = dict(hints).get(key)
    return None if text is None else parse_duration_ms(text)
