"""Time slices of operators that call a user's functions row by row."""

from __future__ import annotations

from flowsql_core.config import Configuration
from flowsql_runtime.network.partition import BUFFER_TIMEOUT_ENABLED, BUFFER_TIMEOUT_MS
from flowsql_runtime.operators.base import OperatorContext
from flowsql_runtime.time.time_slice import DEFAULT_SLICE_MS, MOST_ROWS, Pace


def begin_slices(ctx: OperatorContext, most_rows: int = MOST_ROWS) -> Pace:
    """Let an operator see time pass in the middle of a batch: ``ctx.time_slice`` begins.

    Slices last as long as rows may wait in exchanges (``execution.buffer-timeout.interval``).

    Returns:
        How many rows fill a slice, ``most_rows`` at most.
    """
    configuration = Configuration(values=dict(ctx.parameters))
    waits = configuration.get(BUFFER_TIMEOUT_ENABLED)
    ctx.time_slice.start(configuration.get(BUFFER_TIMEOUT_MS) if waits else DEFAULT_SLICE_MS)
    return Pace(ctx.clock, ctx.time_slice, most_rows)
