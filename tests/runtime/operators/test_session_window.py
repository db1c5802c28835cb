"""Session windows against a model that treats row by row, over cuts, snapshots and parallelisms."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
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
from flowsql_core.graph.window_specs import SessionAggregateSpec, SessionTableFunctionSpec
from flowsql_core.types.logical import DOUBLE, INT, STRING, Column, TimestampLtzType, TimestampType
from flowsql_runtime.testing.harness import OperatorHarness
from flowsql_runtime.window.zone import local_offsets, to_epoch_ms

pytestmark = [pytest.mark.usefixtures("each_backend"), pytest.mark.sampled(4)]

GAP = 10
BOUND = TimestampType(precision=3, nullable=False)
INPUT = (Column("k", STRING), Column("v", INT), Column("ts", TimestampType(precision=3)), Column("d", DOUBLE))
PROPERTIES = (WindowProperty.START, WindowProperty.END, WindowProperty.TIME)
BOUNDS = (Column("ws", BOUND), Column("we", BOUND), Column("wt", BOUND))
#: Key, value, time, kind.
Row = tuple[str, int, int, int]


def call(name: str, *columns: int, distinct: bool = False) -> AggregateCall:
    resolved = resolve_aggregate(name, tuple(INPUT[c].type for c in columns), distinct, None)
    args = tuple(InputRef(c, INPUT[c].type) for c in columns)
    return AggregateCall(resolved.name, args, resolved.result_type, name, distinct)


COMMUTING = (call("COUNT"), call("SUM", 1), call("MIN", 1), call("MAX", 0))
CALLS = {
    "commuting": COMMUTING,
    "in order": (*COMMUTING, call("SUM", 3), call("AVG", 3)),
    "kept": (*COMMUTING, call("COUNT", 1, distinct=True), call("ARRAY_AGG", 1)),
}


def window(zone: str | None = None, processing_time: bool = False) -> WindowSpec:
    time = None if processing_time else 2
    return WindowSpec(WindowKind.SESSION, GAP, GAP, 0, time, processing_time, zone=zone)


def spec(calls: tuple[AggregateCall, ...], retracts: bool = False, **options: Any) -> SessionAggregateSpec:
    output = (INPUT[0], *(Column(c.name, c.type) for c in calls), *BOUNDS)
    return SessionAggregateSpec((0,), calls, window(**options), PROPERTIES, INPUT, output, retracts)


def table_spec() -> SessionTableFunctionSpec:
    return SessionTableFunctionSpec((0,), window(), INPUT, (*INPUT, *BOUNDS))


def ms(moment: datetime) -> int:
    return (moment.replace(tzinfo=None) - datetime(1970, 1, 1)) // timedelta(milliseconds=1)


@dataclass
class Session:
    """What the model knows of one. ``rows``: numbers in the order in which an accumulator takes them in."""

    start: int
    end: int
    born: int
    rows: list[int] = field(default_factory=list)


def java_bucket(session: Session) -> int:
    """Where a HashSet of 16 buckets keeps Flink's TimeWindow."""
    inverse = pow(((session.end << 1) + 1) % 2**32, -1, 2**32)
    code = (session.start + inverse) % 2**32
    return (code ^ (code >> 16)) & 15


class Model:
    """Sessions of each key, a row at a time; after each row the watermark that it lifts."""

    def __init__(self, lag: int) -> None:
        self.lag, self.highest = lag, -(10**9)
        self.open: dict[str, list[Session]] = {}
        self.closed: list[tuple[str, Session]] = []
        self.late: list[int] = []

    def take(self, number: int, row: Row) -> None:
        key, _, time, _ = row
        mine = self.open.setdefault(key, [])
        made = Session(time, time + GAP, number)
        touched = [one for one in mine if one.start <= made.end and time <= one.end]
        if not touched and made.end - 1 <= self.highest:
            self.late.append(number)
        else:
            # The later one was put into Java's set first.
            touched.sort(key=lambda one: (java_bucket(one), -one.start))
            keeper = touched[0] if touched else made
            for other in touched[1:]:
                keeper.rows += other.rows
                keeper.start, keeper.end = min(keeper.start, other.start), max(keeper.end, other.end)
                mine.remove(other)
            keeper.start, keeper.end = min(keeper.start, time), max(keeper.end, made.end)
            keeper.rows.append(number)
            if not touched:
                mine.append(keeper)
        if time - self.lag > self.highest:
            self.watermark(time - self.lag)

    def watermark(self, level: int) -> None:
        self.highest = level
        due = [(key, one) for key, mine in self.open.items() for one in mine if one.end - 1 <= level]
        for key, one in sorted(due, key=lambda pair: (pair[1].end, pair[1].born)):
            self.open[key].remove(one)
            self.closed.append((key, one))


def some_rows(seed: int, count: int, disorder: int = 60) -> list[Row]:
    draw = random.Random(seed)
    rows = [("abcd"[draw.randrange(4)], draw.randrange(5), 3 * i + draw.randrange(disorder), 0) for i in range(count)]
    return rows


def doubled(value: int) -> float:
    return value * 1.1


def batch(rows: list[Row], lag: int, highest: int) -> tuple[ChangelogBatch, int]:
    offsets, marks = [], []
    for i, row in enumerate(rows):
        if row[2] - lag > highest:
            highest = row[2] - lag
            offsets.append(i + 1)
            marks.append(highest)
    columns = [
        pa.array([row[0] for row in rows]),
        pa.array([row[1] for row in rows], pa.int32()),
        pa.array([row[2] for row in rows], pa.timestamp("ms")),
        pa.array([doubled(row[1]) for row in rows]),
    ]
    kinds = np.array([row[3] for row in rows], np.uint8)
    track = WatermarkTrack(np.array(offsets, np.int32), np.array(marks, np.int64)) if offsets else None
    return ChangelogBatch.of(columns, kinds if kinds.any() else None, track), highest


def feed(harness: OperatorHarness[Any], rows: list[Row], lag: int, cut: int, highest: int = -(10**9)) -> int:
    for start in range(0, len(rows), cut):
        made, highest = batch(rows[start : start + cut], lag, highest)
        harness.batch(made)
    return highest


def folded(key: str, one: Session, rows: list[Row], calls: tuple[AggregateCall, ...]) -> tuple[Any, ...]:
    values = [rows[number][1] for number in one.rows]
    total = 0.0
    for value in values:
        total += doubled(value)
    answers: dict[str, Any] = {
        "COUNT": len(values), "SUM": sum(values), "MIN": min(values), "MAX": key, "SUM3": total,
        "AVG": total / len(values), "COUNT1": len(set(values)), "ARRAY_AGG": values,
    }  # fmt: skip
    shown = [answers.get(f"{c.function}{c.args[0].index if c.args else ''}", answers.get(c.function)) for c in calls]
    return key, *shown, one.start, one.end, one.end - 1


def shown(harness: OperatorHarness[Any]) -> list[tuple[Any, ...]]:
    return [(*row[1:-3], *(ms(value) for value in row[-3:])) for row in harness.rows]


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("lag", [0, 15, 200])
@pytest.mark.parametrize("cut", [1, 7, 200])
def test_sessions_are_the_models(name: str, lag: int, cut: int) -> None:
    rows = some_rows(lag, 200)
    model = Model(lag)
    for number, row in enumerate(rows):
        model.take(number, row)
    model.watermark(10**12)
    harness = OperatorHarness(spec(CALLS[name]))
    feed(harness, rows, lag, cut)
    harness.end()
    wanted = [folded(key, one, rows, CALLS[name]) for key, one in model.closed]
    if name == "in order":
        # Sums of two sessions are added, where the model adds value by value.
        assert [(*row[:5], *row[-3:]) for row in shown(harness)] == [(*row[:5], *row[-3:]) for row in wanted]
        assert [row[5:-3] for row in shown(harness)] == [pytest.approx(row[5:-3]) for row in wanted]
    else:
        assert shown(harness) == wanted
    assert len(harness.side("late")) == len(model.late)
    assert harness.operators[0].ctx.metrics.counter("numLateRecordsDropped").value == len(model.late)
    for table in harness.operators[0].ctx.state.snapshot().values():
        assert table.num_rows == 0


@pytest.mark.parametrize("lag", [0, 15, 200])
def test_floating_sums_do_not_depend_on_batches(lag: int) -> None:
    rows = some_rows(7, 300)
    answers = []
    for cut in (1, 7, 300):
        harness = OperatorHarness(spec(CALLS["in order"]))
        feed(harness, rows, lag, cut)
        harness.end()
        answers.append(harness.rows)
    assert answers[0] == answers[1] == answers[2]


@pytest.mark.parametrize("cut", [1, 7, 200])
def test_rows_come_with_their_session_in_order_of_arrival(cut: int) -> None:
    rows = [(*row[:3], number % 4) for number, row in enumerate(some_rows(3, 200))]
    model = Model(15)
    for number, row in enumerate(rows):
        model.take(number, row)
    model.watermark(10**12)
    harness = OperatorHarness(table_spec())
    feed(harness, rows, 15, cut)
    harness.end()
    kinds = ("+I", "-U", "+U", "-D")
    wanted = [
        (kinds[rows[number][3]], *rows[number][:2], one.start, one.end, one.end - 1)
        for _, one in model.closed
        for number in sorted(one.rows)
    ]
    assert [(*row[:3], *(ms(value) for value in row[-3:])) for row in harness.rows] == wanted


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("then", [1, 2, 3])
def test_goes_on_at_another_parallelism(name: str, then: int) -> None:
    rows = some_rows(4, 200)
    model = Model(25)
    for number, row in enumerate(rows):
        model.take(number, row)
    model.watermark(10**12)
    harness: OperatorHarness[Any] = OperatorHarness(spec(CALLS[name]), parallelism=2, keys=[(0,)])
    highest = feed(harness, rows[:100], 25, 10)
    harness = harness.restored(then)
    feed(harness, rows[100:], 25, 10, highest)
    harness.end()
    wanted = [folded(key, one, rows, CALLS[name]) for key, one in model.closed]
    exact = 5 if name == "in order" else None
    assert sorted(str((*row[:exact], *row[-3:])) for row in shown(harness)) == sorted(
        str((*row[:exact], *row[-3:])) for row in wanted
    )


@pytest.mark.parametrize("name", ["commuting", "kept"])
def test_retracted_rows_leave_their_session(name: str) -> None:
    harness = OperatorHarness(spec(CALLS[name][:3], retracts=True))
    rows = [("a", 1, 5, 0), ("a", 9, 6, 2), ("a", 9, 6, 1), ("b", 3, 7, 0), ("b", 3, 7, 3), ("c", 4, 8, 3)]
    feed(harness, rows, 100, 3)
    harness.end()
    # Flink keeps a group whose retraction came first and shows it with a negative count.
    assert [row[:4] for row in shown(harness)] == [("a", 1, 1, 1), ("c", -1, -4, None)]


def test_a_closed_session_takes_no_more_rows_in() -> None:
    harness = OperatorHarness(spec(COMMUTING))
    rows = [("a", 1, 0, 0), ("b", 1, 14, 0), ("a", 2, 5, 0), ("a", 3, 6, 0), ("a", 4, 4, 0)]
    columns = batch(rows, 10**6, 0)[0].columns
    track = WatermarkTrack(np.array([2], np.int32), np.array([9], np.int64))
    harness.batch(ChangelogBatch.of(columns, None, track))
    harness.end()
    # The session [0, 10) closed at 9; rows from 1 on open another, which closes later.
    found = [(row[0], row[1], row[-3], row[-2]) for row in shown(harness)]
    assert found == [("a", 1, 0, 10), ("a", 3, 4, 16), ("b", 1, 14, 24)]
    out = harness.batches[0]
    assert out.track is not None
    assert (out.num_rows, out.track.offsets.tolist()) == (1, [1])


def test_sessions_of_the_clock() -> None:
    clock = ManualClock(100)
    harness = OperatorHarness(spec(COMMUTING, processing_time=True), clock=clock, keys=[(0,)])
    feed(harness, [("a", 1, 0, 0), ("b", 2, 0, 0)], 10**6, 2)
    harness.advance(5)
    feed(harness, [("a", 2, 0, 0)], 10**6, 1)
    harness = harness.restored(2)
    harness.advance(8)
    assert [row[:3] for row in shown(harness)] == [("b", 1, 2)]
    feed(harness, [("a", 4, 0, 0)], 10**6, 1)
    harness.advance(9)
    feed(harness, [("b", 4, 0, 0)], 10**6, 1)
    harness.end()
    # What is open at the end of input is dropped.
    found = [(*row[:3], *row[-3:]) for row in shown(harness)]
    assert found == [("b", 1, 2, 100, 110, 109), ("a", 3, 7, 100, 123, 122)]


def test_sessions_over_instants_lie_on_the_zones_clock() -> None:
    zone = "America/Los_Angeles"
    ltz = TimestampLtzType(precision=3)
    given = (*INPUT[:2], Column("ts", ltz), INPUT[3])
    hour = 3_600_000
    found = WindowSpec(WindowKind.SESSION, hour, hour, 0, 2, zone=zone)
    bounds = (*BOUNDS[:2], Column("wt", TimestampLtzType(precision=3, nullable=False)))
    output = (INPUT[0], Column("n", COMMUTING[0].type), *bounds)
    harness = OperatorHarness(SessionAggregateSpec((0,), COMMUTING[:1], found, PROPERTIES, given, output, False))
    spring = ms(datetime(2024, 3, 10, 9, 30))  # 01:30 local; 02:00 does not exist
    # On the wall clock 01:30 and 03:00 are more than an hour apart.
    moments = pa.array([spring, spring + hour // 2], pa.timestamp("ms", "UTC"))
    columns = [pa.array(["a", "a"]), pa.array([1, 1], pa.int32()), moments, pa.array([0.0, 0.0])]
    harness.batch(ChangelogBatch.of(columns))
    harness.end()
    assert [(row[2], row[3], row[4]) for row in harness.rows] == [
        (1, datetime(2024, 3, 10, 1, 30), datetime(2024, 3, 10, 2, 30)),
        (1, datetime(2024, 3, 10, 3), datetime(2024, 3, 10, 4)),
    ]


@pytest.mark.parametrize("zone", ["America/Los_Angeles", "Europe/Berlin", "Australia/Lord_Howe", "UTC"])
def test_offsets_by_local_time_are_those_of_the_zone(zone: str) -> None:
    low, high = ms(datetime(2024, 2, 1)), ms(datetime(2024, 12, 1))
    breaks, offsets = local_offsets(low, high, zone)
    times = np.concatenate([np.arange(low, high, 1_234_567), breaks - 1, breaks])
    found = times - offsets[np.searchsorted(breaks, times, side="right")]
    assert (found == to_epoch_ms(times, zone)).all()
    assert len(breaks) == (0 if zone == "UTC" else 2)
