"""Folders of databases: locked while their process lives, removed with the job, swept when a process was killed."""

from __future__ import annotations

import itertools
import os
import shutil
import uuid
from pathlib import Path
from typing import Final

from flowsql_core.errors import ExecutionError
from flowsql_runtime.network.spill import make_locked, sweep, temporary_folders

_PREFIX: Final = "flowsql-rocksdb-"
#: Databases of one process go to the named folders in turn.
_TURNS: Final = itertools.count()


class LocalFiles:
    """The folder of one database.

    Args:
        named: ``state.backend.rocksdb.localdir``, or ``io.tmp.dirs``, or nothing: the machine's.
    """

    def __init__(self, named: str) -> None:
        folders = temporary_folders(named)
        self._folder = folders[next(_TURNS) % len(folders)]
        self._own: Path | None = None
        self._lock: int | None = None

    def make(self) -> Path:
        """The folder in which the database makes its own.

        Raises:
            ExecutionError: nothing can be written there.
        """
        own = self._folder / f"{_PREFIX}{os.getpid()}-{uuid.uuid4().hex}"
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            sweep(self._folder, _PREFIX)
            self._lock = make_locked(own)
        except OSError as error:
            raise ExecutionError(
                "tmp-dir-unusable",
                f"state cannot be kept in {self._folder}: {error.strerror}",
                hint="name another folder with 'state.backend.rocksdb.localdir' or 'io.tmp.dirs'",
            ) from error
        self._own = own
        return own / "db"

    def close(self) -> None:
        """Remove it."""
        if self._own is not None:
            shutil.rmtree(self._own, ignore_errors=True)
        if self._lock is not None:
            os.close(self._lock)
        self._own = self._lock = None
