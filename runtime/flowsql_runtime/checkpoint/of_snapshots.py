"""Snapshots of operators that are at hand, as a snapshot that a job can start from: the way through bytes, always."""

from __future__ import annotations

from collections.abc import Mapping

from flowsql_runtime.checkpoint.layout import OperatorLayout
from flowsql_runtime.checkpoint.manifest import Manifest, OperatorState, encode_manifest
from flowsql_runtime.checkpoint.recovery import SnapshotReader
from flowsql_runtime.checkpoint.shared_files import SharedFiles, SharedUpload
from flowsql_runtime.checkpoint.storage import SHARED, MemoryStorage, SnapshotFolder
from flowsql_runtime.checkpoint.write import write_task
from flowsql_runtime.task.restore import JobSnapshot


def reader_of(
    snapshots: JobSnapshot,
    max_parallelism: int,
    folder: SnapshotFolder | None = None,
    layouts: Mapping[str, OperatorLayout] | None = None,
) -> SnapshotReader:
    """Write the snapshots of a cut job and read them again.

    Args:
        snapshots: of all subtasks of each operator.
        max_parallelism: number of key groups.
        folder: where to; None: memory.
        layouts: of keyed state, by operator uid; state of others is taken over as it is.
    """
    folder = MemoryStorage().folder("cut") if folder is None else folder
    shared = SharedUpload(SharedFiles(folder.beside(SHARED)), 1, lambda *_: {})
    operators = {}
    for number, (uid, found) in enumerate(snapshots.items()):
        states = tuple(
            write_task(folder, f"{number}-{subtask}.state", subtask, {uid: snapshot}, False, -1, None, shared).states[
                uid
            ]
            for subtask, snapshot in enumerate(found)
        )
        for snapshot in found:
            snapshot.release()
        layout = None if layouts is None else layouts.get(uid)
        operators[uid] = OperatorState(uid, uid, "", len(found), max_parallelism, states, layout=layout)
    folder.publish(encode_manifest(Manifest(1, "savepoint", 0, "", "", operators), b""))
    return SnapshotReader(folder)
