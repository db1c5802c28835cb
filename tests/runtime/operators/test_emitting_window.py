"""Windows that answer early or late: the changelog of rows one by one, whatever the batches are."""

from __future__ import annotations

import random
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from flowsql_compute.functions.aggregate import resolve_aggregate
from flowsql_core.batch import ChangelogBatch, WatermarkTrack
from flowsql_core.clock import ManualClock
from flowsql_core.expr import AggregateCall, InputRef
from flowsql_core.graph.specs import WindowKind, WindowProperty, WindowSpec
from flowsql_core.graph.window_specs import EmittingWindowSpec
from flowsql_core.types.logical import INT, STRING, Column, TimestampType
from flowsql_runtime.testing.harness import OperatorHarness

pytestmark = [pytest.mark.usefixtures("each_backend"), pytest.mark.sampled(4)]

SIZE, STEP = 10, 5
BOUND = TimestampType(precision=3, nullable=False)
INPUT = (Column("k", STRING), Column("v", INT), Column("ts", TimestampType(precision=3)))
Row = tuple[str, int, int]
Change = tuple[str, str, int, int, int]


def call(name: str, *columns: int) -> AggregateCall:
    resolved = resolve_aggregate(name, tuple(INPUT[c].type for c in columns), False, None)
    args = tuple(InputRef(c, INPUT[c].type) for c in columns)
    return AggregateCall(resolved.name, args, resolved.result_type, name)


def spec(early: bool, lateness: int, clock: bool = False) -> EmittingWindowSpec:
    calls = (call("COUNT"), call("MAX", 1))
    window = WindowSpec(WindowKind.HOP, SIZE, STEP, 0, None if clock else 2, clock)
    output = (INPUT[0], *(Column(c.name, c.type) for c in calls), Column("ws", BOUND))
    return EmittingWindowSpec(
        (0,), calls, window, (WindowProperty.START,), INPUT, output, False, early=early, lateness_ms=lateness
    )


def model(rows: list[Row], lag: int, early: bool, lateness: int) -> tuple[list[Change | int], int]:
    """Changes and watermarks in order, and how many rows are late."""
    level, late = -(10**9), 0
    groups: dict[tuple[str, int], tuple[int, int]] = {}
    told: list[Change | int] = []

    def advance(to: int) -> None:
        nonlocal level
        if not early:
            ended = [key for key in groups if level < key[1] + SIZE - 1 <= to]
            told.extend(("+I", key, *groups[key, start], start) for key, start in sorted(ended, key=lambda one: one[1]))
        for key in [key for key in groups if key[1] + SIZE - 1 + lateness <= to]:
            del groups[key]
        level = to
        told.append(to)

    for key, value, time in rows:
        last = time // STEP * STEP
        starts = [start for start in (last, last - STEP) if start + SIZE - 1 + lateness > level]
        late += not starts
        for start in starts:
            old = groups.get((key, start))
            new = (1, value) if old is None else (old[0] + 1, max(old[1], value))
            groups[key, start] = new
            if early or start + SIZE - 1 <= level:
                told.extend([("+I", key, *new, start)] if old is None else [("-U", key, *old, start)])
                told.extend([] if old is None else [("+U", key, *new, start)])
        if time - lag > level:
            advance(time - lag)
    return told, late


def some_rows(seed: int) -> list[Row]:
    draw = random.Random(seed)
    return [(draw.choice("abc"), draw.randrange(9), 2 * i + draw.randrange(40)) for i in range(150)]


def feed(harness: OperatorHarness[Any], rows: list[Row], lag: int, cut: int, level: int = -(10**9)) -> int:
    for start in range(0, len(rows), cut):
        part = rows[start : start + cut]
        offsets, marks = [], []
        for i, row in enumerate(part):
            if row[2] - lag > level:
                level = row[2] - lag
                offsets.append(i + 1)
                marks.append(level)
        columns = [
            pa.array([row[0] for row in part]),
            pa.array([row[1] for row in part], pa.int32()),
            pa.array([row[2] for row in part], pa.timestamp("ms")),
        ]
        track = WatermarkTrack(np.array(offsets, np.int32), np.array(marks, np.int64)) if marks else None
        harness.batch(ChangelogBatch.of(columns, None, track))
    return level


def ms(moment: datetime) -> int:
    return (moment.replace(tzinfo=None) - datetime(1970, 1, 1)) // timedelta(milliseconds=1)


def shown(harness: OperatorHarness[Any]) -> list[Change]:
    return [(*row[:4], ms(row[4])) for row in harness.rows]


@pytest.mark.parametrize(("early", "lateness"), [(True, 0), (True, 12), (False, 12)])
@pytest.mark.parametrize("lag", [0, 20])
@pytest.mark.parametrize("cut", [1, 7, 150])
def test_changes_are_the_models(early: bool, lateness: int, lag: int, cut: int) -> None:
    rows = some_rows(lag)
    told, late = model(rows, lag, early, lateness)
    harness = OperatorHarness(spec(early, lateness))
    feed(harness, rows, lag, cut)
    wanted = [one for one in told if not isinstance(one, int)]
    if early:
        assert shown(harness) == wanted
    else:
        # Keys of one window answer together, in any order.
        assert sorted(shown(harness)) == sorted(wanted)
    # Watermarks between which nothing leaves are one.
    marks = [one for one in told if isinstance(one, int)]
    assert set(harness.watermarks) <= set(marks)
    assert harness.watermarks[-1] == marks[-1]
    assert len(harness.side("late")) == late
    harness.end()
    assert harness.operators[0].ctx.state.snapshot()["window.accumulators"].num_rows == 0


@pytest.mark.parametrize("early", [True, False])
def test_goes_on_at_another_parallelism(early: bool) -> None:
    rows = some_rows(3)
    told, _ = model(rows, 15, early, 12)
    harness: OperatorHarness[Any] = OperatorHarness(spec(early, 12), parallelism=2, keys=[(0,)])
    level = feed(harness, rows[:70], 15, 10)
    harness = harness.restored(3)
    feed(harness, rows[70:], 15, 10, level)
    assert sorted(shown(harness)) == sorted(one for one in told if not isinstance(one, int))


def test_windows_of_the_clock_answer_with_each_row() -> None:
    harness = OperatorHarness(spec(True, 0, clock=True), clock=ManualClock(12), keys=[(0,)])
    feed(harness, [("a", 1, 0)], 10**6, 1)
    harness.advance(5)
    feed(harness, [("a", 5, 0)], 10**6, 1)
    first = [("+I", "a", 1, 1, 10), ("+I", "a", 1, 1, 5)]
    assert shown(harness) == [*first, ("+I", "a", 1, 5, 15), ("-U", "a", 1, 1, 10), ("+U", "a", 2, 5, 10)]
    harness.advance(20)
    harness.end()
    assert len(shown(harness)) == 5
    assert harness.operators[0].ctx.state.snapshot()["window.accumulators"].num_rows == 0
