"""Writes and reads state of several times a budget; prints how much of it memory held at most, in bytes."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa

from flowsql_core.config import Configuration
from flowsql_runtime.state.rocksdb.backend import RocksDBBackend
from flowsql_runtime.state.rocksdb.settings import RocksDBSettings
from flowsql_runtime.state.stores import StoredColumn

BATCH = 2_000
#: Columns of 8 bytes.
COLUMNS = 24


def resident_bytes() -> int:
    """Of this process, now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def main(folder: str, budget_bytes: int, keys: int) -> None:
    """Put all keys in, then look at them again in another order."""
    values = {"state.backend.rocksdb.memory.fixed-per-slot": str(budget_bytes), "io.tmp.dirs": folder}
    state = RocksDBBackend(RocksDBSettings.of(Configuration(values=values), 1 << 40, 1))
    index = state.key_index([pa.int64()])
    store = state.column_store("c", index, [StoredColumn(f"{i}", pa.int64(), False) for i in range(COLUMNS)])
    before = high = 0
    for start in range(0, keys, BATCH):
        numbers = np.arange(start, start + BATCH)
        slots, fresh = index.find_or_insert(index.encode([pa.array(numbers)]))
        assert len(fresh) == BATCH
        store.scatter(slots, [pa.array(numbers + i) for i in range(COLUMNS)])
        state.settle()
        before = before or resident_bytes()
        high = max(high, resident_bytes())
    rng = np.random.default_rng(1)
    for _ in range(5):
        numbers = rng.integers(0, keys, BATCH)
        slots = index.lookup(index.encode([pa.array(numbers)]))
        found = store.gather(slots)
        assert all(column.to_pylist() == (numbers + i).tolist() for i, column in enumerate(found))
        state.settle()
        high = max(high, resident_bytes())
    assert len(index) == keys
    print(high - before)
    state.close()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
