"""OVER windows against a model that follows Flink's functions row by row, over cuts, snapshots and parallelisms."""

from __future__ import annotations

import random
from collections import defaultdict
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from flowsql_core.batch import ChangelogBatch, WatermarkTrack
from flowsql_core.clock import ManualClock
from flowsql_core.expr import AggregateCall, InputRef
from flowsql_core.graph.over_specs import OverAggregateSpec, OverOrder
from flowsql_core.types.logical import BIGINT, INT, STRING, Column, TimestampType
from flowsql_runtime.testing.harness import OperatorHarness

pytestmark = [pytest.mark.usefixtures("each_backend"), pytest.mark.sampled(4)]

INPUT = (Column("k", STRING), Column("v", INT), Column("ts", TimestampType(precision=3)))
V = InputRef(1, INT)
CALLS = (
    AggregateCall("COUNT", (), BIGINT.as_nullable(False), "c"),
    AggregateCall("SUM", (V,), INT, "s"),
    AggregateCall("MIN", (V,), INT, "m"),
    AggregateCall("LAST_VALUE", (V,), INT, "l"),
)
Row = tuple[str, int | None, int]


def spec(
    rows: bool, preceding: int | None, order: OverOrder = OverOrder.ROW_TIME, ttl_ms: int = 0
) -> OverAggregateSpec:
    output = (*INPUT, *(Column(call.name, call.type) for call in CALLS))
    return OverAggregateSpec((0,), order, 2, rows, preceding, CALLS, (), INPUT, output, state_ttl_ms=ttl_ms)


def batch(rows: list[Row], marks: list[tuple[int, int]] = []) -> ChangelogBatch:  # noqa: B006 - never written to
    columns = (
        pa.array([row[0] for row in rows]),
        pa.array([row[1] for row in rows], pa.int32()),
        pa.array([row[2] for row in rows], pa.timestamp("ms")),
    )
    track = None
    if marks:
        offsets, levels = zip(*marks, strict=True)
        track = WatermarkTrack(np.array(offsets, np.int32), np.array(levels, np.int64))
    return ChangelogBatch(columns, len(rows), None, None, track)


def answers(frame: list[Row]) -> tuple[Any, ...]:
    values = [row[1] for row in frame if row[1] is not None]
    return len(frame), sum(values) if values else None, min(values, default=None), values[-1] if values else None


class Model:
    """Flink's functions of row time, one row and one watermark after the other."""

    def __init__(self, rows: bool, preceding: int | None) -> None:
        self.rows, self.preceding = rows, preceding
        self.watermark = -(2**63)
        self.waiting: dict[str, dict[int, list[Row]]] = defaultdict(lambda: defaultdict(list))
        self.frames: dict[str, list[Row]] = defaultdict(list)
        self.last: dict[str, int] = {}
        self.over: dict[str, int] = {}
        self.timers: dict[str, set[int]] = defaultdict(set)
        self.out: list[tuple[Any, ...]] = []

    def row(self, row: Row) -> None:
        key, _, time = row
        if time <= (self.watermark if self.preceding is None else self.last.get(key, 0)):
            return
        self.waiting[key][time].append(row)
        self.timers[key].add(time)
        if self.rows or self.preceding is None or self.over.get(key, 0) >= time + self.preceding + 1:
            return
        self.over[key] = time + self.preceding * 3 // 2 + 1
        self.timers[key].add(self.over[key])

    def mark(self, level: int) -> None:
        self.watermark = level
        for key in list(self.timers):
            for time in sorted(timer for timer in self.timers[key] if timer <= level):
                self.timers[key].remove(time)
                self._timer(key, time)

    def _timer(self, key: str, time: int) -> None:
        if key in self.over and self.over[key] <= time:
            self.frames.pop(key, None)
            self.last.pop(key, None)
            del self.over[key]
            return
        new = self.waiting[key].pop(time, [])
        frame = self.frames[key]
        if new and self.preceding is not None and not self.rows:
            frame[:] = [row for row in frame if row[2] >= time - self.preceding]
        if self.rows:
            for row in new:
                frame.append(row)
                if self.preceding is not None:
                    del frame[: -self.preceding - 1]
                self.out.append(("+I", *row, *answers(frame)))
        else:
            frame += new
            self.out += [("+I", *row, *answers(frame)) for row in new]
        self.last[key] = time


def history(seed: int, keys: str) -> tuple[list[Row], list[tuple[int, int]]]:
    """Rows up to 30 ms out of order with quiet times between them, and watermarks 10 ms behind."""
    draw = random.Random(seed)
    rows: list[Row] = []
    marks: list[tuple[int, int]] = []
    now = highest = level = 0
    for _ in range(80):
        now += draw.choice([0, 0, 1, 2, 5, 9, 60])
        time = max(now - draw.choice([0, 0, 0, 3, 9, 12, 30, 200]), 1)
        rows.append((draw.choice(keys), draw.choice([None, *range(9)]), time))
        highest = max(highest, time)
        if highest - 10 > level and draw.random() < 0.5:
            level = highest - 10
            marks.append((len(rows), level))
    return rows, marks


def plain(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return [
        (kind, k, v, ts if isinstance(ts, int) else round(ts.timestamp() * 1000), *rest)
        for kind, k, v, ts, *rest in rows
    ]


FRAMES = [(True, None), (False, None), (True, 0), (True, 3), (False, 0), (False, 25), (False, 1000)]


@pytest.mark.parametrize(("rows", "preceding"), FRAMES)
@pytest.mark.parametrize("cut", [7, 1000])
@pytest.mark.parametrize("seed", [1])
def test_rows_are_answered_as_the_model_says(rows: bool, preceding: int | None, cut: int, seed: int) -> None:
    model = Model(rows, preceding)
    given, marks = history(seed, "ab")
    harness = OperatorHarness(spec(rows, preceding), parallelism=2, keys=((0,),))
    at = 0
    for start in range(0, len(given), cut):
        part = given[start : start + cut]
        own = [(offset - start, level) for offset, level in marks if start < offset <= start + cut]
        harness.batch(batch(part, own))
        if start // cut % 4 == 1:
            at += 1
            harness = harness.restored(1 + at % 3)
    levels = dict(marks)
    for number, row in enumerate(given):
        if number in levels:
            model.mark(levels[number])
        model.row(row)
    if len(given) in levels:
        model.mark(levels[len(given)])
    harness.end()
    model.mark(2**63 - 1)
    for key in "ab":
        mine = [row for row in plain(harness.rows) if row[1] == key]
        assert mine == [row for row in model.out if row[1] == key]


@pytest.mark.parametrize(("rows", "preceding"), FRAMES)
def test_batches_of_any_size_make_the_same_changelog(rows: bool, preceding: int | None) -> None:
    given, marks = history(3, "abcdefgh")
    found = []
    for cut in (1, 7, 1000):
        harness = OperatorHarness(spec(rows, preceding), keys=((0,),))
        for start in range(0, len(given), cut):
            own = [(offset - start, level) for offset, level in marks if start < offset <= start + cut]
            harness.batch(batch(given[start : start + cut], own))
        harness.end()
        found.append(harness.rows)
    assert found[0] == found[1] == found[2]


def test_a_frame_of_time_is_freed_when_its_key_is_idle() -> None:
    harness = OperatorHarness(spec(False, 100), keys=((0,),))
    for number in range(200):
        harness.batch(batch([(f"key {number}", 1, number * 50 + 1)]))
        harness.watermark(number * 50)
        assert len(harness.operators[0]._index) < 12  # type: ignore[attr-defined]
    assert len(harness.rows) == 199


@pytest.mark.parametrize(("rows", "preceding"), [(True, None), (False, None), (True, 2)])
def test_idle_keys_start_over_after_the_time_to_live(rows: bool, preceding: int | None) -> None:
    harness = OperatorHarness(spec(rows, preceding, ttl_ms=1000), keys=((0,),), clock=ManualClock())
    harness.batch(batch([("a", 1, 1), ("b", 1, 1)]))
    harness.watermark(1)
    harness.advance(900)
    harness.batch(batch([("b", 1, 2)]))
    harness.watermark(2)
    harness.advance(700)
    # "a" has been idle for 1.6 s; a row of "c" waits for its watermark meanwhile.
    harness.batch(batch([("a", 1, 3), ("b", 1, 3), ("c", 1, 9)]))
    harness.watermark(3)
    assert [(row[1], row[4]) for row in harness.rows] == [("a", 1), ("b", 1), ("b", 2), ("a", 1), ("b", 3)]


def test_rows_of_the_clock_are_answered_when_their_millisecond_is_over() -> None:
    harness = OperatorHarness(spec(False, 100, OverOrder.PROCESSING_TIME), keys=((0,),), clock=ManualClock())
    harness.batch(batch([("a", 1, 0), ("b", 2, 0), ("a", 3, 0)]))
    assert not harness.rows
    harness.advance(1)
    harness.batch(batch([("a", 5, 0)]))
    harness = harness.restored(2)
    harness.advance(60)
    harness.batch(batch([("a", 7, 0)]))
    harness.advance(60)
    harness.batch(batch([("a", 9, 0)]))
    harness.advance(500)
    harness.batch(batch([("a", 2, 0), ("b", 4, 0)]))
    harness.end()
    found = [(row[1], row[2], row[4], row[5]) for row in harness.rows]
    assert found == [("a", 1, 2, 4), ("a", 3, 2, 4), ("b", 2, 1, 2), ("a", 5, 3, 9), ("a", 7, 4, 16), ("a", 9, 2, 16)]
