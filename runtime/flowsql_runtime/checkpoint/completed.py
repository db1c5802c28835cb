"""The snapshots of a job that can be started from, newest last; the older ones go as new ones come."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from flowsql_runtime.checkpoint.manifest import Manifest
from flowsql_runtime.checkpoint.settings import Retention
from flowsql_runtime.checkpoint.shared_files import SharedFiles, known_files
from flowsql_runtime.checkpoint.storage import SHARED, SnapshotFolder, SnapshotStorage
from flowsql_runtime.state.native import KnownFile


@dataclass(frozen=True, slots=True)
class CompletedCheckpoint:
    """A snapshot on storage. ``owned``: it goes when newer ones make it needless."""

    folder: SnapshotFolder
    manifest: Manifest
    owned: bool = True

    @property
    def id(self) -> int:
        """Its number."""
        return self.manifest.checkpoint_id


class CompletedCheckpoints:
    """Completed checkpoints of one job over all its attempts. Any thread.

    Args:
        storage: where checkpoints are.
        retained: how many of the newest stay.
    """

    def __init__(self, storage: SnapshotStorage, retained: int) -> None:
        self.storage = storage
        self.shared = SharedFiles(storage.folder(SHARED))
        self._retained = retained
        self._found: list[CompletedCheckpoint] = []
        self._lock = threading.Lock()

    def add(self, made: CompletedCheckpoint, later: Callable[[Callable[[], None]], None] | None = None) -> None:
        """A new one is complete. Savepoints are somebody else's: they are only remembered as the newest state.

        Args:
            later: runs what nobody has to wait for, in another thread: shared files may be many.
        """
        with self._lock:
            if made.manifest.kind == "savepoint":
                made = CompletedCheckpoint(made.folder, made.manifest, owned=False)
            if made.owned:
                self.shared.hold(made.id, made.folder, made.manifest)
            self._found.append(made)
            # Those that a restart would not reach any more: older than the newest ``retained`` checkpoints.
            checkpoints = [one for one in self._found if one.owned]
            gone = checkpoints[: max(0, len(checkpoints) - self._retained)]
            oldest = min((one.id for one in checkpoints[-self._retained :]), default=made.id)
            gone += [one for one in self._found if not one.owned and one.id < oldest]
            self._found = [one for one in self._found if one not in gone]
        self._remove(gone, later)

    def _remove(
        self, gone: list[CompletedCheckpoint], later: Callable[[Callable[[], None]], None] | None = None
    ) -> None:
        for one in gone:
            if one.owned:
                # The folder first: a snapshot never refers to files that are not there.
                one.folder.remove()
                release = partial(self.shared.release, one.id)
                if later is None:
                    release()
                else:
                    later(release)

    def known(self, uid: str, subtask: int, database: str) -> dict[str, KnownFile]:
        """Files of a subtask's database by name, as far as the job's newest checkpoint has them."""
        with self._lock:
            newest = next((one for one in reversed(self._found) if one.owned), None)
        operator = None if newest is None else newest.manifest.operators.get(uid)
        if newest is None or operator is None:
            return {}
        for state in operator.subtasks:
            if state.subtask == subtask and state.native is not None and state.native.database == database:
                return known_files(newest.folder, state.native)
        return {}

    def newest_first(self) -> list[CompletedCheckpoint]:
        """What a restart may start from, best first."""
        with self._lock:
            return self._found[::-1]

    def forget(self, damaged: CompletedCheckpoint) -> None:
        """It cannot be read: nobody starts from it again. The files stay for whoever wants to look."""
        with self._lock:
            self._found = [one for one in self._found if one is not damaged]

    def close(self, retention: Retention, *, finished: bool, failed: bool) -> None:
        """The job ended: remove what its retention does not keep."""
        keep = not finished and (retention is Retention.RETAIN or (retention is Retention.DELETE and failed))
        if not keep:
            with self._lock:
                gone, self._found = self._found, []
            self._remove(gone)
        self.storage.close(keep)
