"""Latency markers from sources to sinks, and the histograms they fill."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from flowsql_core.batch import ChangelogBatch
from flowsql_core.clock import ManualClock
from flowsql_core.element import LatencyMarker
from flowsql_core.graph.job import JobGraph, ShipStrategy
from flowsql_core.graph.specs import ExtensionSpec
from flowsql_runtime.cluster.job import JobStatus
from flowsql_runtime.cluster.local import LocalCluster
from flowsql_runtime.metrics.registry import Histogram
from flowsql_runtime.operators.base import Operator, SourceOperator, SourceStatus

from ..graphs import edge, graph, vertex


class Silent(SourceOperator[Any]):
    """No rows; ends when told."""

    def __init__(self, end: threading.Event) -> None:
        super().__init__(None)
        self._end = end

    def emit_next(self) -> SourceStatus:
        return SourceStatus.END if self._end.is_set() else SourceStatus.NOTHING_NOW

    def wake_when_available(self, wake: Callable[[], None]) -> None:
        pass


class Seen(Operator[Any]):
    """Passes all on; tells of each marker."""

    def __init__(self, arrived: threading.Semaphore) -> None:
        super().__init__(None)
        self._arrived = arrived

    def process_batch(self, input_index: int, batch: ChangelogBatch) -> None:
        self.output.collect(batch)

    def process_latency_marker(self, input_index: int, marker: LatencyMarker) -> None:
        super().process_latency_marker(input_index, marker)
        self._arrived.release()


def job_graph(end: threading.Event, arrived: threading.Semaphore, options: dict[str, str]) -> JobGraph:
    def extension(kind: str, resource: str) -> ExtensionSpec:
        return ExtensionSpec(kind, resource)

    source = vertex(1, extension("source", "source"), extension("plain", "pass"), parallelism=2)
    sink = vertex(2, extension("plain", "seen"), parallelism=2)
    return graph(
        [source, sink],
        [edge(source, sink, ShipStrategy.REBALANCE)],
        options,
        source=lambda _: Silent(end),
        **{"pass": lambda _: Seen(threading.Semaphore()), "seen": lambda _: Seen(arrived)},
    )


def run_two_periods(options: dict[str, str]) -> dict[str, Histogram]:
    """Markers at 0 and 500 ms from two source subtasks."""
    clock, end, arrived = ManualClock(), threading.Event(), threading.Semaphore(0)
    job = LocalCluster(clock).submit(job_graph(end, arrived, options))
    for count in (2, 2):
        for _ in range(count):
            assert arrived.acquire(timeout=20)
        clock.advance(500)
    # What the second move of the clock sends is not waited for.
    end.set()
    clock.advance(0)
    assert job.wait(20) is JobStatus.FINISHED
    return dict(job.metrics.histograms())


@pytest.mark.parametrize(
    ("granularity", "names"),
    [
        (
            "operator",
            {
                f"latency.source_id.u100.operator_id.{uid}.operator_subtask_index.{subtask}.latency"
                for uid in ("u101", "u200")
                for subtask in (0, 1)
            },
        ),
        (
            "single",
            {
                f"latency.operator_id.{uid}.operator_subtask_index.{subtask}.latency"
                for uid in ("u101", "u200")
                for subtask in (0, 1)
            },
        ),
    ],
)
def test_every_operator_behind_a_source_has_a_histogram(granularity: str, names: set[str]) -> None:
    found = run_two_periods({"metrics.latency.interval": "500 ms", "metrics.latency.granularity": granularity})
    assert set(found) == names
    # Each source subtask sends to one receiver in turn; each receiver hears of each period from some of them.
    assert sum(found[name].count for name in names if "u200" in name) >= 4
    assert all(histogram.statistics()["min"] >= 0 for histogram in found.values())


def test_subtasks_of_sources_are_told_apart() -> None:
    found = run_two_periods({"metrics.latency.interval": "500", "metrics.latency.granularity": "subtask"})
    sources = {name.partition(".operator_id")[0] for name in found}
    assert sources == {f"latency.source_id.u100.source_subtask_index.{n}" for n in (0, 1)}


def test_the_age_is_the_way_from_the_source() -> None:
    from flowsql_runtime.metrics.latency import LatencyGranularity, LatencyTracking
    from flowsql_runtime.metrics.registry import OperatorMetrics

    clock, metrics = ManualClock(1000), OperatorMetrics("x", 3)
    report = LatencyTracking(10, LatencyGranularity.OPERATOR, 4).reporter(metrics, "u", clock)
    report(LatencyMarker(990, "s", 0))
    clock.advance(20)
    report(LatencyMarker(990, "s", 1))
    (histogram,) = metrics.histograms().values()
    assert histogram.statistics()["min"] == 10
    assert histogram.statistics()["max"] == 30
    assert histogram.count == 2


def test_no_interval_no_histograms() -> None:
    clock, end = ManualClock(), threading.Event()
    end.set()
    job = LocalCluster(clock).run(job_graph(end, threading.Semaphore(0), {}))
    assert job.metrics.histograms() == {}


def test_statistics_are_of_the_last_values() -> None:
    histogram = Histogram(4)
    assert histogram.statistics() == {"count": 0}
    for value in (1000, 1, 2, 3, 4):
        histogram.update(value)
    found = histogram.statistics()
    assert (found["count"], found["min"], found["max"], found["mean"]) == (5, 1, 4, 2.5)
    assert found["median"] == 2.5
    assert found["p99"] == 4
    assert round(found["stddev"], 6) == 1.290994
