"""From an operator's context to the context of its expressions."""

from __future__ import annotations

import datetime
import os
from collections.abc import Callable

from flowsql_compute.eval.context import EvalContext
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


def machine_zone() -> str:
    """The machine's zone: what ``TZ`` or ``/etc/localtime`` name, else the present offset."""
    name = os.environ.get("TZ", "").lstrip(":")
    if not name:
        _, found, name = os.path.realpath("/etc/localtime").partition("/zoneinfo/")
        name = name if found else ""
    if name:
        return "UTC" if name in ("Etc/UTC", "UCT", "Universal", "Zulu") else name
    minutes = round((datetime.datetime.now().astimezone().utcoffset() or datetime.timedelta()).total_seconds() / 60)
    return "UTC" if not minutes else f"{'+' if minutes > 0 else '-'}{abs(minutes) // 60:02d}:{abs(minutes) % 60:02d}"
