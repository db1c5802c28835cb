"""Where snapshots are kept: folders in memory, on local disks, or on anything that Arrow or fsspec can write to.

A folder holds files that are written once and whole, and becomes a snapshot when its ``_metadata`` appears, which is
written last and by one rename. A crash at any byte before leaves a folder without ``_metadata``: no snapshot.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import threading
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any, Final, Protocol

from flowsql_connectors.file_systems.choice import open_file_system
from flowsql_connectors.file_systems.private import make_private, open_private
from flowsql_core.errors import ConnectorError

METADATA: Final = "_metadata"
#: Prefix of a checkpoint's folder below the job's.
CHECKPOINT_PREFIX: Final = "chk-"
#: The folder beside those of checkpoints whose files several of them may have.
SHARED: Final = "shared"

Chunk = Any  # bytes, memoryview, pyarrow.Buffer: what supports the buffer protocol


class SnapshotFolder(Protocol):
    """One snapshot's files. Any thread; different files at the same time."""

    @property
    def path(self) -> str:
        """As a program names it: a path, a URI, or ``memory:...``."""
        ...

    def write(self, name: str, chunks: Iterable[Chunk]) -> None:
        """Write a file; when this returns it survives the process (and, on local disks, the machine)."""
        ...

    def publish(self, metadata: bytes) -> None:
        """Write ``_metadata``: readers see all of it or nothing."""
        ...

    def read(self, name: str) -> memoryview:
        """A whole file; ConnectorError ``snapshot-file-missing`` where there is none."""
        ...

    def remove(self) -> None:
        """Remove the folder with everything in it; never raises."""
        ...

    # -- shared files

    def beside(self, name: str) -> SnapshotFolder:
        """Another folder of the same storage."""
        ...

    def location(self, name: str) -> str:
        """A file as :func:`open_file` takes it."""
        ...

    def fetch(self, name: str, target: Path) -> bool:
        """Put a file at a local path that is free; whether its bytes were copied: a link is the file itself.

        Raises:
            ConnectorError: ``snapshot-file-missing`` where there is none.
        """
        ...

    def settle(self) -> None:
        """What was written survives the machine under its name."""
        ...

    def delete(self, name: str) -> None:
        """Delete one file, if it is there; never raises."""
        ...


class SnapshotStorage(Protocol):
    """Where a job puts its checkpoints."""

    def folder(self, name: str) -> SnapshotFolder:
        """The folder of one snapshot, made when something is written."""
        ...

    def snapshots(self) -> list[str]:
        """Names of the folders that hold a snapshot, the newest checkpoint last."""
        ...

    def sweep(self, shared: Collection[str]) -> None:
        """Remove what a process left behind that died: folders of checkpoints that never became snapshots, and all
        shared files but those named. Nobody writes meanwhile; never raises."""
        ...

    def close(self, keeps: bool) -> None:
        """The job is over. Unless it ``keeps`` snapshots nothing of it stays."""
        ...


def _missing(path: str) -> ConnectorError:
    return ConnectorError("snapshot-file-missing", f"The snapshot's file '{path}' is missing.")


def _failed(what: str, path: str, error: Exception) -> ConnectorError:
    reason = os.strerror(error.errno) if isinstance(error, OSError) and error.errno else str(error)
    made = ConnectorError("snapshot-storage", f"{what} '{path}': {reason}.", retryable=True)
    made.__cause__ = error
    return made


# -- memory


class MemoryFolder:
    """Files as bytes of this process."""

    def __init__(self, owner: MemoryStorage, name: str) -> None:
        self._owner = owner
        self._name = name
        self._files: dict[str, bytes] = {}

    @property
    def path(self) -> str:
        """A name for messages."""
        return f"memory:{self._name}"

    def write(self, name: str, chunks: Iterable[Chunk]) -> None:
        """Keep a copy."""
        self._files[name] = b"".join(bytes(memoryview(chunk)) for chunk in chunks)

    def publish(self, metadata: bytes) -> None:
        """Keep it and be counted."""
        self._files[METADATA] = metadata
        self._owner.published(self._name)

    def read(self, name: str) -> memoryview:
        """A file."""
        if name not in self._files:
            raise _missing(f"{self.path}/{name}")
        return memoryview(self._files[name])

    def remove(self) -> None:
        """Forget everything."""
        self._files.clear()
        self._owner.forget(self._name)

    def beside(self, name: str) -> SnapshotFolder:
        """Another folder."""
        return self._owner.folder(name)

    def location(self, name: str) -> str:
        """A name for messages: other processes cannot reach it."""
        return f"{self.path}/{name}"

    def fetch(self, name: str, target: Path) -> bool:
        """Write the file to the disk."""
        _put(target, self.read(name))
        return True

    def settle(self) -> None:
        """Memory goes with the process."""

    def delete(self, name: str) -> None:
        """Forget a file."""
        self._files.pop(name, None)


class MemoryStorage:
    """Checkpoints of one job in this process: they end with it."""

    def __init__(self) -> None:
        self._folders: dict[str, MemoryFolder] = {}
        self._published: list[str] = []
        self._lock = threading.Lock()

    def folder(self, name: str) -> SnapshotFolder:
        """The folder under a name."""
        with self._lock:
            return self._folders.setdefault(name, MemoryFolder(self, name))

    def snapshots(self) -> list[str]:
        """In the order of completion."""
        with self._lock:
            return list(self._published)

    def published(self, name: str) -> None:
        """A folder became a snapshot."""
        with self._lock:
            self._published.append(name)

    def forget(self, name: str) -> None:
        """A folder was removed."""
        with self._lock:
            self._folders.pop(name, None)
            if name in self._published:
                self._published.remove(name)

    def sweep(self, shared: Collection[str]) -> None:
        """The memory goes with its process."""

    def close(self, keeps: bool) -> None:
        """The memory goes with the job."""


# -- local disks


class LocalFolder:
    """A folder on a local disk. Files and their names are forced to the disk before ``_metadata`` says that they count.

    ``chunks`` go to the file one by one, so that a large state is never in memory twice.
    """

    def __init__(self, path: str) -> None:
        self._path = Path(path)

    @property
    def path(self) -> str:
        """The path."""
        return str(self._path)

    def write(self, name: str, chunks: Iterable[Chunk]) -> None:
        """Write and force to the disk."""
        target = self._path / name
        try:
            make_private(self._path)
            # State is the user's data: nobody else reads it. A link in the file's place is not followed.
            with open(open_private(target), "wb", buffering=0) as file:
                for chunk in chunks:
                    rest = memoryview(chunk).cast("B")
                    while rest.nbytes:
                        rest = rest[file.write(rest) :]
                os.fsync(file.fileno())
        except OSError as error:
            with contextlib.suppress(OSError):
                target.unlink(missing_ok=True)
            raise _failed("Cannot write the snapshot's file", str(target), error) from error

    def publish(self, metadata: bytes) -> None:
        """Under another name first, then by one rename."""
        hidden = f".{METADATA}.inprogress"
        self.write(hidden, [metadata])
        try:
            os.replace(self._path / hidden, self._path / METADATA)
            _sync_folder(self._path)
            _sync_folder(self._path.parent)
        except OSError as error:
            raise _failed("Cannot write the snapshot's file", str(self._path / METADATA), error) from error

    def read(self, name: str) -> memoryview:
        """A mapping of the file: pages are read when they are looked at."""
        import mmap

        target = self._path / name
        try:
            self._refuse_link()
            with open(os.open(target, os.O_RDONLY | os.O_NOFOLLOW), "rb") as file:
                if os.fstat(file.fileno()).st_size == 0:
                    return memoryview(b"")
                return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        except FileNotFoundError as error:
            raise _missing(str(target)) from error
        except OSError as error:
            raise _failed("Cannot read the snapshot's file", str(target), error) from error

    def remove(self) -> None:
        """``_metadata`` first: what is half removed is no snapshot."""
        with contextlib.suppress(OSError):
            (self._path / METADATA).unlink(missing_ok=True)
        shutil.rmtree(self._path, ignore_errors=True)

    def beside(self, name: str) -> SnapshotFolder:
        """A folder with the same parent."""
        return LocalFolder(str(self._path.parent / name))

    def location(self, name: str) -> str:
        """The path."""
        return str(self._path / name)

    def fetch(self, name: str, target: Path) -> bool:
        """A hard link, where the file system allows it: files of snapshots never change."""
        source = self._path / name
        try:
            self._refuse_link()
            if source.is_symlink():
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
            os.link(source, target, follow_symlinks=False)
            return False
        except FileNotFoundError as error:
            raise _missing(str(source)) from error
        except OSError:
            # Another file system, or one without hard links.
            _put(target, self.read(name))
            return True

    def settle(self) -> None:
        """Force the names to the disk."""
        try:
            _sync_folder(self._path)
        except OSError as error:
            raise _failed("Cannot write to the snapshot's folder", str(self._path), error) from error

    def delete(self, name: str) -> None:
        """Unlink it."""
        with contextlib.suppress(OSError):
            self._refuse_link()
            (self._path / name).unlink(missing_ok=True)

    def _refuse_link(self) -> None:
        """Shared files are in the folder beside the snapshot's, not in one that it is linked to."""
        if self._path.name == SHARED and self._path.is_symlink():
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))


def _put(target: Path, data: memoryview) -> None:
    try:
        target.write_bytes(data)
    except OSError as error:
        raise _failed("Cannot write the file", str(target), error) from error


def _sync_folder(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


class LocalStorage:
    """Folders below one on a local disk; ``own``: it is the job's alone."""

    def __init__(self, root: str, own: bool = False) -> None:
        self._root = Path(root)
        self._own = own

    def folder(self, name: str) -> SnapshotFolder:
        """``root/name``."""
        return LocalFolder(str(self._root / name))

    def snapshots(self) -> list[str]:
        """Folders with ``_metadata``."""
        try:
            found = [entry.name for entry in self._root.iterdir() if (entry / METADATA).is_file()]
        except OSError:
            return []
        return sorted(found, key=_newest_last)

    def sweep(self, shared: Collection[str]) -> None:
        """Folders ``chk-<n>`` without ``_metadata``, and files of ``shared``."""
        with contextlib.suppress(OSError):
            for entry in self._root.iterdir():
                if entry.name.startswith(CHECKPOINT_PREFIX) and not (entry / METADATA).is_file():
                    shutil.rmtree(entry, ignore_errors=True)
        with contextlib.suppress(OSError):
            for entry in (self._root / SHARED).iterdir():
                if entry.name not in shared:
                    entry.unlink(missing_ok=True)

    def close(self, keeps: bool) -> None:
        """Remove the job's own root if nothing was retained."""
        if self._own and not keeps:
            shutil.rmtree(self._root, ignore_errors=True)


# -- everything else


class RemoteFolder:
    """A folder behind ``pyarrow.fs``. Object stores show an object once it was written whole.

    ``query``: what the URI has from its question mark on.
    """

    def __init__(self, files: Any, base: str, shown: str, query: str = "") -> None:
        self._files = files
        self._base = base
        self._shown = shown
        self._query = query

    @property
    def path(self) -> str:
        """The URI."""
        return self._shown

    def write(self, name: str, chunks: Iterable[Chunk]) -> None:
        """Write through the file system."""
        try:
            self._files.create_dir(self._base, recursive=True)
            with self._files.open_output_stream(f"{self._base}/{name}") as stream:
                for chunk in chunks:
                    stream.write(chunk)
        except Exception as error:  # file systems of users raise what they like
            raise _failed("Cannot write the snapshot's file", f"{self._shown}/{name}", error) from error

    def publish(self, metadata: bytes) -> None:
        """The last object."""
        self.write(METADATA, [metadata])

    def read(self, name: str) -> memoryview:
        """The whole object."""
        try:
            with self._files.open_input_stream(f"{self._base}/{name}") as stream:
                return memoryview(stream.read())
        except FileNotFoundError as error:
            raise _missing(f"{self._shown}/{name}") from error
        except Exception as error:  # see write
            raise _failed("Cannot read the snapshot's file", f"{self._shown}/{name}", error) from error

    def remove(self) -> None:
        """Everything below the folder."""
        with contextlib.suppress(Exception):
            self._files.delete_file(f"{self._base}/{METADATA}")
        with contextlib.suppress(Exception):
            self._files.delete_dir(self._base)

    def beside(self, name: str) -> SnapshotFolder:
        """A folder with the same parent."""
        base, shown = self._base.rpartition("/")[0], self._shown.rpartition("/")[0]
        return RemoteFolder(self._files, f"{base}/{name}", f"{shown}/{name}", self._query)

    def location(self, name: str) -> str:
        """The URI."""
        return f"{self._shown}/{name}{self._query}"

    def fetch(self, name: str, target: Path) -> bool:
        """Download the object."""
        _put(target, self.read(name))
        return True

    def settle(self) -> None:
        """An object is there once it was written."""

    def delete(self, name: str) -> None:
        """Delete the object."""
        with contextlib.suppress(Exception):
            self._files.delete_file(f"{self._base}/{name}")


class RemoteStorage:
    """Folders below a URI; ``query`` as of :class:`RemoteFolder`."""

    def __init__(self, files: Any, base: str, shown: str, query: str = "") -> None:
        self._files = files
        self._base = base.rstrip("/")
        self._shown = shown.rstrip("/")
        self._query = query

    def folder(self, name: str) -> SnapshotFolder:
        """``root/name``."""
        return RemoteFolder(self._files, f"{self._base}/{name}", f"{self._shown}/{name}", self._query)

    def snapshots(self) -> list[str]:
        """Folders with ``_metadata``."""
        from pyarrow import fs

        try:
            found = self._files.get_file_info(fs.FileSelector(self._base, recursive=True, allow_not_found=True))
        except Exception as error:  # see RemoteFolder.write
            raise _failed("Cannot list the snapshots in", self._shown, error) from error
        prefix = len(self._base.strip("/")) + 1
        names = [info.path.strip("/")[prefix:].rpartition("/") for info in found]
        return sorted((folder for folder, _, name in names if name == METADATA and "/" not in folder), key=_newest_last)

    def sweep(self, shared: Collection[str]) -> None:
        """Objects of folders ``chk-<n>`` without ``_metadata``, and of ``shared``."""
        from pyarrow import fs

        prefix = len(self._base.strip("/")) + 1
        with contextlib.suppress(Exception):  # see RemoteFolder.write
            found = self._files.get_file_info(fs.FileSelector(self._base, recursive=True, allow_not_found=True))
            files = [info.path for info in found if info.type is fs.FileType.File]
            places = [(path, *path.strip("/")[prefix:].rpartition("/")[::2]) for path in files]
            whole = {folder for _, folder, name in places if name == METADATA}
            for path, folder, name in places:
                half = folder.startswith(CHECKPOINT_PREFIX) and folder not in whole
                if half or (folder == SHARED and name not in shared):
                    self._files.delete_file(path)

    def close(self, keeps: bool) -> None:
        """Object stores have no empty folders."""


def _newest_last(name: str) -> tuple[int, str]:
    number = name.removeprefix(CHECKPOINT_PREFIX)
    return (int(number), name) if name.startswith(CHECKPOINT_PREFIX) and number.isdigit() else (-1, name)


def open_storage(location: str, own: bool = False, settings: Mapping[str, str] | None = None) -> SnapshotStorage:
    """The storage below a path or URI.

    Args:
        location: a path or URI.
        own: no other job's files are there.
        settings: a job's configuration, for the ``s3.*`` in it.

    Raises:
        ConnectorError: nothing can open the URI.
    """
    if location.startswith("file:"):
        location = "/" + location.removeprefix("file:").lstrip("/")
    if "://" not in location:
        return LocalStorage(os.path.abspath(os.path.expanduser(location)), own)
    files, base = open_file_system(location, settings)
    shown, mark, query = location.partition("?")
    return RemoteStorage(files, base, shown, mark + query)


def open_folder(location: str, settings: Mapping[str, str] | None = None) -> SnapshotFolder:
    """The folder at a path or URI; ``settings`` as of :func:`open_storage`."""
    if location.startswith("file:"):
        location = "/" + location.removeprefix("file:").lstrip("/")
    if "://" not in location:
        return LocalFolder(os.path.abspath(os.path.expanduser(location)))
    path, mark, query = location.partition("?")
    root, _, name = path.rstrip("/").rpartition("/")
    return open_storage(root + mark + query, settings=settings).folder(name)


def open_file(location: str) -> tuple[SnapshotFolder, str]:
    """The folder and the name of a file, given its path or URI."""
    path, mark, query = location.partition("?") if "://" in location else (location, "", "")
    folder, _, name = path.rpartition("/")
    return open_folder(folder + mark + query), name


def below(location: str, name: str) -> str:
    """The path or URI of something below another one; what stands behind a ``?`` stays there."""
    path, mark, query = location.partition("?") if "://" in location else (location, "", "")
    return f"{path.rstrip('/')}/{name}{mark}{query}"
