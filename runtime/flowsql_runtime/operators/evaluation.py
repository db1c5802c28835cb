"""From an operator's context to the context of its expressions."""

from __future__ import annotations

from collections.abc import Callable

from flowsql_compute.eval.context import EvalContext
from flowsql_compute.eval.time.machine_zone import machine_zone
from flowsql_core.config import LOCAL_TIME_ZONE
from flowsql_runtime.operators.base import OperatorContext

#: Job parameter of batch mode: CURRENT_TIMESTAMP and its like are this moment for all rows, epoch ms.
QUERY_START_PARAMETER = "flowsql.query-start-ms"


def eval_context(ctx: OperatorContext, current_watermark: Callable[[], int] | None = None) -> EvalContext:
    """Zone, clock, randomness and query start as the job has them."""
    zone = ctx.parameter(LOCAL_TIME_ZONE.key, LOCAL_TIME_ZONE.default)
    start = ctx.parameter(QUERY_START_PARAMETER)
    return EvalContext(
        zone=machine_zone() if zone == LOCAL_TIME_ZONE.default else zone,
        clock=ctx.clock,
        rng=ctx.rng,
        query_start_ms=int(start) if start else None,
        current_watermark=current_watermark,
    )
