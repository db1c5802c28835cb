"""Columns whose values take more than 2 GiB together: counted, cut into batches, or wide for a while."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from flowsql_core import column_bytes
from flowsql_core.batch import ChangelogBatch, LateColumns, WatermarkTrack, concat_batches

#: Three of it are more than 2 GiB. Pages that nobody reads or writes take no memory.
LONG_BYTES = 3 << 28


def long_texts() -> Any:
    """One text of ``LONG_BYTES`` NUL characters, and an empty one."""
    offsets = np.array([0, LONG_BYTES, LONG_BYTES], np.int32)
    return pa.Array.from_buffers(
        pa.string(), 2, [None, pa.py_buffer(offsets), pa.py_buffer(np.zeros(LONG_BYTES, np.uint8))]
    )


@pytest.mark.parametrize(
    ("values", "type_", "sizes"),
    [
        (["ab", None, "", "ä"], pa.string(), [2, 0, 0, 2]),
        ([b"abc", b""], pa.large_binary(), [3, 0]),
        ([1, None], pa.int32(), None),
        ([[1, 2], None, []], pa.list_(pa.int64()), [2, 0, 0]),
        ([["ab", "c"], [], [None]], pa.list_(pa.string()), [5, 0, 1]),
        ([[("k", "value")], []], pa.map_(pa.string(), pa.string()), [7, 0]),
        ([{"a": "xy", "b": 1}, {"a": None, "b": 2}], pa.struct({"a": pa.string(), "b": pa.int8()}), [2, 0]),
        ([], pa.string(), []),
    ],
)
def test_bytes_of_rows(values: list[Any], type_: Any, sizes: list[int] | None) -> None:
    whole = pa.array([*values, *values], type_)
    for array in (pa.array(values, type_), whole.slice(len(values)), whole.slice(0, len(values))):
        found = column_bytes.row_bytes(array)
        assert (None if found is None else found.tolist()) == sizes


def test_ranges_hold_at_most_so_much() -> None:
    assert list(column_bytes.ranges_within(np.array([3, 3, 9, 1, 1, 1, 0]), 6)) == [(0, 2), (2, 3), (3, 7)]
    assert list(column_bytes.ranges_within(np.zeros(0, np.int64), 6)) == [(0, 0)]


def test_repeated_rows_are_cut_before_they_are_gathered() -> None:
    texts = long_texts()
    rows = np.array([0, 1, 0, 0, 1])
    track = WatermarkTrack(np.array([1, 3, 5], np.int32), np.array([10, 20, 30]))
    columns = LateColumns.beside(LateColumns.of([texts, pa.array([7, 8])], rows), [pa.array(range(5))])
    batch = ChangelogBatch(columns, 5, np.array([0, 1, 2, 3, 0], np.uint8), None, track)
    parts = list(batch.within_offsets())
    assert [part.num_rows for part in parts] == [3, 2]
    assert [part.columns[2].to_pylist() for part in parts] == [[0, 1, 2], [3, 4]]
    assert [part.columns[1].to_pylist() for part in parts] == [[7, 8, 7], [7, 8]]
    assert [part.kinds.tolist() for part in parts if part.kinds is not None] == [[0, 1, 2], [3, 0]]
    tracks = [(part.track.offsets.tolist(), part.track.wm_ms.tolist()) for part in parts if part.track is not None]
    assert tracks == [([1], [10]), ([0, 2], [20, 30])]


def test_batches_that_do_not_fit_together_stay_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not column_bytes.fit_together([long_texts()] * 3)
    monkeypatch.setattr(column_bytes, "MOST_BYTES", 10)
    texts = ["a", "b", "1234567", "c", "7654321", "d"]
    track = WatermarkTrack(np.array([1], np.int32), np.array([5]))
    parts = concat_batches([ChangelogBatch.of([pa.array([text]), pa.array([1])], None, track) for text in texts])
    assert [part.columns[0].to_pylist() for part in parts] == [["a", "b", "1234567"], ["c", "7654321", "d"]]
    assert [part.num_rows for part in parts] == [3, 3]
    monkeypatch.setattr(column_bytes, "MOST_BYTES", 3)
    assert [part.num_rows for part in concat_batches(parts)] == [3, 3]


@pytest.mark.parametrize("type_", [pa.string(), pa.binary(), pa.large_string(), pa.large_binary(), pa.list_(pa.int8())])
def test_bytes_of_some_rows(type_: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(column_bytes, "MOST_BYTES", 3)
    values = [[1, 2], None, [], [3]] if pa.types.is_list(type_) else ["ab", None, "", "d"]
    whole = pa.array([*values, *values], type_)
    rows = np.array([3, 0, 1, 0, 2])
    for array in (pa.array(values, type_), whole.slice(len(values)), whole):
        found = column_bytes.bytes_of_rows(array, rows, len(rows))
        assert found is not None
        assert found.tolist() == [1, 2, 0, 2, 0]
        assert column_bytes.bytes_of_rows(array, rows[:3], 3) is None
    assert column_bytes.bytes_of_rows(pa.array([], type_), rows[:0], 0) is None


def test_a_gather_of_too_many_bytes_is_wide(monkeypatch: pytest.MonkeyPatch) -> None:
    assert column_bytes.bytes_of_rows(long_texts(), np.array([0, 1, 0]), 3) is None
    assert column_bytes.bytes_of_rows(long_texts(), np.array([0, 1, 0, 0]), 4) is not None
    monkeypatch.setattr(column_bytes, "MOST_BYTES", 7)
    texts = pa.array(["abc", None, "", "de"])
    wide = column_bytes.taken(texts, np.array([0, 1, 0, 2, 3, 0]))
    assert wide.type == pa.large_string()
    parts = [part.columns[0] for part in ChangelogBatch.of([wide]).within_offsets()]
    assert [part.to_pylist() for part in parts] == [["abc", None, "abc", ""], ["de", "abc"]]
    assert all(part.type == pa.string() for part in parts)
    assert parts[1].buffers()[2].address == wide.buffers()[2].address + 6, "the parts are views"
    some = column_bytes.taken(texts, np.array([0, 0, 1]), np.array([False, True, False]))
    assert some.equals(pa.array(["abc", None, None]))


@pytest.mark.parametrize(
    "type_",
    [pa.string(), pa.list_(pa.binary()), pa.map_(pa.string(), pa.int32()), pa.struct({"a": pa.list_(pa.string())})],
)
def test_wide_arrays_of_every_type_are_joined_and_made_usual(type_: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    values = {
        pa.string(): ["a", None, "bcd"],
        pa.list_(pa.binary()): [[b"a", b"bc"], None, []],
        pa.map_(pa.string(), pa.int32()): [[("a", 1)], None, []],
        pa.struct({"a": pa.list_(pa.string())}): [{"a": ["x", "y"]}, None, {"a": None}],
    }[type_]
    array = pa.array(values, type_)
    wide = column_bytes.joined([array, array.cast(column_bytes.wide_type(type_))])
    assert wide.type == column_bytes.wide_type(type_) != type_
    monkeypatch.setattr(column_bytes, "MOST_BYTES", 3)
    parts = list(ChangelogBatch.of([wide]).within_offsets())
    assert len(parts) > 1
    assert pa.chunked_array([part.columns[0] for part in parts]).to_pylist() == values + values
    assert all(part.columns[0].type == type_ for part in parts)
