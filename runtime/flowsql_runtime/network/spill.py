"""Temporary files: the folders of ``io.tmp.dirs``, taken in turn, and files of batches that memory could not hold.

A file is an Arrow IPC stream (LZ4). What a batch carries beside its columns (kinds, row times, watermark track) stands
in the metadata of its message, so that a batch comes back as it was. Everything lies in one folder per job and
temporary folder, which is removed when the job is over, however it ended. What a killed process left is removed by the
next job that writes such files there.
"""

from __future__ import annotations

import errno
import fcntl
import itertools
import os
import re
import shutil
import tempfile
import threading
from pathlib import Path
from typing import Any, Final

from flowsql_core.batch import ChangelogBatch, PyObjectColumn
from flowsql_core.config import option
from flowsql_core.errors import ExecutionError
from flowsql_runtime.network.batch_bytes import batch_of, metadata_of
from flowsql_runtime.network.channel import Spilled

TMP_DIRS = option(
    "io.tmp.dirs",
    str,
    "",
    "Folders for files that memory cannot hold, used in turn; separated by ',', '|' or ':'. Empty: the machine's.",
)

#: A file that has grown to this size is followed by the next one, in the next folder.
FILE_BYTES: Final = 128 << 20

_PREFIX: Final = "flowsql-spill-"
_LOCK_NAME: Final = "lock"


def temporary_folders(text: str) -> tuple[Path, ...]:
    """The folders of a value of ``io.tmp.dirs``."""
    named = [part.strip() for part in re.split(rf"[,|{os.pathsep}]", text) if part.strip()]
    return tuple(Path(name) for name in named or [tempfile.gettempdir()])


class SpillSpace:
    """Temporary files of one job. Any thread; nothing is made on disk before the first file.

    Args:
        text: value of ``io.tmp.dirs``.
        job_id: part of the folder names.
    """

    def __init__(self, text: str, job_id: str) -> None:
        self.folders = temporary_folders(text)
        self._name = f"{_PREFIX}{os.getpid()}-{job_id}"
        self._lock_files: list[int] = []
        self._numbers = itertools.count()
        self._made: set[Path] = set()
        self._files: set[SpillFile] = set()
        self._closed = False
        self._forgotten_bytes = 0
        self._lock = threading.Lock()

    @property
    def written_bytes(self) -> int:
        """Of all files that ever were."""
        with self._lock:
            return self._forgotten_bytes + sum(file.written_bytes for file in self._files)

    def check(self) -> None:
        """Refuse folders that nothing can be written to, before a job needs them.

        Raises:
            ExecutionError: ``tmp-dir-unusable`` with the folder and the reason.
        """
        for folder in self.folders:
            try:
                folder.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise _unusable(folder, error) from error
            if not os.access(folder, os.W_OK | os.X_OK):
                raise _unusable(folder, PermissionError(errno.EACCES, os.strerror(errno.EACCES)))

    def new_file(self, types: tuple[Any, ...]) -> SpillFile:
        """An empty file in the next folder, for batches of these Arrow types."""
        number = next(self._numbers)
        folder = self.folders[number % len(self.folders)]
        own = folder / self._name
        with self._lock:
            if own not in self._made:
                try:
                    sweep(folder)
                    self._lock_files.append(make_locked(own))
                except OSError as error:
                    raise _unusable(folder, error) from error
                self._made.add(own)
        made = SpillFile(own / f"{number}.arrows", folder, types)
        with self._lock:
            self._files.add(made)
        return made

    def forget(self, file: SpillFile) -> None:
        """Close a file and remove it: everything in it was read, or nobody wants it."""
        with self._lock:
            self._files.discard(file)
            self._forgotten_bytes += file.written_bytes
        file.delete()

    def close(self) -> None:
        """Remove everything. Nobody may write or read any more."""
        with self._lock:
            files, self._files = self._files, set()
            self._forgotten_bytes += sum(file.written_bytes for file in files)
            made, self._made = self._made, set()
            locks, self._lock_files = self._lock_files, []
        for file in files:
            file.delete()
        for folder in made:
            shutil.rmtree(folder, ignore_errors=True)
        for lock in locks:
            os.close(lock)


def sweep(folder: Path, prefix: str = _PREFIX) -> None:
    """Remove what processes that ended without warning (SIGKILL, power) left in a temporary folder.

    A job holds the lock of a file in its folder as long as its process lives, in whatever container that is: whoever
    gets the lock finds nobody alive. Never raises; what cannot be removed stays.
    """
    for left in folder.glob(f"{prefix}*"):
        try:
            lock = os.open(left / _LOCK_NAME, os.O_RDWR | os.O_NOFOLLOW)
        except OSError:
            # Another user's, or removed meanwhile.
            continue
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            continue
        else:
            shutil.rmtree(left, ignore_errors=True)
        finally:
            os.close(lock)


def make_locked(own: Path) -> int:
    """Make a job's folder; the file descriptor whose lock says that the job lives.

    The folder gets its name only when the lock is held, so that nobody sweeps it in between.
    """
    own.parent.mkdir(parents=True, exist_ok=True)
    hidden = Path(tempfile.mkdtemp(prefix=f".{_PREFIX}", dir=own.parent))
    lock = os.open(hidden / _LOCK_NAME, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        hidden.rename(own)
    except OSError:
        os.close(lock)
        shutil.rmtree(hidden, ignore_errors=True)
        raise
    return lock


class SpillFile(Spilled):
    """Batches of one layout: written by one thread, then read by one thread at a time, in order or one at its place."""

    __slots__ = (
        "_batches",
        "_folder",
        "_places",
        "_reader",
        "_sink",
        "_source",
        "_writer",
        "path",
        "types",
        "unread",
        "written_bytes",
    )

    def __init__(self, path: Path, folder: Path, types: tuple[Any, ...]) -> None:
        self.path = path
        self.types = types
        self._batches = 0
        self.unread = 0
        self.written_bytes = 0
        self._folder = folder
        self._places: list[int] = []
        self._sink: Any = None
        self._writer: Any = None
        self._source: Any = None
        self._reader: Any = None

    def append(self, batch: ChangelogBatch) -> None:
        """Write one batch.

        Raises:
            ExecutionError: ``spill-failed``; a full disk says so.
        """
        import pyarrow as pa

        names = [str(index) for index in range(len(batch.columns))]
        try:
            if self._writer is None:
                self._sink = pa.OSFile(str(self.path), "wb")
                schema = pa.schema(list(zip(names, self.types, strict=True)))
                options = pa.ipc.IpcWriteOptions(compression="lz4")
                self._writer = pa.ipc.new_stream(self._sink, schema, options=options)
            self._places.append(self._sink.tell())
            self._writer.write_batch(batch.to_record_batch(names), custom_metadata=metadata_of(batch))
            self.written_bytes = self._sink.tell()
        except OSError as error:
            raise self._failed(error) from error
        self._batches += 1
        self.unread += 1

    def seal(self) -> None:
        """No more batches."""
        try:
            if self._writer is not None:
                self._writer.close()
                self._sink.close()
        except OSError as error:
            raise self._failed(error) from error
        finally:
            self._writer = self._sink = None

    def next(self) -> ChangelogBatch:
        """The next batch in the order of writing; the file must be sealed."""
        import pyarrow as pa

        try:
            if self._reader is None:
                self._source = pa.OSFile(str(self.path), "rb")
                self._reader = pa.ipc.open_stream(self._source)
            data, metadata = self._reader.read_next_batch_with_custom_metadata()
        except OSError as error:
            raise ExecutionError(
                "spill-failed", f"Cannot read the temporary file '{self.path}': {_reason(error)}."
            ) from error
        self.unread -= 1
        return batch_of(data.columns, data.num_rows, metadata)

    def at(self, number: int) -> ChangelogBatch:
        """A batch by its place; the file must be sealed, and is not read in order meanwhile."""
        import pyarrow as pa

        try:
            if self._source is None:
                self._source = pa.OSFile(str(self.path), "rb")
            self._source.seek(self._places[number])
            message = pa.ipc.read_message(self._source)
            if message.type == "schema":
                message = pa.ipc.read_message(self._source)
            schema = pa.schema([(str(index), type_) for index, type_ in enumerate(self.types)])
            data = pa.ipc.read_record_batch(message, schema)
        except OSError as error:
            raise ExecutionError(
                "spill-failed", f"Cannot read the temporary file '{self.path}': {_reason(error)}."
            ) from error
        return ChangelogBatch(tuple(data.columns), data.num_rows)

    def rewind(self) -> None:
        """The next batch is the first one again; the file must be sealed."""
        for part in (self._reader, self._source):
            if part is not None:
                part.close()
        self._reader = self._source = None
        self.unread = self._batches

    def delete(self) -> None:
        """Close and remove; never raises, also after a failed write."""
        for part in (self._reader, self._source, self._writer, self._sink):
            if part is not None:
                try:
                    part.close()
                except OSError:
                    # A writer on a full disk cannot write its last bytes either; the file goes anyway.
                    continue
        self._reader = self._source = self._writer = self._sink = None
        self.path.unlink(missing_ok=True)

    def _failed(self, error: OSError) -> ExecutionError:
        what = "the disk is full" if error.errno in (errno.ENOSPC, errno.EDQUOT) else _reason(error)
        return ExecutionError(
            "spill-failed",
            f"Rows that memory cannot hold could not be written to '{self._folder}': {what}.",
            hint=f"name folders with more room in '{TMP_DIRS.key}', or raise 'flowsql.memory'",
        )


def spillable(batch: ChangelogBatch) -> bool:
    """Whether a batch can stand in a file: it has columns, and no Python objects in them."""
    return bool(batch.columns) and not any(isinstance(column, PyObjectColumn) for column in batch.columns)


def _reason(error: OSError) -> str:
    return os.strerror(error.errno) if error.errno else str(error)


def _unusable(folder: Path, error: OSError) -> ExecutionError:
    return ExecutionError(
        "tmp-dir-unusable",
        f"Temporary files cannot be written to '{folder}': {_reason(error)}.",
        hint=f"name another folder in '{TMP_DIRS.key}'",
    )
