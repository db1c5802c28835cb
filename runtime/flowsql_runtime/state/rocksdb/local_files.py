"""Folders of databases: locked while their process lives, removed with the job, swept when a process was killed."""

from __future__ import annotations

import itertools
import os
import shutil
import threading
import uuid
from pathlib import Path
from typing import Final

from flowsql_core.errors import ExecutionError
from flowsql_runtime.network.spill import make_locked, sweep, temporary_folders

_PREFIX: Final = "flowsql-rocksdb-"
_DATABASE: Final = "db"
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
        self._numbers = itertools.count(1)
        #: Folders beside the database that somebody reads.
        self._lent: set[Path] = set()
        self._closed = False
        self._changing = threading.Lock()

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
        return own / _DATABASE

    def lend(self) -> Path:
        """A free path beside the database, of the same file system. Whoever has it calls :meth:`give_back`."""
        assert self._own is not None
        path = self._own / f"snapshot-{next(self._numbers)}"
        with self._changing:
            self._lent.add(path)
        return path

    def give_back(self, path: Path) -> None:
        """Remove what was lent. Any thread, any number of times."""
        shutil.rmtree(path, ignore_errors=True)
        with self._changing:
            self._lent.discard(path)
            last = self._closed and not self._lent
        if last:
            self._remove()

    def close(self) -> None:
        """Remove everything; what is lent stays until it is given back."""
        if self._own is None:
            return
        shutil.rmtree(self._own / _DATABASE, ignore_errors=True)
        with self._changing:
            self._closed = True
            last = not self._lent
        if last:
            self._remove()

    def _remove(self) -> None:
        with self._changing:
            own, self._own = self._own, None
            lock, self._lock = self._lock, None
        if own is not None:
            shutil.rmtree(own, ignore_errors=True)
        if lock is not None:
            os.close(lock)
