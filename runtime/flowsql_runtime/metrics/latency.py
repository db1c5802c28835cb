"""Latency markers: sources send them on a period, every operator that one passes notes how long it travelled.

Names, granularities and the window of the histograms are Flink's (``LatencyStats``).
"""

from __future__ import annotations

import enum
from collections.abc import Callable

from flowsql_core.clock import Clock
from flowsql_core.config import Configuration, option, parse_duration_ms, parse_enum
from flowsql_core.element import LatencyMarker
from flowsql_core.record import record
from flowsql_runtime.metrics.registry import Histogram, OperatorMetrics


class LatencyGranularity(enum.Enum):
    """What one histogram of an operator stands for: all sources, one source, one subtask of a source."""

    SINGLE = "single"
    OPERATOR = "operator"
    SUBTASK = "subtask"


LATENCY_INTERVAL_MS = option(
    "metrics.latency.interval", parse_duration_ms, 0, "Period in which sources send latency markers; 0: none."
)
LATENCY_GRANULARITY = option(
    "metrics.latency.granularity",
    parse_enum(LatencyGranularity),
    LatencyGranularity.OPERATOR,
    "Latency histograms of an operator: one in all (single), one per source, or one per subtask of a source.",
)
LATENCY_HISTORY_SIZE = option("metrics.latency.history-size", int, 128, "Measurements that a latency histogram keeps.")


@record
class LatencyTracking:
    """How a job measures latency."""

    interval_ms: int
    granularity: LatencyGranularity
    history_size: int

    @staticmethod
    def of(configuration: Configuration) -> LatencyTracking | None:
        """What a job asks for; None when it measures nothing."""
        interval_ms = configuration.get(LATENCY_INTERVAL_MS)
        if interval_ms <= 0:
            return None
        return LatencyTracking(
            interval_ms, configuration.get(LATENCY_GRANULARITY), max(1, configuration.get(LATENCY_HISTORY_SIZE))
        )

    def reporter(self, metrics: OperatorMetrics, uid: str, clock: Clock) -> Callable[[LatencyMarker], None]:
        """What one operator does with a marker that arrives: note its age in milliseconds."""
        histograms: dict[object, Histogram] = {}
        here = f"operator_id.{uid}.operator_subtask_index.{metrics.subtask}.latency"

        def report(marker: LatencyMarker) -> None:
            match self.granularity:
                case LatencyGranularity.SINGLE:
                    key, prefix = "", ""
                case LatencyGranularity.OPERATOR:
                    key, prefix = marker.source_id, f"source_id.{marker.source_id}."
                case LatencyGranularity.SUBTASK:
                    key = f"{marker.source_id}/{marker.subtask}"
                    prefix = f"source_id.{marker.source_id}.source_subtask_index.{marker.subtask}."
            found = histograms.get(key)
            if found is None:
                found = histograms[key] = metrics.histogram(f"latency.{prefix}{here}", self.history_size)
            found.update(clock.now_ms() - marker.marked_ms)

        return report
