"""Files and folders that belong to the user alone: state, rows that could not be read."""

from __future__ import annotations

import os
from pathlib import Path


def make_private(folder: Path) -> None:
    """Make a folder, and those above it that are missing, for this user alone; folders that are there stay as they are.

    Raises:
        OSError: one cannot be made.
    """
    missing = []
    for one in (folder, *folder.parents):
        if one.exists():
            break
        missing.append(one)
    for one in reversed(missing):
        one.mkdir(0o700, exist_ok=True)
    if not folder.is_dir():
        raise NotADirectoryError(20, os.strerror(20), str(folder))


def open_private(path: Path) -> int:
    """Open a file that only this user reads for writing, empty, and return its descriptor.

    Raises:
        OSError: it cannot be opened, or is a link.
    """
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
