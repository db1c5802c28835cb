"""UNNEST against a model that walks rows one by one, for every kind of collection and batches of any size."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from flowsql_core.batch import ChangelogBatch, RowTimes, WatermarkTrack
from flowsql_core.errors import ExecutionError
from flowsql_core.expr import Call, Cast, InputRef, Literal
from flowsql_core.graph.specs import CorrelateSpec
from flowsql_core.row import SHORT_STRINGS
from flowsql_core.types import logical as t
from flowsql_runtime.operators.join import side as join_side
from flowsql_runtime.testing.harness import OperatorHarness

INTS = t.ArrayType(element=t.INT)
ROWS = t.ArrayType(element=t.RowType(fields=(t.Field("a", t.INT), t.Field("b", t.STRING))))
MAP = t.MapType(key=t.STRING, value=t.INT)
MULTISET = t.MultisetType(element=t.STRING)
ELEMENT = (t.Column("e", t.INT),)
COLLECTIONS = {
    "array": (INTS, pa.list_(pa.int32()), ELEMENT),
    "rows": (ROWS, pa.list_(pa.struct([("a", pa.int32()), ("b", pa.string())])), tuple(
        t.Column(name, type_) for name, type_ in (("a", t.INT), ("b", t.STRING)))),
    "map": (MAP, pa.map_(pa.string(), pa.int32()), (t.Column("k", t.STRING), t.Column("v", t.INT))),
    "multiset": (MULTISET, pa.map_(pa.string(), pa.int32()), (t.Column("e", t.STRING),)),
}  # fmt: skip


def collection_of(kind: str, draw: random.Random) -> Any:
    if draw.random() < 0.2:
        return None
    size = draw.choice([0, 0, 1, 2, 5])
    if kind == "array":
        return [draw.choice([None, 1, 2, 3]) for _ in range(size)]
    if kind == "rows":
        return [{"a": draw.choice([None, 1, 2]), "b": draw.choice("xyz")} for _ in range(size)]
    return list(dict(zip("abcde"[:size], [draw.randrange(1, 4) for _ in range(size)], strict=True)).items())


def elements(kind: str, collection: Any) -> list[tuple[Any, ...]]:
    found = collection or []
    match kind:
        case "array":
            return [(value,) for value in found]
        case "rows":
            return [(row["a"], row["b"]) for row in found]
        case "map":
            return list(found)
    return [(value,) for value, count in found for _ in range(count)]


def model(kind: str, rows: list[tuple[int, int, Any]], ordinality: bool, outer: bool) -> list[tuple[Any, ...]]:
    width = len(COLLECTIONS[kind][2])
    out = []
    for change, number, collection in rows:
        made = [
            (*element, place) if ordinality else element for place, element in enumerate(elements(kind, collection), 1)
        ]
        if not made and outer:
            made = [(None,) * (width + ordinality)]
        out += [(SHORT_STRINGS[change], number, *element) for element in made]
    return out


def spec_of(kind: str, ordinality: bool, outer: bool, **more: Any) -> CorrelateSpec:
    added = COLLECTIONS[kind][2] + ((t.Column("o", t.INT),) if ordinality else ())
    return CorrelateSpec(InputRef(1, COLLECTIONS[kind][0]), added, ordinality, outer, **more)


def shown(rows: list[tuple[Any, ...]], width: int) -> list[tuple[Any, ...]]:
    """Rows of the harness without the collection itself."""
    return [(*row[:2], *row[3:]) for row in rows if len(row) == width + 3]


def batch_of(kind: str, rows: list[tuple[int, int, Any]]) -> ChangelogBatch:
    numbers = pa.array([row[1] for row in rows], pa.int32())
    collections = pa.array([row[2] for row in rows], COLLECTIONS[kind][1])
    return ChangelogBatch.of([numbers, collections], np.array([row[0] for row in rows], np.uint8))


@pytest.mark.parametrize("most", [3, 262_144])
@pytest.mark.parametrize("outer", [False, True])
@pytest.mark.parametrize("ordinality", [False, True])
@pytest.mark.parametrize("kind", list(COLLECTIONS))
def test_rows_meet_their_elements(
    kind: str, ordinality: bool, outer: bool, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(join_side, "MOST_PAIRS", most)
    draw = random.Random(f"{kind} {ordinality} {outer}")
    rows = [(draw.randrange(4), number, collection_of(kind, draw)) for number in range(60)]
    expected = model(kind, rows, ordinality, outer)
    width = len(expected[0]) - 2
    for size in (1, 7, 60):
        harness = OperatorHarness(spec_of(kind, ordinality, outer))
        for start in range(0, 60, size):
            harness.batch(batch_of(kind, rows[start : start + size]))
        assert shown(harness.rows, width) == expected, size
    # A part of a larger array, with other elements before and behind.
    harness = OperatorHarness(spec_of(kind, ordinality, outer))
    harness.batch(batch_of(kind, rows).slice(11, 37))
    assert shown(harness.rows, width) == model(kind, rows[11:37], ordinality, outer)


def track(*entries: tuple[int, int]) -> WatermarkTrack:
    return WatermarkTrack(np.array([o for o, _ in entries], np.int32), np.array([w for _, w in entries], np.int64))


def arrays(*rows: list[int] | None, wm: WatermarkTrack | None = None) -> ChangelogBatch:
    numbers = pa.array(range(len(rows)), pa.int32())
    return ChangelogBatch.of([numbers, pa.array(rows, pa.list_(pa.int32()))], None, wm)


@pytest.mark.parametrize("most", [2, 262_144])
def test_time_stays_with_the_rows(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(join_side, "MOST_PAIRS", most)
    harness = OperatorHarness(spec_of("array", False, False))
    batch = arrays([1, 2], [], [3], None, [4, 5, 6], wm=track((1, 100), (2, 200), (4, 300), (5, 400)))
    times = RowTimes(np.arange(5, dtype=np.int64))
    harness.batch(ChangelogBatch(batch.columns, 5, None, times, batch.track))
    at = 0
    seen = []
    for made in harness.batches:
        assert made.row_times is not None
        assert made.row_times.values_ms.tolist() == made.columns[0].to_pylist()
        if made.track is not None:
            seen += [(at + int(o), int(w)) for o, w in zip(made.track.offsets, made.track.wm_ms, strict=True)]
        at += made.num_rows
    assert at == 6
    if most > 2:
        assert seen == [(2, 100), (2, 200), (3, 300), (6, 400)]
    assert harness.watermarks == [100, 200, 300, 400]


def test_time_passes_where_no_element_does() -> None:
    harness = OperatorHarness(spec_of("array", False, False))
    harness.batch(arrays([], None, wm=track((0, 7), (2, 9))))
    assert harness.batches == []
    assert harness.watermarks == [9]


def test_a_condition_is_asked_of_elements() -> None:
    condition = Call(">", (InputRef(0, t.INT), Literal(2, t.INT)), t.BOOLEAN)
    harness = OperatorHarness(spec_of("array", True, False, condition=condition))
    harness.batch(arrays([1, 3], [2], [5, 1, 4], wm=track((1, 100), (3, 200))))
    assert shown(harness.rows, 2) == [("+I", 0, 3, 2), ("+I", 2, 5, 1), ("+I", 2, 4, 3)]
    (made,) = harness.batches
    assert made.track is not None
    assert made.track.offsets.tolist() == [1, 3]


def test_a_condition_that_fails_names_the_element_and_its_row() -> None:
    texts = t.ArrayType(element=t.STRING)
    condition = Call("=", (Cast(InputRef(0, t.STRING), t.INT), Literal(1, t.INT)), t.BOOLEAN)
    harness = OperatorHarness(CorrelateSpec(InputRef(0, texts), (t.Column("word", t.STRING),), condition=condition))
    with pytest.raises(ExecutionError) as caught:
        harness.batch(ChangelogBatch.of([pa.array([["1"], [], ["1", "no"]])]))
    row = caught.value.row
    assert row is not None
    assert (row.row, row.position, row.names, dict(row.values)) == (2, 2, ("word",), {0: "'no'"})
