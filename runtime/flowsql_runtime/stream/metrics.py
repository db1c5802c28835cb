"""Metrics of user functions, on the metrics of their operator: names of groups and metrics joined by dots."""

from __future__ import annotations

from collections.abc import Callable

from flowsql_runtime.metrics.registry import Counter, Histogram, OperatorMetrics

#: Values that a distribution keeps.
KEPT_VALUES = 1024


class UserCounter:
    """A counter of a function."""

    __slots__ = ("_counter",)

    def __init__(self, counter: Counter) -> None:
        self._counter = counter

    def inc(self, n: int = 1) -> None:
        """Add."""
        self._counter.value += n

    def dec(self, n: int = 1) -> None:
        """Take away."""
        self._counter.value -= n

    def get_count(self) -> int:
        """The number."""
        return self._counter.value


class UserMeter:
    """Counts events; whoever looks derives the rate from two looks."""

    __slots__ = ("_counter",)

    def __init__(self, counter: Counter) -> None:
        self._counter = counter

    def mark_event(self, value: int = 1) -> None:
        """Note events."""
        self._counter.value += value

    def get_count(self) -> int:
        """All events so far."""
        return self._counter.value


class UserDistribution:
    """The distribution of the last values."""

    __slots__ = ("_histogram",)

    def __init__(self, histogram: Histogram) -> None:
        self._histogram = histogram

    def update(self, value: int) -> None:
        """Note a value."""
        self._histogram.update(value)


class UserMetricGroup:
    """A group of metrics of one function in one subtask."""

    __slots__ = ("_metrics", "_prefix")

    def __init__(self, metrics: OperatorMetrics, prefix: str = "") -> None:
        self._metrics = metrics
        self._prefix = prefix

    def add_group(self, name: str, extra: str | None = None) -> UserMetricGroup:
        """A group below this one; with ``extra``, the pair of a key and a value."""
        inner = f"{self._prefix}{name}."
        return UserMetricGroup(self._metrics, inner if extra is None else f"{inner}{extra}.")

    def counter(self, name: str) -> UserCounter:
        """A counter."""
        return UserCounter(self._metrics.counter(self._prefix + name))

    def gauge(self, name: str, obj: Callable[[], int]) -> None:
        """A value that is asked for when somebody looks."""
        self._metrics.gauge(self._prefix + name, obj)

    def meter(self, name: str, time_span_in_seconds: int = 60) -> UserMeter:
        """A meter."""
        return UserMeter(self._metrics.counter(self._prefix + name))

    def distribution(self, name: str) -> UserDistribution:
        """A distribution."""
        return UserDistribution(self._metrics.histogram(self._prefix + name, KEPT_VALUES))
