"""THE ordered lists of passes over physical plans, as ``optimize/programs.py`` has those over logical ones.

A pass takes the plans of all sinks of a job and gives them back rewritten, or with more known of their nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from flowsql_core.config import Configuration
from flowsql_core.record import record
from flowsql_planner.physical.context import PlanContext
from flowsql_planner.physical.nodes import Physical
from flowsql_planner.physical.options import (
    CHANGING_UPDATES,
    DELTA_JOINS,
    REUSE_SOURCE,
    REUSE_SUB_PLAN,
    ChangingUpdates,
    DeltaJoins,
)
from flowsql_planner.physical.passes.changelog_modes import infer_changelog_modes
from flowsql_planner.physical.passes.delta_joins import refuse_forced_delta_joins
from flowsql_planner.physical.passes.every_change import derive_every_change
from flowsql_planner.physical.passes.filter_normalized import push_filters_into_normalize
from flowsql_planner.physical.passes.mini_batches import assign_mini_batches
from flowsql_planner.physical.passes.reuse import share_scans, share_sub_plans
from flowsql_planner.physical.passes.sink_keys import resolve_sink_keys
from flowsql_planner.physical.passes.split_python import split_python
from flowsql_planner.physical.passes.update_determinism import resolve_update_determinism

Plans = tuple[Physical, ...]
PlanPass = Callable[[Plans, PlanContext], Plans]


@record
class Pass:
    """A pass and the condition, if any, under which it runs."""

    name: str
    run: PlanPass
    wanted: Callable[[Configuration], bool] | None = None


def _each(rewrite: Callable[[Physical], Physical]) -> PlanPass:
    return lambda plans, context: tuple(rewrite(plan) for plan in plans)


def _mark_mini_batches(plans: Plans, context: PlanContext) -> Plans:
    mini_batch = context.mini_batch
    if mini_batch is None:
        return plans
    return tuple(assign_mini_batches(plan, mini_batch.latency_ms) for plan in plans)


def _infer_modes(plans: Plans, context: PlanContext) -> Plans:
    return tuple(infer_changelog_modes(plan, context) for plan in plans)


def _resolve_sink_keys(plans: Plans, context: PlanContext) -> Plans:
    return tuple(resolve_sink_keys(plan, context.configuration, context) for plan in plans)


def _reuses_sources(configuration: Configuration) -> bool:
    return configuration.get(REUSE_SUB_PLAN) and configuration.get(REUSE_SOURCE)


def _reuses_sub_plans(configuration: Configuration) -> bool:
    return configuration.get(REUSE_SUB_PLAN)


def _resolves_changing_updates(configuration: Configuration) -> bool:
    return configuration.get(CHANGING_UPDATES) is ChangingUpdates.TRY_RESOLVE


def _forces_delta_joins(configuration: Configuration) -> bool:
    return configuration.get(DELTA_JOINS) is DeltaJoins.FORCE


#: From the planned nodes to the plan that EXPLAIN shows as the optimized physical one; each sink has a tree.
PHYSICAL: tuple[Pass, ...] = (
    # Before anything looks at Calcs: afterwards no rule meets a call of Python in one.
    Pass("split Python calls", _each(split_python)),
    # Before scans become one: what a scan's changes are normalized by is its own matter.
    Pass("filters of normalized changes", _each(push_filters_into_normalize)),
    Pass("share scans", lambda plans, _: share_scans(plans), _reuses_sources),
    # Above watermarks and scans, so after scans became one.
    Pass("mini-batches", _mark_mini_batches),
    Pass("changelog modes", _infer_modes),
    # Asks what arrives at the sink.
    Pass("sink keys", _resolve_sink_keys),
    # Asks whether sinks materialise.
    Pass("updates by changing values", _each(resolve_update_determinism), _resolves_changing_updates),
    Pass("forced delta joins", _each(refuse_forced_delta_joins), _forces_delta_joins),
)

#: What is known of changes once the modes are; the plan stays as it is.
OBSERVED: tuple[Pass, ...] = (Pass("who sees each change", lambda plans, context: derive_every_change(plans, context)),)

#: From the physical plan to the one that runs: equal parts are one object, also across sinks. Sharing comes first, for
#: what one of several consumers sees of a shared part, the part must show.
EXECUTION: tuple[Pass, ...] = (
    Pass("share sub-plans", lambda plans, _: share_sub_plans(plans), _reuses_sub_plans),
    *OBSERVED,
)


def run_passes(passes: Sequence[Pass], plans: Plans, context: PlanContext) -> Plans:
    """The plans after some passes.

    Raises:
        PlanError: a node or sink cannot take what reaches it.
    """
    for step in passes:
        if step.wanted is None or step.wanted(context.configuration):
            plans = step.run(plans, context)
    return plans
