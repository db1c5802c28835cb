"""Whole and incremental checkpoints of a state that is mostly in RocksDB: barrier, writing, bytes, restores.

python benchmarks/micro/incremental.py [KEYS]
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from flowsql_core.config import Configuration
from flowsql_runtime.checkpoint.completed import CompletedCheckpoint, CompletedCheckpoints
from flowsql_runtime.checkpoint.manifest import Manifest, OperatorState, encode_manifest
from flowsql_runtime.checkpoint.recovery import SnapshotReader
from flowsql_runtime.checkpoint.shared_files import SharedUpload
from flowsql_runtime.checkpoint.storage import LocalStorage
from flowsql_runtime.checkpoint.write import write_task
from flowsql_runtime.operators.base import OperatorSnapshot
from flowsql_runtime.state.hashmap import HashMapBackend
from flowsql_runtime.state.rocksdb.backend import RocksDBBackend
from flowsql_runtime.state.rocksdb.settings import RocksDBSettings
from flowsql_runtime.state.stores import StoredColumn
from flowsql_runtime.task.restore import TaskPlace

ROWS = 50_000
GROUPS = range(128)


def backend_in(folder: Path, incremental: bool) -> RocksDBBackend:
    values = {
        "execution.checkpointing.incremental": str(incremental),
        "state.backend.rocksdb.memory.fixed-per-slot": "96 mb",
        "io.tmp.dirs": str(folder / "local"),
    }
    return RocksDBBackend(RocksDBSettings.of(Configuration(values=values), 1 << 30, 1))


def stores(backend: HashMapBackend) -> tuple[Any, Any]:
    index = backend.key_index([pa.int64()])
    return index, backend.accumulators("sums", index, [StoredColumn(name, pa.int64(), False) for name in ("n", "s")])


def measure(folder: Path, keys: int, incremental: bool) -> None:
    backend = backend_in(folder, incremental)
    index, store = stores(backend)
    rng = np.random.default_rng(1)

    def write(wanted: np.typing.NDArray[np.int64]) -> None:
        slots, _ = index.find_or_insert(index.encode([pa.array(wanted)]))
        store.prepare()
        store.scatter(slots, [pa.array(wanted), pa.array(wanted * 7)])
        backend.settle()

    for start in range(0, keys, ROWS):
        write(rng.permutation(np.arange(start, min(keys, start + ROWS))))
    print(f"{'incremental' if incremental else 'whole'}: {index.in_memory()} of {keys} keys in memory")
    completed = CompletedCheckpoints(LocalStorage(str(folder / "checkpoints"), own=True), 1)
    for number in range(1, 5):
        began = time.perf_counter()
        snapshot = OperatorSnapshot(frozen=backend.snapshot_async(native=True))
        barrier = time.perf_counter() - began
        target = completed.storage.folder(f"chk-{number}")
        upload = SharedUpload(completed.shared, number, completed.known)
        task = write_task(target, "0-0.state", 0, {"op": snapshot}, False, -1, None, upload)
        snapshot.release()
        state = OperatorState("op", "op", "", 1, len(GROUPS), (task.states["op"],))
        manifest = Manifest(number, "checkpoint", 0, "", "", {"op": state}, checkpointed_bytes=task.written_bytes)
        target.publish(encode_manifest(manifest, b""))
        completed.add(CompletedCheckpoint(target, manifest))
        print(
            f"  barrier {1000 * barrier:6.1f} ms, complete after {time.perf_counter() - began:5.2f} s, "
            f"{task.written_bytes / 1e6:6.1f} of {manifest.size_bytes / 1e6:6.1f} MB written"
        )
        write(np.unique(rng.integers(0, keys, 20_000)))
    for name, other in (("rocksdb", backend_in(folder, incremental)), ("hashmap", HashMapBackend())):
        began = time.perf_counter()
        reader = SnapshotReader(completed.newest_first()[0].folder)
        found = reader.task(["op"], TaskPlace(0, 1, GROUPS, len(GROUPS))).operators["op"]
        other.restore(found.keyed, GROUPS, found.native)
        stores(other)
        other.opened()
        print(f"  restored to {name} in {time.perf_counter() - began:.2f} s")
        other.close()
    backend.close()


if __name__ == "__main__":
    for incremental in (False, True):
        with tempfile.TemporaryDirectory() as folder:
            measure(Path(folder), int(sys.argv[1]) if len(sys.argv) > 1 else 3_000_000, incremental)
