"""PyFlink's ``pyflink.metrics`` under FlowSQL's name: what functions count, for type hints and ``isinstance``."""

from __future__ import annotations

from flowsql.metrics.metricbase import Counter, Distribution, Meter, Metric, MetricGroup

__all__ = ["Counter", "Distribution", "Meter", "Metric", "MetricGroup"]
