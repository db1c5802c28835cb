"""The gap that a snapshot makes: longest time between two batches of an aggregate's state while it is written.

python benchmarks/micro/snapshot.py [MEGABYTES ...]
"""

from __future__ import annotations

import sys
import threading
import time

import numpy as np
import pyarrow as pa

from flowsql_runtime.kernels.accumulate import COUNT, ONCE, SUM
from flowsql_runtime.state.hashmap import HashMapBackend
from flowsql_runtime.state.stores import StoredColumn

ROWS = 16_384
OPS = np.array([[SUM, 2, 0, 0, 1], [COUNT, 1, 0, 0, -1]], np.int64)


def measure(megabytes: int) -> None:
    backend = HashMapBackend()
    index = backend.key_index([pa.int64()])
    names = ("rows", "count", "sum", "a", "b", "c")
    store = backend.accumulators("sums", index, [StoredColumn(name, pa.int64(), False) for name in names])
    rng = np.random.default_rng(1)
    ones, values = np.ones((1, ROWS), np.int8), np.ones((1, ROWS), np.int64)

    def batch(keys: np.typing.NDArray[np.int64]) -> float:
        start = time.perf_counter()
        slots, _ = index.find_or_insert(index.encode([pa.array(keys)]))
        store.prepare()
        store.fold(slots, OPS, values, ones, ONCE)
        return time.perf_counter() - start

    count = 0
    while backend.nbytes < megabytes << 20:
        batch(np.arange(count, count + ROWS))
        count += ROWS
    alone = sorted(batch(rng.integers(0, count, ROWS)) for _ in range(400))
    start = time.perf_counter()
    snapshot = backend.snapshot_async()
    frozen = time.perf_counter() - start
    found: list[float] = []

    def write() -> None:
        began = time.perf_counter()
        rows = sum(len(table) for table in snapshot.tables().values())
        assert rows == count
        found.append(time.perf_counter() - began)

    writer = threading.Thread(target=write)
    writer.start()
    gaps = []
    while writer.is_alive():
        gaps.append(batch(rng.integers(0, count, ROWS)))
    gaps.sort()
    print(
        f"{backend.nbytes >> 20:>6} MB, {count:>9} keys: barrier {1000 * frozen:.2f} ms, written {found[0]:.2f} s; "
        f"batch of {ROWS} rows median {1000 * alone[200]:.1f} ms (longest {1000 * alone[-1]:.1f}), "
        f"while written {1000 * gaps[len(gaps) // 2]:.1f} ms (longest {1000 * gaps[-1]:.1f}, {len(gaps)} batches)"
    )


if __name__ == "__main__":
    sys.setswitchinterval(1e-4)
    for size in [int(text) for text in sys.argv[1:]] or [64, 256, 1024]:
        measure(size)
