"""Interval joins against Flink's own algorithm, walked row by row: late rows, timers, cuts, snapshots, parallelism."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pytest

from flowsql_core.batch import ChangelogBatch, WatermarkTrack
from flowsql_core.clock import ManualClock
from flowsql_core.element import MAX_WATERMARK, Watermark
from flowsql_core.expr import Call, InputRef
from flowsql_core.graph.specs import JoinKind
from flowsql_core.graph.time_join_specs import IntervalJoinSpec
from flowsql_core.types.logical import BIGINT, INT, STRING, BooleanType, Column, TimestampType
from flowsql_runtime.operators.join import interval, side
from flowsql_runtime.testing.harness import OperatorHarness

pytestmark = [pytest.mark.usefixtures("each_backend"), pytest.mark.sampled(4)]

TIME: Final = TimestampType(precision=3)
LEFT: Final = (Column("k", INT), Column("a", STRING), Column("t", TIME))
RIGHT: Final = (Column("k", INT), Column("b", BIGINT), Column("t", TIME))
OUTER: Final = (JoinKind.INNER, JoinKind.LEFT, JoinKind.RIGHT, JoinKind.FULL)


def spec(**changes: Any) -> IntervalJoinSpec:
    fields: dict[str, Any] = {
        "kind": JoinKind.FULL, "left_time": 2, "right_time": 2, "lower_ms": -30, "upper_ms": 50, "row_time": True,
        "left_keys": (0,), "right_keys": (0,), "null_safe": (False,), "condition": None, "left": LEFT, "right": RIGHT,
        "output": LEFT + RIGHT,
    }  # fmt: skip
    return IntervalJoinSpec(**(fields | changes))


#: Key, value, time of a row; or a watermark.
Row = tuple[int | None, Any, int]


@dataclass
class Input:
    """Consecutive rows of one side, with watermarks between them."""

    side: int
    items: list[Row | int]


def batches(parts: list[Input], size: int) -> list[tuple[int, ChangelogBatch]]:
    """The inputs in batches of so many rows at most."""
    made = []
    for part in parts:
        rows: list[Row] = []
        track: list[tuple[int, int]] = []
        for item in [*part.items, None]:
            if item is None or (isinstance(item, tuple) and len(rows) == size):
                if rows or track:
                    made.append((part.side, batch(part.side, rows, track)))
                rows, track = [], []
            if isinstance(item, tuple):
                rows.append(item)
            elif item is not None:
                track.append((len(rows), item))
    return made


def batch(side: int, rows: list[Row], track: list[tuple[int, int]] | None = None) -> ChangelogBatch:
    keys = pa.array([row[0] for row in rows], pa.int32())
    values = pa.array([row[1] for row in rows], pa.string() if side == 0 else pa.int64())
    times = pa.array([row[2] for row in rows], pa.timestamp("ms"))
    marks = None
    if track:
        marks = WatermarkTrack(
            np.array([at for at, _ in track], np.int32), np.array([level for _, level in track], np.int64)
        )
    return ChangelogBatch.of([keys, values, times], None, marks)


def inputs(seed: int, count: int = 60, late: float = 0.1) -> list[Input]:
    """Two sides with rows out of order, a part of them late; each raises its watermark now and then."""
    rng = random.Random(seed)
    marks = [0, 0]
    clock = 1000
    number = 0
    parts = []
    for _ in range(count):
        side_ = rng.randint(0, 1)
        items: list[Row | int] = []
        for _ in range(rng.randint(1, 9)):
            clock += rng.randint(0, 12)
            number += 1
            time = clock - rng.randint(0, 60 if late else 40) - (rng.randint(0, 300) if rng.random() < late else 0)
            key = rng.choice((None, 1, 1, 2, 3))
            items.append((key, f"a{number}" if side_ == 0 else number, time))
            if rng.random() < 0.4:
                level = clock - 41
                if level > marks[side_]:
                    marks[side_] = level
                    items.append(level)
        parts.append(Input(side_, items))
    return parts


@dataclass
class Flink:
    """``TimeIntervalJoin`` and ``KeyedCoProcessOperatorWithWatermarkDelay``, as they are written."""

    spec: IntervalJoinSpec
    out: list[tuple[int, tuple[Any, ...]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.kept = (-self.spec.lower_ms, self.spec.upper_ms)
        self.outer = (
            self.spec.kind in (JoinKind.LEFT, JoinKind.FULL),
            self.spec.kind in (JoinKind.RIGHT, JoinKind.FULL),
        )
        self.caches: tuple[dict[Any, list[list[Any]]], ...] = ({}, {})
        self.timers: tuple[dict[Any, int], ...] = ({}, {})
        self.expiration = [0, 0]
        self.marks = [-(2**63), -(2**63)]
        self.watermark = -(2**63)
        self.emitted_watermark = -(2**63)

    def now(self) -> int:
        return max(self.watermark, 0)

    def expired(self, side_: int) -> int:
        now = self.now()
        return now if now == MAX_WATERMARK else now - self.kept[side_] - 1

    def emit(self, side_: int, own: Row | None, other: Row | None) -> None:
        none = (None, None, None)
        pair = (own or none, other or none) if side_ == 0 else (other or none, own or none)
        self.out.append((self.emitted_watermark, (*pair[0], *pair[1])))

    def row(self, side_: int, row: Row) -> None:
        key, _, time = row
        other = 1 - side_
        lower, upper = time - self.kept[other], time + self.kept[side_]
        emitted = False
        if self.expiration[other] < upper:
            self.expiration[other] = self.expired(other)
            cache = self.caches[other].get(key, [])
            for entry in sorted(cache, key=lambda entry: entry[0][2]):
                if lower <= entry[0][2] <= upper and key is not None:
                    self.emit(side_, row, entry[0])
                    emitted = entry[1] = True
            for entry in sorted(cache, key=lambda entry: entry[0][2]):
                if entry[0][2] <= self.expiration[other]:
                    if self.outer[other] and not entry[1]:
                        self.emit(other, entry[0], None)
                    cache.remove(entry)
        if self.now() < upper:
            self.caches[side_].setdefault(key, []).append([row, emitted])
            self.timers[side_].setdefault(key, time + self.kept[side_] + self.spec.idle_ms + 1)
        elif not emitted and self.outer[side_]:
            self.emit(side_, row, None)

    def mark(self, side_: int, level: int) -> None:
        self.marks[side_] = max(self.marks[side_], level)
        if min(self.marks) <= self.watermark:
            return
        self.watermark = min(self.marks)
        due = [
            (timer, side_, key)
            for side_ in (0, 1)
            for key, timer in self.timers[side_].items()
            if timer <= min(self.marks)
        ]
        for _, which, key in sorted(due, key=lambda item: item[0]):
            self.expiration[which] = self.expired(which)
            cache = self.caches[which].get(key, [])
            for entry in sorted(cache, key=lambda entry: entry[0][2]):
                if entry[0][2] <= self.expiration[which]:
                    if self.outer[which] and not entry[1]:
                        self.emit(which, entry[0], None)
                    cache.remove(entry)
            del self.timers[which][key]
            if cache:
                earliest = min(entry[0][2] for entry in cache)
                self.timers[which][key] = earliest + self.kept[which] + self.spec.idle_ms + 1
        delay = 0 if self.watermark == MAX_WATERMARK else max(self.kept)
        self.emitted_watermark = self.watermark - delay

    def run(self, parts: list[Input]) -> list[tuple[int, tuple[Any, ...]]]:
        for part in parts:
            for item in part.items:
                if isinstance(item, tuple):
                    self.row(part.side, item)
                else:
                    self.mark(part.side, item)
        self.mark(0, MAX_WATERMARK)
        self.mark(1, MAX_WATERMARK)
        return self.out


def seen(harness: OperatorHarness[Any]) -> list[tuple[int, tuple[Any, ...]]]:
    """Rows with the watermark that stood before each."""
    found = []
    level = -(2**63)
    for element in harness.output.elements:
        if isinstance(element, Watermark):
            level = element.timestamp_ms
            continue
        assert isinstance(element, ChangelogBatch)
        marks = [] if element.track is None else list(zip(element.track.offsets, element.track.wm_ms, strict=True))
        columns = [
            column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column for column in element.columns
        ]
        for number, row in enumerate(zip(*(column.to_pylist() for column in columns), strict=True)):
            level = max([level, *(int(mark) for at, mark in marks if at <= number)])
            found.append((level, row))
        level = max([level, *(int(mark) for _, mark in marks)])
    return found


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("size", [1, 7, 100])
def test_changes_are_those_of_flink(seed: int, size: int) -> None:
    kind = OUTER[(seed + 3) % 4]
    lower, upper, idle = [(-30, 50, 0), (-100, -20, 0), (10, 60, 0), (-30, 50, 40), (0, 0, 0), (-200, 200, 15)][
        seed % 6
    ]
    joined = spec(kind=kind, lower_ms=lower, upper_ms=upper, idle_ms=idle)
    parts = inputs(seed)
    harness = OperatorHarness(joined, keys=[(0,), (0,)])
    for side_, rows in batches(parts, size):
        harness.batch(rows, side_)
    harness.end()
    wanted = Flink(joined).run(parts)
    got = seen(harness)
    assert Counter(got) == Counter(wanted)
    # Pairs leave row by row, in the order of the partners' times.
    assert [row for _, row in got if None not in row] == [row for _, row in wanted if None not in row]
    assert harness.watermarks[-1] == MAX_WATERMARK
    assert len(harness.operators[0].ctx.state.snapshot()["left"]) == 0


@pytest.mark.parametrize(("before", "after"), [(1, 1), (1, 3), (3, 2)])
def test_state_moves(before: int, after: int) -> None:
    """No row is late: what those meet depends on the subtask that they come to."""
    parts = inputs(11, late=0)
    harness = OperatorHarness(spec(), before, keys=[(0,), (0,)])
    found = batches(parts, 7)
    for number, (side_, rows) in enumerate(found):
        if number == len(found) // 2:
            harness = harness.restored(after)
        harness.batch(rows, side_)
    harness.end()
    wanted = Flink(spec()).run(parts)
    assert Counter(row for _, row in seen(harness)) == Counter(row for _, row in wanted)
    if before == after == 1:
        assert Counter(seen(harness)) == Counter(wanted)
    assert sum(len(operator.ctx.state.snapshot()["right"]) for operator in harness.operators) == 0


def test_nothing_is_close_enough() -> None:
    """Bounds that exclude each other: rows leave alone at once, and the watermark is not held back."""
    harness = OperatorHarness(spec(kind=JoinKind.LEFT, lower_ms=10, upper_ms=-10), keys=[(0,), (0,)])
    harness.batch(batch(0, [(1, "a", 100)], [(1, 50)]), 0)
    harness.batch(batch(1, [(1, 7, 100)], [(1, 60)]), 1)
    assert seen(harness) == [(-(2**63), (1, "a", 100, None, None, None))]
    assert harness.watermarks == [50]
    assert all(len(table) == 0 for table in harness.operators[0].ctx.state.snapshot().values())


def test_more_pairs_than_fit_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    parts = inputs(5)
    for module in (side, interval):
        monkeypatch.setattr(module, "MOST_PAIRS", 5)
    harness = OperatorHarness(spec(), keys=[(0,), (0,)])
    for side_, rows in batches(parts, 100):
        harness.batch(rows, side_)
    harness.end()
    assert Counter(seen(harness)) == Counter(Flink(spec()).run(parts))


def test_a_condition_beside_keys_and_bounds() -> None:
    texts = (Column("k", INT), Column("b", STRING), Column("t", TIME))
    equal = Call("=", (InputRef(1, STRING), InputRef(4, STRING)), BooleanType())
    harness = OperatorHarness(spec(condition=equal, right=texts, output=LEFT + texts), keys=[(0,), (0,)])
    harness.batch(batch(0, [(1, "x", 100), (1, "y", 101)]), 0)
    right = batch(0, [(1, "y", 105), (1, "z", 106)])
    harness.batch(right, 1)
    assert [row[1:] for row in seen(harness)] == [((1, "y", 101, 1, "y", 105),)]
    harness.end()
    assert sorted((row[1][1], row[1][4]) for row in seen(harness)[1:] if row[1][1]) == [("x", None)]


@pytest.mark.parametrize("kind", [JoinKind.INNER, JoinKind.LEFT], ids=lambda kind: kind.name)
def test_in_processing_time(kind: JoinKind) -> None:
    """Rows wait by the clock; those that wait at the end of the input are dropped, as Flink does."""
    clock = ManualClock()
    clock.advance(10_000)
    harness = OperatorHarness(spec(kind=kind, row_time=False), keys=[(0,), (0,)], clock=clock)
    harness.batch(batch(0, [(1, "a", 0), (2, "b", 0)], [(2, 77)]), 0)
    harness.advance(20)
    harness = harness.restored(1)
    harness.batch(batch(1, [(1, 5, 0)], [(1, 99)]), 1)
    assert [row for _, row in seen(harness)] == [(1, "a", 0, 1, 5, 0)]
    assert harness.watermarks == [77]
    harness.advance(10)
    assert len(seen(harness)) == 1
    harness.advance(1)
    alone = [(2, "b", 0, None, None, None)]
    assert [row for _, row in seen(harness)[1:]] == (alone if kind is JoinKind.LEFT else [])
    harness.batch(batch(0, [(3, "c", 0)]), 0)
    harness.end()
    assert len(seen(harness)) == (2 if kind is JoinKind.LEFT else 1)


def test_state_is_freed_by_the_watermark() -> None:
    harness = OperatorHarness(spec(kind=JoinKind.INNER), keys=[(0,), (0,)])
    for step in range(50):
        time = 1000 + 100 * step
        harness.batch(batch(0, [(step, "a", time)], [(1, time)]), 0)
        harness.batch(batch(1, [(step, 1, time)], [(1, time)]), 1)
        tables = harness.operators[0].ctx.state.snapshot()
        assert {name: len(table) for name, table in tables.items() if len(table) > 2} == {}
    assert len(harness.rows) == 50
