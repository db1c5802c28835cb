"""What every keyed state backend must do: its stores against dictionaries and lists, saved and restored.

A backend joins by one line in ``backends.py``.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from flowsql_compute.keys import key_group_range
from flowsql_core.errors import InternalError
from flowsql_runtime.kernels.accumulate import COUNT, EVERY, NOTHING, ONCE, SUM
from flowsql_runtime.state.backend import KeyedStateBackend, OperatorStateBackend
from flowsql_runtime.state.hashmap import KEY_GROUP
from flowsql_runtime.state.object_store import ObjectStore
from flowsql_runtime.state.stores import StoredColumn
from tests.runtime.state.backends import LONG, Make, slots_of

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
def test_key_index_is_a_dictionary(make: Make, type_: Any, values: list[Any], pair: bool) -> None:
    rng = random.Random(1)
    backend = make()
    index = backend.key_index([type_, pa.int32()] if pair else [type_])
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
        live = np.array(sorted(slots.values()), np.int32)
        back = index.columns_at(live)[0]
        by_slot = {slot: key for key, slot in slots.items()}
        assert back.equals(pa.array([by_slot[slot][0] for slot in live.tolist()], type_))
        again = index.encoded_at(live)
        assert index.lookup(again).tolist() == live.tolist()


def test_skipped_rows_stay_out(make: Make) -> None:
    index = make().key_index([pa.int64()])
    found, fresh = index.find_or_insert(index.encode([pa.array([1, 2, 1])]), np.array([1, 0, 0], np.uint8))
    assert found[0] == -1
    assert fresh.tolist() == [1, 2]


def test_window_index_knows_its_keys_by_namespace(make: Make) -> None:
    rng = random.Random(4)
    index = make().window_index([pa.string()])
    kept: dict[tuple[int, str], int] = {}
    for _ in range(60):
        pairs = [
            (rng.randint(-5, 30), f"{rng.choice(['k', LONG])}{rng.randint(0, 9)}") for _ in range(rng.randint(0, 30))
        ]
        ends = np.array([end for end, _ in pairs], np.int64)
        slots, fresh = index.find_or_insert(index.encode([pa.array([key for _, key in pairs], pa.string())], ends))
        assert [pairs[row] for row in fresh] == list(dict.fromkeys(pair for pair in pairs if pair not in kept))
        for pair, slot in zip(pairs, slots.tolist(), strict=True):
            assert kept.setdefault(pair, slot) == slot
        gone = rng.sample(sorted(kept), len(kept) // rng.randint(2, 5))
        index.remove(np.array([kept.pop(pair) for pair in gone], np.int32))
        assert index.namespaces().tolist() == sorted({end for end, _ in kept})
        assert index.earliest() == min((end for end, _ in kept), default=None)
        until = rng.randint(-6, 31)
        found_ends, found = index.up_to(until)
        # By namespace, then as they were put in: the dictionary keeps that order.
        expected = sorted((pair for pair in kept if pair[0] <= until), key=lambda pair: pair[0])
        assert found_ends.tolist() == [end for end, _ in expected]
        assert found.tolist() == [kept[pair] for pair in expected]
        assert index.namespaces_at(found).tolist() == found_ends.tolist()
        numbers = index.numbered(found).tolist()
        assert len({*zip(numbers, (key for _, key in expected), strict=True)}) == len(set(numbers))
        assert len(set(numbers)) == len({key for _, key in expected})
        assert all(0 <= number < index.most_numbers() for number in numbers)


def test_a_key_moves_to_another_namespace(make: Make) -> None:
    index = make().window_index([pa.int64()])
    slots, _ = index.find_or_insert(index.encode([pa.array([1, 2])], np.array([10, 20])))
    keys = index.encoded_at(slots).with_namespaces(np.array([30, 30]))
    index.remove(slots)
    moved, _ = index.find_or_insert(keys)
    assert index.up_to(30)[1].tolist() == moved.tolist()
    assert index.columns_at(moved)[0].to_pylist() == [1, 2]


def test_collections_are_keys_as_bytes(make: Make) -> None:
    types = [pa.list_(pa.int64()), pa.map_(pa.string(), pa.list_(pa.string()))]
    lists = pa.array([[1, None], [], None, [1, None], []], types[0])
    maps = pa.array([[("a", ["x"])], None, [], [("a", ["x"])], None], types[1])
    index = make().key_index(types)
    slots, _ = index.find_or_insert(index.encode([lists, maps]))
    assert slots.tolist() == [0, 1, 2, 0, 1]
    kept = index.columns_at(np.array([2, 1, 0], np.int32))
    assert kept[0].to_pylist() == [None, [], [1, None]]
    assert kept[1].to_pylist() == [[], None, [("a", ["x"])]]


def test_columns_of_a_store_may_be_nested(make: Make) -> None:
    backend = make()
    type_ = pa.map_(pa.string(), pa.int32())
    index = backend.key_index([])
    store = backend.column_store("m", index, [StoredColumn("m", type_)])
    slots, _ = index.find_or_insert(index.encode([], num_rows=1))
    for value in ([("a", 1), ("b", None)], None, []):
        store.scatter(slots, [pa.array([value], type_)])
        assert store.gather(slots)[0].to_pylist() == [value]


def test_columns_of_slots_that_were_never_written_are_null(make: Make) -> None:
    backend = make()
    index = backend.key_index([pa.int64()])
    store = backend.column_store("c", index, [StoredColumn("n", pa.int64()), StoredColumn("s", pa.string())])
    slots = slots_of(index, list(range(5_000)))
    assert [column.null_count for column in store.gather(slots)] == [5_000, 5_000]


def test_column_store_keeps_every_type_and_compacts_its_bytes(make: Make) -> None:
    backend = make()
    index = backend.key_index([pa.int64()])
    types = [pa.int8(), pa.float32(), pa.decimal128(30, 2), pa.string(), pa.bool_(), pa.date32()]
    store = backend.column_store("c", index, [StoredColumn(str(i), type_) for i, type_ in enumerate(types)])
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
    assert backend.nbytes < 10_000_000
    store.clear(slots[:1])
    assert [column.to_pylist() for column in store.gather(slots[:1])] == [[None]] * len(types)


def test_timers_are_a_set_by_time(make: Make) -> None:
    rng = random.Random(11)
    backend = make()
    index = backend.key_index([pa.int64()])
    timers = backend.timers("t", index)
    slots = slots_of(index, list(range(6)))
    model: set[tuple[int, int]] = set()
    assert timers.earliest() is None
    for step in range(120):
        n = rng.randint(0, 8)
        times, owners = np.array([rng.randint(-5, 60) for _ in range(n)], np.int64), rng.choices(slots.tolist(), k=n)
        pairs = set(zip(times.tolist(), owners, strict=True))
        if rng.random() < 0.7:
            timers.register(times, np.array(owners, np.int32))
            model |= pairs
        else:
            timers.delete(times, np.array(owners, np.int32))
            model -= pairs
        assert timers.earliest() == min((at for at, _ in model), default=None)
        assert len(timers) == len(model)
        if step % 4 == 3:
            until = rng.randint(-6, 40)
            found_times, found = timers.due(until)
            assert found_times.tolist() == sorted(found_times.tolist())
            assert set(zip(found_times.tolist(), found.tolist(), strict=True)) == {p for p in model if p[0] <= until}
            model = {pair for pair in model if pair[0] > until}


def test_slot_times_give_out_what_expired_and_nothing_else(make: Make) -> None:
    rng = random.Random(8)
    backend = make()
    index = backend.key_index([pa.int64()])
    times = backend.slot_times("t", index)
    keys = list(range(40))
    slots = slots_of(index, keys)
    last: dict[int, int] = {}
    for now in range(80):
        touched = [rng.choice(keys) for _ in range(rng.randint(0, 10))]
        times.touch(slots[np.array(touched, np.int64)], now)
        last.update(dict.fromkeys(touched, now))
        gone = rng.sample(keys, 2)
        times.drop_slots(slots[np.array(gone)])
        for key in gone:
            last.pop(key, None)
        until = now - rng.randint(5, 15)
        due = sorted(key for key, at in last.items() if at <= until)
        assert sorted(times.expired(until).tolist()) == sorted(slots[np.array(due, np.int64)].tolist())
        for key in due:
            del last[key]


def test_slot_times_do_not_run_backwards(make: Make) -> None:
    backend = make()
    index = backend.key_index([pa.int64()])
    times = backend.slot_times("t", index)
    slots = slots_of(index, [1, 2])
    times.touch(slots[:1], 100)
    times.touch(slots[1:], 50)
    assert times.expired(99).tolist() == []
    assert times.expired(100).tolist() == slots.tolist()


def test_accumulators_fold_merge_and_forget(make: Make) -> None:
    backend = make()
    index = backend.key_index([pa.string()])
    names = ("rows", "count", "sum")
    store = backend.accumulators("a", index, [StoredColumn(name, pa.int64(), False) for name in names])
    ops = np.array([[SUM, 2, 0, 0, 1], [COUNT, 1, 0, 0, -1]], np.int64)
    slots = slots_of(index, ["a", "b", "a", "a"])
    values, signs = np.array([[1, 10, 2, 1]], np.int64), np.array([[1, 1, 1, -1]], np.int8)
    store.prepare()
    once = store.fold(slots, ops, values, signs, ONCE)
    assert once.slots.tolist() == slots[:2].tolist()
    assert once.first_rows.tolist() == [0, 1]
    assert once.states.tolist() == [[0, 0, 0], [1, 1, 2], [0, 0, 0], [1, 1, 10]]
    every = store.fold(slots[:2], ops, values[:, :2].copy(), signs[:, :2].copy(), EVERY)
    assert every.states.tolist() == [[1, 1, 2], [2, 2, 3], [1, 1, 10], [2, 2, 20]]
    assert not len(store.fold(slots[:1], ops, values[:, :1].copy(), signs[:, :1].copy(), NOTHING).slots)
    assert store.words_at(slots[:2]).tolist() == [[3, 3, 4], [2, 2, 20]]
    assert store.word_columns_at(slots[:2]).tolist() == [[3, 2], [3, 2], [4, 20]]
    both = store.merged(np.zeros(2, np.int32), 1, slots[:2], ops)
    assert both.tolist() == [[5, 5, 24]]
    store.put_words(slots[:1], both)
    assert store.row_counts(slots[:2]).tolist() == [5, 2]
    unknown = slots_of(index, ["c", "c", "c"])
    assert store.known_signs(unknown, np.array([-1, 1, -1], np.int8)).tolist() == [0, 1, -1]
    refs = store.store_bytes(pa.array(["x", None, "x", LONG]))
    assert store.equal_bytes(refs[[0, 0, 1, 0]], refs[[2, 3, 1, 1]]).tolist() == [True, False, True, False]
    assert store.bytes_at(refs, pa.string()).to_pylist() == ["x", None, "x", LONG]
    store.clear(slots[:1])
    assert store.row_counts(slots[:2]).tolist() == [0, 2]
    store.clear_all()
    index.clear()
    assert len(index) == 0
    assert store.row_counts(slots_of(index, ["a", "b"])).tolist() == [0, 0]
    # Keys that came after the store was last used have empty rows.
    many = slots_of(index, [str(number) for number in range(200)])
    assert not store.merged(np.zeros(200, np.int32), 1, many, ops).any()


def test_map_store_is_a_dictionary_of_dictionaries(make: Make) -> None:
    rng = random.Random(6)
    backend = make()
    index = backend.key_index([pa.int64()])
    store = backend.map_store("m", index, [pa.string()], [StoredColumn("v", pa.int64())])
    kept: dict[int, dict[str, int]] = {key: {} for key in range(8)}
    slots = slots_of(index, list(kept))
    for step in range(60):
        pairs = [(rng.randint(0, 7), rng.choice(["a", LONG, f"k{rng.randint(0, 20)}"])) for _ in range(20)]
        owners = slots[np.array([key for key, _ in pairs])]
        names = pa.array([name for _, name in pairs])
        entries, fresh = store.find_or_insert(owners, [names])
        assert {pairs[row] for row in fresh} == {(key, name) for key, name in pairs if name not in kept[key]}
        store.scatter(entries, [pa.array([step * 100 + row for row in range(20)])])
        for row, (key, name) in enumerate(pairs):
            kept[key][name] = step * 100 + row
        gone = [(key, name) for key in kept for name in kept[key] if rng.random() < 0.1]
        if gone:
            where = slots[np.array([key for key, _ in gone])]
            store.remove(store.lookup(where, [pa.array([name for _, name in gone])]))
            for key, name in gone:
                del kept[key][name]
                kept[key] = dict(kept[key])
        if step % 10 == 9:
            store.drop_slots(slots[2:4])
            kept[2], kept[3] = {}, {}
        probes, found = store.iterate_slot(slots)
        assert probes.tolist() == sorted(probes.tolist())
        got = zip(probes.tolist(), store.keys_at(found)[0].to_pylist(), store.gather(found)[0].to_pylist(), strict=True)
        assert sorted(got) == sorted((key, name, value) for key in kept for name, value in kept[key].items())


@pytest.mark.parametrize("bits", [False, True])
def test_count_distinct_says_who_came_first_and_went_last(make: Make, bits: bool) -> None:
    backend = make()
    index = backend.key_index([pa.int64()])
    counts = [StoredColumn(str(i), pa.int64(), False) for i in range(1 if bits else 2)]
    store = backend.map_store("d", index, [pa.int64()], counts)
    slots = slots_of(index, [1, 1, 1, 1])
    entries, _ = store.find_or_insert(slots, [pa.array([5, 5, 6, 5])], np.array([0, 0, 0, 0], np.uint8))
    came = store.count_distinct(entries, np.array([[1, 1, 1, 0], [0, 1, 0, 1]], np.int8), bits)
    assert came.tolist() == [[1, 0, 1, 0], [0, 1, 0, 0]]
    if not bits:
        went = store.count_distinct(entries, np.array([[-1, -1, -1, 0], [0, -1, 0, -1]], np.int8), bits)
        assert went.tolist() == [[0, -1, -1, 0], [0, 0, 0, -1]]
        assert store.lookup(slots[:2], [pa.array([5, 6])]).tolist() == [-1, -1]


def test_net_counts_of_distinct_values_say_who_is_there(make: Make) -> None:
    backend = make()
    index = backend.key_index([pa.int64()])
    store = backend.map_store("d", index, [pa.int64()], [StoredColumn(str(i), pa.int64(), False) for i in range(2)])
    slots = slots_of(index, [1, 1, 2])
    values = [pa.array([5, 6, 5])]

    def changed(first: list[int], second: list[int]) -> list[list[int]]:
        entries, _ = store.find_or_insert(slots, values)
        return store.count_distinct_net(entries, np.array([first, second], np.int64)).tolist()

    assert changed([300, 1, -1], [2, 0, 0]) == [[1, 1, 0], [1, 0, 0]]
    assert changed([-299, 1, 1], [-2, 0, 0]) == [[0, 0, 0], [-1, 0, 0]]
    # The third came to nothing, and is counted anew.
    assert store.lookup(slots, values)[2] == -1
    assert changed([-1, -2, 1], [0, 0, 0]) == [[-1, -1, 1], [0, 0, 0]]
    assert store.lookup(slots[:2], [pa.array([5, 6])]).tolist() == [-1, -1]


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
def test_extreme_values_know_their_extreme(make: Make, largest: bool, type_: Any, values: list[Any]) -> None:
    rng = random.Random(5)
    backend = make()
    index = backend.key_index([pa.int64()])
    store = backend.extreme_values("x", index, type_, largest)
    bags: dict[int, Counter[Any]] = defaultdict(Counter)
    order = (lambda v: v.encode()) if pa.types.is_string(type_) else (lambda v: v)
    for step in range(60):
        if step % 20 == 19:
            store.drop_slots(slots_of(index, [0, 2]))
            bags[0], bags[2] = Counter(), Counter()
        n = rng.randint(1, 20)
        keys = [rng.randint(0, 3) for _ in range(n)]
        signs = [rng.choice([1, 1, -1, 0]) for _ in range(n)]
        picked = [rng.choice([None, *values]) for _ in range(n)]
        slots, _ = index.find_or_insert(index.encode([pa.array(keys)]))
        tops = store.update(slots, pa.array(picked, type_), np.array(signs, np.int8))
        shown = store.values_at(tops).to_pylist()
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


def filled(backend: KeyedStateBackend, keys: list[Any]) -> tuple[Any, ...]:
    index = backend.key_index([pa.string()])
    columns = backend.column_store("columns", index, [StoredColumn("n", pa.int64())])
    entries = backend.map_store("map", index, [pa.int64()], [StoredColumn("t", pa.string())])
    rows = backend.row_list("rows", index, [pa.string()])
    kept = backend.kept_rows("kept", index, [pa.string()])
    stamped = backend.row_list("stamped", index, [pa.int64()], removable=True, stamped=True)
    tops = backend.extreme_values("extremes", index, pa.int64(), True)
    queue = backend.row_queue("queue", index, [pa.int64()])
    times = backend.slot_times("times", index)
    timers = backend.timers("timers", index)
    if keys:
        slots = slots_of(index, keys, pa.string())
        numbers = pa.array(range(len(keys)))
        ones = np.ones(len(keys), np.int8)
        columns.scatter(slots, [numbers])
        found, _ = entries.find_or_insert(slots, [numbers])
        entries.scatter(found, [pa.array([f"{LONG}{key}" for key in keys])])
        for list_ in (rows, kept):
            list_.append(slots, [pa.array([f"row {key}" for key in keys])])
        stamped.apply(ones[::2].copy(), slots[::2].copy(), [numbers.take(pa.array(range(0, len(keys), 2)))], 5)
        stamped.apply(ones, slots, [numbers], 8)
        tops.update(slots, numbers, ones)
        queue.append(slots, ones, [numbers])
        times.touch(slots[1::2], 7)
        times.touch(slots[::2], 9)
        timers.register(np.arange(len(keys)), slots)
    return index, columns, entries, rows, kept, stamped, tops, queue, times, timers


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("parallelism", [1, 3])
def test_backend_restores_its_key_groups(make: Make, parallelism: int, late: bool) -> None:
    keys = [None, *(f"key {i}" for i in range(200))]
    saved = make()
    filled(saved, keys)
    snapshot = saved.snapshot()
    assert all(table.schema.names[0] == KEY_GROUP for table in snapshot.values())
    seen: list[Any] = []
    for subtask in range(parallelism):
        backend = make(key_group_range(128, parallelism, subtask))
        if not late:
            backend.restore(snapshot)
        index, columns, entries, rows, kept, stamped, tops, queue, times, timers = filled(backend, [])
        if late:
            backend.restore(snapshot)
        slots = index.lookup(index.encode([pa.array(keys, pa.string())]))
        slots = np.sort(slots[slots >= 0])
        mine = index.columns_at(slots)[0].to_pylist()
        seen += mine
        numbers = [keys.index(key) for key in mine]
        assert columns.gather(slots)[0].to_pylist() == numbers
        found = entries.lookup(slots, [pa.array(numbers, pa.int64())])
        assert entries.gather(found)[0].to_pylist() == [f"{LONG}{key}" for key in mine]
        for list_ in (rows, kept):
            assert next(iter(list_.gather(list_.rows_of(slots)[1]))).to_pylist() == [f"row {key}" for key in mine]
        assert queue.first(len(queue))[2][0].to_pylist() == [number for number in range(201) if number in numbers]
        # A snapshot of the restored part holds that part.
        again = {name: len(table) for name, table in backend.snapshot().items()}
        assert again == dict.fromkeys(snapshot, len(mine)) | {
            "stamped": sum(2 if number % 2 == 0 else 1 for number in numbers)
        }
        assert sorted(stamped.remove_older(5).tolist()) == [
            slot for slot, number in zip(slots.tolist(), numbers, strict=True) if number % 2 == 0
        ]
        assert stamped.counts(slots).tolist() == [1] * len(slots)
        due_times, due = timers.due(1000)
        assert due_times.tolist() == sorted(numbers)
        assert dict(zip(due.tolist(), due_times.tolist(), strict=True)) == dict(
            zip(slots.tolist(), numbers, strict=True)
        )
        assert sorted(times.expired(8).tolist()) == [
            slot for slot, number in zip(slots.tolist(), numbers, strict=True) if number % 2
        ]
        after = tops.update(slots, pa.array([-1] * len(mine), pa.int64()), np.ones(len(mine), np.int8))
        assert tops.values_at(after).to_pylist() == numbers
    assert sorted(seen, key=str) == sorted(keys, key=str)


def _changed(state: tuple[Any, ...], keys: list[Any], round_: int) -> None:
    """Overwrite every slot, take half of the rows out, free some slots and put in new keys."""
    index, columns, entries, rows, kept, stamped, tops, queue, times, timers = state
    slots = slots_of(index, keys, pa.string())
    n = len(keys)
    other, ones = pa.array(range(round_ * 1000, round_ * 1000 + n)), np.ones(n, np.int8)
    columns.scatter(slots, [other])
    found, _ = entries.find_or_insert(slots, [other])
    entries.scatter(found, [pa.array([f"{round_} {LONG}{key}" for key in keys])])
    for list_ in (rows, kept):
        list_.append(slots, [pa.array([f"{round_} {key}" for key in keys])])
    stamped.apply(np.where(np.arange(n) % 3 == 0, 1, -1).astype(np.int8), slots, [pa.array(range(n))], 20 + round_)
    tops.update(slots, other, ones)
    tops.update(slots, pa.array(range(n)), -ones)
    queue.append(slots, ones, [other])
    queue.drop_first(n // 3)
    times.touch(slots[::3], 20 + round_)
    times.drop_slots(slots[1::3])
    timers.due(500 * (round_ % 10))
    timers.register(np.arange(n) + 4000 * round_, slots)
    for store in (entries, rows, stamped, tops):
        store.drop_slots(slots[::7])
    columns.clear(slots[::7])
    slots_of(index, [f"{LONG}{round_} {key}" for key in keys])


@pytest.mark.parametrize("released", [False, True])
def test_a_snapshot_written_while_everything_changes_is_that_of_its_moment(make: Make, released: bool) -> None:
    keys = [None, *(f"key {i}" for i in range(3000))]
    backend = make()
    state = filled(backend, keys)
    backend.register_objects("objects", ObjectStore("objects", 128))
    pending = []
    for round_ in range(4):
        _changed(state, keys, round_)
        expected, snapshot = backend.snapshot(), backend.snapshot_async()
        if released and round_ % 2:
            snapshot.release()
            snapshot.release()
            with pytest.raises(InternalError, match="given up"):
                snapshot.tables()
        else:
            pending.append((expected, snapshot))
        _changed(state, keys, 10 + round_)
    for expected, snapshot in pending:
        assert snapshot.tables() == expected
        snapshot.release()
    assert backend.snapshot_async().tables() == backend.snapshot()


def test_a_snapshot_is_copied_by_another_thread_while_the_state_grows(make: Make) -> None:
    rng = np.random.default_rng(3)
    backend = make()
    index = backend.key_index([pa.int64()])
    columns = backend.column_store("columns", index, [StoredColumn("n", pa.int64()), StoredColumn("t", pa.string())])
    rows = backend.row_list("rows", index, [pa.int64()], removable=True)

    def put(keys: Any, at: int) -> None:
        slots = slots_of(index, keys)
        texts = pa.array([f"{key}" for key in keys.tolist()])
        columns.scatter(slots, [pa.array(keys + at), texts])
        rows.append(slots, [pa.array(keys + at)])
        rows.apply(np.full(len(keys), -1, np.int8), slots, [pa.array(keys + at - 1)])

    for start in range(0, 200_000, 20_000):
        put(np.arange(start, start + 20_000), 0)
    with ThreadPoolExecutor(1) as writer:
        for round_ in range(1, 4):
            expected = backend.snapshot()
            snapshot = backend.snapshot_async()
            found = writer.submit(snapshot.tables)
            steps = 0
            while not found.done() or not steps:
                put(np.unique(rng.integers(0, 150_000 + 60_000 * round_, 5_000)), round_)
                steps += 1
            assert found.result() == expected


def test_window_index_is_restored_by_its_stores(make: Make) -> None:
    saved = make()
    index = saved.window_index([pa.int64()])
    store = saved.column_store("n", index, [StoredColumn("n", pa.int64())])
    slots, _ = index.find_or_insert(index.encode([pa.array([1, 2, 1])], np.array([20, 10, 10])))
    store.scatter(slots, [pa.array([7, 8, 9])])
    other = make()
    other.restore(saved.snapshot())
    index = other.window_index([pa.int64()])
    store = other.column_store("n", index, [StoredColumn("n", pa.int64())])
    ends, slots = index.up_to(20)
    assert ends.tolist() == [10, 10, 20]
    assert sorted(store.gather(slots)[0].to_pylist()[:2]) == [8, 9]


def test_state_nobody_asked_for_is_not_lost(make: Make) -> None:
    saved = make()
    filled(saved, ["a"])
    again = make()
    again.restore(saved.snapshot())
    assert sorted(again.snapshot()) == sorted(saved.snapshot())


def test_a_name_is_given_once(make: Make) -> None:
    backend = make()
    index = backend.key_index([])
    backend.row_list("r", index, [pa.int64()])
    with pytest.raises(InternalError, match="state 'r' exists already"):
        backend.column_store("r", index, [])


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


@pytest.mark.parametrize("width", [64, 65, 66, 130])
@pytest.mark.parametrize("parallelism", [1, 3])
def test_null_bits_of_many_key_columns_are_restored(make: Make, width: int, parallelism: int) -> None:
    places = [None, *range(width)]
    columns = [pa.array([None if place == column else 0 for place in places], pa.int64()) for column in range(width)]
    types = [column.type for column in columns]
    saved = make()
    index = saved.key_index(types)
    store = saved.column_store("columns", index, [StoredColumn("place", pa.int64())])
    slots, fresh = index.find_or_insert(index.encode(columns))
    assert len(fresh) == len(places)
    store.scatter(slots, [pa.array(places, pa.int64())])
    assert pa.table(index.columns_at(slots), names=[*map(str, range(width))]).equals(
        pa.table(columns, names=[*map(str, range(width))])
    )
    seen: list[Any] = []
    for subtask in range(parallelism):
        backend = make(key_group_range(128, parallelism, subtask))
        backend.restore(saved.snapshot())
        again = backend.key_index(types)
        restored = backend.column_store("columns", again, [StoredColumn("place", pa.int64())])
        found = again.lookup(again.encode(columns))
        mine = np.flatnonzero(found >= 0)
        assert restored.gather(found[mine])[0].to_pylist() == [places[row] for row in mine]
        seen += mine.tolist()
    assert sorted(seen) == list(range(len(places)))
