"""Window aggregates against a model that judges lateness row by row, over cuts, snapshots and parallelisms."""

from __future__ import annotations

import random
from collections import defaultdict
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from flowsql_compute.functions.aggregate import resolve_aggregate
from flowsql_core.batch import ChangelogBatch, WatermarkTrack
from flowsql_core.clock import ManualClock
from flowsql_core.errors import ExecutionError
from flowsql_core.expr import AggregateCall, InputRef
from flowsql_core.graph.specs import (
    WindowAggregateSpec,
    WindowKind,
    WindowProperty,
    WindowSpec,
    WindowTableFunctionSpec,
)
from flowsql_core.types.logical import INT, STRING, Column, TimestampLtzType, TimestampType
from flowsql_runtime.testing.harness import OperatorHarness
from flowsql_runtime.window.slices import Slicing
from flowsql_runtime.window.zone import to_epoch_ms, to_local_ms

pytestmark = [pytest.mark.usefixtures("each_backend"), pytest.mark.sampled(4)]

BOUND = TimestampType(precision=3, nullable=False)
LTZ = TimestampLtzType(precision=3, nullable=False)
INPUT = (Column("k", STRING), Column("v", INT), Column("ts", TimestampType(precision=3)))
PROPERTIES = (WindowProperty.START, WindowProperty.END, WindowProperty.TIME)
Row = tuple[str, int, int]


def call(name: str, *columns: int, distinct: bool = False) -> AggregateCall:
    resolved = resolve_aggregate(name, tuple(INPUT[c].type for c in columns), distinct, None)
    args = tuple(InputRef(c, INPUT[c].type) for c in columns)
    return AggregateCall(resolved.name, args, resolved.result_type, name, distinct)


MERGEABLE = (call("COUNT"), call("SUM", 1), call("MIN", 1), call("MAX", 0))
DISTINCT = (*MERGEABLE, call("COUNT", 1, distinct=True))


def spec(
    window: WindowSpec, calls: tuple[AggregateCall, ...] = MERGEABLE, retracts: bool = False
) -> WindowAggregateSpec:
    zone = window.zone is not None
    output = (
        INPUT[0],
        *(Column(c.name, c.type) for c in calls),
        Column("ws", BOUND),
        Column("we", BOUND),
        Column("wt", LTZ if zone else BOUND),
    )
    return WindowAggregateSpec((0,), calls, window, PROPERTIES, INPUT, output, retracts)


def ms(moment: datetime) -> int:
    return (moment.replace(tzinfo=None) - datetime(1970, 1, 1)) // timedelta(milliseconds=1)


def windows_of(time: int, kind: WindowKind, size: int, step: int) -> list[tuple[int, int]]:
    match kind:
        case WindowKind.TUMBLE:
            return [(time // size * size, time // size * size + size)]
        case WindowKind.HOP:
            first = (time - size) // step * step + step
            return [(start, start + size) for start in range(first, time + 1, step) if start <= time < start + size]
        case _:
            start = time // size * size
            return [(start, end) for end in range(time // step * step + step, start + size + 1, step)]


class Watermarks:
    """The periodic generator's recurrence: emit after a row that lifts the maximum by more than the interval."""

    def __init__(self, lag: int, interval: int = 3) -> None:
        self.lag, self.interval = lag, interval
        self.highest = self.last = -(10**9)

    def after(self, time: int) -> int | None:
        self.highest = max(self.highest, time - self.lag)
        if self.highest - self.last > self.interval:
            self.last = self.highest
            return self.last
        return None


def model(rows: list[Row], kind: WindowKind, size: int, step: int, lag: int) -> tuple[list[Any], int]:
    groups: dict[Any, list[int]] = defaultdict(list)
    marks, level, late = Watermarks(lag), -(10**9), 0
    for key, value, time in rows:
        open_yet = [window for window in windows_of(time, kind, size, step) if window[1] - 1 > level]
        late += not open_yet
        for window in open_yet:
            groups[key, window].append(value)
        level = marks.after(time) or level
    return sorted(
        (key, len(values), sum(values), min(values), key, len(set(values)), *window)
        for (key, window), values in groups.items()
    ), late


def batch(rows: list[Row], marks: Watermarks | None = None, kinds: list[int] | None = None) -> ChangelogBatch:
    offsets, levels = [], []
    for i, row in enumerate(rows):
        level = None if marks is None else marks.after(row[2])
        if level is not None:
            offsets.append(i + 1)
            levels.append(level)
    columns = [
        pa.array([row[0] for row in rows]),
        pa.array([row[1] for row in rows], pa.int32()),
        pa.array([row[2] for row in rows], pa.timestamp("ms")),
    ]
    track = WatermarkTrack(np.array(offsets, np.int32), np.array(levels, np.int64)) if offsets else None
    return ChangelogBatch.of(columns, None if kinds is None else np.array(kinds, np.uint8), track)


def some_rows(seed: int, n: int) -> list[Row]:
    rng = random.Random(seed)
    rows, time = [], 0
    for _ in range(n):
        time += rng.randint(0, 7)
        rows.append((rng.choice("abc"), rng.randint(0, 9), max(0, time - rng.randint(0, 30))))
    return rows


def shown(harness: OperatorHarness[Any], distinct: bool) -> list[Any]:
    return sorted((*row[1:-3], *(() if distinct else (None,)), ms(row[-3]), ms(row[-2])) for row in harness.rows)


GRIDS = [
    (WindowKind.TUMBLE, 20, 20), (WindowKind.HOP, 20, 5), (WindowKind.HOP, 20, 10), (WindowKind.CUMULATE, 20, 5),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "size", "step"), GRIDS)
@pytest.mark.parametrize("distinct", [False, True])
@pytest.mark.parametrize("lag", [0, 5, 25])
def test_windows_are_the_models(kind: WindowKind, size: int, step: int, distinct: bool, lag: int) -> None:
    rows = some_rows(lag, 200)
    wanted, late = model(rows, kind, size, step, lag)
    if not distinct:
        wanted = sorted((*row[:5], None, *row[6:]) for row in wanted)
    calls = DISTINCT if distinct else MERGEABLE
    for cut in (1, 7, 200):
        harness = OperatorHarness(spec(WindowSpec(kind, size, step, 0, 2), calls))
        marks = Watermarks(lag)
        for start in range(0, len(rows), cut):
            harness.batch(batch(rows[start : start + cut], marks))
        harness.end()
        assert shown(harness, distinct) == wanted
        assert len(harness.side("late")) == late
        assert harness.operators[0].ctx.metrics.counter("numLateRecordsDropped").value == late
        assert all(ms(row[-1]) == ms(row[-2]) - 1 for row in harness.rows)
        assert harness.operators[0].ctx.state.snapshot()["window.accumulators"].num_rows == 0


@pytest.mark.parametrize(("kind", "size", "step"), GRIDS)
@pytest.mark.parametrize("distinct", [False, True])
@pytest.mark.parametrize("then", [1, 2, 3])
def test_goes_on_at_another_parallelism(kind: WindowKind, size: int, step: int, distinct: bool, then: int) -> None:
    rows = some_rows(4, 200)
    wanted, _ = model(rows, kind, size, step, 5)
    if not distinct:
        wanted = sorted((*row[:5], None, *row[6:]) for row in wanted)
    window = WindowSpec(kind, size, step, 0, 2)
    harness: OperatorHarness[Any] = OperatorHarness(
        spec(window, DISTINCT if distinct else MERGEABLE), parallelism=2, keys=[(0,)]
    )
    marks = Watermarks(5)
    for start in range(0, 100, 10):
        harness.batch(batch(rows[start : start + 10], marks))
    harness = harness.restored(then)
    for start in range(100, 200, 10):
        harness.batch(batch(rows[start : start + 10], marks))
    harness.end()
    assert shown(harness, distinct) == wanted


def test_rows_of_a_window_come_before_the_watermark_that_closes_it() -> None:
    harness = OperatorHarness(spec(WindowSpec(WindowKind.TUMBLE, 10, 10, 0, 2)))
    rows = [("a", 1, 5), ("a", 1, 15), ("a", 1, 35)]
    track = WatermarkTrack(np.array([1, 2, 3], np.int32), np.array([5, 15, 35], np.int64))
    harness.batch(batch(rows).with_track(track))
    out = harness.batches[0]
    assert out.track is not None
    assert [ms(row[-2]) for row in harness.rows] == [10, 20]
    assert out.track.offsets.tolist() == [0, 1, 2]
    assert harness.watermarks == [5, 15, 35]


def test_retracted_rows_leave_their_window() -> None:
    harness = OperatorHarness(spec(WindowSpec(WindowKind.TUMBLE, 10, 10, 0, 2), (call("COUNT"), call("MAX", 1)), True))
    rows = [("a", 1, 5), ("a", 9, 6), ("a", 9, 6), ("b", 3, 7), ("b", 3, 7), ("c", 4, 8)]
    harness.batch(batch(rows, kinds=[0, 2, 1, 0, 3, 3]))
    harness.end()
    # Flink keeps a group whose retraction came first and shows it with a negative count.
    assert sorted(row[1:4] for row in harness.rows) == [("a", 1, 1), ("c", -1, None)]


def test_a_null_row_time_fails() -> None:
    harness = OperatorHarness(spec(WindowSpec(WindowKind.TUMBLE, 10, 10, 0, 2)))
    columns = [pa.array(["a"]), pa.array([1], pa.int32()), pa.array([None], pa.timestamp("ms"))]
    with pytest.raises(ExecutionError, match="RowTime field should not be null"):
        harness.batch(ChangelogBatch.of(columns))


def test_offset_moves_the_grid() -> None:
    harness = OperatorHarness(spec(WindowSpec(WindowKind.TUMBLE, 10, 10, 3, 2)))
    harness.batch(batch([("a", 1, 2), ("a", 1, 3)]))
    harness.end()
    assert [(ms(row[-3]), ms(row[-2])) for row in harness.rows] == [(-7, 3), (3, 13)]


def test_attached_windows_go_by_their_end() -> None:
    harness = OperatorHarness(spec(WindowSpec(WindowKind.HOP, 20, 5, 0, None, start_index=2, end_index=2)))
    harness.batch(batch([("a", 1, 20), ("a", 2, 25), ("a", 3, 20)]))
    harness.watermark(19)
    assert [(row[2], row[3], ms(row[-3]), ms(row[-2])) for row in harness.rows] == [(2, 4, 0, 20)]


@pytest.mark.parametrize("kind", [WindowKind.TUMBLE, WindowKind.HOP, WindowKind.CUMULATE])
def test_windows_of_the_clock(kind: WindowKind) -> None:
    clock = ManualClock(3)
    window = WindowSpec(kind, 20, 20 if kind is WindowKind.TUMBLE else 10, 0, None, processing_time=True)
    harness = OperatorHarness(spec(window), clock=clock, keys=[(0,)])
    harness.batch(batch([("a", 1, 0)]))
    harness.advance(10)
    harness.batch(batch([("a", 2, 0)]))
    harness = harness.restored(2)
    harness.advance(5)
    harness.advance(10)
    harness.batch(batch([("a", 7, 0)]))
    harness.end()
    found = sorted((ms(row[-3]), ms(row[-2]), row[3]) for row in harness.rows)
    wanted = {
        WindowKind.TUMBLE: [(0, 20, 3)],
        WindowKind.HOP: [(-10, 10, 1), (0, 20, 3)],
        WindowKind.CUMULATE: [(0, 10, 1), (0, 20, 3)],
    }
    assert found == wanted[kind]


def test_windows_over_instants_follow_daylight_saving() -> None:
    zone = "America/Los_Angeles"
    hour = 3_600_000
    spring = ms(datetime(2024, 3, 10, 8))  # local midnight; 02:00 does not exist
    window = WindowSpec(WindowKind.TUMBLE, 4 * hour, 4 * hour, 0, 2, zone=zone)
    harness = OperatorHarness(spec(window))
    harness.batch(batch([("a", 1, spring), ("a", 1, spring + 2 * hour), ("a", 1, spring + 3 * hour)]))
    harness.watermark(spring + 3 * hour - 2)
    assert harness.rows == []
    harness.watermark(spring + 3 * hour - 1)
    # Wall clock 00:00 to 04:00 lasts three hours; the third row is in the next window.
    row = harness.rows[0]
    assert row[2] == 2
    assert (row[-3], row[-2]) == (datetime(2024, 3, 10), datetime(2024, 3, 10, 4))
    assert row[-1] == datetime(2024, 3, 10, 10, 59, 59, 999_000, UTC)


def test_clock_times_that_come_twice_or_never() -> None:
    zone = "America/Los_Angeles"
    twice = ms(datetime(2024, 11, 3, 1, 30))
    never = ms(datetime(2024, 3, 10, 2, 30))
    got = to_epoch_ms(np.array([twice, never]), zone)
    assert got.tolist() == [ms(datetime(2024, 11, 3, 9, 30)), ms(datetime(2024, 3, 10, 10, 30))]
    assert to_local_ms(got[:1], zone).tolist() == [twice]
    assert to_epoch_ms(got, None) is got


@pytest.mark.parametrize(("kind", "size", "step"), [*GRIDS, (WindowKind.HOP, 10, 4), (WindowKind.HOP, 3, 7)])
@pytest.mark.parametrize("offset", [0, 3])
def test_slices_and_windows_agree(kind: WindowKind, size: int, step: int, offset: int) -> None:
    grid = Slicing(kind, size, step, offset)
    for time in range(-40, 40):
        positions, ends = grid.windows(grid.slice_end(np.array([time])))
        wanted = [end + offset for _, end in windows_of(time - offset, kind, size, step)]
        assert ends.tolist() == wanted
        assert grid.start(ends).tolist() == [start + offset for start, _ in windows_of(time - offset, kind, size, step)]
        assert not positions.any()


def test_table_function_repeats_rows_per_window() -> None:
    output = (*INPUT, Column("ws", BOUND), Column("we", BOUND), Column("wt", BOUND))
    harness = OperatorHarness(WindowTableFunctionSpec(WindowSpec(WindowKind.HOP, 10, 5, 0, 2), INPUT, output))
    harness.batch(batch([("a", 1, 7), ("b", 2, 12)], Watermarks(0), kinds=[0, 3]))
    found = [(row[0], row[1], ms(row[-3]), ms(row[-2]), ms(row[-1])) for row in harness.rows]
    assert found == [("+I", "a", 5, 15, 14), ("+I", "a", 0, 10, 9), ("-D", "b", 10, 20, 19), ("-D", "b", 5, 15, 14)]
    track = harness.batches[0].track
    assert track is not None
    assert track.offsets.tolist() == [2, 4]
