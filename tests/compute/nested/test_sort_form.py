"""Bytes of ROWs and ARRAYs sort as Flink sorts the values."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flowsql_compute.eval.nested.sort_form import sort_form

ROW = pa.struct([("a", pa.int32()), ("b", pa.list_(pa.string())), ("c", pa.decimal128(38, 2))])
ROWS = st.fixed_dictionaries(
    {
        "a": st.none() | st.integers(-(2**31), 2**31 - 1),
        "b": st.none() | st.lists(st.none() | st.text("\0a\1b", max_size=3), max_size=3),
        "c": st.none() | st.decimals(-(10**30), 10**30, places=2, allow_nan=False),
    }
)


def _key(value: Any) -> Any:
    """NULL first, fields and elements one after another, a list after its own beginning."""
    if value is None:
        return ()
    if isinstance(value, dict):
        return (tuple(_key(value[name]) for name in "abc"),)
    if isinstance(value, list):
        return (tuple(map(_key, value)),)
    return (value.encode() if isinstance(value, str) else value,)


@given(st.lists(ROWS, max_size=8))
def test_rows(rows: list[Any]) -> None:
    form = sort_form(pa.array(rows, ROW)).to_pylist()
    assert sorted(range(len(rows)), key=form.__getitem__) == sorted(range(len(rows)), key=lambda i: _key(rows[i]))


def test_null_stays_null_and_parts_of_columns_count() -> None:
    column = pa.array([[9], None, [1, 2], [1], [None], [], [2]], pa.list_(pa.int64()))[1:]
    form = sort_form(column).to_pylist()
    assert form[0] is None
    assert sorted(range(1, 6), key=form.__getitem__) == [4, 3, 2, 1, 5]


@pytest.mark.parametrize("type_", [pa.float32(), pa.float64()])
def test_numbers(type_: Any) -> None:
    values = [float("nan"), 1.5, -2.0, float("-inf"), 0.0, -0.0, float("inf")]
    form = sort_form(pa.array([[value] for value in values], pa.list_(type_))).to_pylist()
    assert sorted(range(7), key=form.__getitem__) == [3, 2, 4, 5, 1, 6, 0]
    assert form[4] == form[5]
