"""Sinks whose key is not the query's, against a model in plain Python of what Flink does with lists of rows."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pytest

from flowsql_core.batch import ChangelogBatch, WatermarkTrack
from flowsql_core.clock import ManualClock
from flowsql_core.errors import ExecutionError
from flowsql_core.graph.specs import OperatorSpec, SinkConflictsSpec, SinkMaterializerSpec
from flowsql_core.row import SHORT_STRINGS
from flowsql_core.types.logical import INT, STRING, Column
from flowsql_runtime.testing.harness import OperatorHarness

pytestmark = pytest.mark.usefixtures("each_backend")
sampled = pytest.mark.sampled(4)

Row = tuple[str | None, int, str | None]
#: Kind and row, or the level of a watermark.
Change = tuple[str, Row]
Element = Change | int

#: ``name`` identifies a row of the query, ``key`` one of the sink.
SCHEMA: Final = (Column("name", STRING), Column("key", INT), Column("value", STRING))
NAME, KEY = 0, 1

by_name = pytest.mark.parametrize("named", [True, False], ids=["upsert key", "all columns"])


def materializer(named: bool, ttl_ms: int = 0) -> SinkMaterializerSpec:
    return SinkMaterializerSpec(SCHEMA, (KEY,), (NAME,) if named else None, ttl_ms)


def conflicts(named: bool, fails: bool = False) -> SinkConflictsSpec:
    return SinkConflictsSpec(SCHEMA, (KEY,), (NAME,) if named else None, fails)


def find(rows: Sequence[Row], row: Row, named: bool) -> int:
    same = (at for at, other in enumerate(rows) if (other[NAME] == row[NAME] if named else other == row))
    return next(same, -1)


def put(rows: list[Row], row: Row, named: bool) -> None:
    at = find(rows, row, named) if named else -1
    if at < 0:
        rows.append(row)
    else:
        rows[at] = row


def materialized(elements: Iterable[Element], named: bool) -> list[Change]:
    """The last row of each key's list counts."""
    lists: dict[int, list[Row]] = {}
    out: list[Change] = []
    for element in elements:
        if isinstance(element, int):
            continue
        kind, row = element
        rows = lists.setdefault(row[KEY], [])
        if kind in ("+I", "+U"):
            out.append(("+U" if rows else "+I", row))
            put(rows, row, named)
            continue
        at = find(rows, row, named)
        if at < 0:
            continue
        del rows[at]
        if not rows:
            out.append(("-D", row))
        elif at == len(rows):
            out.append(("+U", rows[-1]))
    return out


def settled(elements: Iterable[Element], named: bool) -> list[Change]:
    """The only row of each key counts, once a watermark passes."""
    shown: dict[int, Row] = {}
    waiting: dict[int, list[Change]] = {}
    out: list[Change] = []
    for element in (*elements, 1 << 62):
        if not isinstance(element, int):
            kind, row = element
            held = waiting.setdefault(row[KEY], [])
            sign = kind[0]
            back = next((at for at, (other, one) in enumerate(held) if one == row and other != sign), None)
            if back is None:
                held.append((sign, row))
            else:
                del held[back]
            continue
        for key, held in waiting.items():
            rows = [shown[key]] if key in shown else []
            for sign, row in held:
                if sign == "+":
                    put(rows, row, named)
                elif (at := find(rows, row, named)) >= 0:
                    del rows[at]
            if not rows:
                if key in shown:
                    out.append(("-D", shown.pop(key)))
            elif key not in shown:
                shown[key] = rows[0]
                out.append(("+I", rows[0]))
            elif len(rows) == 1 and rows[0] != shown[key]:
                shown[key] = rows[0]
                out.append(("+U", rows[0]))
        waiting = {}
    return out


def changes(seed: int, count: int) -> list[Element]:
    """A query's changelog, with what should not occur: rows taken back that never were, rows that come twice."""
    draw = random.Random(seed)
    table: dict[str | None, Row] = {}
    out: list[Element] = []
    level = 0
    while len(out) < count:
        name = draw.choice(["ann", "bob", "cat", "dan", "eve", None])
        row: Row = (name, draw.randrange(3), draw.choice(["x", "a long text of more than a word", None]))
        match draw.randrange(12):
            case 0:
                level += draw.randrange(1, 5)
                out.append(level)
            case 1:
                out.append((draw.choice(["-U", "-D"]), row))
            case 2 | 3 if name in table:
                out.append(("-D", table.pop(name)))
            case 4 if name in table:
                out.append(("+U", table[name]))
            case _:
                if name in table:
                    out += [("-U", table[name]), ("+U", row)]
                else:
                    out.append(("+I", row))
                table[name] = row
    return out


def batch(elements: Sequence[Element]) -> ChangelogBatch:
    rows = [element for element in elements if not isinstance(element, int)]
    offsets, levels, seen = [], [], 0
    for element in elements:
        if isinstance(element, int):
            offsets.append(seen)
            levels.append(element)
        else:
            seen += 1
    kinds = np.array([SHORT_STRINGS.index(kind) for kind, _ in rows], np.uint8)
    columns = [
        pa.array([row[at] for _, row in rows], type_) for at, type_ in enumerate([pa.string(), pa.int32(), pa.string()])
    ]
    track = WatermarkTrack(np.array(offsets, np.int32), np.array(levels, np.int64)) if levels else None
    return ChangelogBatch.of(columns, kinds, track)


def feed(harness: OperatorHarness[Any], elements: Sequence[Element], size: int) -> None:
    """Batches of ``size`` elements; a watermark without rows comes by itself."""
    for part in (elements[at : at + size] for at in range(0, len(elements), size)):
        if all(isinstance(element, int) for element in part):
            for level in part:
                assert isinstance(level, int)
                harness.watermark(level)
        else:
            harness.batch(batch(part))


def told(harness: OperatorHarness[Any]) -> list[Change]:
    return [(kind, (name, key, value)) for kind, name, key, value in harness.rows]


def of_keys(found: Iterable[Change]) -> dict[int, list[Change]]:
    """The changes of each key in order: keys of several subtasks have no order."""
    made: dict[int, list[Change]] = {}
    for kind, row in found:
        made.setdefault(row[KEY], []).append((kind, row))
    return made


Model = Callable[[Iterable[Element], bool], list[Change]]
BOTH: Final[list[tuple[Callable[[bool], OperatorSpec], Model]]] = [(materializer, materialized), (conflicts, settled)]
of_both = pytest.mark.parametrize(("make", "model"), BOTH, ids=["DEDUPLICATE", "NOTHING"])


@of_both
@by_name
@sampled
@pytest.mark.parametrize("size", [1, 7, 1000])
def test_changes_are_those_of_flinks_lists(
    make: Callable[[bool], OperatorSpec], model: Model, named: bool, size: int
) -> None:
    for seed in range(6):
        elements = changes(seed, 150)
        harness = OperatorHarness(make(named), keys=((KEY,),))
        feed(harness, elements, size)
        harness.end()
        assert told(harness) == model(elements, named), seed


@of_both
@by_name
def test_a_cut_at_any_parallelism_changes_nothing(
    make: Callable[[bool], OperatorSpec], model: Model, named: bool, each_backend: str
) -> None:
    # Each parallelism comes before and after the cut; on rocksdb one in three pairs, others for each operator.
    pairs = list(enumerate(itertools.product((1, 2, 3, 4), repeat=2)))
    for seed, (before, after) in pairs[named::3] if each_backend == "rocksdb" else pairs:
        elements = changes(100 + seed, 120)
        cut = 13 * (seed + 1)
        first = OperatorHarness(make(named), before, keys=((KEY,),))
        feed(first, elements[:cut], 5)
        second = first.restored(after)
        feed(second, elements[cut:], 5)
        second.end()
        assert of_keys(told(second)) == of_keys(model(elements, named)), (before, after)


@by_name
def test_a_second_row_of_a_key_fails(named: bool) -> None:
    rows: list[Element] = [("+I", ("ann", 1, "x")), 1, ("-U", ("ann", 1, "x")), ("+I", ("bob", 1, "x")), 2]
    harness = OperatorHarness(conflicts(named, fails=True), keys=((KEY,),))
    feed(harness, rows, 100)
    assert told(harness) == [("+I", ("ann", 1, "x")), ("+U", ("bob", 1, "x"))]
    assert harness.watermarks == [1, 2]
    with pytest.raises(ExecutionError) as raised:
        feed(harness, [("+I", ("cat", 2, None)), ("+I", ("ann", 1, "x")), 3], 100)
    assert raised.value.message == (
        "Primary key constraint violation: multiple distinct records with the same primary key detected. Conflicting "
        "key: [key=1]. Use ON CONFLICT DO NOTHING to keep the first record."
    )


def test_a_conflict_names_every_column_of_the_key() -> None:
    spec = replace(conflicts(False, fails=True), keys=(NAME, KEY))
    harness = OperatorHarness(spec, keys=((NAME, KEY),))
    with pytest.raises(ExecutionError, match=r"Conflicting key: \[name=ann, key=4\]\. Use"):
        feed(harness, [("+I", ("ann", 4, "x")), ("+I", ("ann", 4, "y")), 1], 100)


def test_keys_of_which_nothing_is_left_hold_no_state() -> None:
    rows: list[Element] = [(kind, (f"n{key}", key, "x")) for key in range(50) for kind in ("+I", "-D")]
    for spec in (materializer(True), materializer(False), conflicts(True)):
        harness = OperatorHarness(spec, keys=((KEY,),))
        feed(harness, [*rows, 1], 30)
        (snapshot,) = harness.snapshot()
        assert {name: table.num_rows for name, table in snapshot.tables().items() if table.num_rows} == {}


def test_an_idle_key_starts_over() -> None:
    clock = ManualClock()
    harness = OperatorHarness(materializer(True, ttl_ms=1000), keys=((KEY,),), clock=clock)
    feed(harness, [("+I", ("ann", 1, "x")), ("+I", ("ann", 2, "x"))], 10)
    clock.advance(600)
    feed(harness, [("+I", ("bob", 1, "x"))], 10)
    second = harness.restored(2)
    clock.advance(600)
    feed(second, [("+I", ("cat", 1, "x")), ("+I", ("cat", 2, "x"))], 10)
    clock.advance(5000)
    feed(second, [("-D", ("cat", 1, "x")), ("+I", ("dan", 3, "x"))], 10)
    assert of_keys(told(second)) == {
        1: [("+I", ("ann", 1, "x")), ("+U", ("bob", 1, "x")), ("+U", ("cat", 1, "x"))],
        2: [("+I", ("ann", 2, "x")), ("+I", ("cat", 2, "x"))],
        3: [("+I", ("dan", 3, "x"))],
    }
