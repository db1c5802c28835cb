"""What a snapshot of a moment leaves behind in memory: nothing."""

from __future__ import annotations

import gc

import numpy as np
import pyarrow as pa

from flowsql_runtime.state.hashmap import HashMapBackend
from flowsql_runtime.state.resident.column_store import ResidentColumnStore
from flowsql_runtime.state.resident.key_index import ResidentKeyIndex
from flowsql_runtime.state.stores import StoredColumn


def _alive() -> int:
    gc.collect()
    return sum(type(thing) in (ResidentKeyIndex, ResidentColumnStore) for thing in gc.get_objects())


def test_shadows_go_when_the_tables_are_made_and_nobody_watches_any_more() -> None:
    backend = HashMapBackend()
    index = backend.key_index([pa.int64()])
    stores = [backend.column_store(name, index, [StoredColumn("n", pa.int64())]) for name in ("a", "b")]
    entries = backend.map_store("m", index, [pa.int64()], [StoredColumn("n", pa.int64())])
    slots, _ = index.find_or_insert(index.encode([pa.array(range(100))]))
    for store in stores:
        store.scatter(slots, [pa.array(range(100))])
    entries.find_or_insert(slots, [pa.array(range(100))])
    before = _alive()
    snapshot = backend.snapshot_async()
    assert all(thing.watchers for thing in (index, *stores, entries, entries.entries, entries.values))
    assert {name: len(table) for name, table in snapshot.tables().items()} == dict.fromkeys("abm", 100)
    assert _alive() == before
    assert not any(thing.watchers for thing in (index, *stores, entries, entries.entries, entries.values))


def test_a_moment_costs_the_same_whatever_the_size() -> None:
    def kept_bytes(n: int) -> int:
        backend = HashMapBackend()
        index = backend.key_index([pa.int64()])
        store = backend.column_store("a", index, [StoredColumn("n", pa.int64())])
        slots, _ = index.find_or_insert(index.encode([pa.array(np.arange(n))]))
        store.scatter(slots, [pa.array(np.arange(n))])
        snapshot = backend.snapshot_async()
        store.scatter(slots[:10], [pa.array(range(10))])
        store.scatter(slots[:10], [pa.array(range(10))])
        watcher = store.watchers[0]
        aside = sum(rows.nbytes for part in watcher._rows.values() for _, rows in part._aside)
        snapshot.release()
        return aside

    # Ten rows, once, though they were written twice.
    assert kept_bytes(1_000) == kept_bytes(50_000) == 10 * 2 * 8
