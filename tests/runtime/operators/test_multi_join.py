"""Joins of several inputs against a model that walks rows one by one, as Flink's operator does."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from flowsql_core.batch import ChangelogBatch, single_watermark
from flowsql_core.clock import ManualClock
from flowsql_core.expr import Call, Expr, InputRef
from flowsql_core.graph.multi_join_specs import MultiJoinInput, MultiJoinSpec
from flowsql_core.types.logical import INT, STRING, BooleanType, Column
from flowsql_runtime.operators.join import multi as multi_join
from flowsql_runtime.operators.join import side as join_side
from flowsql_runtime.testing.harness import OperatorHarness

pytestmark = [pytest.mark.usefixtures("each_backend"), pytest.mark.sampled(24)]

KINDS = ("+I", "-U", "+U", "-D")
SCHEMA = (Column("k", INT), Column("x", STRING), Column("v", INT))
WIDTH = len(SCHEMA)

Row = tuple[Any, Any, Any]
Event = tuple[int, list[tuple[int, Any, Any, Any]]]


@dataclass(frozen=True)
class Step:
    """How an input is joined with the one before it: by k, and by x or a comparison of v if wanted."""

    outer: bool = False
    by_x: bool = False
    more: bool = False

    def meets(self, before: Row | None, row: Row) -> bool:
        if before is None or before[0] is None or before[0] != row[0]:
            return False
        if self.by_x and (before[1] is None or before[1] != row[1]):
            return False
        return not self.more or (before[2] is not None and row[2] is not None and row[2] > before[2])

    def condition(self, place: int) -> Expr | None:
        earlier, own = WIDTH * (place - 1), WIDTH * place
        parts: list[Expr] = []
        if self.by_x:
            parts.append(Call("=", (InputRef(earlier + 1, STRING), InputRef(own + 1, STRING)), BooleanType()))
        if self.more:
            parts.append(Call(">", (InputRef(own + 2, INT), InputRef(earlier + 2, INT)), BooleanType()))
        if not parts:
            return None
        return parts[0] if len(parts) == 1 else Call("AND", tuple(parts), BooleanType())


STEPS = {
    "inner": (Step(), Step()),
    "left": (Step(outer=True), Step(outer=True)),
    "left-inner": (Step(outer=True), Step()),
    "inner-left": (Step(), Step(outer=True)),
    "by x": (Step(outer=True, by_x=True), Step(by_x=True)),
    "more": (Step(outer=True, more=True), Step(outer=True, by_x=True, more=True)),
    "two": (Step(outer=True, more=True),),
    "four": (Step(outer=True), Step(), Step(outer=True, by_x=True)),
}


def spec(steps: tuple[Step, ...], retracts: bool, **changes: Any) -> MultiJoinSpec:
    inputs = []
    for place in range(len(steps) + 1):
        step = steps[place - 1] if place else Step()
        fields: dict[str, Any] = {
            "schema": SCHEMA, "keys": (0,), "linked": (place - 1,) if place else (), "outer": step.outer,
            "condition": step.condition(place) if place else None,
            "equal": ((WIDTH * (place - 1) + 1, 1),) if place and step.by_x else (),
            "unique": None, "retracts": retracts, "overwrites": False, "ttl_ms": 0,
        }  # fmt: skip
        inputs.append(MultiJoinInput(**(fields | changes)))
    return MultiJoinSpec(tuple(inputs), SCHEMA * len(inputs))


def harness_of(made: MultiJoinSpec, **options: Any) -> OperatorHarness[MultiJoinSpec]:
    return OperatorHarness(made, keys=[(0,)] * len(made.inputs), **options)


def model(
    steps: tuple[Step, ...], found: list[Event], unique: tuple[int, ...] | None = None
) -> list[list[tuple[Any, ...]]]:
    """The changes that each row makes. ``unique``: a new row takes the place of the one with equal columns."""
    stored: list[list[Row]] = [[] for _ in range(len(steps) + 1)]
    made: list[list[tuple[Any, ...]]] = []

    def onward(word: str, rows: tuple[Row | None, ...], out: list[tuple[Any, ...]]) -> None:
        place = len(rows)
        if place > len(steps):
            out.append((word, *(value for row in rows for value in (row or (None,) * WIDTH))))
            return
        step = steps[place - 1]
        met = [row for row in stored[place] if step.meets(rows[-1], row)]
        for row in met:
            onward(word, (*rows, row), out)
        if step.outer and not met:
            onward(word, (*rows, None), out)

    def up_to(place: int, rows: tuple[Row | None, ...], key: Any, until: list[tuple[Row | None, ...]]) -> None:
        if len(rows) == place:
            until.append(rows)
            return
        step = steps[len(rows) - 1] if rows else None
        met = [row for row in stored[len(rows)] if (row[0] == key if step is None else step.meets(rows[-1], row))]
        for row in met:
            up_to(place, (*rows, row), key, until)
        if step is not None and step.outer and not met:
            up_to(place, (*rows, None), key, until)

    for place, rows in found:
        for change, *values in rows:
            row, goes, out = (values[0], values[1], values[2]), change & 1, []
            if place == 0:
                onward(KINDS[change], (row,), out)
            elif row[0] is not None:
                step = steps[place - 1]
                before: list[tuple[Row | None, ...]] = []
                up_to(place, (), row[0], before)
                for prefix in before:
                    if not step.meets(prefix[-1], row):
                        continue
                    partners = sum(step.meets(prefix[-1], other) for other in stored[place])
                    if step.outer and not goes and not partners:
                        onward("-D", (*prefix, None), out)
                    onward(KINDS[change], (*prefix, row), out)
                    if step.outer and goes and partners <= 1:
                        onward("+I", (*prefix, None), out)
            made.append(out)
            if unique is not None:
                same = [one for one in stored[place] if [one[i] for i in unique] == [row[i] for i in unique]]
                for one in same:
                    stored[place].remove(one)
            elif goes:
                stored[place].remove(row)
            if not goes:
                stored[place].append(row)
    return made


def events(seed: int, inputs: int, retracts: bool, unique: bool = False) -> list[Event]:
    """``unique``: upserts by (k, x) without the rows that they replace."""
    rng = random.Random(seed)
    live: list[list[Row]] = [[] for _ in range(inputs)]
    found: list[Event] = []
    for _ in range(30):
        place = rng.randrange(inputs)
        rows = []
        for _ in range(rng.randint(1, 10)):
            if retracts and live[place] and rng.random() < 0.45:
                row = live[place].pop(rng.randrange(len(live[place])))
                rows.append((3 if unique else rng.choice((1, 3)), *row))
                continue
            row = (
                rng.choice((None, 1, 2, 3) if not unique else (1, 2)),
                rng.choice(("x", "y", None)),
                rng.randint(0, 4),
            )
            if unique:
                live[place] = [one for one in live[place] if one[:2] != row[:2]]
            live[place].append(row)
            rows.append((rng.choice((0, 2)) if retracts else 0, *row))
        found.append((place, rows))
    return found


def batch(rows: list[tuple[int, Any, Any, Any]], track: int | None = None) -> ChangelogBatch:
    columns = [
        pa.array([row[place] for row in rows], type_)
        for place, type_ in ((1, pa.int32()), (2, pa.string()), (3, pa.int32()))
    ]
    kinds = np.array([row[0] for row in rows], np.uint8)
    watermarks = None if track is None else single_watermark(len(rows), track)
    return ChangelogBatch.of(columns, kinds if kinds.any() else None, watermarks)


def cut(found: list[Event], size: int) -> list[Event]:
    return [(place, rows[i : i + size]) for place, rows in found for i in range(0, len(rows), size)]


def assert_same(harness: OperatorHarness[MultiJoinSpec], wanted: list[list[tuple[Any, ...]]]) -> None:
    """Change by change, each row's ones in any order: which of the rows in state comes first is free."""
    rows = list(harness.rows)
    for changes in wanted:
        part, rows = rows[: len(changes)], rows[len(changes) :]
        assert Counter(part) == Counter(changes)
    assert not rows


@pytest.mark.parametrize("size", [1, 7, 100])
@pytest.mark.parametrize("retracts", [False, True])
@pytest.mark.parametrize("name", list(STEPS))
def test_changes_are_those_of_the_model(name: str, retracts: bool, size: int) -> None:
    steps = STEPS[name]
    found = events(len(name) + size, len(steps) + 1, retracts)
    harness = harness_of(spec(steps, retracts))
    for place, rows in cut(found, size):
        harness.batch(batch(rows), place)
    assert_same(harness, model(steps, found))


@pytest.mark.parametrize("size", [1, 7, 100])
@pytest.mark.parametrize("unique", [(0,), (0, 1)])
@pytest.mark.parametrize("name", ["left", "more", "by x", "inner"])
def test_upserts_take_the_place_of_rows(name: str, unique: tuple[int, ...], size: int) -> None:
    steps = STEPS[name]
    found = events(size + 40, len(steps) + 1, True, unique=True)
    if unique == (0,):
        # One row a key: whatever goes is what stands there.
        found = [(place, [row for row in rows if row[0] != 3]) for place, rows in found]
    harness = harness_of(spec(steps, True, unique=unique, overwrites=True))
    for place, rows in cut(found, size):
        harness.batch(batch(rows), place)
    assert_same(harness, model(steps, found, unique))


@pytest.mark.parametrize("name", ["left", "more", "four"])
def test_popular_keys_are_met_in_parts(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(join_side, "MOST_PAIRS", 5)
    monkeypatch.setattr(multi_join, "MOST_PAIRS", 5)
    found = events(3, len(STEPS[name]) + 1, True)
    harness = harness_of(spec(STEPS[name], True))
    for place, rows in found:
        harness.batch(batch(rows), place)
    assert_same(harness, model(STEPS[name], found))


@pytest.mark.parametrize("parallelism", [1, 2, 3])
@pytest.mark.parametrize("retracts", [False, True])
@pytest.mark.parametrize("name", ["left", "by x", "four"])
def test_goes_on_at_another_parallelism(name: str, retracts: bool, parallelism: int) -> None:
    found = events(9, len(STEPS[name]) + 1, retracts)
    harness = harness_of(spec(STEPS[name], retracts))
    for place, rows in found[:15]:
        harness.batch(batch(rows), place)
    harness = harness.restored(parallelism)
    for place, rows in found[15:]:
        harness.batch(batch(rows), place)
    assert Counter(harness.rows) == Counter(row for changes in model(STEPS[name], found) for row in changes)


def test_without_a_key_every_row_meets_every_row() -> None:
    steps = (Step(outer=True, more=True),)
    found = [(place, [(kind, 1, x, v) for kind, _, x, v in rows]) for place, rows in events(5, 2, True)]
    keyed = spec(steps, True)
    keyless = MultiJoinSpec(
        tuple(
            MultiJoinInput(one.schema, (), (), one.outer, one.condition, (), None, True, False, 0)
            for one in keyed.inputs
        ),
        keyed.output,
    )
    harness = OperatorHarness(keyless)
    for place, rows in found:
        harness.batch(batch(rows), place)
    assert_same(harness, model(steps, found))


def test_rows_of_a_key_go_together_after_the_last_one() -> None:
    # Flink keeps the rows of an input under a key as one value: a row that comes keeps those before it alive.
    clock = ManualClock(1_000)
    harness = harness_of(spec((Step(),), False, ttl_ms=100), clock=clock)
    harness.batch(batch([(0, 1, "x", 1)]), 0)
    clock.advance(60)
    harness.batch(batch([(0, 1, "y", 2)]), 0)
    clock.advance(60)
    harness.batch(batch([(0, 1, "z", 3)]), 1)
    assert Counter(row[2] for row in harness.rows) == {"x": 1, "y": 1}
    clock.advance(60)
    harness.batch(batch([(0, 1, "w", 4)]), 1)
    assert len(harness.rows) == 2
    harness.batch(batch([(0, 1, "v", 5)]), 0)
    assert Counter(row[5] for row in harness.rows[2:]) == {"z": 1, "w": 1}


def test_watermarks_keep_their_places() -> None:
    harness = harness_of(spec((Step(outer=True), Step(outer=True)), True))
    harness.batch(batch([(0, 1, "x", 1)], track=10), 1)
    harness.batch(batch([(0, 1, "x", 1)], track=10), 2)
    harness.batch(batch([(0, 1, "x", 1), (0, 2, "y", 1)], track=8), 0)
    assert harness.watermarks == [8]
    assert harness.batches[-1].track is not None
    assert harness.batches[-1].track.offsets.tolist() == [2]


def test_a_key_without_rows_is_forgotten() -> None:
    harness = harness_of(spec((Step(outer=True),), True))
    harness.batch(batch([(0, 1, "x", 1), (0, 2, "x", 1)]), 0)
    harness.batch(batch([(0, 1, "y", 1)]), 1)
    harness.batch(batch([(3, 1, "x", 1), (3, 2, "x", 1)]), 0)
    harness.batch(batch([(3, 1, "y", 1)]), 1)
    assert all(table.num_rows == 0 for one in harness.snapshot() for table in one.tables().values())


def test_events_are_random_enough() -> None:
    # The model says something only if rows find and lose partners.
    made = [changes for steps in STEPS.values() for changes in model(steps, events(27, len(steps) + 1, True))]
    found = Counter(row[0] for changes in made for row in changes)
    assert min(found[kind] for kind in KINDS) > 100
