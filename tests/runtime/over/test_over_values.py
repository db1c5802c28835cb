"""OVER windows ordered by a column against a model: each row's texts and counts, whatever comes and goes."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from flowsql_core import column_bytes
from flowsql_core.batch import ChangelogBatch
from flowsql_core.errors import ExecutionError, NotSupportedYetError
from flowsql_core.expr import AggregateCall, InputRef, Literal
from flowsql_core.graph.over_specs import OverAggregateSpec, OverOrder
from flowsql_core.types.logical import BIGINT, INT, STRING, CharType, Column
from flowsql_runtime.operators.over import running_texts, values
from flowsql_runtime.operators.over.running_texts import Int64s, RunningTexts
from flowsql_runtime.testing.harness import OperatorHarness

pytestmark = [pytest.mark.usefixtures("each_backend"), pytest.mark.sampled(4)]

INPUT = (Column("k", STRING), Column("o", INT), Column("s", STRING))
S = InputRef(2, STRING)
BAR = Literal("|é|", CharType(length=3, nullable=False))
NOTHING = Literal("", CharType(length=0, nullable=False))
LISTS = (
    AggregateCall("LISTAGG", (S,), STRING, "l"),
    AggregateCall("COUNT", (S,), BIGINT.as_nullable(False), "c"),
    AggregateCall("LISTAGG", (S, InputRef(3, BAR.type)), STRING, "m"),
    AggregateCall("LISTAGG", (S, InputRef(4, NOTHING.type)), STRING, "e"),
)
#: What windows of ROWS answer, too.
COUNTS = LISTS[1:2]
Row = tuple[str, int | None, str | None]


def spec(calls: tuple[AggregateCall, ...], rows: bool, tells_before: bool = True) -> OverAggregateSpec:
    output = (*INPUT, *(Column(call.name, call.type) for call in calls))
    return OverAggregateSpec(
        (0,), OverOrder.VALUES, 1, rows, None, calls, (BAR, NOTHING), INPUT, output, emit_update_before=tells_before,
        input_retracts=True,
    )  # fmt: skip


def batch(changes: list[tuple[int, Row]]) -> ChangelogBatch:
    rows = [row for _, row in changes]
    columns = (
        pa.array([row[0] for row in rows], pa.string()),
        pa.array([row[1] for row in rows], pa.int32()),
        pa.array([row[2] for row in rows], pa.string()),
    )
    return ChangelogBatch(columns, len(rows), np.array([kind for kind, _ in changes], np.uint8), None, None)


def drawn(rng: random.Random) -> list[tuple[int, Row]]:
    """Inserts, and deletes of rows that are there; texts with NULL, empty ones and some that are not ASCII."""
    there: list[Row] = []
    changes: list[tuple[int, Row]] = []
    for number in range(rng.randrange(1, 120)):
        if there and rng.random() < 0.3:
            changes.append((3, there.pop(rng.randrange(len(there)))))
            continue
        order = rng.choice([None, *range(6)])
        # Rows that sort alike and are equal cannot be told apart: each text is there once.
        text = rng.choice([None, "", f"é{number}", f"{number}"])
        row = (rng.choice("ab"), order, text)
        if row in there:
            continue
        there.append(row)
        changes.append((0, row))
    return changes


def wanted(changes: list[tuple[int, Row]], rows: bool) -> Counter[tuple[Any, ...]]:
    """What is there at the end: rows by their column, NULL first, in the order in which they came."""
    there: list[Row] = []
    for kind, row in changes:
        if kind == 0:
            there.append(row)
        else:
            there.remove(row)
    found: Counter[tuple[Any, ...]] = Counter()
    for key in "ab":
        own = sorted((row for row in there if row[0] == key), key=lambda row: -1 if row[1] is None else row[1])
        for place, row in enumerate(own):
            upto = own[: place + 1] if rows else [other for other in own if _not_behind(other, row)]
            texts = [other[2] for other in upto if other[2] is not None]
            lists = [separator.join(texts) if texts else None for separator in (",", BAR.value, NOTHING.value)]
            found[(*row, len(texts)) if rows else (*row, lists[0], len(texts), *lists[1:])] += 1
    return found


def _not_behind(one: Row, other: Row) -> bool:
    return (-1 if one[1] is None else one[1]) <= (-1 if other[1] is None else other[1])


@pytest.mark.parametrize("rows", [False, True])
@pytest.mark.parametrize("seed", range(20))
def test_results_of_rows_that_come_and_go(seed: int, rows: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(seed)
    if seed % 2:
        monkeypatch.setattr(values, "_ROOM", 8)
        monkeypatch.setattr(values, "_TEXT_BYTES", 64)
    changes = drawn(rng)
    harness = OperatorHarness(spec(COUNTS if rows else LISTS, rows), keys=((0,),))
    cuts = sorted(rng.randrange(len(changes) + 1) for _ in range(3))
    materialised: Counter[tuple[Any, ...]] = Counter()
    for start, end in zip([0, *cuts], [*cuts, len(changes)], strict=True):
        if end > start:
            harness.batch(batch(changes[start:end]))
        changed = told(harness)
        for (kind, row), (_, after) in itertools.pairwise(changed):
            # What stays as it was is not told.
            assert kind != 1 or row != after
        for kind, row in changed:
            # A row that is taken back was there, with the results that were told last.
            assert kind in (0, 2) or materialised[row] > 0
            materialised[row] += 1 if kind in (0, 2) else -1
        harness.output.elements.clear()
        harness = harness.restored(1)
    assert +materialised == wanted(changes, rows)


def told(harness: OperatorHarness[OverAggregateSpec]) -> list[tuple[int, tuple[Any, ...]]]:
    found = []
    for element in harness.output.elements:
        if isinstance(element, ChangelogBatch):
            kinds = np.zeros(element.num_rows, np.uint8) if element.kinds is None else element.kinds
            rows = zip(*(column.to_pylist() for column in element.columns), strict=True)
            found += list(zip(kinds.tolist(), rows, strict=True))
    return found


def test_a_window_of_texts_alone() -> None:
    harness = OperatorHarness(spec(LISTS[:1], rows=False, tells_before=False), keys=((0,),))
    harness.batch(batch([(0, ("a", 2, "y")), (0, ("a", 1, None)), (0, ("a", 1, "x"))]))
    assert told(harness) == [
        (0, ("a", 2, "y", "y")),
        (0, ("a", 1, None, None)),
        (2, ("a", 1, None, "x")),
        (0, ("a", 1, "x", "x")),
        (2, ("a", 2, "y", "x,y")),
    ]


@pytest.mark.parametrize(("text", "separator"), [(None, b","), (None, b""), ("", b"")])
@pytest.mark.parametrize("place", range(4))
def test_a_row_that_adds_nothing_leaves_the_texts_behind_it_alone(
    text: str | None, separator: bytes, place: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Row 3 comes in front of those from ``place`` on; row 4 adds nothing either.
    texts = RunningTexts(pa.array(["x", "", "y", text, text]), separator)
    standing = [0, 1, 2]
    standing.insert(place, 4)
    texts.restart(np.array(standing, np.int32), np.array([-1, *standing[:-1]]), 5)
    rows = [3, *standing[place:]]
    befores = [standing[place - 1] if place else -1, *rows[:-1]]
    results = texts.follow(np.array(rows, np.int32), np.array(befores))
    written: list[int] = []
    write = texts.written

    def recorded(nodes: Int64s) -> Any:
        written.extend(texts.sizes(nodes).tolist())
        return write(nodes)

    monkeypatch.setattr(texts, "written", recorded)
    behind = 2 * np.arange(1, len(rows))
    assert results.equal(behind, behind + 1).all()
    assert not sum(written)


def test_a_text_too_long_for_any_array(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running_texts, "MOST_BYTES", 3)
    harness = OperatorHarness(spec(LISTS[:1], rows=False), keys=((0,),))
    harness.batch(batch([(0, ("a", 1, "x")), (0, ("a", 1, "y"))]))
    with pytest.raises(ExecutionError, match="more than 2 GiB"):
        harness.batch(batch([(0, ("a", 1, "z"))]))


@pytest.mark.parametrize("most", [1, 10, 100])
def test_batches_are_cut_where_columns_take_too_many_bytes(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of rows that are told again and again as well as those of their texts."""
    changes: list[tuple[int, Row]] = [(0, ("a", 9 - number, f"é{number}")) for number in range(9)]
    harness = OperatorHarness(spec(LISTS[:2], rows=False), keys=((0,),))
    harness.batch(batch(changes))
    whole, harness = told(harness), OperatorHarness(spec(LISTS[:2], rows=False), keys=((0,),))
    monkeypatch.setattr(column_bytes, "MOST_BYTES", most)
    harness.batch(batch(changes))
    assert told(harness) == whole
    cut = [element for element in harness.output.elements if isinstance(element, ChangelogBatch)]
    assert len(cut) > 1
    for element in cut:
        assert [column.type for column in element.columns] == [
            pa.string(), pa.int32(), pa.string(), pa.string(), pa.int64()
        ]  # fmt: skip


def test_rows_have_no_texts() -> None:
    with pytest.raises(NotSupportedYetError, match="ROWS"):
        OperatorHarness(spec(LISTS[:1], rows=True), keys=((0,),))
