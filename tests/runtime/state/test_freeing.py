"""Freeing k of n costs k: the same work beside forty times as much state takes about the same time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from flowsql_runtime.state.hashmap import HashMapBackend
from flowsql_runtime.state.stores import SortColumn, StoredColumn

FEW, MANY = 10_000, 400_000
#: Slots that go at once, and how often.
FREED, ROUNDS = 50, 12

#: Makes a store, fills it with one row a slot, and answers what frees slots.
Free = Callable[[Any], object]
Build = Callable[[HashMapBackend, Any, Any, Any], Free]


def _map_store(backend: HashMapBackend, index: Any, slots: Any, numbers: Any) -> Free:
    store = backend.map_store("m", index, [pa.int64()], [StoredColumn("v", pa.int64())])
    store.find_or_insert(slots, [numbers])
    return store.drop_slots


def _extreme_values(backend: HashMapBackend, index: Any, slots: Any, numbers: Any) -> Free:
    store = backend.extreme_values("x", index, pa.int64(), True)
    store.update(slots, numbers, np.ones(len(slots), np.int8))
    return store.drop_slots


def _row_list(backend: HashMapBackend, index: Any, slots: Any, numbers: Any) -> Free:
    store = backend.row_list("r", index, [pa.int64()], removable=True)
    store.append(slots, [numbers])
    return store.drop_slots


def _sorted_list(backend: HashMapBackend, index: Any, slots: Any, numbers: Any) -> Free:
    store = backend.sorted_list("s", index, [pa.int64()], [SortColumn(0)])
    store.apply(np.ones(len(slots), np.int8), slots, [numbers])
    return store.drop_slots


def _older_rows(backend: HashMapBackend, index: Any, slots: Any, numbers: Any) -> Free:
    store = backend.row_list("r", index, [pa.int64()], removable=True, stamped=True)
    for start in range(0, ROUNDS * FREED, FREED):
        part = slice(start, start + FREED)
        store.apply(np.ones(FREED, np.int8), slots[part], [numbers.slice(start, FREED)], int(slots[start]))
    rest = slots[ROUNDS * FREED :]
    store.apply(np.ones(len(rest), np.int8), rest, [numbers.slice(ROUNDS * FREED)], 10**9)
    return lambda freed: store.remove_older(int(freed[0]))


def _slot_times(backend: HashMapBackend, index: Any, slots: Any, numbers: Any) -> Free:
    store = backend.slot_times("t", index)
    for start in range(0, ROUNDS * FREED, FREED):
        store.touch(slots[start : start + FREED], int(slots[start]))
    store.touch(slots[ROUNDS * FREED :], 10**9)
    return lambda freed: store.expired(int(freed[0]))


def _timers(backend: HashMapBackend, index: Any, slots: Any, numbers: Any) -> Free:
    store = backend.timers("t", index)
    store.register(slots.astype(np.int64), slots)
    return lambda freed: store.due(int(freed[-1]))


def _key_index(backend: HashMapBackend, index: Any, slots: Any, numbers: Any) -> Free:
    removed: Free = index.remove
    return removed


BUILDS: list[Build] = [
    _map_store, _extreme_values, _row_list, _sorted_list, _older_rows, _slot_times, _timers, _key_index,
]  # fmt: skip


def _shortest(free: Free, slots: Any) -> float:
    """Seconds of CPU for freeing some slots, the shortest of the rounds after the first, which may link what goes."""
    found = []
    for start in range(0, ROUNDS * FREED, FREED):
        part = slots[start : start + FREED]
        began = time.thread_time()
        free(part)
        found.append(time.thread_time() - began)
    return min(found[1:])


def _measured(build: Build, n: int) -> float:
    backend = HashMapBackend()
    index = backend.key_index([pa.int64()])
    numbers = pa.array(np.arange(n))
    slots, _ = index.find_or_insert(index.encode([numbers]))
    return _shortest(build(backend, index, slots, numbers), slots)


@pytest.mark.parametrize("build", BUILDS, ids=lambda build: build.__name__.strip("_"))
def test_freeing_some_slots_costs_what_is_freed(build: Build) -> None:
    few, many = _measured(build, FEW), _measured(build, MANY)
    # Anything that reads all of it takes forty times as long.
    assert many < 8 * few + 0.0005, f"{FREED} of {FEW}: {few * 1e6:.0f} us, of {MANY}: {many * 1e6:.0f} us"


def test_closing_a_window_costs_its_keys() -> None:
    def measured(n: int) -> float:
        index = HashMapBackend().window_index([pa.int64()])
        ends = np.minimum(np.arange(n) // FREED, ROUNDS) * 10
        index.find_or_insert(index.encode([pa.array(np.arange(n))], ends))
        index.numbered(index.up_to(0)[1])
        found = []
        for end in range(0, ROUNDS * 10, 10):
            began = time.thread_time()
            _, slots = index.up_to(end)
            index.remove(slots)
            found.append(time.thread_time() - began)
            assert len(slots) == FREED
        return min(found[1:])

    few, many = measured(FEW), measured(MANY)
    assert many < 8 * few + 0.0005, (few, many)
