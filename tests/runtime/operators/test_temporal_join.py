"""Temporal joins against Flink's own algorithm, walked row by row: late rows, versions that go, cuts, parallelism."""

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
from flowsql_core.graph.time_join_specs import TemporalJoinSpec
from flowsql_core.row import SHORT_STRINGS
from flowsql_core.types.logical import BIGINT, INT, STRING, BooleanType, Column, TimestampType
from flowsql_runtime.operators.join import temporal, waiting_rows
from flowsql_runtime.testing.harness import OperatorHarness

pytestmark = [pytest.mark.usefixtures("each_backend"), pytest.mark.sampled(3)]

TIME: Final = TimestampType(precision=3)
LEFT: Final = (Column("k", INT), Column("a", BIGINT), Column("t", TIME))
RIGHT: Final = (Column("k", INT), Column("b", BIGINT), Column("t", TIME))

#: Kind of change, key, value, time of a row; or a watermark.
Row = tuple[int, int, int, int]
Item = Row | int
Emitted = tuple[int, str, tuple[Any, ...]]


def spec(**changes: Any) -> TemporalJoinSpec:
    fields: dict[str, Any] = {
        "kind": JoinKind.LEFT, "left_time": 2, "right_time": 2, "left_keys": (0,), "right_keys": (0,),
        "null_safe": (False,), "condition": None, "left": LEFT, "right": RIGHT, "output": LEFT + RIGHT,
        "left_changes": True,
    }  # fmt: skip
    return TemporalJoinSpec(**(fields | changes))


def batch(rows: list[Row], track: list[tuple[int, int]] | None = None) -> ChangelogBatch:
    columns = [
        pa.array([row[1] for row in rows], pa.int32()),
        pa.array([row[2] for row in rows], pa.int64()),
        pa.array([row[3] for row in rows], pa.timestamp("ms")),
    ]
    kinds = np.array([row[0] for row in rows], np.uint8)
    marks = None
    if track:
        marks = WatermarkTrack(
            np.array([at for at, _ in track], np.int32), np.array([level for _, level in track], np.int64)
        )
    return ChangelogBatch.of(columns, kinds if kinds.any() else None, marks)


def batches(parts: list[tuple[int, list[Item]]], size: int) -> list[tuple[int, ChangelogBatch]]:
    made = []
    for side, items in parts:
        rows: list[Row] = []
        track: list[tuple[int, int]] = []
        for item in [*items, None]:
            if item is None or (isinstance(item, tuple) and len(rows) == size):
                if rows or track:
                    made.append((side, batch(rows, track)))
                rows, track = [], []
            if isinstance(item, tuple):
                rows.append(item)
            elif item is not None:
                track.append((len(rows), item))
    return made


def inputs(seed: int, late: float = 0.15, count: int = 60) -> list[tuple[int, list[Item]]]:
    rng = random.Random(seed)
    marks = [0, 0]
    clock, number = 1000, 0
    parts = []
    for _ in range(count):
        side = rng.randint(0, 1)
        items: list[Item] = []
        for _ in range(rng.randint(1, 9)):
            clock += rng.randint(0, 12)
            number += 1
            time = clock - rng.randint(0, 40) - (rng.randint(0, 200) if rng.random() < late else 0)
            kind = rng.choice((0, 0, 2, 3) if side else (0, 0, 0, 1, 2, 3))
            items.append((kind, rng.choice((1, 1, 2, 3)), number, time))
            if rng.random() < 0.4 and clock - 41 > marks[side]:
                marks[side] = clock - 41
                items.append(marks[side])
        parts.append((side, items))
    return parts


@dataclass
class Flink:
    """``TemporalRowTimeJoinOperator``, as it is written."""

    spec: TemporalJoinSpec
    out: list[Emitted] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.left: dict[int, list[Row]] = {}
        self.right: dict[int, dict[int, Row]] = {}
        self.timers: dict[int, int] = {}
        self.marks = [-(2**63), -(2**63)]
        self.watermark = -(2**63)

    def row(self, side: int, row: Row) -> None:
        _, key, _, time = row
        if side == 0:
            self.left.setdefault(key, []).append(row)
        else:
            self.right.setdefault(key, {})[time] = row
        self.timers[key] = min(self.timers.get(key, time), time)

    def mark(self, side: int, level: int) -> None:
        self.marks[side] = max(self.marks[side], level)
        if min(self.marks) <= self.watermark:
            return
        before, self.watermark = self.watermark, min(self.marks)
        due = sorted((timer, key) for key, timer in self.timers.items() if timer <= self.watermark)
        for _, key in due:
            del self.timers[key]
            self.fire(key, before)

    def fire(self, key: int, before: int) -> None:
        versions = self.right.get(key, {})
        waiting = self.left.pop(key, [])
        for row in waiting:
            if row[3] > self.watermark:
                self.left.setdefault(key, []).append(row)
                continue
            valid = [time for time in versions if time <= row[3]]
            version = versions[max(valid)] if valid else None
            if version is not None and version[0] & 1 == 0 and (self.spec.condition is None or row[2] % 2 == 0):
                self.out.append((before, SHORT_STRINGS[row[0]], (*row[1:], *version[1:])))
            elif self.spec.kind is JoinKind.LEFT:
                self.out.append((before, SHORT_STRINGS[row[0]], (*row[1:], None, None, None)))
        past = sorted(time for time in versions if time <= self.watermark)
        for time in past[:-1]:
            del versions[time]
        if key in self.left:
            self.timers[key] = min(row[3] for row in self.left[key])

    def run(self, parts: list[tuple[int, list[Item]]]) -> list[Emitted]:
        for side, items in parts:
            for item in items:
                if isinstance(item, tuple):
                    self.row(side, item)
                else:
                    self.mark(side, item)
        self.mark(0, MAX_WATERMARK)
        self.mark(1, MAX_WATERMARK)
        return self.out


def seen(harness: OperatorHarness[Any]) -> list[Emitted]:
    """Changes with the watermark that stood before each."""
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
        kinds = np.zeros(element.num_rows, np.uint8) if element.kinds is None else element.kinds
        for number, row in enumerate(zip(*(column.to_pylist() for column in columns), strict=True)):
            level = max([level, *(int(mark) for at, mark in marks if at <= number)])
            found.append((level, SHORT_STRINGS[kinds[number]], row))
        level = max([level, *(int(mark) for _, mark in marks)])
    return found


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("size", [1, 7, 100])
@pytest.mark.parametrize("most", [1, 12, 1000])
def test_changes_are_those_of_flink(seed: int, size: int, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also the order of the rows of a key, and wherever its rows wait."""
    monkeypatch.setattr(waiting_rows, "_MOST_ROWS", most)
    joined = spec(kind=(JoinKind.LEFT, JoinKind.INNER)[seed % 2])
    parts = inputs(seed)
    harness = OperatorHarness(joined, keys=[(0,), (0,)])
    for side, rows in batches(parts, size):
        harness.batch(rows, side)
    harness.end()
    flink = Flink(joined)
    got, wanted = seen(harness), flink.run(parts)
    assert Counter(got) == Counter(wanted)
    for key in (1, 2, 3):
        assert [row for row in got if row[2][0] == key] == [row for row in wanted if row[2][0] == key]
    tables = harness.operators[0].ctx.state.snapshot()
    assert len(tables["left"]) == 0
    stored = zip(tables["versions"]["k0"].to_pylist(), tables["versions"]["r4"].to_pylist(), strict=True)
    assert set(stored) == {(key, time) for key, versions in flink.right.items() for time in versions}


@pytest.mark.parametrize(("before", "after"), [(1, 1), (1, 3), (3, 2)])
def test_state_moves(before: int, after: int) -> None:
    parts = inputs(11)
    harness = OperatorHarness(spec(), before, keys=[(0,), (0,)])
    found = batches(parts, 7)
    for number, (side, rows) in enumerate(found):
        if number == len(found) // 2:
            harness = harness.restored(after)
        harness.batch(rows, side)
    harness.end()
    wanted = Flink(spec()).run(parts)
    if before == after == 1:
        assert Counter(seen(harness)) == Counter(wanted)
    assert Counter(row[1:] for row in seen(harness)) == Counter(row[1:] for row in wanted)


@pytest.mark.parametrize("kind", [JoinKind.INNER, JoinKind.LEFT], ids=lambda kind: kind.name)
def test_a_condition_judges_the_version(kind: JoinKind) -> None:
    """A version that fails it is none: no older one takes its place."""
    less = Call("<", (InputRef(1, BIGINT), InputRef(4, BIGINT)), BooleanType())
    harness = OperatorHarness(spec(kind=kind, condition=less), keys=[(0,), (0,)])
    harness.batch(batch([(0, 1, 9, 10), (0, 1, 1, 20)], [(2, 100)]), 1)
    harness.batch(batch([(0, 1, 5, 15), (0, 1, 5, 25)], [(2, 100)]), 0)
    alone = [(1, 5, 25, None, None, None)] if kind is JoinKind.LEFT else []
    assert [row for _, _, row in seen(harness)] == [(1, 5, 15, 1, 9, 10), *alone]
    assert harness.watermarks == [100]


def test_a_key_that_nothing_comes_for_is_forgotten() -> None:
    """Timers that fire count as something, too."""
    clock = ManualClock()
    harness = OperatorHarness(spec(state_ttl_ms=1000), keys=[(0,), (0,)], clock=clock)
    harness.batch(batch([(0, 1, 7, 10), (0, 2, 8, 10)], [(2, 50)]), 1)
    clock.advance(800)
    harness.batch(batch([(0, 2, 1, 20)], [(1, 30)]), 0)
    clock.advance(800)
    harness.batch(batch([(0, 2, 2, 35)], [(1, 40)]), 0)
    clock.advance(800)
    harness = harness.restored(1)
    harness.batch(batch([(0, 1, 3, 60), (0, 2, 4, 60)], [(2, 70)]), 0)
    harness.end()
    assert [row for _, _, row in seen(harness)] == [
        (2, 1, 20, 2, 8, 10), (2, 2, 35, 2, 8, 10), (1, 3, 60, None, None, None), (2, 4, 60, 2, 8, 10),
    ]  # fmt: skip


def test_texts_and_many_versions() -> None:
    texts = (Column("k", INT), Column("b", STRING), Column("t", TIME))
    harness = OperatorHarness(spec(right=texts, output=LEFT + texts, left_changes=False), keys=[(0,), (0,)])
    times = list(range(100))
    right = [
        pa.array([1] * 100, pa.int32()),
        pa.array([f"a text of version {time}" for time in times]),
        pa.array(times, pa.timestamp("ms")),
    ]
    harness.batch(ChangelogBatch.of(right), 1)
    harness.watermark(90, 1)
    harness.batch(batch([(0, 1, time, time) for time in (95, 3, 50)], [(3, 60)]), 0)
    assert [row[4] for _, _, row in seen(harness)] == ["a text of version 3", "a text of version 50"]
    assert len(harness.operators[0].ctx.state.snapshot()["versions"]) == 40


def test_a_key_that_fired_waits_for_the_same_time_again() -> None:
    """A late version brings the timer of its key back."""
    items: list[tuple[int, list[Item]]] = [
        (0, [20]), (1, [(0, 1, 7, 10)]), (0, [(0, 2, 9, 50)]), (1, [15, (0, 1, 8, 10)]), (0, [(0, 1, 1, 12), 30]),
        (1, [25, 30]),
    ]  # fmt: skip
    harness = OperatorHarness(spec(), keys=[(0,), (0,)])
    for side, rows in batches(items, 100):
        harness.batch(rows, side)
    wanted = Flink(spec())
    for side, part in items:
        for item in part:
            if isinstance(item, int):
                wanted.mark(side, item)
            else:
                wanted.row(side, item)
    assert seen(harness) == wanted.out
    assert len(wanted.out) == 1


def kept(harness: OperatorHarness[Any], name: str) -> int:
    return len(harness.operators[0].ctx.state.snapshot()[name])


def test_left_rows_wait_outside_state() -> None:
    """Until a watermark reaches them, or a barrier comes."""
    harness = OperatorHarness(spec(), keys=[(0,), (0,)])
    operator = harness.operators[0]
    harness.watermark(90, 1)
    harness.batch(batch([(0, 1, 7, 10)]), 1)
    harness.batch(batch([(0, 1, 1, 20), (0, 1, 2, 40)]), 0)
    harness.batch(batch([(0, 1, 3, 30)], [(1, 35)]), 0)
    assert [row for _, _, row in seen(harness)] == [(1, 1, 20, 1, 7, 10), (1, 3, 30, 1, 7, 10)]
    harness.batch(batch([(0, 1, 4, 36)]), 0)
    assert kept(harness, "left") == 0
    operator.prepare_snapshot_pre_barrier(1)
    assert kept(harness, "left") == 2
    harness.batch(batch([(0, 1, 5, 36), (0, 1, 6, 37)]), 0)
    harness.watermark(36, 0)
    assert [row[0][1] for _, _, *row in seen(harness)] == [1, 3, 4, 5]
    assert kept(harness, "left") == 1
    harness.watermark(50, 0)
    assert [row[0][1] for _, _, *row in seen(harness)] == [1, 3, 4, 5, 2, 6]
    assert kept(harness, "left") == 0


def test_versions_without_a_watermark_wait_for_a_left_row() -> None:
    harness = OperatorHarness(spec(), keys=[(0,), (0,)])
    harness.batch(batch([(0, 1, 7, 10)]), 1)
    harness.batch(batch([(0, 1, 8, 20)]), 1)
    assert kept(harness, "versions") == 0
    harness.batch(batch([(0, 1, 1, 25)]), 0)
    assert kept(harness, "versions") == 2


def test_so_many_rows_become_state_without_a_watermark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(temporal, "_MOST_HELD", 3)
    monkeypatch.setattr(waiting_rows, "_MOST_ROWS", 3)
    harness = OperatorHarness(spec(), keys=[(0,), (0,)])
    for number in range(5):
        harness.batch(batch([(0, 1, number, number)]), 0)
    for number in range(4):
        harness.batch(batch([(0, 2, number, number)]), 1)
    assert kept(harness, "left") == 3
    assert kept(harness, "versions") == 3


def test_so_many_bytes_become_state_without_a_watermark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting_rows, "_MOST_BYTES", 100)
    harness = OperatorHarness(spec(), keys=[(0,), (0,)])
    harness.batch(batch([(0, 1, number, number) for number in range(5)]), 0)
    assert kept(harness, "left") == 5


@pytest.mark.parametrize("size", [1, 20])
def test_rows_that_wait_for_long_are_put_together(size: int) -> None:
    """Whatever batches rows came in, they leave in order, and parts of which few rows still wait are copied."""
    rng = random.Random(size)
    waiting = waiting_rows.WaitingRows(2, [pa.nulls(0, pa.int32()), pa.nulls(0, pa.int64()), pa.nulls(0, pa.int64())])
    there: list[tuple[int, int]] = []
    number = 0
    for level in range(0, 3000, 10):
        rows = [(0, 1, number + row, level + rng.randint(-50, 300)) for row in range(rng.randint(0, 2 * size))]
        waiting.add(batch(rows), number)
        there += [(row[2], row[3]) for row in rows]
        number += len(rows)
        track = WatermarkTrack(np.array([0, len(rows)], np.int32), np.array([level - 5, level], np.int64))
        taken = waiting.reached(track, bool(rows))
        wanted = [row for row in there if row[1] <= level]
        values = taken.columns[1].take(pa.array(taken.rows)).to_pylist()
        assert list(zip(taken.numbers.tolist(), taken.times.tolist(), strict=True)) == wanted
        assert values == taken.numbers.tolist()
        late = taken.numbers >= number - len(rows)
        first = (taken.times <= level - 5) & ~late
        assert taken.entries.tolist() == np.where(first, 0, 1).tolist()
        there = [row for row in there if row[1] > level]
        assert len(waiting) == len(there)
    left = [row for rows in waiting.all() for row in zip(rows.numbers.tolist(), rows.times.tolist(), strict=True)]
    assert left == there
    assert len(waiting) == 0
