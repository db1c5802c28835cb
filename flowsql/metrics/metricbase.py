"""What functions count, as protocols: whatever has their methods is of the kind.

``open`` of a function finds its metrics: ``context.get_metric_group()`` of functions of tables,
``context.get_metrics_group()`` of functions of streams.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, runtime_checkable

__all__ = ["Counter", "Distribution", "Meter", "Metric", "MetricGroup"]


@runtime_checkable
class Metric(Protocol):
    """Something that a function counts or measures."""


@runtime_checkable
class Counter(Metric, Protocol):
    """A number that goes up and down."""

    def inc(self, n: int = 1) -> None:
        """Add."""
        ...

    def dec(self, n: int = 1) -> None:
        """Take away."""
        ...

    def get_count(self) -> int:
        """What this subtask has counted."""
        ...


@runtime_checkable
class Meter(Metric, Protocol):
    """Counts events, whose rate is of interest."""

    def mark_event(self, value: int = 1) -> None:
        """Note events."""
        ...

    def get_count(self) -> int:
        """All events of this subtask."""
        ...


@runtime_checkable
class Distribution(Metric, Protocol):
    """Values of which the extremes and the mean are of interest."""

    def update(self, value: int) -> None:
        """Note a value."""
        ...


@runtime_checkable
class MetricGroup(Protocol):
    """Metrics of a function, and groups of them."""

    def add_group(self, name: str, extra: str | None = None) -> MetricGroup:
        """A group below this one; with ``extra`` a pair of key and value."""
        ...

    def counter(self, name: str) -> Counter:
        """A new counter."""
        ...

    def gauge(self, name: str, obj: Callable[[], int]) -> None:
        """A value that ``obj`` tells whenever somebody looks."""
        ...

    def meter(self, name: str, time_span_in_seconds: int = 60) -> Meter:
        """A new meter."""
        ...

    def distribution(self, name: str) -> Distribution:
        """A new distribution."""
        ...
