"""Arrays that grow in place."""

from __future__ import annotations

import mmap

import numpy as np
import pyarrow as pa
import pytest

from flowsql_core.batch import LateColumns
from flowsql_runtime.kernels import byte_arena
from flowsql_runtime.state.rankings import Places, Telling
from flowsql_runtime.state.resident.column_store import ResidentColumnStore
from flowsql_runtime.state.resident.growing import _mapping_of, grow
from flowsql_runtime.state.resident.key_index import ResidentKeyIndex
from flowsql_runtime.state.resident.sorted_list import ResidentSortedList
from flowsql_runtime.state.stores import SortColumn, StoredColumn


class _Owner:
    def __init__(self, rows: int) -> None:
        self.rows = np.full((rows, 3), 7, np.int64)


@pytest.mark.parametrize("start", [10, 300_000])
def test_rows_stay_and_new_ones_are_zero(start: int) -> None:
    owner = _Owner(start)
    for _ in range(6):
        before = len(owner.rows)
        grow(owner, "rows", before + before // 2)
        assert len(owner.rows) >= before + before // 2
        assert (owner.rows[:start] == 7).all()
        assert not owner.rows[start:].any()


def test_a_large_array_is_a_mapping() -> None:
    owner = _Owner(300_000)
    grow(owner, "rows", 300_001)
    view = owner.rows.base.base  # type: ignore[union-attr]
    assert isinstance(view.obj, mmap.mmap)


def test_a_view_outlives_the_growth() -> None:
    owner = _Owner(300_000)
    grow(owner, "rows", 300_001)
    view = owner.rows[:5]
    grow(owner, "rows", 3_000_000)
    assert (view == 7).all()
    assert (owner.rows[:300_000] == 7).all()
    owner.rows[0] = 1
    assert (view == 7).all()


def test_strings_too_long_for_a_reference_and_values_under_null() -> None:
    index = ResidentKeyIndex([pa.int64()])
    store = ResidentColumnStore(index, [StoredColumn("text", pa.string())])
    texts = pa.array(["", "x" * (1 << 24), None, "short", "y" * ((1 << 24) - 1)])
    slots, _ = index.find_or_insert(index.encode([pa.array(range(5))]))
    store.scatter(slots, [texts])
    assert store.gather(slots)[0].equals(texts)
    rows = np.array([4, 0, 2, 1], np.int64)
    store.scatter(slots[:4], LateColumns.of([pa.concat_arrays([texts.slice(0, 1), texts]).slice(1)], rows))
    assert store.gather(slots[:4])[0].equals(texts.take(pa.array(rows)))


def test_bytes_of_ranked_rows_grow_without_a_copy() -> None:
    index = ResidentKeyIndex([pa.int64()])
    rows = ResidentSortedList(index, [pa.int64(), pa.string()], [SortColumn(0)], keeps_best=True)
    places = Places(1, np.array([10], np.int64), 10, True, Telling.NET, before=True)
    store = rows.rows.store
    n, grown = 2000, 0
    for batch in range(12):
        numbers = pa.array(range(batch * n, (batch + 1) * n))
        slots, _ = index.find_or_insert(index.encode([numbers]))
        mapping, size, compact_at = _mapping_of(store.arena), store.arena.nbytes, store._compact_at
        for _ in rows.rank(np.ones(n, np.int8), slots, [numbers, pa.array(["x" * 1000] * n)], places):
            pass
        if mapping is not None and compact_at == store._compact_at and store.arena.nbytes > size:
            assert _mapping_of(store.arena) is mapping
            grown += 1
    assert len(rows) == 12 * n
    assert grown


def test_bytes_move_only_where_more_than_half_of_them_are_left_over() -> None:
    index = ResidentKeyIndex([pa.int64()])
    store = ResidentColumnStore(index, [StoredColumn("text", pa.string()), StoredColumn("n", pa.int64())])
    long = "y" * ((1 << 24) - 1)
    for batch in range(40):
        arena = store.arena
        slots, _ = index.find_or_insert(index.encode([pa.array(range(batch * 100, batch * 100 + 100))]))
        store.scatter(slots, [pa.array(["x" * 3000] * 99 + [None]), pa.array([batch] * 100)])
        # Bytes that are all referred to are never copied, but where a small array grows.
        assert np.shares_memory(store.arena[:8], arena[:8]) or len(store.arena) > len(arena)
    every = index.live_slots()
    assert store._arena_used == byte_arena.measure(store.rows, store._byte_words, every, store.arena)
    few, used = every[:1000], store._arena_used
    store.scatter(few, [pa.array([long] + ["z"] * 999), pa.array([7] * 1000)])
    assert store._arena_used > used
    for text in "abc":
        store.scatter(every[1:], [pa.array([text * 3000] * (len(every) - 1)), pa.array([8] * (len(every) - 1))])
        assert store._arena_used < 3 * (len(long) + 3000 * len(every))
    assert store.gather(every[:2])[0].to_pylist() == [long, "c" * 3000]
    assert store.gather(every[-1:])[1].to_pylist() == [8]


def test_rows_of_a_moment_outlive_what_becomes_of_the_store() -> None:
    index = ResidentKeyIndex([pa.int64()])
    store = ResidentColumnStore(index, [StoredColumn("text", pa.string()), StoredColumn("n", pa.int64())])
    slots, _ = index.find_or_insert(index.encode([pa.array(range(3000))]))
    texts, numbers = pa.array(["x" * 1500, None] * 1500), pa.array([1, 2, None] * 1000)
    store.scatter(slots, [texts, numbers])
    kept = store.rows_at(slots)
    for step in range(8):
        store.scatter(slots, [pa.array([str(step) * 1500] * 3000), pa.array([step] * 3000)])
    store.compact_now()
    assert kept.column(0).equals(texts)
    assert kept.column(1).equals(numbers)
    assert (kept.longest(0), kept.longest(1)) == (1500, 0)


def test_room_stays_where_bytes_come_and_go_and_not_where_many_went() -> None:
    index = ResidentKeyIndex([pa.int64()])
    store = ResidentColumnStore(index, [StoredColumn("text", pa.string())])
    slots, _ = index.find_or_insert(index.encode([pa.array(range(1000))]))
    texts = pa.array(["x" * 1000] * 1000)
    for _ in range(20):
        store.scatter(slots, [texts])
        assert len(store.arena) < 8 << 20
    store.compact_now()
    assert len(store.arena) < 2 << 20
    assert store.gather(slots)[0].equals(texts)
