"""Many keys that leave and come back through pages: buckets are cut, written anew and forgotten, nothing is lost."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from flowsql_core.config import Configuration
from flowsql_runtime.state.hashmap import HashMapBackend
from flowsql_runtime.state.rocksdb import buckets as bucket_sizes
from flowsql_runtime.state.rocksdb import region as region_sizes
from flowsql_runtime.state.rocksdb.backend import RocksDBBackend
from flowsql_runtime.state.rocksdb.buckets import Buckets
from flowsql_runtime.state.rocksdb.settings import RocksDBSettings
from flowsql_runtime.state.stores import StoredColumn

KEYS = 12_000
BATCH = 700


@pytest.fixture(params=[0, 200_000], ids=["nothing resident", "some resident"])
def cold(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RocksDBBackend]:
    """A backend of small buckets, with room for some keys or none."""
    monkeypatch.setattr(bucket_sizes, "MOST_KEYS", 64)
    monkeypatch.setattr(bucket_sizes, "MOST_BYTES", 4096)
    monkeypatch.setattr(region_sizes, "_PIECE", 500)
    monkeypatch.setattr(region_sizes, "_READ_BYTES", 6000)
    monkeypatch.setattr(region_sizes, "_MOST_GONE", 300)
    values = {"state.backend.rocksdb.memory.fixed-per-slot": "1", "io.tmp.dirs": str(tmp_path)}
    settings = RocksDBSettings.of(Configuration(values=values), 1 << 30, 1)
    made = RocksDBBackend(
        RocksDBSettings(
            values=settings.values,
            resident_bytes=request.param,
            rocksdb_bytes=1 << 20,
            folders=settings.folders,
            write_batch_bytes=1 << 20,
        )
    )
    yield made
    made.close()


class Operator:
    """Counts, texts and lists of rows a key, on one backend."""

    def __init__(self, state: Any, namespaced: bool) -> None:
        self.state = state
        self.namespaced = namespaced
        self.index = (state.window_index if namespaced else state.key_index)([pa.int64(), pa.string()])
        columns = [StoredColumn("n", pa.int64()), StoredColumn("t", pa.string())]
        self.values = state.column_store("v", self.index, columns)
        self.rows = state.row_list("r", self.index, [pa.int64(), pa.string()], removable=True)

    def step(self, numbers: Any, namespaces: Any, now: int) -> Any:
        """Read and write keys; returns what was there."""
        texts = pa.array([self._text(n) for n in numbers], pa.string())
        if not self.namespaced and now % 3 == 0:
            # Keys of this step and others, of which some are nowhere; the second time they are known to be.
            ahead = np.concatenate([numbers, numbers + 1])
            self.index.expect([pa.array(ahead), pa.array([self._text(n) for n in ahead], pa.string())], len(ahead))
        keys = self.index.encode([pa.array(numbers), texts], namespaces if self.namespaced else None)
        slots, fresh = self.index.find_or_insert(keys)
        seen = [sorted(fresh.tolist()), *(column.to_pylist() for column in self.values.gather(slots))]
        positions, rows = self.rows.rows_of(slots)
        seen.append(
            sorted(zip(positions.tolist(), *(c.to_pylist() for c in self.rows.gather(rows)), strict=True), key=str)
        )
        self.values.scatter(slots, [pa.array(numbers * now), pa.array([f"{n} {now}" * (n % 5) for n in numbers])])
        some = np.flatnonzero(numbers % 3 == 0)
        one = np.ones(len(some), np.int8)
        self.rows.apply(one, slots[some], [pa.array(numbers[some] + now), pa.array([f"row {now}"] * len(some))])
        if now % 4 == 3:
            self._remove(np.unique(slots[::7]))
        if self.namespaced and now % 10 == 9:
            closed, slots = self.index.up_to(now // 10 - 1)
            seen.append(sorted(zip(closed.tolist(), self.index.columns_at(slots)[0].to_pylist(), strict=True)))
            self._remove(slots)
        return seen, len(self.index)

    def _text(self, number: int) -> str | None:
        return None if number % 11 == 0 else "x" * int(number % 40)

    def _remove(self, slots: Any) -> None:
        self.values.clear(slots)
        self.rows.drop_slots(slots)
        self.index.remove(slots)


@pytest.mark.parametrize("namespaced", [False, True])
def test_what_leaves_in_pages_is_what_stays_in_memory(cold: RocksDBBackend, namespaced: bool) -> None:
    known = HashMapBackend()
    ours, theirs = Operator(cold, namespaced), Operator(known, namespaced)
    rng = np.random.default_rng(5)
    for now in range(50):
        numbers = np.unique(rng.integers(0, KEYS, BATCH) if now % 2 else (rng.zipf(1.3, BATCH) % KEYS))
        namespaces = now // 10 + rng.integers(0, 3, len(numbers))
        assert ours.step(numbers, namespaces, now) == theirs.step(numbers, namespaces, now)
        cold.settle()
        if now % 10 == 5:
            assert tables(cold.snapshot()) == tables(known.snapshot())
            assert tables(cold.snapshot_async().tables()) == tables(known.snapshot())
    assert cold.database.path is not None


def tables(snapshot: dict[str, Any]) -> dict[str, list[Any]]:
    """Rows by store."""
    return {
        name: sorted((tuple(row.items()) for row in table.to_pylist()), key=str) for name, table in snapshot.items()
    }


def test_a_store_that_joins_late_has_no_rows_of_what_left_before(cold: RocksDBBackend) -> None:
    index = cold.key_index([pa.int64()])
    first = cold.column_store("a", index, [StoredColumn("n", pa.int64())])
    numbers = np.arange(2000)
    slots, _ = index.find_or_insert(index.encode([pa.array(numbers)]))
    first.scatter(slots, [pa.array(numbers)])
    for _ in range(2):
        cold.settle()
        index.find_or_insert(index.encode([pa.array(numbers[:10])]))
    index.remove(index.lookup(index.encode([pa.array(numbers[:5])])))
    second = cold.row_list("b", index, [pa.string()])
    found = index.lookup(index.encode([pa.array(numbers)]))
    assert (found < 0).tolist() == [True] * 5 + [False] * 1995
    assert first.gather(found[5:])[0].to_pylist() == numbers[5:].tolist()
    assert len(second.rows_of(found[5:])[1]) == 0


def test_buckets_are_cut_until_their_keys_fit() -> None:
    buckets = Buckets(1, 1)
    assert len(buckets) == 1
    buckets.cut(np.array([0]), np.array([5 * bucket_sizes.MOST_KEYS]), np.array([0]))
    assert buckets.starts.tolist() == [number << 29 for number in range(8)]
    buckets.written(b"", np.array([0, 7]), np.array([1, 2]), np.array([3, 4]))
    buckets.cut(np.array([3]), np.array([2 * bucket_sizes.MOST_KEYS]), np.array([0]))
    assert buckets.starts.tolist() == [
        *(n << 29 for n in range(4)),
        (3 << 29) + (1 << 28),
        *(n << 29 for n in range(4, 8)),
    ]
    assert buckets.keys.tolist() == [1, 0, 0, 0, 0, 0, 0, 0, 2]
    assert buckets.of(np.array([0, (1 << 29) - 1, (1 << 32) - 1], np.uint32)).tolist() == [0, 0, 8]
    # One key whose state is large cannot be cut.
    buckets.cut(np.array([8]), np.array([1]), np.array([1 << 30]))
    assert len(buckets) == 9
