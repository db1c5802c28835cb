"""State in files of a backend's own: what a snapshot hands to whoever writes it, and what a restore finds.

Keyed state of a snapshot is tables that every backend reads (``KeyedSnapshot.tables``). A backend may leave a part of
it in immutable files instead, which the next snapshots have as well and need not write again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

from flowsql_core.record import record


@record
class KnownFile:
    """A file that a checkpoint has: where, how long, and its XXH3 digest of 128 bits in hexadecimal digits."""

    location: str
    length: int
    digest: str


@record
class NativeFiles:
    """Files of one backend at one moment; they stay until the snapshot is released.

    ``backend``: value of ``state.backend.type``. ``database``: identity of what wrote ``shared``, where a name means
    one immutable file. ``private``: what else is needed, by name. ``restored``: shared files that the backend itself
    was restored with. ``groups``: its key groups. ``threads``: how many files may be written at a time.
    """

    backend: str
    database: str
    groups: range
    shared: Mapping[str, Path]
    private: Mapping[str, bytes]
    restored: Mapping[str, KnownFile]
    threads: int


class NativeSource(Protocol):
    """The state of one old subtask that a snapshot has in files. Any thread."""

    @property
    def backend(self) -> str:
        """Value of ``state.backend.type``."""
        ...

    @property
    def groups(self) -> range:
        """Key groups of the subtask."""
        ...

    @property
    def known(self) -> Mapping[str, KnownFile]:
        """The shared files by name."""
        ...

    def private(self, name: str) -> memoryview:
        """A file of this snapshot alone."""
        ...

    @property
    def private_names(self) -> tuple[str, ...]:
        """Names of those."""
        ...

    def fetch(self, folder: Path, threads: int) -> None:
        """Put the shared files into a local folder, each under its name.

        Raises:
            ConnectorError: one is missing or damaged.
        """
        ...

    def tables(self, key_groups: range, folders: str = "") -> Iterator[tuple[str, Any]]:
        """The rows of some key groups as pieces of the tables of ``KeyedStateBackend.snapshot``, by name.

        Args:
            folders: where files are put meanwhile, as ``io.tmp.dirs``.
        """
        ...
