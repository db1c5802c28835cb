"""Of the changes of a key the last one is written; rows come back in other forms as their columns want them."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest

from flowsql_connectors.jdbc.changes import reduced
from flowsql_connectors.jdbc.native import fits, takes
from flowsql_core.batch import ChangelogBatch
from flowsql_core.row import DELETE, INSERT, UPDATE_AFTER, UPDATE_BEFORE
from flowsql_core.types import logical as t


@pytest.mark.parametrize("seed", range(5))
def test_the_last_change_of_a_key_counts(seed: int) -> None:
    dice = random.Random(seed)
    rows = [
        (
            dice.choice([None, 1, 2, 3]),
            dice.choice("ab"),
            value,
            dice.choice([INSERT, UPDATE_BEFORE, UPDATE_AFTER, DELETE]),
        )
        for value in range(60)
    ]
    batches = [
        ChangelogBatch.of(
            (
                pa.array([row[0] for row in part], pa.int64()),
                pa.array([row[1] for row in part]),
                pa.array([row[2] for row in part], pa.int64()),
            ),
            np.array([row[3] for row in part], np.uint8),
            num_rows=len(part),
        )
        for part in (rows[:20], rows[20:25], rows[25:])
    ]
    table: dict[tuple[object, object], int] = {}
    for number, letter, value, kind in rows:
        table.pop((number, letter), None)
        if kind in (INSERT, UPDATE_AFTER):
            table[number, letter] = value
    changes = reduced(batches, (0, 1))
    kept = list(zip(*(column.to_pylist() for column in changes.rows), strict=True))
    gone = list(zip(*(column.to_pylist() for column in changes.deleted), strict=True))
    assert {(number, letter): value for number, letter, value in kept} == table
    assert len(kept) == len(table) == changes.row_count
    assert set(gone) == {row[:2] for row in rows} - set(table)
    assert len(gone) == len(set(gone)) == changes.delete_count


def test_without_a_key_all_rows_are_written() -> None:
    batch = ChangelogBatch.of((pa.array([1, 1, 2]),), num_rows=3)
    changes = reduced([batch, batch], ())
    assert changes.rows[0].to_pylist() == [1, 1, 2, 1, 1, 2]
    assert changes.delete_count == 0


@pytest.mark.parametrize(
    ("native", "declared", "fitting"),
    [
        (t.INT, t.BIGINT, True),
        (t.BIGINT, t.INT, False),
        (t.FLOAT, t.DOUBLE, True),
        (t.DOUBLE, t.FLOAT, False),
        (t.DecimalType(precision=20, scale=5), t.DecimalType(precision=9, scale=2), True),
        (t.BIGINT, t.DecimalType(precision=9, scale=2), False),
        (None, t.STRING, True),
        (None, t.BYTES, False),
        (t.CharType(length=3), t.VarCharType(length=9), True),
        (t.INT, t.STRING, False),
        (t.TimestampType(precision=6), t.TimestampType(precision=3), True),
        (t.TimestampLtzType(precision=6), t.TimestampType(precision=6), True),
        (t.TimestampType(precision=6), t.TimestampLtzType(precision=6), False),
        (t.ArrayType(element=t.INT), t.ArrayType(element=t.BIGINT), True),
        (t.ArrayType(element=t.STRING), t.ArrayType(element=t.BIGINT), False),
        (t.STRING, t.RowType(fields=()), False),
    ],
)
def test_what_fits(native: t.LogicalType | None, declared: t.LogicalType, fitting: bool) -> None:
    assert fits(native, declared) is fitting


@pytest.mark.parametrize(
    ("native", "declared", "taken"),
    [
        (t.INT, t.BIGINT, True),
        (t.BIGINT, t.INT, True),
        (t.DecimalType(precision=9, scale=2), t.INT, True),
        (t.INT, t.DOUBLE, False),
        (t.INT, t.STRING, False),
        (t.FLOAT, t.DOUBLE, True),
        (None, t.STRING, True),
        (None, t.INT, False),
        (t.DATE, t.TimestampType(precision=3), False),
        (t.STRING, t.INT, False),
    ],
)
def test_what_is_taken(native: t.LogicalType | None, declared: t.LogicalType, taken: bool) -> None:
    assert takes(native, declared) is taken
