"""PLAN_ADVICE: what Flink's analyzers would say about a plan."""

from __future__ import annotations

from collections.abc import Sequence

from flowsql_core.config import MINI_BATCH_ENABLED, STATE_TTL_MS, Configuration
from flowsql_core.record import record
from flowsql_planner.physical.aggregate_functions import two_phase_in_flink
from flowsql_planner.physical.nodes import GroupAggregate, JoinNode, Physical, walk
from flowsql_planner.physical.options import AGG_PHASE_STRATEGY, AggPhaseStrategy

NO_ADVICE = "No available advice..."
_LOCAL_GLOBAL = (
    "[ADVICE] You might want to enable local-global two-phase optimization by configuring "
    "('table.exec.mini-batch.enabled' to 'true', 'table.exec.mini-batch.allow-latency' to a positive long value, "
    "'table.exec.mini-batch.size' to a positive long value)."
)
_TWO_PHASE = (
    "[ADVICE] You might want to enable local-global two-phase optimization by configuring "
    "('table.optimizer.agg-phase-strategy' to 'AUTO')."
)
_STATE_TTL = (
    "[WARNING] You might want to set a state time-to-live by configuring ('table.exec.state.ttl'): the state of this "
    "join grows with both of its inputs."
)


@record
class Advice:
    """Numbers by node identity, and the list below the plan."""

    marks: dict[int, list[int]]
    text: str


def advise(roots: Sequence[Physical], configuration: Configuration) -> Advice:
    """Advice for a plan: two-phase aggregation where it is possible and off, unbounded join state without a TTL."""
    by_text: dict[str, list[int]] = {}
    for root in roots:
        for node in walk(root):
            text = _advice_for(node, configuration)
            if text is not None:
                by_text.setdefault(text, []).append(id(node))
    marks: dict[int, list[int]] = {}
    parts = []
    for number, (text, nodes) in enumerate(by_text.items(), 1):
        parts.append(f"advice[{number}]: {text}")
        for marked in nodes:
            marks.setdefault(marked, []).append(number)
    return Advice(marks, "\n".join(parts) if parts else NO_ADVICE)


def _advice_for(node: Physical, configuration: Configuration) -> str | None:
    match node:
        case GroupAggregate(two_phase=False, calls=calls) if two_phase_in_flink(calls):
            if not configuration.get(MINI_BATCH_ENABLED):
                return _LOCAL_GLOBAL
            if configuration.get(AGG_PHASE_STRATEGY) is AggPhaseStrategy.ONE_PHASE:
                return _TWO_PHASE
            return None
        case JoinNode(mini_batch=True, left_ttl_ms=None, right_ttl_ms=None) if not configuration.get(STATE_TTL_MS):
            return _STATE_TTL
        case _:
            return None
