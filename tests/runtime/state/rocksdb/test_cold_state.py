"""State that leaves memory after every step is what it would be if it stayed: each store beside that of ``hashmap``."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from flowsql_core.config import Configuration
from flowsql_core.errors import ExecutionError
from flowsql_runtime.kernels.accumulate import COUNT, ONCE, SUM
from flowsql_runtime.state.backend import KeyedStateBackend
from flowsql_runtime.state.hashmap import HashMapBackend
from flowsql_runtime.state.object_store import ObjectStore
from flowsql_runtime.state.rocksdb.backend import RocksDBBackend
from flowsql_runtime.state.rocksdb.settings import RocksDBSettings
from flowsql_runtime.state.stores import SortColumn, StoredColumn

LONG = "a text of more than fifteen bytes "
TEXTS = [None, "", "a", LONG, LONG + "!"]
STEPS = 40

#: (backend) -> what happens in one step: the random choices, and what the operator sees.
Steps = Callable[[KeyedStateBackend], Callable[[random.Random, int], Any]]


def cold(tmp_path: Path, **options: str) -> RocksDBBackend:
    """A backend that keeps nothing in memory between two elements."""
    values = {"state.backend.rocksdb.memory.fixed-per-slot": "1", "io.tmp.dirs": str(tmp_path), **options}
    return RocksDBBackend(RocksDBSettings.of(Configuration(values=values), 1 << 30, 1))


@pytest.fixture
def backend(tmp_path: Path) -> Iterator[RocksDBBackend]:
    """Closed at the end."""
    made = cold(tmp_path)
    yield made
    made.close()


def picked(rng: random.Random, index: Any, most: int = 12) -> tuple[list[Any], Any]:
    """Random keys and their slots."""
    keys = [(rng.choice([None, *range(20)]), rng.choice(TEXTS)) for _ in range(rng.randint(1, most))]
    columns = [pa.array([key for key, _ in keys], pa.int64()), pa.array([text for _, text in keys], pa.string())]
    return keys, index.find_or_insert(index.encode(columns))[0]


def key_index(backend: KeyedStateBackend) -> Any:
    """An index over a number and a text."""
    return backend.key_index([pa.int64(), pa.string()])


def named(index: Any, slots: Any) -> list[Any]:
    """The keys of slots."""
    return list(zip(*(column.to_pylist() for column in index.columns_at(slots)), strict=True))


def columns(backend: KeyedStateBackend) -> Callable[[random.Random, int], Any]:
    index = key_index(backend)
    types = [pa.int32(), pa.string(), pa.decimal128(30, 2), pa.float64()]
    store = backend.column_store("c", index, [StoredColumn(str(i), type_) for i, type_ in enumerate(types)])

    def step(rng: random.Random, now: int) -> Any:
        keys = [(rng.choice([None, *range(20)]), rng.choice(TEXTS)) for _ in range(rng.randint(1, 12))]
        encoded = index.encode([pa.array([key[i] for key in keys], type_) for i, type_ in enumerate(index.types)])
        known = index.lookup(encoded)
        before = [(known < 0).tolist(), *(array.to_pylist() for array in store.gather(known[known >= 0]))]
        slots, _ = index.find_or_insert(encoded)
        rows = [[rng.choice([None, now]), rng.choice(TEXTS), None, rng.choice([None, -0.5])] for _ in keys]
        store.scatter(slots, [pa.array([row[i] for row in rows], type_) for i, type_ in enumerate(types)])
        if now % 5 == 4:
            gone = slots[:1]
            store.clear(gone)
            index.remove(gone)
        return before, len(index)

    return step


def accumulators(backend: KeyedStateBackend) -> Callable[[random.Random, int], Any]:
    index = key_index(backend)
    store = backend.accumulators("a", index, [StoredColumn(name, pa.int64(), False) for name in ("n", "c", "s")])
    ops = np.array([[SUM, 2, 0, 0, 1], [COUNT, 1, 0, 0, -1]], np.int64)

    def step(rng: random.Random, now: int) -> Any:
        keys, slots = picked(rng, index, 30)
        store.prepare()
        values = np.array([[rng.randint(-9, 9) for _ in keys]], np.int64)
        folded = store.fold(slots, ops, values, np.ones((1, len(keys)), np.int8), ONCE)
        return folded.states.tolist(), folded.first_rows.tolist()

    return step


def maps(backend: KeyedStateBackend) -> Callable[[random.Random, int], Any]:
    index = key_index(backend)
    types = [pa.string(), pa.list_(pa.int64())]
    store = backend.map_store("m", index, types, [StoredColumn("v", pa.string())])

    def step(rng: random.Random, now: int) -> Any:
        keys, slots = picked(rng, index)
        names = [pa.array([rng.choice(TEXTS) for _ in keys], types[0]), pa.array([[1, None]] * len(keys), types[1])]
        entries, fresh = store.find_or_insert(slots, names)
        store.scatter(entries, [pa.array([f"{LONG}{now} {row}" for row in range(len(keys))])])
        if now % 6 == 5:
            store.drop_slots(slots[:1])
        probes, found = store.iterate_slot(slots)
        values = [array.to_pylist() for array in (*store.keys_at(found), *store.gather(found))]
        return fresh.tolist(), sorted(zip(probes.tolist(), *values, strict=True), key=repr)

    return step


def rows(backend: KeyedStateBackend) -> Callable[[random.Random, int], Any]:
    index = key_index(backend)
    removable = backend.row_list("r", index, [pa.string()], removable=True, stamped=True, counted=True)
    unique = backend.row_list("u", index, [pa.int64(), pa.string()], unique=(0,), removable=True)
    nested = pa.struct([("x", pa.list_(pa.int64())), ("y", pa.string())])
    kept = backend.kept_rows("k", index, [nested])

    def step(rng: random.Random, now: int) -> Any:
        keys, slots = picked(rng, index)
        n = len(keys)
        signs = np.array([rng.choice([1, 1, -1]) for _ in keys], np.int8)
        texts = pa.array([rng.choice(TEXTS) for _ in keys], pa.string())
        found = [removable.apply(signs, slots, [texts], now) >= 0]
        found.append(unique.apply(signs, slots, [pa.array([rng.randint(0, 2) for _ in keys]), texts]) >= 0)
        kept.append(slots, [pa.array([rng.choice([None, {"x": [now, None], "y": "t"}]) for _ in keys], nested)])
        seen = [mask.tolist() for mask in found]
        live = np.unique(slots)
        ids = removable.rows_of(live)[1]
        seen.append(sorted(removable.associate(ids, np.ones(len(ids), np.int32)).tolist()))
        for list_ in (removable, unique, kept):
            probes, ids = list_.rows_of(slots)
            seen.append(probes.tolist())
            seen += [array.to_pylist() for array in list_.gather(ids)]
            seen.append(list_.counts(slots).tolist())
        if now % 4 == 3:
            seen.append(sorted(named(index, removable.remove_older(now - 6)), key=repr))
        return n, seen

    return step


def sorted_rows(backend: KeyedStateBackend) -> Callable[[random.Random, int], Any]:
    index = key_index(backend)
    store = backend.sorted_list("s", index, [pa.int64(), pa.string()], [SortColumn(0, False), SortColumn(1)])
    extremes = backend.extreme_values("x", index, pa.string(), True)

    def step(rng: random.Random, now: int) -> Any:
        keys, slots = picked(rng, index)
        signs = np.array([rng.choice([1, 1, -1]) for _ in keys], np.int8)
        numbers = pa.array([rng.randint(0, 3) for _ in keys])
        texts = pa.array([rng.choice(TEXTS) for _ in keys], pa.string())
        found, ranks = store.apply(signs, slots, [numbers, texts])
        tops = extremes.update(slots, texts, signs)
        shown = extremes.values_at(tops).to_pylist()
        probes, ids = store.rows_of(slots)
        return (
            (found >= 0).tolist(), ranks.tolist(), shown, probes.tolist(),
            [array.to_pylist() for array in store.gather(ids)],
        )  # fmt: skip

    return step


def times(backend: KeyedStateBackend) -> Callable[[random.Random, int], Any]:
    index = key_index(backend)
    touched = backend.slot_times("t", index)
    timers = backend.timers("w", index)

    def step(rng: random.Random, now: int) -> Any:
        keys, slots = picked(rng, index)
        touched.touch(slots, now)
        at = np.array([now + rng.randint(-5, 30) for _ in keys], np.int64)
        timers.register(at, slots)
        if now % 3 == 2:
            timers.delete(at[::2].copy(), slots[::2].copy())
        seen: list[Any] = [timers.earliest(), len(timers), len(index)]
        if now % 2:
            seen.append(sorted(named(index, touched.expired(now - 9)), key=repr))
            due, owners = timers.due(now - 3)
            seen.append(sorted(zip(due.tolist(), named(index, owners), strict=True), key=repr))
        return seen

    return step


def windows(backend: KeyedStateBackend) -> Callable[[random.Random, int], Any]:
    index = backend.window_index([pa.string()])
    store = backend.column_store("n", index, [StoredColumn("n", pa.int64())])

    def step(rng: random.Random, now: int) -> Any:
        keys = [rng.choice(TEXTS) for _ in range(rng.randint(1, 8))]
        ends = np.array([10 * rng.randint(now // 2 - 3, now // 2 + 3) for _ in keys], np.int64)
        slots, fresh = index.find_or_insert(index.encode([pa.array(keys, pa.string())], ends))
        store.scatter(slots, [pa.array([now] * len(keys))])
        seen = [fresh.tolist(), len(index), index.earliest(), index.namespaces().tolist()]
        if now % 4 == 3:
            closed, slots = index.up_to(10 * (now // 2 - 1))
            seen += [closed.tolist(), index.columns_at(slots)[0].to_pylist(), store.gather(slots)[0].to_pylist()]
            store.clear(slots)
            index.remove(slots)
        return seen

    return step


EACH: list[Steps] = [columns, accumulators, maps, rows, sorted_rows, times, windows]


def in_any_order(tables: dict[str, Any]) -> dict[str, list[str]]:
    """Rows of saved tables. Keys have no order; that of a key's rows is seen by the steps that follow."""
    return {name: sorted(map(repr, table.to_pylist())) for name, table in tables.items()}


@pytest.mark.parametrize("make", EACH, ids=lambda make: make.__name__)
def test_stores_whose_slots_leave_show_what_those_in_memory_show(make: Steps, backend: RocksDBBackend) -> None:
    resident: KeyedStateBackend = HashMapBackend()
    steps = [(store, make(store), random.Random(5)) for store in (resident, backend)]
    for now in range(STEPS):
        seen = []
        for store, step, rng in steps:
            seen.append(step(rng, now))
            store.settle()
        assert seen[0] == seen[1], now
        if now % 10 == 9:
            expected = in_any_order(resident.snapshot())
            assert in_any_order(backend.snapshot()) == expected
            waiting = backend.snapshot_async()
            for store, step, rng in steps:
                step(rng, now)
                store.settle()
            assert in_any_order(waiting.tables()) == expected
    assert backend.database.path is not None


@pytest.mark.parametrize("make", EACH, ids=lambda make: make.__name__)
@pytest.mark.parametrize("to_rocksdb", [False, True])
def test_a_snapshot_of_one_backend_goes_on_in_the_other(make: Steps, to_rocksdb: bool, tmp_path: Path) -> None:
    pair: list[Any] = [HashMapBackend(), cold(tmp_path)]
    first, second = pair if to_rocksdb else pair[::-1]
    step, rng = make(first), random.Random(8)
    for now in range(STEPS // 2):
        step(rng, now)
        first.settle()
    tables = first.snapshot()
    again, same = HashMapBackend(), make
    again.restore(tables)
    second.restore(tables)
    both = [(again, same(again)), (second, make(second))]
    for now in range(STEPS // 2, STEPS):
        seen = []
        state = rng.getstate()
        for store, step in both:
            rng.setstate(state)
            seen.append(step(rng, now))
            store.settle()
        assert seen[0] == seen[1], now
    for store in pair:
        store.close()


def test_objects_leave_and_come_back(backend: RocksDBBackend) -> None:
    store = ObjectStore("objects", 128, namespaced=True)
    backend.register_objects("objects", store)
    model: dict[Any, Any] = {}
    rng = random.Random(3)
    for _ in range(300):
        slot = (rng.choice(["a", "b", 7, LONG]), (rng.randint(0, 5), rng.randint(6, 9)))
        match rng.randint(0, 4):
            case 0:
                store.entries[slot] = model[slot] = [1]
            case 1:
                assert store.entries.pop(slot, None) == model.pop(slot, None)
            case 2:
                store.entries.setdefault(slot, []).append(2)
                model.setdefault(slot, []).append(2)
            case 3:
                assert (slot in store.entries) == (slot in model)
            case _:
                assert store.entries.get(slot, ()) == model.get(slot, ())
        backend.settle()
        assert len(store.entries) == 0
    assert dict(store.entries.items()) == model
    other = HashMapBackend()
    again = ObjectStore("objects", 128, namespaced=True)
    other.register_objects("objects", again)
    other.restore(backend.snapshot())
    assert again.entries == model


def test_local_files_go_with_the_job_and_those_of_a_killed_process_with_the_next(tmp_path: Path) -> None:
    left = tmp_path / "flowsql-rocksdb-1-left"
    left.mkdir()
    (left / "lock").touch()
    made = cold(tmp_path)
    assert list(tmp_path.iterdir()) == [left]  # nothing is opened before state leaves memory
    step = columns(made)
    step(random.Random(1), 0)
    made.settle()
    (own,) = tmp_path.iterdir()
    assert own != left
    assert made.database.path is not None
    assert made.database.path.parent == own
    made.close()
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    made = cold(tmp_path, **{"state.backend.rocksdb.localdir": str(tmp_path / "file")})
    columns(made)(random.Random(1), 0)
    with pytest.raises(ExecutionError, match="file"):
        made.settle()
