"""A group aggregate (COUNT, SUM) over many keys on both backends: rows a second and resident memory.

    python benchmarks/micro/rocksdb_state.py [rows] [keys] [budget MB]

Each backend runs in a process of its own; memory is what the process has above what it had before the first row.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa

from flowsql_core.config import Configuration
from flowsql_runtime.kernels.accumulate import COUNT, ONCE, SUM
from flowsql_runtime.state.backend import KeyedStateBackend
from flowsql_runtime.state.hashmap import HashMapBackend
from flowsql_runtime.state.rocksdb.backend import RocksDBBackend
from flowsql_runtime.state.rocksdb.settings import RocksDBSettings
from flowsql_runtime.state.stores import StoredColumn

BATCH = 16_384


def backend(kind: str, budget_mb: int) -> KeyedStateBackend:
    """The backend to measure."""
    if kind == "hashmap":
        return HashMapBackend()
    values = {"state.backend.rocksdb.memory.fixed-per-slot": f"{budget_mb} mb"}
    return RocksDBBackend(RocksDBSettings.of(Configuration(values=values), 1 << 30, 1))


def resident_bytes() -> int:
    """Of this process, now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def run(kind: str, shape: str, rows: int, keys: int, budget_mb: int) -> None:
    """Fold all rows and print seconds, most resident bytes above the start, and what came out."""
    rng = np.random.default_rng(1)
    state = backend(kind, budget_mb)
    index = state.key_index([pa.int64()])
    store = state.accumulators("a", index, [StoredColumn(name, pa.int64(), False) for name in ("n", "c", "s")])
    ops = np.array([[SUM, 2, 0, 0, 1], [COUNT, 1, 0, 0, -1]], np.int64)
    ones = np.ones((1, BATCH), np.int8)
    low = high = 0
    seconds = 0.0
    total = 0
    for batch in range(rows // BATCH + 1):
        drawn = rng.zipf(1.1, BATCH) % keys if shape == "zipf" else rng.integers(0, keys, BATCH)
        column = pa.array(drawn.astype(np.int64))
        values = drawn.astype(np.int64).reshape(1, BATCH)
        began = time.perf_counter()
        slots, _ = index.find_or_insert(index.encode([column]))
        store.prepare()
        folded = store.fold(slots, ops, values, ones, ONCE)
        total += int((folded.states[1::2] - folded.states[::2]).sum())
        state.settle()
        seconds += time.perf_counter() - began
        if not batch:
            low = resident_bytes()
            seconds = 0.0
        high = max(high, resident_bytes())
    print(f"{seconds:.3f} {high - low} {len(index)} {total} {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss}")
    state.close()


def main() -> None:
    """All combinations."""
    rows, keys, budget_mb = (int(text) for text in [*sys.argv[1:4], "2000000", "400000", "32"][:3])
    for shape in ("zipf", "uniform"):
        answers = set()
        base = 0.0
        for kind in ("hashmap", "rocksdb"):
            command = [sys.executable, __file__, "--one", kind, shape, str(rows), str(keys), str(budget_mb)]
            out = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
            seconds, grown, found, total, _ = out
            answers.add((found, total))
            base = base or float(seconds)
            rate = rows / float(seconds) / 1e6
            print(
                f"{shape:8} {kind:8} {rate:6.2f} M rows/s, {float(seconds) / base:5.2f} x the time of hashmap, "
                f"{int(grown) / 2**20:6.1f} MB, {found} keys"
            )
        assert len(answers) == 1, answers


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        run(sys.argv[2], sys.argv[3], *(int(text) for text in sys.argv[4:7]))
    else:
        main()
