"""Collections as bytes: what ``to_bytes`` makes of a column is the same column again, equal where the values are."""

from __future__ import annotations

from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flowsql_compute.eval.nested.value_bytes import from_bytes, to_bytes

_NUMBERS = pa.map_(pa.string(), pa.list_(pa.float64()))
_ROW = pa.struct([("a", pa.int8()), ("b", pa.string())])
COLUMNS: list[Any] = [
    pa.array([[1, 2, None], None, [], [3]], pa.list_(pa.int32())),
    pa.array([["a", "", None, "xyz" * 10], None, [], ["q"]], pa.list_(pa.string())),
    pa.array([[b"", b"\x00", None], [b"\x00"]], pa.list_(pa.binary())),
    pa.array([[[1], [2, 3], None, []], None, [], [[None]]], pa.list_(pa.list_(pa.int64()))),
    pa.array([[("a", 1), ("b", None)], None, [], [("c", 3)]], pa.map_(pa.string(), pa.int32())),
    pa.array([[("a", [("x", [1.5, None])]), ("b", None)], None, []], pa.map_(pa.string(), _NUMBERS)),
    pa.array([[{"a": 1, "b": "x"}, None, {"a": None, "b": None}], None], pa.list_(_ROW)),
    pa.array([[Decimal("1.23"), None], [Decimal("-99999999999999999999.01")]], pa.list_(pa.decimal128(38, 2))),
    pa.array([[Decimal("1.23"), None], None], pa.list_(pa.decimal128(5, 2))),
    pa.array([[True, False, None], None], pa.list_(pa.bool_())),
    pa.array([[None, None], None, []], pa.list_(pa.null())),
    pa.array([[date(2020, 1, 1)], None], pa.list_(pa.date32())),
    pa.array([[datetime(2020, 1, 1, 1, 2, 3)], None], pa.list_(pa.timestamp("ms"))),
    pa.array([[time(10)], None], pa.list_(pa.time32("ms"))),
    pa.array([[timedelta(1)], None], pa.list_(pa.duration("ms"))),
    pa.array([[1.5, float("inf"), -0.0, None]], pa.list_(pa.float32())),
]  # fmt: skip


def _same_again(column: Any) -> None:
    made = from_bytes(to_bytes(column), column.type)
    made.validate(full=True)
    assert made.equals(column)


@pytest.mark.parametrize("column", COLUMNS, ids=[str(column.type) for column in COLUMNS])
def test_a_column_comes_back(column: Any) -> None:
    _same_again(column)
    # Slices have offsets of their own.
    _same_again(column.slice(1))
    _same_again(column.slice(0, 1))
    _same_again(column.slice(0, 0))


@given(
    st.lists(st.none() | st.lists(st.none() | st.lists(st.none() | st.sampled_from(["", "a", "b" * 20]))), max_size=8)
)
def test_equal_values_have_equal_bytes(values: list[Any]) -> None:
    column = pa.array(values, pa.list_(pa.list_(pa.string())))
    _same_again(column)
    made = to_bytes(column)
    for left, left_bytes in zip(values, made.to_pylist(), strict=True):
        for right, right_bytes in zip(values, made.to_pylist(), strict=True):
            assert (left == right) == (left_bytes == right_bytes)
