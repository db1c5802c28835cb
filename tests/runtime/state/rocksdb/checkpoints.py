"""Checkpoints of single backends, written to files and restored from them as jobs do it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from flowsql_compute.keys import key_group_range
from flowsql_core.config import Configuration
from flowsql_runtime.checkpoint.completed import CompletedCheckpoint, CompletedCheckpoints
from flowsql_runtime.checkpoint.manifest import Manifest, OperatorState, encode_manifest
from flowsql_runtime.checkpoint.recovery import SnapshotReader
from flowsql_runtime.checkpoint.shared_files import SharedUpload
from flowsql_runtime.checkpoint.storage import SHARED, LocalStorage, SnapshotFolder, SnapshotStorage
from flowsql_runtime.checkpoint.write import write_task
from flowsql_runtime.operators.base import OperatorSnapshot
from flowsql_runtime.state.backend import KeyedStateBackend
from flowsql_runtime.state.rocksdb.backend import RocksDBBackend
from flowsql_runtime.state.rocksdb.settings import RocksDBSettings
from flowsql_runtime.task.restore import TaskPlace

GROUPS = 128


def incremental(tmp_path: Path, groups: range = range(GROUPS), **options: str) -> RocksDBBackend:
    """A backend that keeps nothing in memory between two elements and leaves its files to checkpoints."""
    values = {
        "execution.checkpointing.incremental": "true",
        "state.backend.rocksdb.memory.fixed-per-slot": "1",
        "io.tmp.dirs": str(tmp_path / "local"),
        **options,
    }
    made = RocksDBBackend(RocksDBSettings.of(Configuration(values=values), 1 << 30, 1), GROUPS, groups)
    # Without it the first keys would say how many may stay.
    made._most, made._ceiling = 0, 1 << 40
    return made


class Checkpoints:
    """The checkpoints of a job of one operator."""

    def __init__(self, root: Path, retained: int = 1, storage: SnapshotStorage | None = None) -> None:
        self.root = root
        self.completed = CompletedCheckpoints(storage or LocalStorage(str(root), own=True), retained)
        self._next = 1

    def take(self, *backends: KeyedStateBackend, complete: bool = True) -> Manifest:
        """A checkpoint of all subtasks; one that is not completed is given up after its files were written."""
        number, self._next = self._next, self._next + 1
        folder = self.completed.storage.folder(f"chk-{number}")
        upload = SharedUpload(self.completed.shared, number, self.completed.known)
        states, written = [], 0
        for subtask, backend in enumerate(backends):
            snapshot = OperatorSnapshot(frozen=backend.snapshot_async(native=True))
            task = write_task(folder, f"0-{subtask}.state", subtask, {"op": snapshot}, False, -1, None, upload)
            snapshot.release()
            states.append(task.states["op"])
            written += task.written_bytes
        operator = OperatorState("op", "op", "", len(backends), GROUPS, tuple(states))
        manifest = Manifest(number, "checkpoint", 0, "", "", {"op": operator}, checkpointed_bytes=written)
        if complete:
            folder.publish(encode_manifest(manifest, b""))
            self.completed.add(CompletedCheckpoint(folder, manifest))
        else:
            folder.remove()
            self.completed.shared.release(number)
        return manifest

    def newest(self) -> SnapshotFolder:
        """The folder of the newest one."""
        return self.completed.newest_first()[0].folder

    def shared(self) -> set[str]:
        """Names of all shared files on the disk."""
        return {path.name for path in (self.root / SHARED).iterdir()}


def files_of(manifest: Manifest) -> set[str]:
    """Names of the shared files that a checkpoint refers to."""
    return {one.file.rpartition("/")[2] for native in manifest.natives() for one in native.shared}


def restored(
    folder: SnapshotFolder, makers: Sequence[Callable[[range], KeyedStateBackend]], open_: Callable[[Any], Any]
) -> list[Any]:
    """Backends of so many subtasks with the state of a snapshot; ``open_`` makes the stores of one."""
    reader = SnapshotReader(folder)
    found = []
    for subtask, make in enumerate(makers):
        groups = key_group_range(GROUPS, len(makers), subtask)
        state = reader.task(["op"], TaskPlace(subtask, len(makers), groups, GROUPS)).operators["op"]
        backend = make(groups)
        backend.restore(state.keyed, groups, state.native)
        opened = open_(backend)
        backend.opened()
        found.append((backend, opened))
    return found
