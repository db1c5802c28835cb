"""Counters at two moments and what they come to a second; waits that can be read while they last."""

from __future__ import annotations

import json
import time

import pytest

from flowsql_core.element import MAX_WATERMARK, MIN_WATERMARK
from flowsql_runtime.metrics.checkpoints import CheckpointMetrics, CompletedStats
from flowsql_runtime.metrics.readings import (
    JobReading,
    OperatorName,
    OperatorReading,
    Shares,
    TaskReading,
    VertexName,
    rates_between,
)
from flowsql_runtime.metrics.registry import TaskMetrics
from flowsql_runtime.metrics.waiting import WaitClock

SECOND = 1_000_000_000
SOURCE = OperatorName(1, "Scan-a", "Source: a[1]", True, False)
SINK = OperatorName(2, "Sink-b", "Sink(b)", False, True)
VERTICES = (VertexName(1, "Source: a[1] -> Sink", 2, (SOURCE, SINK)),)


def task(
    subtask: int,
    seconds: float,
    rows: int,
    idle: float = 0.0,
    blocked: float = 0.0,
    began: int = 1,
    watermark: int = MIN_WATERMARK,
    state: int | None = None,
    over: bool = False,
) -> TaskReading:
    operators = (
        OperatorReading(1, 0, rows, MIN_WATERMARK, watermark),
        OperatorReading(2, rows, 0, watermark, watermark, state),
    )
    times = (round(part * SECOND) for part in (seconds, idle, blocked))
    return TaskReading(1, subtask, began, *times, over, operators)


def reading(*tasks: TaskReading) -> JobReading:
    return JobReading(10_000, VERTICES, tasks, {})


def test_rates_and_shares_are_those_between_two_readings() -> None:
    before = reading(task(0, 1, 100, idle=1), task(1, 1, 50))
    after = reading(
        task(0, 3, 300, idle=1.5, blocked=0.5, watermark=9_000, state=10),
        task(1, 3, 51, idle=2, watermark=9_500, state=5),
    )
    (vertex,) = rates_between(before, after)
    assert vertex.shares == {0: Shares(500, 250, 250), 1: Shares(0, 1000, 0)}
    assert vertex.mean == Shares(250, 625, 125)
    source, sink = vertex.operators
    assert (source.out_per_second, source.records_out) == (pytest.approx(100.5), 351)
    assert sink.in_per_second == pytest.approx(100.5)
    assert (sink.watermark_ms, sink.lag_ms(10_000)) == (9_000, 1_000)
    assert (source.input_watermark_ms, source.watermark_ms) == (None, 9_000)
    assert vertex.state_bytes == 15
    assert source.state_bytes is None


@pytest.mark.parametrize(
    ("before", "after", "rate", "shares"),
    [
        pytest.param((), (task(0, 2, 10, idle=1),), 5, {0: Shares(500, 500, 0)}, id="no reading before"),
        pytest.param((task(0, 9, 900),), (task(0, 2, 10, began=2),), 5, {0: Shares(1000, 0, 0)}, id="began again"),
        pytest.param((task(0, 1, 10),), (task(0, 2, 30, over=True),), 20, {0: Shares(1000, 0, 0)}, id="ended between"),
        pytest.param((task(0, 2, 10, over=True),), (task(0, 2, 10, over=True),), 0, {}, id="had ended"),
        pytest.param((), (task(0, 0, 0),), 0, {}, id="not begun"),
        pytest.param((task(0, 1, 1, 0.9, 0.1),), (task(0, 2, 1, 1.9, 0.2),), 0, {0: Shares(0, 1000, 100)}, id="late"),
    ],
)
def test_tasks_that_begin_and_end(
    before: tuple[TaskReading, ...], after: tuple[TaskReading, ...], rate: float, shares: dict[int, Shares]
) -> None:
    (vertex,) = rates_between(reading(*before), reading(*after))
    assert vertex.operators[1].in_per_second == pytest.approx(rate)
    assert vertex.shares == shares


def test_the_end_of_time_is_behind_nothing() -> None:
    (vertex,) = rates_between(None, reading(task(0, 1, 1, watermark=MAX_WATERMARK)))
    assert vertex.operators[1].watermark_ms == MAX_WATERMARK
    assert vertex.operators[1].lag_ms(10_000) is None
    (vertex,) = rates_between(None, reading(task(0, 1, 1)))
    assert vertex.operators[1].watermark_ms is None
    assert vertex.operators[1].values(10_000)["watermarkLag"] is None
    (vertex,) = rates_between(None, reading())
    assert (vertex.shares, vertex.mean) == ({}, None)


def test_a_reading_travels_as_json() -> None:
    made = reading(task(0, 1, 100, idle=1, state=7))
    values = json.loads(json.dumps(made.to_json()))
    assert JobReading.from_json(values) == made
    values["tasks"][0]["later"] = values["tasks"][0]["operators"][0]["later"] = 1
    assert JobReading.from_json(values) == made


def test_a_wait_counts_while_it_lasts() -> None:
    clock = WaitClock()
    assert clock.until_ns(time.perf_counter_ns()) == 0
    clock.begin()
    time.sleep(0.01)
    during = clock.until_ns(time.perf_counter_ns())
    assert during >= 10_000_000
    clock.end()
    whole = clock.until_ns(0)
    assert whole >= during
    assert clock.until_ns(time.perf_counter_ns()) == whole
    clock.begin()
    clock.end()
    assert clock.until_ns(0) >= whole


def test_the_shares_of_a_task_are_a_thousand() -> None:
    metrics = TaskMetrics("task", 0)
    assert metrics.times_ns() == (0, 0, 0)
    metrics.start()
    metrics.idle.begin()
    time.sleep(0.01)
    values = metrics.values()
    assert values["idleTimeMsPerSecond"] > 500
    metrics.idle.end()
    metrics.back_pressured.begin()
    metrics.stop()
    values = metrics.values()
    names = [f"{name}TimeMsPerSecond" for name in ("busy", "idle", "backPressured")]
    assert sum(values[name] for name in names) == pytest.approx(1000)
    time.sleep(0.01)
    assert metrics.values() == values, "it stands still"


def test_checkpoints_are_told_by_flinks_names() -> None:
    metrics = CheckpointMetrics()
    assert metrics.values() == {
        "numberOfCompletedCheckpoints": 0,
        "numberOfFailedCheckpoints": 0,
        "numberOfInProgressCheckpoints": 0,
    }
    metrics.completed, metrics.last = 1, CompletedStats(7, 1000, 35, 900, 100, False, "/chk-7")
    assert metrics.values()["lastCompletedCheckpointId"] == 7
    assert metrics.values()["lastCheckpointDuration"] == 35
    assert (metrics.values()["lastCheckpointSize"], metrics.values()["lastCheckpointFullSize"]) == (100, 900)
