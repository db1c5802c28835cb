"""The cut of operators that no query of ``tests/sql/test_cut.py`` reaches, and of the assigner's own state."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pyarrow as pa
import pytest

from flowsql_core.batch import ChangelogBatch
from flowsql_core.expr import InputRef
from flowsql_core.graph.specs import DropUpdateBeforeSpec, WatermarkAssignerSpec
from flowsql_core.row import SHORT_STRINGS, UPDATE_BEFORE
from flowsql_core.types.logical import TimestampType
from flowsql_runtime.operators.base import OperatorSnapshot
from flowsql_runtime.testing.harness import OperatorHarness

MS = TimestampType(precision=3)
ASSIGNER = WatermarkAssignerSpec(0, "ts", InputRef(0, MS))


def times(values: list[int]) -> ChangelogBatch:
    return ChangelogBatch.of([pa.array(values, pa.timestamp("ms"))])


def levels(harness: OperatorHarness[WatermarkAssignerSpec]) -> list[int]:
    """Watermarks in order; one that is told again at a restore counts once."""
    return [level for level, _ in itertools.groupby(harness.watermarks)]


def row_times(seed: int) -> list[int]:
    """Rising by less than the interval of 200 ms, with steps back."""
    draw = random.Random(seed)
    at, found = 10_000, []
    for _ in range(40):
        at += draw.randrange(0, 190)
        found.append(at - draw.choice([0, 0, 0, 500]))
    return found


def cut_at(values: list[int], position: int, forget: bool) -> list[int]:
    """Watermarks of a run that is cut; ``forget`` drops the assigner's own state and keeps the rest."""
    first = OperatorHarness(ASSIGNER)
    first.batch(times(values[:position]))
    snapshots = first.snapshot()
    if forget:
        snapshots = [OperatorSnapshot(watermarks_ms=snapshot.watermarks_ms) for snapshot in snapshots]
    second = OperatorHarness(ASSIGNER, snapshot=snapshots, output=first.output)
    second.batch(times(values[position:]))
    return levels(second)


@pytest.mark.parametrize("seed", range(3))
def test_a_cut_assigner_emits_what_an_undisturbed_one_emits(seed: int) -> None:
    values = row_times(seed)
    whole = OperatorHarness(ASSIGNER)
    whole.batch(times(values))
    for position in range(1, len(values)):
        assert cut_at(values, position, forget=False) == levels(whole), position


def test_without_its_state_the_cut_assigner_emits_something_else() -> None:
    values = row_times(0)
    whole = OperatorHarness(ASSIGNER)
    whole.batch(times(values))
    differing = [p for p in range(1, len(values)) if cut_at(values, p, forget=True) != levels(whole)]
    assert len(differing) > len(values) // 2


@pytest.mark.parametrize("parallelism", list(itertools.product((1, 2, 3, 4), repeat=2)))
def test_dropping_updates_before_survives_the_cut(parallelism: tuple[int, int]) -> None:
    numbers = np.arange(60)
    kinds = (numbers % 4).astype(np.uint8)
    batch = ChangelogBatch.of([pa.array(numbers)], kinds)
    harness = OperatorHarness(DropUpdateBeforeSpec(), parallelism[0], keys=[(0,)])
    harness.batch(batch.slice(0, 31))
    harness.watermark(7)
    harness = harness.restored(parallelism[1])
    assert all(operator.current_watermark == 7 for operator in harness.operators)
    harness.batch(batch.slice(31, 60))
    kept = [(SHORT_STRINGS[kind], n) for n, kind in enumerate(kinds) if kind != UPDATE_BEFORE]
    assert sorted(harness.rows) == sorted(kept)
