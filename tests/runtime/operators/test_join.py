"""The inner join against a model that walks rows one by one, over cuts, snapshots and both parallelisms."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from flowsql_core.batch import ChangelogBatch, single_watermark
from flowsql_core.clock import ManualClock
from flowsql_core.expr import Call, InputRef
from flowsql_core.graph.specs import JoinKind, JoinSpec, WindowJoinSpec
from flowsql_core.types.logical import BIGINT, INT, STRING, BooleanType, Column, TimestampType
from flowsql_runtime.operators.join import side as join_side
from flowsql_runtime.testing.harness import OperatorHarness

pytestmark = [pytest.mark.usefixtures("each_backend"), pytest.mark.sampled(3)]

LEFT = (Column("k", INT), Column("a", STRING))
RIGHT = (Column("k", INT), Column("b", BIGINT))
KINDS = ("+I", "-U", "+U", "-D")


def spec(**changes: Any) -> JoinSpec:
    fields: dict[str, Any] = {
        "kind": JoinKind.INNER, "left_keys": (0,), "right_keys": (0,), "null_safe": (False,), "condition": None,
        "left": LEFT, "right": RIGHT, "left_retracts": True, "right_retracts": True, "output": LEFT + RIGHT,
        "emit_update_before": True,
    }  # fmt: skip
    return JoinSpec(**(fields | changes))


def batch(side: int, rows: list[tuple[int, Any, Any]], track: int | None = None) -> ChangelogBatch:
    keys = pa.array([row[1] for row in rows], pa.int32())
    values = pa.array([row[2] for row in rows], pa.string() if side == 0 else pa.int64())
    kinds = np.array([row[0] for row in rows], np.uint8)
    watermarks = None if track is None else single_watermark(len(rows), track)
    return ChangelogBatch.of([keys, values], kinds if kinds.any() else None, watermarks)


Event = tuple[int, list[tuple[int, Any, Any]]]


def model(found: list[Event], null_safe: bool = False) -> list[tuple[Any, ...]]:
    stored: tuple[Counter[Any], Counter[Any]] = (Counter(), Counter())
    out = []
    for side, rows in found:
        for kind, key, value in rows:
            if key is not None or null_safe:
                for (other_key, other), count in stored[1 - side].items():
                    if other_key == key:
                        pair = (key, value, key, other) if side == 0 else (key, other, key, value)
                        out.extend([(KINDS[kind], *pair)] * count)
            stored[side][key, value] += -1 if kind & 1 else 1
            if stored[side][key, value] == 0:
                del stored[side][key, value]
    return out


def events(seed: int, retracts: bool) -> list[Event]:
    rng = random.Random(seed)
    live: tuple[list[Any], list[Any]] = ([], [])
    found: list[Event] = []
    for _ in range(40):
        side = rng.randint(0, 1)
        rows = []
        for _ in range(rng.randint(1, 12)):
            if retracts and live[side] and rng.random() < 0.4:
                key, value = live[side].pop(rng.randrange(len(live[side])))
                rows.append((rng.choice((1, 3)), key, value))
            else:
                key = rng.choice((None, 1, 2, 3, 4))
                text = rng.choice(("x", "y", "a text of more than fifteen bytes", None))
                value = text if side == 0 else rng.choice((None, 5, 6))
                live[side].append((key, value))
                rows.append((rng.choice((0, 2)) if retracts else 0, key, value))
        found.append((side, rows))
    return found


def cut(found: list[Event], size: int) -> list[Event]:
    return [(side, rows[i : i + size]) for side, rows in found for i in range(0, len(rows), size)]


@pytest.mark.parametrize("retracts", [False, True])
@pytest.mark.parametrize("size", [1, 7, 100])
@pytest.mark.parametrize("null_safe", [False, True])
def test_changes_are_those_of_the_model(retracts: bool, size: int, null_safe: bool) -> None:
    found = events(size, retracts)
    harness = OperatorHarness(
        spec(left_retracts=retracts, right_retracts=retracts, null_safe=(null_safe,)), keys=[(0,), (0,)]
    )
    for side, rows in cut(found, size):
        harness.batch(batch(side, rows), side)
    # Stored rows of a key come in arrival order, the model's in order of first arrival: compare row by row as sets.
    assert Counter(harness.rows) == Counter(model(found, null_safe))


@pytest.mark.parametrize("most", [5, 262_144])
@pytest.mark.parametrize("retracts", [False, True])
def test_without_keys_every_row_meets_every_row(retracts: bool, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(join_side, "MOST_PAIRS", most)
    found = [(side, [(kind, 1, value) for kind, _, value in rows]) for side, rows in events(3, retracts)]
    keyless = spec(left_keys=(), right_keys=(), null_safe=(), left_retracts=retracts, right_retracts=retracts)
    harness = OperatorHarness(keyless)
    for side, rows in found:
        harness.batch(batch(side, rows), side)
    assert Counter(harness.rows) == Counter(model(found))
    assert (len(harness.batches) > len(found)) == (most == 5)


def test_wide_rows_are_made_in_smaller_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    narrow = join_side.pairs_at_once(LEFT)
    assert narrow > join_side.pairs_at_once(LEFT, LEFT) >= narrow // 2 - 1
    monkeypatch.setattr(join_side, "_PART_BYTES", 1_000)
    found = [(side, [(kind, 1, value) for kind, _, value in rows]) for side, rows in events(3, False)]
    harness = OperatorHarness(spec())
    for side, rows in found:
        harness.batch(batch(side, rows), side)
    assert Counter(harness.rows) == Counter(model(found))
    assert len(harness.batches) > len(found)


@pytest.mark.parametrize("parallelism", [1, 2, 3])
def test_goes_on_at_another_parallelism(parallelism: int) -> None:
    found = events(9, True)
    harness = OperatorHarness(spec(), keys=[(0,), (0,)])
    for side, rows in found[:20]:
        harness.batch(batch(side, rows), side)
    harness = harness.restored(parallelism)
    for side, rows in found[20:]:
        harness.batch(batch(side, rows), side)
    assert Counter(harness.rows) == Counter(model(found))


def test_a_unique_side_overwrites() -> None:
    harness = OperatorHarness(spec(right_unique=(0,)), keys=[(0,), (0,)])
    harness.batch(batch(1, [(0, 1, 5)]), 1)
    harness.batch(batch(1, [(2, 1, 6)]), 1)
    harness.batch(batch(0, [(0, 1, "x")]), 0)
    harness.batch(batch(1, [(3, 1, 6)]), 1)
    harness.batch(batch(0, [(0, 1, "y")]), 0)
    assert harness.rows == [("+I", 1, "x", 1, 6), ("-D", 1, "x", 1, 6)]


def test_unique_beyond_the_join_key() -> None:
    harness = OperatorHarness(spec(right_unique=(0, 1)), keys=[(0,), (0,)])
    harness.batch(batch(1, [(0, 1, 5), (0, 1, 6), (0, 1, 5)]), 1)
    harness.batch(batch(0, [(0, 1, "x")]), 0)
    assert sorted(harness.rows) == [("+I", 1, "x", 1, 5), ("+I", 1, "x", 1, 6)]


def test_the_condition_sees_the_joined_row() -> None:
    more = Call(">", (InputRef(3, BIGINT), InputRef(0, INT)), BooleanType())
    harness = OperatorHarness(spec(condition=more), keys=[(0,), (0,)])
    harness.batch(batch(1, [(0, 1, 0), (0, 1, 9), (0, 1, None)]), 1)
    harness.batch(batch(0, [(0, 1, "x")], track=7), 0)
    assert harness.rows == [("+I", 1, "x", 1, 9)]


def test_rows_expire() -> None:
    clock = ManualClock(1_000)
    harness = OperatorHarness(spec(left_ttl_ms=100, left_retracts=False), keys=[(0,), (0,)], clock=clock)
    harness.batch(batch(0, [(0, 1, "old")]), 0)
    clock.advance(60)
    harness.batch(batch(0, [(0, 1, "new")]), 0)
    harness = harness.restored(1)
    clock.advance(60)
    harness.batch(batch(1, [(0, 1, 5)]), 1)
    assert harness.rows == [("+I", 1, "new", 1, 5)]
    clock.advance(1_000)
    harness.batch(batch(1, [(0, 1, 6)]), 1)
    assert len(harness.rows) == 1
    assert len(harness.operators[0].ctx.state.snapshot()["left"]) == 0


def test_watermark_waits_for_both_sides_and_keeps_its_place() -> None:
    harness = OperatorHarness(spec(), keys=[(0,), (0,)])
    harness.batch(batch(1, [(0, 1, 5)], track=10), 1)
    assert harness.watermarks == []
    first = batch(0, [(0, 1, "x"), (0, 1, "y")])
    harness.batch(first.with_track(single_watermark(1, 8)), 0)
    assert harness.watermarks == [8]
    assert harness.batches[-1].track is not None
    assert harness.batches[-1].track.offsets.tolist() == [1]


W = TimestampType(precision=3, nullable=False)
WINDOWED = (Column("k", INT), Column("v", STRING), Column("we", W))


def windowed(rows: list[tuple[Any, str, int]], track: int | None = None) -> ChangelogBatch:
    columns = [
        pa.array([row[0] for row in rows], pa.int32()),
        pa.array([row[1] for row in rows]),
        pa.array([row[2] for row in rows], pa.timestamp("ms")),
    ]
    return ChangelogBatch.of(columns, None, None if track is None else single_watermark(len(rows), track))


@pytest.mark.parametrize("parallelism", [1, 2])
def test_window_join(parallelism: int) -> None:
    join = WindowJoinSpec(JoinKind.INNER, 2, 2, (0,), (0,), (False,), None, WINDOWED, WINDOWED, WINDOWED + WINDOWED)
    harness = OperatorHarness(join, keys=[(0,), (0,)])
    harness.batch(windowed([(1, "a", 10), (2, "b", 10), (1, "c", 20), (None, "n", 10)]), 0)
    harness = harness.restored(parallelism)
    harness.batch(windowed([(1, "x", 10), (1, "y", 10), (1, "z", 20), (None, "m", 10)], track=9), 1)
    assert harness.rows == []
    harness.batch(windowed([(2, "late?", 20)], track=9), 0)
    assert sorted((row[2], row[5]) for row in harness.rows) == [("a", "x"), ("a", "y")]
    harness.batch(windowed([(1, "late", 10), (1, "d", 20)]), 0)
    assert [row[2] for row in harness.side("late")] == ["late"]
    harness.end()
    assert sorted((row[2], row[5]) for row in harness.rows) == [("a", "x"), ("a", "y"), ("c", "z"), ("d", "z")]
