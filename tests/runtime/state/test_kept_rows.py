"""Rows that stay in the batches that they arrived in."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from flowsql_core.batch import LateColumns
from flowsql_core.errors import InternalError
from flowsql_runtime.state.resident.kept_rows import KeptRows
from flowsql_runtime.state.resident.key_index import ResidentKeyIndex

TYPES = [pa.int64(), pa.string(), pa.bool_(), pa.decimal128(20, 2), pa.int16(), pa.list_(pa.int32()), pa.float64()]


def _arrays(first: int, n: int) -> list[Any]:
    ids = range(first, first + n)
    return [
        pa.array([None if i % 7 == 0 else i for i in ids], pa.int64()),
        pa.array([None if i % 5 == 0 else f"text {i}" * (i % 4) for i in ids], pa.string()),
        pa.array([None if i % 11 == 0 else i % 3 == 0 for i in ids], pa.bool_()),
        pa.array([Decimal(i) for i in ids], pa.decimal128(20, 2)),
        pa.array([i % 1000 for i in ids], pa.int16()),
        pa.array([[i, i + 1] if i % 2 else None for i in ids], pa.list_(pa.int32())),
        pa.array([i / 4 for i in ids], pa.float64()),
    ]


def _slots(index: ResidentKeyIndex, keys: list[int]) -> Any:
    slots, _ = index.find_or_insert(index.encode([pa.array(keys, pa.int64())]))
    return slots


@pytest.mark.parametrize("sizes", [[1] * 40, [5000, 1, 1, 6000, 300], [2000, 2000, 2000]])
def test_rows_come_back_in_order_of_arrival(sizes: list[int]) -> None:
    index = ResidentKeyIndex([pa.int64()])
    rows = KeptRows(index, TYPES)
    first = 0
    for size in sizes:
        keys = [(first + i) % 13 for i in range(size)]
        slots = _slots(index, keys)
        slots[np.array(keys) == 12] = -1
        wider = _arrays(first - 2, size + 3)
        rows.append(slots, [array.slice(2, size) for array in wider])
        first += size
    assert len(rows) == sum(i % 13 != 12 for i in range(first))
    asked = _slots(index, list(range(12)))
    probes, found = rows.rows_of(asked)
    expected = [i for key in range(12) for i in range(key, first, 13)]
    assert probes.tolist() == [i % 13 for i in expected]
    whole = _arrays(0, first)
    for got, array in zip(rows.gather(found), whole, strict=True):
        got.validate(full=True)
        assert got.equals(array.take(pa.array(expected)))
    loaded = KeptRows(ResidentKeyIndex([pa.int64()]), TYPES)
    loaded.load(rows.save())
    assert len(loaded) == len(rows)


def test_a_selection_is_kept_where_it_is_dense_and_copied_where_it_is_not() -> None:
    index = ResidentKeyIndex([pa.int64()])
    rows = KeptRows(index, TYPES, sharers=2)
    whole, other = _arrays(0, 20_000), _arrays(50_000, 20_000)
    dense = np.arange(0, 20_000, 2, dtype=np.int64)
    late = LateColumns.beside(LateColumns.of(whole[:3], dense), LateColumns.of(other[3:], dense + 1))
    rows.append(_slots(index, [i % 3 for i in range(10_000)]), late)
    assert late.origin(1) is not None
    sparse = np.arange(0, 20_000, 10, dtype=np.int32)
    few = LateColumns.of(whole, sparse)
    rows.append(_slots(index, [7] * 2000), few)
    assert few.origin(1) is None
    found = np.array([0, 9_999, 10_000, 11_999, 3], np.int32)
    expected = [
        pa.concat_arrays([(whole if i < 3 else other)[i].take(pa.array(dense + (i >= 3))), whole[i].take(sparse)])
        for i in range(len(TYPES))
    ]
    columns = rows.gather(found)
    later = LateColumns.of(columns, np.array([4, 0]))
    rows.append(_slots(index, [1]), _arrays(0, 1))
    for i, got in enumerate(columns):
        assert got.equals(expected[i].take(pa.array(found)))
        assert later[i].equals(expected[i].take(pa.array([3, 0])))
    assert rows.nbytes < sum(array.nbytes for array in [*whole, *other])


def test_nothing_at_all() -> None:
    index = ResidentKeyIndex([pa.int64()])
    rows = KeptRows(index, TYPES)
    rows.append(_slots(index, []), _arrays(0, 0))
    probes, found = rows.rows_of(_slots(index, [1]))
    assert len(probes) == 0
    assert [len(column) for column in rows.gather(found)] == [0] * len(TYPES)
    assert rows.counts(np.array([0], np.int32)).tolist() == [0]


def test_only_the_thread_that_adds_rows_gathers_them() -> None:
    index = ResidentKeyIndex([pa.int64()])
    rows = KeptRows(index, TYPES[:1])
    rows.append(_slots(index, [1, 2]), _arrays(0, 2)[:1])
    columns = rows.gather(np.array([1, 0], np.int32))
    with ThreadPoolExecutor(1) as other, pytest.raises(InternalError, match="another thread"):
        other.submit(lambda: columns[0]).result()
    assert columns[0].to_pylist() == [1, None]
