"""State primitives against dictionaries and lists, saved and restored with other key groups."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from flowsql_compute.keys import key_group_range
from flowsql_core.errors import NotSupportedYetError
from flowsql_runtime.state.backend import OperatorStateBackend
from flowsql_runtime.state.column_store import ColumnStore, StoredColumn
from flowsql_runtime.state.hashmap import KEY_GROUP, HashMapBackend
from flowsql_runtime.state.key_index import KeyIndex
from flowsql_runtime.state.row_list import RowList
from flowsql_runtime.state.sorted_list import SortedList

LONG = "a key of more than fifteen bytes, number "
KEY_SETS: list[tuple[Any, list[Any]]] = [
    (pa.int64(), [None, 0, -1, 2**62, *range(500)]),
    (pa.string(), [None, "", "ä", *(f"k{i}" for i in range(300)), *(f"{LONG}{i}" for i in range(300))]),
    (pa.decimal128(38, 2), [None, *(Decimal(i) * 10**20 for i in range(-50, 50))]),
    (pa.float64(), [None, 0.5, -2.25, 1e300]),
    (pa.bool_(), [None, True, False]),
    (pa.timestamp("ms"), [None, *(i * 1000 for i in range(100))]),
    (pa.binary(), [None, b"", b"\x00", b"\x00\x00", b"x" * 15, b"x" * 16]),
]


@pytest.mark.parametrize(("type_", "values"), KEY_SETS)
@pytest.mark.parametrize("pair", [False, True])
def test_key_index_is_a_dictionary(type_: Any, values: list[Any], pair: bool) -> None:
    rng = random.Random(1)
    index = KeyIndex([type_, pa.int32()] if pair else [type_])
    slots: dict[Any, int] = {}
    for _ in range(30):
        keys = [(rng.choice(values), rng.choice([None, 1, 2]) if pair else 0) for _ in range(rng.randint(0, 200))]
        columns = [pa.array([key[0] for key in keys], type_)]
        if pair:
            columns.append(pa.array([key[1] for key in keys], pa.int32()))
        encoded = index.encode(columns)
        assert index.lookup(encoded).tolist() == [slots.get(key, -1) for key in keys]
        found, fresh = index.find_or_insert(encoded)
        assert [keys[row] for row in fresh] == list(dict.fromkeys(key for key in keys if key not in slots))
        for key, slot in zip(keys, found.tolist(), strict=True):
            assert slots.setdefault(key, slot) == slot
        assert len(set(slots.values())) == len(slots) == len(index)
        gone = rng.sample(sorted(slots, key=repr), len(slots) // 3)
        index.remove(np.array([slots.pop(key) for key in gone], np.int32))
        live = index.live_slots()
        back = index.columns_at(live)[0]
        by_slot = {slot: key for key, slot in slots.items()}
        assert back.equals(pa.array([by_slot[slot][0] for slot in live.tolist()], type_))


def test_skipped_rows_stay_out() -> None:
    index = KeyIndex([pa.int64()])
    found, fresh = index.find_or_insert(index.encode([pa.array([1, 2, 1])]), np.array([1, 0, 0], np.uint8))
    assert found[0] == -1
    assert fresh.tolist() == [1, 2]


def test_namespaces_part_equal_keys_and_go_together() -> None:
    index = KeyIndex([pa.string()], namespaced=True)
    keys = pa.array(["a", "a", "b", "a"])
    slots, _ = index.find_or_insert(index.encode([keys], np.array([10, 20, 10, 10])))
    assert slots[0] == slots[3]
    assert len(set(slots.tolist())) == 3
    assert sorted(index.drop_namespace(10).tolist()) == sorted({slots[0], slots[2]})
    assert index.lookup(index.encode([keys], np.array([10, 20, 10, 10]))).tolist() == [-1, slots[1], -1, -1]


def test_collections_are_keys_as_bytes() -> None:
    types = [pa.list_(pa.int64()), pa.map_(pa.string(), pa.list_(pa.string()))]
    lists = pa.array([[1, None], [], None, [1, None], []], types[0])
    maps = pa.array([[("a", ["x"])], None, [], [("a", ["x"])], None], types[1])
    index = KeyIndex(types)
    slots, _ = index.find_or_insert(index.encode([lists, maps]))
    assert slots.tolist() == [0, 1, 2, 0, 1]
    kept = index.columns_at(np.array([2, 1, 0], np.int32))
    assert kept[0].to_pylist() == [None, [], [1, None]]
    assert kept[1].to_pylist() == [[], None, [("a", ["x"])]]


def test_columns_of_a_store_are_flat() -> None:
    with pytest.raises(NotSupportedYetError, match="state of type map"):
        ColumnStore(KeyIndex([]), [StoredColumn("m", pa.map_(pa.string(), pa.int32()))])


def test_column_store_keeps_every_type_and_compacts_its_bytes() -> None:
    index = KeyIndex([pa.int64()])
    types = [pa.int8(), pa.float32(), pa.decimal128(30, 2), pa.string(), pa.bool_(), pa.date32()]
    store = ColumnStore(index, [StoredColumn(str(i), type_) for i, type_ in enumerate(types)])
    rows: dict[int, tuple[Any, ...]] = {}
    rng = random.Random(3)
    for _ in range(60):
        keys = rng.sample(range(50), 20)
        slots, _ = index.find_or_insert(index.encode([pa.array(keys)]))
        text = "x" * rng.randint(0, 5000)
        values = [
            (rng.choice([None, 1]), rng.choice([None, 0.5]), rng.choice([None, Decimal("-1.25")]),
             rng.choice([None, "", text]), rng.choice([None, True]), rng.choice([None, 7]))
            for _ in keys
        ]  # fmt: skip
        columns = [pa.array([row[i] for row in values], type_) for i, type_ in enumerate(types)]
        store.scatter(slots, columns)
        rows.update(zip(keys, zip(*(column.to_pylist() for column in columns), strict=True), strict=True))
    slots = index.lookup(index.encode([pa.array(list(rows))]))
    got = list(zip(*(column.to_pylist() for column in store.gather(slots)), strict=True))
    assert got == list(rows.values())
    assert store.nbytes < 10_000_000


@pytest.mark.parametrize("unique", [None, (0,), ()])
def test_row_list_is_a_list(unique: tuple[int, ...] | None) -> None:
    rng = random.Random(7)
    index = KeyIndex([pa.int64()])
    rows = RowList(index, [pa.string(), pa.int64()], removable=True, unique=unique)
    kept: dict[int, list[Any]] = defaultdict(list)

    def same(a: Any, b: Any) -> bool:
        return bool(a == b if unique is None else all(a[i] == b[i] for i in unique))

    for _ in range(40):
        changes = []
        for _ in range(rng.randint(1, 30)):
            row = (rng.choice([None, "", "t", LONG, LONG + "!"]), rng.choice([None, 1, 2]))
            changes.append((rng.choice([1, 1, -1]), rng.randint(0, 5), row))
        slots, _ = index.find_or_insert(index.encode([pa.array([key for _, key, _ in changes])]))
        columns = [pa.array([row[i] for *_, row in changes], type_) for i, type_ in enumerate(rows.types)]
        out = rows.apply(np.array([sign for sign, *_ in changes], np.int8), slots, columns)
        for (sign, key, row), id_ in zip(changes, out.tolist(), strict=True):
            at = next((i for i, old in enumerate(kept[key]) if same(old, row)), None)
            if sign > 0 and at is not None and unique is not None:
                kept[key][at] = row
            elif sign > 0:
                kept[key].append(row)
            elif at is not None:
                del kept[key][at]
            assert (id_ >= 0) == (sign > 0 or at is not None)
        keys = list(kept)
        probes, found = rows.rows_of(index.lookup(index.encode([pa.array(keys)])))
        got = zip(probes.tolist(), *(column.to_pylist() for column in rows.gather(found)), strict=True)
        assert list(got) == [(i, *row) for i, key in enumerate(keys) for row in kept[key]]
        assert len(rows) == len(found)


@pytest.mark.parametrize("largest", [False, True])
@pytest.mark.parametrize(
    ("type_", "values"),
    [
        (pa.int32(), list(range(-20, 20))),
        (pa.float64(), [-1.5, 0.0, 2.5, 1e9]),
        (pa.decimal128(38, 0), [Decimal(i) * 10**30 for i in range(-9, 9)]),
        (pa.string(), ["", "a", "ab", "b", LONG, LONG + "1"]),
    ],
)
def test_sorted_list_knows_its_extreme(largest: bool, type_: Any, values: list[Any]) -> None:
    rng = random.Random(5)
    index = KeyIndex([pa.int64()])
    store = SortedList(index, type_, largest)
    store._rebuild_at = 40
    bags: dict[int, Counter[Any]] = defaultdict(Counter)
    order = (lambda v: v.encode()) if pa.types.is_string(type_) else (lambda v: v)
    for _ in range(60):
        n = rng.randint(1, 20)
        keys = [rng.randint(0, 3) for _ in range(n)]
        signs = [rng.choice([1, 1, -1, 0]) for _ in range(n)]
        picked = [rng.choice([None, *values]) for _ in range(n)]
        slots, _ = index.find_or_insert(index.encode([pa.array(keys)]))
        tops = store.update(slots, pa.array(picked, type_), np.array(signs, np.int8))
        shown = store.values.gather(np.maximum(tops, 0))[0].to_pylist()
        for key, sign, value, top, text in zip(keys, signs, picked, tops.tolist(), shown, strict=True):
            if sign == 0 or value is None:
                assert top == -2
                continue
            bags[key][value] += sign
            present = [v for v, count in bags[key].items() if count > 0]
            if present:
                assert text == (max if largest else min)(present, key=order)
            else:
                assert top == -1


def filled(backend: HashMapBackend, keys: list[Any]) -> tuple[Any, ...]:
    index = backend.key_index([pa.string()])
    columns = backend.column_store("columns", index, [StoredColumn("n", pa.int64())])
    entries = backend.map_store("map", index, [pa.int64()], [StoredColumn("t", pa.string())])
    rows = backend.row_list("rows", index, [pa.string()])
    tops = backend.sorted_list("sorted", index, pa.int64(), True)
    if keys:
        slots, _ = index.find_or_insert(index.encode([pa.array(keys)]))
        numbers = pa.array(range(len(keys)))
        columns.scatter(slots, [numbers])
        found, _ = entries.find_or_insert(slots, [numbers])
        entries.values.scatter(found, [pa.array([f"{LONG}{key}" for key in keys])])
        rows.apply(np.ones(len(keys), np.int8), slots, [pa.array([f"row {key}" for key in keys])])
        tops.update(slots, numbers, np.ones(len(keys), np.int8))
    return index, columns, entries, rows, tops


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("parallelism", [1, 3])
def test_backend_restores_its_key_groups(parallelism: int, late: bool) -> None:
    keys = [None, *(f"key {i}" for i in range(200))]
    saved = HashMapBackend()
    filled(saved, keys)
    snapshot = saved.snapshot()
    assert all(table.schema.names[0] == KEY_GROUP for table in snapshot.values())
    seen: list[Any] = []
    for subtask in range(parallelism):
        backend = HashMapBackend(128, key_group_range(128, parallelism, subtask))
        if not late:
            backend.restore(snapshot)
        index, columns, entries, rows, tops = filled(backend, [])
        if late:
            backend.restore(snapshot)
        slots = index.live_slots()
        mine = index.columns_at(slots)[0].to_pylist()
        seen += mine
        numbers = [keys.index(key) for key in mine]
        assert columns.gather(slots)[0].to_pylist() == numbers
        found = entries.lookup(slots, [pa.array(numbers, pa.int64())])
        assert entries.values.gather(found)[0].to_pylist() == [f"{LONG}{key}" for key in mine]
        assert rows.gather(rows.rows_of(slots)[1])[0].to_pylist() == [f"row {key}" for key in mine]
        after = tops.update(slots, pa.array([-1] * len(mine), pa.int64()), np.ones(len(mine), np.int8))
        assert tops.values.gather(after)[0].to_pylist() == numbers
        # A snapshot of the restored part holds that part.
        assert {name: len(table) for name, table in backend.snapshot().items() if name != "sorted"} == dict.fromkeys(
            ("columns", "map", "rows"), len(mine)
        )
    assert sorted(seen, key=str) == sorted(keys, key=str)


def test_state_nobody_asked_for_is_not_lost() -> None:
    saved = HashMapBackend()
    filled(saved, ["a"])
    again = HashMapBackend()
    again.restore(saved.snapshot())
    assert sorted(again.snapshot()) == sorted(saved.snapshot())


def test_map_store_drops_slots() -> None:
    backend = HashMapBackend()
    index, _, entries, rows, _ = filled(backend, ["a", "b"])
    slot = index.lookup(index.encode([pa.array(["a"])]))
    entries.drop_slots(slot)
    rows.drop_slots(slot)
    assert len(entries.entries) == 1
    assert rows.rows_of(np.array([0, 1], np.int32))[0].tolist() == [1]


def test_operator_state_is_dealt_by_name() -> None:
    state = OperatorStateBackend()
    state.list_state("l").append(b"1")
    state.union_state("u").append(b"2")
    state.set_broadcast("b", b"3")
    other = OperatorStateBackend()
    mine = other.list_state("l")
    other.restore(state.lists(), state.unions(), state.broadcasts())
    assert mine == [b"1"]
    assert other.union_state("u") == [b"2"]
    assert other.broadcast("b") == b"3"
