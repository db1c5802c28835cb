"""How far the event time of a job is."""

from __future__ import annotations

from flowsql_core.element import MIN_WATERMARK
from flowsql_runtime.metrics.registry import JobMetrics


def watermark_ms(metrics: JobMetrics) -> int | None:
    """The lowest watermark that has come through to all sinks, in milliseconds since 1970; None: there is none yet."""
    sinks = [task.operators[-1] for task in list(metrics.tasks) if task.operators]
    reached = [sink.input_watermark_ms for sink in sinks if sink.name.startswith("Sink")]
    lowest = min(reached, default=MIN_WATERMARK)
    return None if lowest == MIN_WATERMARK else lowest
