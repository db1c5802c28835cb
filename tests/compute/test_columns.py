"""The door between Arrow and NumPy: offsets, bitmaps, decimals."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from flowsql_compute.eval.columns import make_array, make_strings, string_buffers, values_and_validity

COLUMNS = [
    pa.array([1, None, 3, -4, 5], pa.int32()),
    pa.array([1.5, None, float("nan"), -0.0, 2], pa.float64()),
    pa.array([True, None, False, True, True]),
    pa.array([0, 1, None, -1, 7], pa.int64()).cast(pa.timestamp("us", tz="UTC")),
    pa.array([0, None, 5, 6, 7], pa.int32()).cast(pa.date32()),
    pa.array([Decimal("1.50"), None, Decimal("-0.01"), Decimal("9999.99"), Decimal(0)], pa.decimal128(10, 2)),
    pa.array([Decimal(10) ** 30, None, Decimal(-1), -(Decimal(10) ** 25), Decimal(0)], pa.decimal128(38, 0)),
    pa.array([None, None, None, None, None], pa.int8()),
    pa.nulls(5),
]


@pytest.mark.parametrize("column", COLUMNS, ids=lambda column: str(column.type))
@pytest.mark.parametrize(("start", "length"), [(0, 5), (1, 3), (2, 0), (3, 2)])
def test_round_trip_of_slices(column: pa.Array, start: int, length: int) -> None:
    part = column.slice(start, length)
    values, valid = values_and_validity(part)
    assert len(values) == length
    assert str(make_array(values, valid, column.type).to_pylist()) == str(part.to_pylist())


def test_bits_beyond_a_byte() -> None:
    column = pa.array([i % 3 == 0 for i in range(50)], mask=np.array([i % 7 == 0 for i in range(50)]))
    values, valid = values_and_validity(column.slice(13, 30))
    assert valid is not None
    assert valid.tolist() == [i % 7 != 0 for i in range(13, 43)]
    assert values[valid].tolist() == [i % 3 == 0 for i in range(13, 43) if i % 7]


def test_short_decimals_are_one_word_and_long_ones_two() -> None:
    assert values_and_validity(COLUMNS[5])[0].ndim == 1
    assert values_and_validity(COLUMNS[6])[0].shape == (5, 2)


def test_string_buffers_know_their_offset() -> None:
    column = pa.array(["a", None, "bcd", "", "é"]).slice(2, 3)
    offsets, data = string_buffers(column)
    rows = [bytes(data[offsets[i] : offsets[i + 1]]).decode() for i in range(3)]
    assert rows == ["bcd", "", "é"]
    made = make_strings(offsets - offsets[0], data[offsets[0] :].copy(), None, pa.string())
    assert made.to_pylist() == rows
