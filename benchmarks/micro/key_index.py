"""Rows per second of ``KeyIndex.find_or_insert``: 1 k to 10 M keys, by batch size."""

from __future__ import annotations

import time

import numpy as np
import pyarrow as pa

from flowsql_runtime.state.resident.key_index import ResidentKeyIndex


def run(keys: int, batch: int, text: bool) -> float:
    rng = np.random.default_rng(1)
    values = rng.integers(0, keys, batch * 64)
    column = pa.array(values)
    if text:
        column = pa.array([f"user-{v}" for v in values.tolist()])
    index = ResidentKeyIndex([column.type])
    parts = [column.slice(i * batch, batch) for i in range(64)]
    for part in parts:
        index.find_or_insert(index.encode([part]))
    start = time.perf_counter()
    rounds = 3
    for _ in range(rounds):
        for part in parts:
            index.find_or_insert(index.encode([part]))
    return rounds * batch * 64 / (time.perf_counter() - start) / 1e6


if __name__ == "__main__":
    for keys in (1_000, 100_000, 1_000_000):
        for batch in (1_024, 16_384, 65_536):
            print(f"{keys:>9} keys, batch {batch:>6}: {run(keys, batch, False):7.1f} M rows/s")
    print(f"strings, 100 k keys: {run(100_000, 16_384, True):7.1f} M rows/s")
