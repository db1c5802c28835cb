"""OVER windows ordered by a column against a model: each row's texts and counts, whatever comes and goes."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from flowsql_core.batch import ChangelogBatch
from flowsql_core.expr import AggregateCall, InputRef, Literal
from flowsql_core.graph.over_specs import OverAggregateSpec, OverOrder
from flowsql_core.types.logical import BIGINT, INT, STRING, CharType, Column
from flowsql_runtime.operators.over import values
from flowsql_runtime.testing.harness import OperatorHarness

pytestmark = [pytest.mark.usefixtures("each_backend"), pytest.mark.sampled(4)]

INPUT = (Column("k", STRING), Column("o", INT), Column("s", STRING))
S = InputRef(2, STRING)
BAR = Literal("|é|", CharType(length=3, nullable=False))
LISTS = (
    AggregateCall("LISTAGG", (S,), STRING, "l"),
    AggregateCall("COUNT", (S,), BIGINT.as_nullable(False), "c"),
    AggregateCall("LISTAGG", (S, InputRef(3, BAR.type)), STRING, "m"),
)
Row = tuple[str, int | None, str | None]


def spec(calls: tuple[AggregateCall, ...], rows: bool, tells_before: bool = True) -> OverAggregateSpec:
    output = (*INPUT, *(Column(call.name, call.type) for call in calls))
    return OverAggregateSpec(
        (0,), OverOrder.VALUES, 1, rows, None, calls, (BAR,), INPUT, output, emit_update_before=tells_before,
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
            lists = [separator.join(texts) if texts else None for separator in (",", BAR.value)]
            found[*row, lists[0], len(texts), lists[1]] += 1
    return found


def _not_behind(one: Row, other: Row) -> bool:
    return (-1 if one[1] is None else one[1]) <= (-1 if other[1] is None else other[1])


@pytest.mark.parametrize("rows", [False, True])
@pytest.mark.parametrize("seed", range(20))
def test_texts_of_rows_that_come_and_go(seed: int, rows: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(seed)
    if seed % 2:
        monkeypatch.setattr(values, "_ROOM", 8)
        monkeypatch.setattr(values, "_TEXT_BYTES", 64)
    changes = drawn(rng)
    harness = OperatorHarness(spec(LISTS, rows), keys=((0,),))
    cuts = sorted(rng.randrange(len(changes) + 1) for _ in range(3))
    materialised: Counter[tuple[Any, ...]] = Counter()
    for start, end in zip([0, *cuts], [*cuts, len(changes)], strict=True):
        if end > start:
            harness.batch(batch(changes[start:end]))
        for kind, row in told(harness):
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
