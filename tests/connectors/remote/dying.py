"""A job into an object store that dies at its n-th request: at the one that begins, or behind it.

The job is that of ``file_crash_job``: attempts go on from the last whole checkpoint with other numbers of writers. As a
program it dies by SIGKILL, against a real store that the environment names: ``dying.py FOLDER URI FORMAT NUMBER AT``.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import flowsql_connectors.filesystem.stores.objects as objects
from flowsql_connectors.file_systems.remote import Place
from tests.connectors.file_crash_job import BATCHES, Checkpoint, attempt, rows_before, table_in
from tests.connectors.tables import scan

_COUNTED = ("open_output_stream", "copy_file", "delete_file")


class Dies:
    """Counts requests that change the store; the ``at``-th moment calls ``die``. Each request has two moments."""

    def __init__(self, at: int, die: Callable[[], None]) -> None:
        self.moments = 0
        self._at = at
        self._die = die
        self._lock = threading.Lock()

    def moment(self) -> None:
        """Before or behind a request."""
        with self._lock:
            self.moments += 1
            now = self.moments - 1
        if self._at >= 0 and now >= self._at:
            self._die()

    def around(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*arguments: Any) -> Any:
            self.moment()
            made = call(*arguments)
            self.moment()
            return made

        return counted


class _Files:
    """A file system whose changes are counted."""

    def __init__(self, files: Any, dies: Dies) -> None:
        self._files = files
        self._dies = dies

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._files, name)
        if name not in _COUNTED:
            return found
        if name != "open_output_stream":
            return self._dies.around(found)
        opened = self._dies.around(found)
        return lambda path: _Stream(opened(path), self._dies)


class _Stream:
    def __init__(self, stream: Any, dies: Dies) -> None:
        self.write = stream.write
        self.close = dies.around(stream.close)


def dying(dies: Dies) -> None:
    """From now on part files are written through counted requests."""
    whole = objects.place_of

    def counted(uri: str, settings: Any) -> Place:
        place = whole(uri, settings)
        return replace(place, files=_Files(place.files, dies))

    objects.place_of = counted


def look(folder: Path, root: str, format_: str, ended: bool, names: list[str]) -> None:
    """What a reader sees: rows of whole checkpoints, each once; all of them and nothing else at the end."""
    if not any("part-" in name and not name.rpartition("/")[2].startswith(".") for name in names):
        assert not ended
        return
    rows = [tuple(row) for row in scan(table_in(root, format_, False))]
    assert len(rows) == len(set(rows)), "doubled"
    assert set(rows) <= set(rows_before(Checkpoint(folder).batch)), "of an unfinished checkpoint"
    if ended:
        assert set(rows) == set(rows_before(BATCHES)), "rows are lost"
        # A job that died before its first checkpoint is another one than the job that starts anew.
        assert not [name for name in names if name.endswith(f".inprogress.{Checkpoint(folder).lineage}")], "left behind"
        assert len([name for name in names if name.endswith("_SUCCESS")]) == BATCHES // 3


def main() -> None:
    folder, root, format_, number, at = sys.argv[1:]
    dies = Dies(int(at), lambda: os.kill(os.getpid(), signal.SIGKILL))
    dying(dies)
    attempt(Path(folder), table_in(root, format_, False), int(number), lazy=True)
    print(dies.moments, flush=True)
    os._exit(0)


if __name__ == "__main__":
    main()
