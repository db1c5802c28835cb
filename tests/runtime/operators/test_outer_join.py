"""Outer, semi and anti joins against models that walk rows one by one, as Flink's operators do."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from flowsql_core.batch import WatermarkTrack, single_watermark
from flowsql_core.clock import ManualClock
from flowsql_core.expr import Call, InputRef
from flowsql_core.graph.specs import JoinKind, WindowJoinSpec
from flowsql_core.types.logical import BIGINT, INT, STRING, BooleanType
from flowsql_runtime.operators.join import side as join_side
from flowsql_runtime.testing.harness import OperatorHarness
from tests.runtime.operators.test_join import KINDS, LEFT, WINDOWED, Event, batch, cut, events, spec, windowed

pytestmark = [pytest.mark.usefixtures("each_backend"), pytest.mark.sampled(12)]

OUTER = (JoinKind.LEFT, JoinKind.RIGHT, JoinKind.FULL)
PARTIAL = (JoinKind.SEMI, JoinKind.ANTI)
#: b > k, over (k, a, k, b).
MORE = Call(">", (InputRef(3, BIGINT), InputRef(0, INT)), BooleanType())

Row = tuple[Any, Any]
Meets = Callable[[Row, Row], bool]


def meets(null_safe: bool = False, condition: bool = False, keyed: bool = True) -> Meets:
    def test(left: Row, right: Row) -> bool:
        if keyed and (left[0] != right[0] or (left[0] is None and not null_safe)):
            return False
        return not condition or (right[1] is not None and left[0] is not None and right[1] > left[0])

    return test


def model(kind: JoinKind, found: list[Event], test: Meets) -> list[list[tuple[Any, ...]]]:
    """The changes that each row makes. Of stored rows [row, partners]."""
    outer = (kind in (JoinKind.LEFT, JoinKind.FULL), kind in (JoinKind.RIGHT, JoinKind.FULL))
    stored: tuple[list[list[Any]], list[list[Any]]] = ([], [])
    out = []
    for side, rows in found:
        for change, *values in rows:
            row = (values[0], values[1])
            met = [other for other in stored[1 - side] if (test(row, other[0]) if side == 0 else test(other[0], row))]
            arrives = not change & 1
            if kind in PARTIAL:
                out.append(_partial(kind, side, change, row, met))
            else:
                out.append(_outer(outer, side, change, row, met))
            if outer[1 - side] or (kind in PARTIAL and side == 1):
                for other in met:
                    other[1] += 1 if arrives else -1
            if arrives:
                stored[side].append([row, len(met)])
            else:
                stored[side].remove(next(one for one in stored[side] if one[0] == row))
    return out


def _partial(kind: JoinKind, side: int, change: int, row: Row, met: list[list[Any]]) -> list[tuple[Any, ...]]:
    anti = kind is JoinKind.ANTI
    if side == 0:
        return [(KINDS[change], *row)] if bool(met) != anti else []
    turned = [other for other, partners in met if partners == (change & 1)]
    word = ("-D", "+I")[change & 1] if anti else KINDS[change]
    return [(word, *other) for other in turned]


def _outer(outer: tuple[bool, bool], side: int, change: int, row: Row, met: list[list[Any]]) -> list[tuple[Any, ...]]:
    def pair(one: Row, other: Row) -> Row:
        return (*one, *other) if side == 0 else (*other, *one)

    nothing = (None, None)
    arrives = not change & 1
    if not met:
        return [("+I" if arrives else "-D", *pair(row, nothing))] if outer[side] else []
    kind = KINDS[change]
    if outer[side] or (outer[1 - side] and arrives):
        kind = "+I" if arrives else "-D"
    pairs = [(kind, *pair(row, other)) for other, _ in met]
    pads = []
    if outer[1 - side]:
        word = "-D" if arrives else "+I"
        pads = [(word, *pair(nothing, other)) for other, partners in met if partners == (0 if arrives else 1)]
    return [*pads, *pairs] if arrives else [*pairs, *pads]


def joined(kind: JoinKind, **changes: Any) -> Any:
    output = LEFT if kind in PARTIAL else spec().output
    return spec(kind=kind, output=output, **changes)


def same(harness: OperatorHarness, wanted: list[list[tuple[Any, ...]]]) -> bool:
    """Change by change; of one row's changes pads and pairs stand as blocks, whose order in the state is free."""
    rows = list(harness.rows)
    for changes in wanted:
        part, rows = rows[: len(changes)], rows[len(changes) :]
        if Counter(part) != Counter(changes) or [row[0] for row in part] != [row[0] for row in changes]:
            return False
    return not rows


@pytest.mark.parametrize("size", [1, 7, 100])
@pytest.mark.parametrize("retracts", [False, True])
@pytest.mark.parametrize("variant", ["plain", "null-safe", "condition", "keyless"])
@pytest.mark.parametrize("kind", [*OUTER, *PARTIAL])
def test_changes_are_those_of_the_model(kind: JoinKind, variant: str, retracts: bool, size: int) -> None:
    found = events(size + 20, retracts)
    null_safe, condition, keyed = variant == "null-safe", variant in ("condition", "keyless"), variant != "keyless"
    fields: dict[str, Any] = {"left_retracts": retracts, "right_retracts": retracts, "null_safe": (null_safe,)}
    if condition:
        fields["condition"] = MORE
    if not keyed:
        fields |= {"left_keys": (), "right_keys": (), "null_safe": ()}
    harness = OperatorHarness(joined(kind, **fields), keys=[(0,), (0,)] if keyed else [])
    for side, rows in cut(found, size):
        harness.batch(batch(side, rows), side)
    assert same(harness, model(kind, found, meets(null_safe, condition, keyed)))


@pytest.mark.parametrize("kind", [*OUTER, *PARTIAL])
def test_popular_keys_are_met_in_parts(kind: JoinKind, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(join_side, "MOST_PAIRS", 5)
    found = events(3, True)
    harness = OperatorHarness(joined(kind), keys=[(0,), (0,)])
    for side, rows in found:
        harness.batch(batch(side, rows), side)
    assert same(harness, model(kind, found, meets()))


@pytest.mark.parametrize("parallelism", [1, 2, 3])
@pytest.mark.parametrize("retracts", [False, True])
@pytest.mark.parametrize("kind", [*OUTER, *PARTIAL])
def test_goes_on_at_another_parallelism(kind: JoinKind, retracts: bool, parallelism: int) -> None:
    found = events(9, retracts)
    harness = OperatorHarness(joined(kind, left_retracts=retracts, right_retracts=retracts), keys=[(0,), (0,)])
    for side, rows in found[:20]:
        harness.batch(batch(side, rows), side)
    harness = harness.restored(parallelism)
    for side, rows in found[20:]:
        harness.batch(batch(side, rows), side)
    wanted = Counter(row for changes in model(kind, found, meets()) for row in changes)
    assert Counter(harness.rows) == wanted


@pytest.mark.parametrize("kind", OUTER)
def test_unique_sides_hold_one_row(kind: JoinKind) -> None:
    harness = OperatorHarness(joined(kind, left_unique=(0,), right_unique=(0,)), keys=[(0,), (0,)])
    harness.batch(batch(0, [(0, 1, "x"), (1, 1, "x"), (2, 1, "y")]), 0)
    harness.batch(batch(1, [(0, 1, 5), (1, 1, 5), (2, 1, 6), (3, 1, 6)]), 1)
    harness.batch(batch(0, [(3, 1, "y")]), 0)
    found: list[Event] = [
        (0, [(0, 1, "x"), (1, 1, "x"), (2, 1, "y")]),
        (1, [(0, 1, 5), (1, 1, 5), (2, 1, 6), (3, 1, 6)]),
        (0, [(3, 1, "y")]),
    ]
    assert same(harness, model(kind, found, meets()))


def test_a_partner_that_comes_keeps_a_row_alive() -> None:
    # Flink writes the number of partners into the row's state, and a write puts off its end.
    clock = ManualClock(1_000)
    harness = OperatorHarness(
        joined(JoinKind.LEFT, left_ttl_ms=100, left_retracts=False), keys=[(0,), (0,)], clock=clock
    )
    harness.batch(batch(0, [(0, 1, "x")]), 0)
    clock.advance(60)
    harness.batch(batch(1, [(0, 1, 5)]), 1)
    clock.advance(60)
    harness.batch(batch(1, [(0, 1, 6)]), 1)
    clock.advance(120)
    harness.batch(batch(1, [(0, 1, 7)]), 1)
    assert harness.rows == [
        ("+I", 1, "x", None, None),
        ("-D", 1, "x", None, None),
        ("+I", 1, "x", 1, 5),
        ("+I", 1, "x", 1, 6),
    ]


def test_watermarks_keep_their_places() -> None:
    harness = OperatorHarness(joined(JoinKind.FULL), keys=[(0,), (0,)])
    harness.batch(batch(1, [(0, 1, 5)], track=10), 1)
    harness.batch(batch(0, [(0, 1, "x"), (0, 2, "y")]).with_track(single_watermark(1, 8)), 0)
    assert [row[0] for row in harness.rows] == ["+I", "-D", "+I", "+I"]
    assert harness.batches[-1].track is not None
    assert harness.batches[-1].track.offsets.tolist() == [2]


def test_events_are_random_enough() -> None:
    # The models say something only if rows find and lose partners.
    for kind in (*OUTER, *PARTIAL):
        changes = Counter(row[0] for made in model(kind, events(27, True), meets()) for row in made)
        assert min(changes["+I"], changes["-D"]) > 5


def window_model(kind: JoinKind, left: list[Any], right: list[Any], condition: bool) -> Counter[Any]:
    """Results over rows (k, v, window end)."""
    nothing = (None, None, None)

    def test(one: Any, other: Any) -> bool:
        return one[0] is not None and one[0] == other[0] and one[2] == other[2] and (not condition or one[1] < other[1])

    pairs = [(one, other) for one in left for other in right if test(one, other)]
    if kind in PARTIAL:
        return Counter(one for one in left if any(test(one, other) for other in right) == (kind is JoinKind.SEMI))
    made = Counter((*one, *other) for one, other in pairs)
    if kind in (JoinKind.LEFT, JoinKind.FULL):
        made.update((*one, *nothing) for one in left if not any(test(one, other) for other in right))
    if kind in (JoinKind.RIGHT, JoinKind.FULL):
        made.update((*nothing, *other) for other in right if not any(test(one, other) for one in left))
    return made


@pytest.mark.parametrize("most", [3, 262_144])
@pytest.mark.parametrize("condition", [False, True])
@pytest.mark.parametrize("parallelism", [1, 2])
@pytest.mark.parametrize("kind", [JoinKind.INNER, *OUTER, *PARTIAL])
def test_window_joins(
    kind: JoinKind, parallelism: int, condition: bool, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(join_side, "MOST_PAIRS", most)
    rng = random.Random(7)
    sides = [
        [(rng.choice((None, 1, 2, 3, 4)), rng.choice("abcde"), rng.choice((10, 20, 30))) for _ in range(40)]
        for _ in range(2)
    ]
    more = Call("<", (InputRef(1, STRING), InputRef(4, STRING)), BooleanType()) if condition else None
    output = WINDOWED if kind in PARTIAL else WINDOWED + WINDOWED
    join = WindowJoinSpec(kind, 2, 2, (0,), (0,), (False,), more, WINDOWED, WINDOWED, output)
    harness = OperatorHarness(join, keys=[(0,), (0,)])
    for side in (0, 1):
        harness.batch(windowed(sides[side][:20]), side)
    harness = harness.restored(parallelism)
    for side in (0, 1):
        harness.batch(windowed(sides[side][20:], track=25), side)
    ends = [moment for row in harness.rows for moment in (row[3], row[-1]) if moment is not None]
    assert max(ends).microsecond == 20_000, "the window that ends at 30 is open"
    harness.end()
    found = Counter(
        tuple(value.microsecond // 1000 if hasattr(value, "microsecond") else value for value in row[1:])
        for row in harness.rows
    )
    assert found == window_model(kind, *sides, condition)
    assert {row[0] for row in harness.rows} == {"+I"}


def test_windows_close_in_order() -> None:
    join = WindowJoinSpec(JoinKind.FULL, 2, 2, (0,), (0,), (False,), None, WINDOWED, WINDOWED, WINDOWED + WINDOWED)
    harness = OperatorHarness(join, keys=[(0,), (0,)])
    harness.batch(windowed([(1, "a", 20), (2, "b", 10)], track=40), 0)
    track = WatermarkTrack(np.array([3, 3], np.int32), np.array([15, 40], np.int64))
    harness.batch(windowed([(3, "x", 10), (1, "y", 30), (1, "z", 10)]).with_track(track), 1)
    assert [(row[2], row[5]) for row in harness.rows] == [
        ("b", None),
        (None, "x"),
        (None, "z"),
        ("a", None),
        (None, "y"),
    ]
    assert harness.batches[-1].track is not None
    assert harness.batches[-1].track.offsets.tolist() == [3, 5]
