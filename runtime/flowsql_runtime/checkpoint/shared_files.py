"""Files that several checkpoints of a job have: who refers to each, how new ones get there, when they go.

A file is named when somebody begins to write it and belongs to checkpoints from then on, completed or under way. It
is deleted when the last of them is gone. What a job did not write it may refer to only if it claimed the checkpoint.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final, TypeAlias

import xxhash

from flowsql_core.errors import ExecutionError
from flowsql_runtime.checkpoint.manifest import Manifest, NativeState, SharedFile
from flowsql_runtime.checkpoint.names import jobs_folder
from flowsql_runtime.checkpoint.storage import SHARED, SnapshotFolder, open_file
from flowsql_runtime.state.native import KnownFile, NativeFiles

_PIECE: Final = 1 << 20

#: (operator uid, subtask, identity of a database) -> files by name that the newest completed checkpoint has of it.
Known: TypeAlias = Callable[[str, int, str], Mapping[str, KnownFile]]


def place_of(folder: SnapshotFolder, file: str) -> tuple[SnapshotFolder, str]:
    """Folder and name of a shared file, as the snapshot in ``folder`` refers to it."""
    shared, _, name = file.partition("/")
    return (folder.beside(SHARED), name) if shared == SHARED else open_file(file)


def known_files(folder: SnapshotFolder, native: NativeState) -> dict[str, KnownFile]:
    """The shared files of a subtask's state by name."""
    found = {}
    for one in native.shared:
        place, name = place_of(folder, one.file)
        found[one.name] = KnownFile(place.location(name), one.length, one.digest)
    return found


class SharedFiles:
    """The shared files of one job over all its attempts. Any thread.

    Args:
        folder: where the job puts new ones.
    """

    def __init__(self, folder: SnapshotFolder) -> None:
        self.folder = folder
        self._places: dict[str, tuple[SnapshotFolder, str]] = {}
        self._users: dict[str, set[int]] = {}
        self._lock = threading.Lock()

    def hold(self, checkpoint_id: int, folder: SnapshotFolder, manifest: Manifest) -> None:
        """A complete checkpoint belongs to the job, with all files that it refers to."""
        for native in manifest.natives():
            for one in native.shared:
                place, name = place_of(folder, one.file)
                with self._lock:
                    self._use(place, name, checkpoint_id)

    def names(self) -> set[str]:
        """Of the files in the job's own folder that belong to a checkpoint."""
        with self._lock:
            return {name for place, name in self._places.values() if place.path == self.folder.path}

    def new(self, checkpoint_id: int) -> str:
        """Name of a file that a checkpoint is about to write."""
        name = uuid.uuid4().hex
        with self._lock:
            self._use(self.folder, name, checkpoint_id)
        return name

    def _use(self, place: SnapshotFolder, name: str, checkpoint_id: int) -> None:
        location = place.location(name)
        self._places.setdefault(location, (place, name))
        self._users.setdefault(location, set()).add(checkpoint_id)

    def reuse(self, checkpoint_id: int, location: str) -> str | None:
        """How a checkpoint refers to a file that is there; None if it is not the job's, or not any more."""
        with self._lock:
            users = self._users.get(location)
            if users is None:
                return None
            place, name = self._places[location]
            if place.path == self.folder.path:
                users.add(checkpoint_id)
                return f"{SHARED}/{name}"
            # Of a snapshot that was claimed: a checkpoint refers to nothing outside of the folder of its jobs.
            jobs = jobs_folder(place.path)
            if jobs is None or jobs != jobs_folder(self.folder.path):
                return None
            users.add(checkpoint_id)
            return location

    def release(self, checkpoint_id: int) -> None:
        """A checkpoint is gone, or never came to be: delete what it alone referred to."""
        gone = []
        with self._lock:
            for location, users in list(self._users.items()):
                users.discard(checkpoint_id)
                if not users:
                    del self._users[location]
                    gone.append(self._places.pop(location))
        for place, name in gone:
            place.delete(name)


class SharedUpload:
    """How the writers of one checkpoint put files of backends among the shared ones.

    Args:
        known: of the newest completed checkpoint.
        given_up: whether nobody wants the checkpoint any more.
    """

    def __init__(
        self, shared: SharedFiles, checkpoint_id: int, known: Known, given_up: Callable[[], bool] = lambda: False
    ) -> None:
        self._shared = shared
        self._checkpoint_id = checkpoint_id
        self._known = known
        self._given_up = given_up

    def put(self, uid: str, subtask: int, native: NativeFiles) -> tuple[tuple[SharedFile, ...], int]:
        """Write the files that are not there yet; all of them, and how many bytes were written.

        Raises:
            ConnectorError: the storage refuses.
        """
        known = {**native.restored, **self._known(uid, subtask, native.database)}
        found: dict[str, SharedFile] = {}
        missing: list[tuple[str, Path]] = []
        for name, path in sorted(native.shared.items()):
            there = known.get(name)
            if there is not None and there.length == path.stat().st_size:
                file = self._shared.reuse(self._checkpoint_id, there.location)
                if file is not None:
                    found[name] = SharedFile(name, file, there.length, there.digest)
                    continue
            missing.append((name, path))
        if missing:
            with ThreadPoolExecutor(min(native.threads, len(missing)), "state-upload") as threads:
                for one in threads.map(lambda item: self._write(*item), missing):
                    found[one.name] = one
            self._shared.folder.settle()
        return tuple(found[name] for name in sorted(found)), sum(found[name].length for name, _ in missing)

    def _write(self, name: str, path: Path) -> SharedFile:
        if self._given_up():
            raise ExecutionError("checkpoint-given-up", "nobody waits for the checkpoint any more")
        file = self._shared.new(self._checkpoint_id)
        digest = xxhash.xxh3_128()
        length = 0

        def pieces() -> Iterator[bytes]:
            nonlocal length
            with open(path, "rb", buffering=0) as source:
                while piece := source.read(_PIECE):
                    digest.update(piece)
                    length += len(piece)
                    yield piece

        self._shared.folder.write(file, pieces())
        return SharedFile(name, f"{SHARED}/{file}", length, digest.hexdigest())
