"""ChangelogNormalize against a model in plain Python of Flink's function for the last row of each key."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterable, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pytest

from flowsql_core.batch import ChangelogBatch, WatermarkTrack
from flowsql_core.clock import ManualClock
from flowsql_core.expr import Call, InputRef, Literal
from flowsql_core.graph.specs import ChangelogNormalizeSpec, MiniBatch
from flowsql_core.row import SHORT_STRINGS
from flowsql_core.types.logical import BOOLEAN, INT, STRING, ArrayType, Column
from flowsql_runtime.testing.harness import OperatorHarness

pytestmark = pytest.mark.usefixtures("each_backend")

Row = tuple[int | None, str | None, tuple[int, ...] | None]
Change = tuple[str, Row]
KEY: Final = 0
SCHEMA: Final = (Column("key", INT), Column("value", STRING), Column("list", ArrayType(element=INT)))
IS_X: Final = Call("=", (InputRef(1, STRING), Literal("x", STRING)), BOOLEAN)

each_form = pytest.mark.parametrize(
    ("before", "filtered"), list(itertools.product([True, False], repeat=2)), ids=["-U", "-U where", "+U", "+U where"]
)


def spec(before: bool, filtered: bool, ttl_ms: int = 0, mini_batch: MiniBatch | None = None) -> ChangelogNormalizeSpec:
    return ChangelogNormalizeSpec(
        SCHEMA, (KEY,), IS_X if filtered else None, "value = x" if filtered else "", before, mini_batch, ttl_ms
    )


def normalized(changes: Iterable[Change], before: bool, filtered: bool, ttl: bool = False) -> list[Change]:
    rows: dict[int | None, Row] = {}
    out: list[Change] = []
    for kind, row in changes:
        last = rows.get(row[KEY])
        if kind in ("+I", "+U") and (not filtered or row[1] == "x"):
            if last is None:
                out.append(("+I", row))
            elif ttl or last != row:
                out += [("-U", last)] * before + [("+U", row)]
            rows[row[KEY]] = row
        elif last is not None:
            out.append(("-D", rows.pop(row[KEY])))
    return out


def some_changes(seed: int, count: int) -> list[Change]:
    draw = random.Random(seed)
    out: list[Change] = []
    for _ in range(count):
        row: Row = (
            draw.choice([1, 2, 3, 4, None]),
            draw.choice(["x", "x", "a long text of more than a word", None]),
            draw.choice([None, (), (1, 2)]),
        )
        out += [(draw.choice(["+I", "+U", "+U", "-D", "-U"]), row)] * draw.choice([1, 1, 2])
    return out


def batch(changes: Sequence[Change], marks: dict[int, int] | None = None) -> ChangelogBatch:
    kinds = np.array([SHORT_STRINGS.index(kind) for kind, _ in changes], np.uint8)
    types = [pa.int32(), pa.string(), pa.list_(pa.int32())]
    columns = [pa.array([row[at] for _, row in changes], type_) for at, type_ in enumerate(types)]
    track = None
    if marks:
        track = WatermarkTrack(np.array(list(marks), np.int32), np.array(list(marks.values()), np.int64))
    return ChangelogBatch.of(columns, kinds, track)


def feed(harness: OperatorHarness[Any], changes: Sequence[Change], size: int) -> None:
    for at in range(0, len(changes), size):
        harness.batch(batch(changes[at : at + size]))


def told(harness: OperatorHarness[Any]) -> list[Change]:
    return [(kind, (key, value, None if items is None else tuple(items))) for kind, key, value, items in harness.rows]


def of_keys(found: Iterable[Change]) -> dict[int | None, list[Change]]:
    made: dict[int | None, list[Change]] = {}
    for kind, row in found:
        made.setdefault(row[KEY], []).append((kind, row))
    return made


@each_form
@pytest.mark.sampled(4)
@pytest.mark.parametrize("size", [1, 7, 1000])
def test_changes_are_flinks(before: bool, filtered: bool, size: int) -> None:
    for seed in range(2):
        changes = some_changes(seed, 80)
        harness = OperatorHarness(spec(before, filtered), keys=((KEY,),))
        feed(harness, changes, size)
        harness.end()
        assert told(harness) == normalized(changes, before, filtered), seed


@each_form
def test_a_mini_batch_tells_the_last_change_of_each_key(before: bool, filtered: bool) -> None:
    changes = some_changes(9, 140)
    harness = OperatorHarness(spec(before, filtered, mini_batch=MiniBatch(7, 1000)), keys=((KEY,),))
    feed(harness, changes, 1)
    harness.end()
    last_ones: list[Change] = []
    for part in (changes[at : at + 7] for at in range(0, len(changes), 7)):
        last = {row[KEY]: at for at, (_, row) in enumerate(part)}
        last_ones += [part[at] for at in sorted(last.values())]
    assert told(harness) == normalized(last_ones, before, filtered)


@each_form
def test_a_cut_at_any_parallelism_changes_nothing(before: bool, filtered: bool, each_backend: str) -> None:
    pairs = list(enumerate(itertools.product((1, 2, 3, 4), repeat=2)))
    # Each pair comes with one of the forms; on rocksdb every other one.
    for seed, (parallelism, after) in pairs[before + 2 * filtered :: 4 if each_backend == "hashmap" else 8]:
        changes = some_changes(100 + seed, 80)
        cut = 5 * (seed + 1)
        first = OperatorHarness(spec(before, filtered), parallelism, keys=((KEY,),))
        feed(first, changes[:cut], 5)
        second = first.restored(after)
        feed(second, changes[cut:], 5)
        second.end()
        assert of_keys(told(second)) == of_keys(normalized(changes, before, filtered)), (parallelism, after)


def test_watermarks_keep_their_places() -> None:
    x, y, z = (1, "x", None), (1, "y", None), (2, "x", None)
    harness = OperatorHarness(spec(True, False), keys=((KEY,),))
    harness.batch(batch([("+I", x), ("+I", x), ("+U", y), ("+I", z)], {0: 1, 2: 2, 3: 3, 4: 4}))
    assert told(harness) == [("+I", x), ("-U", x), ("+U", y), ("+I", z)]
    harness.batch(batch([("+U", y), ("-D", (7, None, None))], {1: 5}))
    assert harness.watermarks == [1, 2, 3, 4, 5]


def test_keys_without_a_row_hold_no_state() -> None:
    changes: list[Change] = [(kind, (key, "y", None)) for key in range(50) for kind in ("+I", "-D", "-U")]
    for filtered in (False, True):
        harness = OperatorHarness(spec(True, filtered), keys=((KEY,),))
        feed(harness, changes, 30)
        (snapshot,) = harness.snapshot()
        assert {name: table.num_rows for name, table in snapshot.tables().items() if table.num_rows} == {}


def test_an_idle_key_starts_over_and_equal_rows_keep_it_alive() -> None:
    clock = ManualClock()
    harness = OperatorHarness(spec(True, False, ttl_ms=1000), keys=((KEY,),), clock=clock)
    one, two = (1, "x", None), (2, "x", None)
    feed(harness, [("+I", one), ("+I", two)], 10)
    clock.advance(600)
    feed(harness, [("+I", one)], 10)
    second = harness.restored(2)
    clock.advance(600)
    feed(second, [("+I", one), ("+I", two)], 10)
    assert of_keys(told(second)) == {
        1: [("+I", one), ("-U", one), ("+U", one), ("-U", one), ("+U", one)],
        2: [("+I", two), ("+I", two)],
    }
