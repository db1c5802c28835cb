"""What functions count, as protocols: whatever has their methods is of the kind.

``open`` of a function finds its metrics: ``context.get_metric_group()`` of functions of tables,
``context.get_metrics_group()`` of functions of streams.
"""

from __future__ import annotations

from flowsql_core.stream.functions import Counter, Distribution, Meter, Metric, MetricGroup

__all__ = ["Counter", "Distribution", "Meter", "Metric", "MetricGroup"]
