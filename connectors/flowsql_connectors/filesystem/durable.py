"""Reaching the disk: what a checkpoint counts on survives a power failure, not only the end of the process."""

from __future__ import annotations

import errno
import os
from collections.abc import Collection
from typing import Final

from flowsql_core.errors import ConnectorError

#: From so many paths on they are synced side by side: the disk takes most of the time.
_SIDE_BY_SIDE: Final = 16
_THREADS: Final = 8


def sync_paths(paths: Collection[str]) -> None:
    """Write files and directories through to the disk.

    Raises:
        ConnectorError: the disk refused.
    """
    if len(paths) < _SIDE_BY_SIDE:
        for path in paths:
            _sync(path)
        return
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(_THREADS, thread_name_prefix="file-sync") as pool:
        for _ in pool.map(_sync, paths):
            pass


def _sync(path: str) -> None:
    try:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        # Some file systems know no sync of directories.
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise cannot_write(path, error) from error


def levels(root: str, directory: str) -> list[str]:
    """The directories that a new directory's entry depends on: itself, those up to the root, and the root's parent."""
    found = [directory]
    while directory not in (root, os.path.dirname(directory)):
        directory = os.path.dirname(directory)
        found.append(directory)
    return [*found, os.path.dirname(root) or "."]


def beside(path: str) -> str:
    """Where :func:`write_atomically` writes first; a crash may leave it."""
    return f"{path}.new"


def write_atomically(path: str, data: bytes) -> None:
    """A file that is there with all its bytes, durably, or not at all."""
    new = beside(path)
    try:
        with open(new, "wb") as file:
            file.write(data)
        _sync(new)
        os.replace(new, path)
    except OSError as error:
        raise cannot_write(path, error) from error
    _sync(os.path.dirname(path))


def remove(path: str) -> None:
    """Remove a file if it is there."""
    try:
        os.remove(path)
    except FileNotFoundError:
        return
    except OSError as error:
        raise ConnectorError("cannot-write", f"File {path} cannot be removed: {error.strerror}") from error


def cannot_write(path: str, error: OSError) -> ConnectorError:
    """What a failed write says."""
    return ConnectorError("cannot-write", f"File {path} cannot be written: {error.strerror}")
