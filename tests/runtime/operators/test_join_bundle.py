"""Mini-batches of joins: fewer changes, the same table."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from flowsql_core.batch import WatermarkTrack
from flowsql_core.graph.specs import JoinKind, MiniBatch
from flowsql_runtime.operators.join.bundle import LARGE_ROWS, JoinBundle
from flowsql_runtime.testing.harness import OperatorHarness
from tests.runtime.operators.test_join import Event, batch, cut, events
from tests.runtime.operators.test_outer_join import joined, meets, model

KINDS = (JoinKind.INNER, JoinKind.LEFT, JoinKind.RIGHT, JoinKind.FULL)


def table(changes: list[tuple[Any, ...]]) -> Counter[Any]:
    found: Counter[Any] = Counter()
    for kind, *row in changes:
        found[tuple(row)] += 1 if kind in ("+I", "+U") else -1
        assert found[tuple(row)] >= 0, "a row was taken back that was not there"
    return +found


@pytest.mark.parametrize("size", [3, 40, 10_000])
@pytest.mark.parametrize("retracts", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_the_table_is_that_of_single_rows(kind: JoinKind, retracts: bool, size: int) -> None:
    found = events(5, retracts)
    spec = joined(kind, left_retracts=retracts, right_retracts=retracts, mini_batch=MiniBatch(size, 1_000))
    harness = OperatorHarness(spec, keys=[(0,), (0,)])
    for number, (side, rows) in enumerate(cut(found, 7)):
        harness.batch(batch(side, rows), side)
        if number == 20:
            harness = harness.restored(2)
    harness.end()
    wanted = [row for changes in model(kind, found, meets()) for row in changes]
    assert table(harness.rows) == table(wanted)
    # A full join pads rows of one side before those of the other come.
    assert len(harness.rows) <= len(wanted) or kind is JoinKind.FULL


def test_large_batches_are_not_put_together() -> None:
    bundle = JoinBundle(joined(JoinKind.INNER), MiniBatch(100_000, 1_000))
    large = LARGE_ROWS
    sizes = [3, 5, large, large + 1, 7, large, 2]
    for size in sizes:
        bundle.add(0, batch(0, [(0, size, "a")] * size))
    taken = [found for _, found in bundle.take()]
    assert [found.num_rows for found in taken] == [8, large, large + 1, 7, large, 2]
    assert [found.columns[0][0].as_py() for found in taken] == [3, large, large + 1, 7, large, 2]
    # What takes something back has to be seen with what it takes back.
    for changes in ([(0, 1, "a")] * large, [(3, 1, "a")] * large, [(0, 2, "b")] * large):
        bundle.add(0, batch(0, changes))
    assert [found.num_rows for _, found in bundle.take()] == [large]


def updates(seed: int) -> list[Event]:
    """Rows with a unique key, as an aggregate by it emits them: -U and +U, and -D at the end of some."""
    rng = random.Random(seed)
    now: tuple[dict[int, Any], dict[int, Any]] = ({}, {})
    found: list[Event] = []
    for _ in range(60):
        side, key = rng.randint(0, 1), rng.randint(1, 5)
        value = rng.choice("abc") if side == 0 else rng.randint(1, 3)
        before = now[side].get(key)
        if before is None:
            found.append((side, [(0, key, value)]))
            now[side][key] = value
        elif rng.random() < 0.3:
            found.append((side, [(3, key, before)]))
            del now[side][key]
        else:
            found.append((side, [(1, key, before), (2, key, value)]))
            now[side][key] = value
    return found


@pytest.mark.parametrize(("kind", "before"), [*((kind, True) for kind in KINDS), (JoinKind.INNER, False)])
@pytest.mark.parametrize("size", [2, 9, 10_000])
def test_updates_of_a_key_become_one(kind: JoinKind, size: int, before: bool) -> None:
    found = updates(3)
    unique = joined(kind, left_unique=(0,), right_unique=(0,), mini_batch=MiniBatch(size, 1_000))
    spec = replace(unique, left_upserts=not before, right_upserts=not before)
    harness = OperatorHarness(spec, keys=[(0,), (0,)])
    for side, rows in found:
        harness.batch(batch(side, [row for row in rows if before or row[0] != 1]), side)
    harness.end()
    wanted = table([row for changes in model(kind, found, meets()) for row in changes])
    if before:
        assert table(harness.rows) == wanted
    else:
        last = {(row[1], row[3]): row for row in harness.rows}
        assert {row[1:] for row in last.values() if row[0] != "-D"} == set(wanted)
    if size == 10_000 and kind is not JoinKind.FULL:
        assert {row[0] for row in harness.rows} == {"+I"}


def test_one_change_a_key_within_a_mini_batch() -> None:
    spec = joined(JoinKind.INNER, left_unique=(0,), right_unique=(0,), mini_batch=MiniBatch(1_000, 1_000))
    harness = OperatorHarness(spec, keys=[(0,), (0,)])
    harness.batch(batch(0, [(0, 1, "a"), (0, 2, "b"), (0, 3, "c")]), 0)
    harness.batch(batch(1, [(0, 1, 5), (1, 1, 5), (2, 1, 6), (0, 2, 7), (3, 2, 7)]), 1)
    assert harness.rows == []
    harness.watermark(10, 0)
    harness.watermark(10, 1)
    assert harness.rows == [("+I", 1, "a", 1, 6)]
    more = batch(1, [(1, 1, 6), (2, 1, 8), (1, 1, 8), (2, 1, 9), (0, 3, 1), (1, 3, 1), (2, 3, 1)])
    harness.batch(more.with_track(WatermarkTrack(np.array([7], np.int32), np.array([20], np.int64))), 1)
    harness.watermark(20, 0)
    assert harness.rows[1:] == [("-U", 1, "a", 1, 6), ("+U", 1, "a", 1, 9), ("+I", 3, "c", 3, 1)]


def test_a_row_that_comes_as_an_update_and_goes_was_not_there_before() -> None:
    """An update moved the row from another join key: its -U went there."""
    spec = joined(JoinKind.LEFT, left_unique=(1,), mini_batch=MiniBatch(1_000, 1_000))
    harness = OperatorHarness(spec, keys=[(0,), (0,)])
    harness.batch(batch(0, [(0, 1, "a"), (1, 1, "a"), (2, 2, "a"), (3, 2, "a")]), 0)
    harness.end()
    assert harness.rows == []


def test_outer_joins_pad_fewer_rows() -> None:
    spec = joined(JoinKind.LEFT, mini_batch=MiniBatch(1_000, 1_000))
    harness = OperatorHarness(spec, keys=[(0,), (0,)])
    harness.batch(batch(0, [(0, 1, "a"), (0, 2, "b")]), 0)
    harness.batch(batch(1, [(0, 1, 5)]), 1)
    harness.end()
    assert harness.rows == [("+I", 1, "a", 1, 5), ("+I", 2, "b", None, None)]
