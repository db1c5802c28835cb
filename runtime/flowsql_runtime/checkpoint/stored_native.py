"""Files of backends in a snapshot, as a restore and a query find them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

from flowsql_core.errors import ConnectorError
from flowsql_runtime.checkpoint.manifest import CorruptSnapshotError, NativeState, Part, SharedFile, digest_of
from flowsql_runtime.checkpoint.shared_files import known_files, place_of
from flowsql_runtime.checkpoint.storage import SnapshotFolder
from flowsql_runtime.state.native import KnownFile
from flowsql_runtime.state.read_native import names_in, tables_in

#: Shared files that are checked at a time.
_CHECKERS: Final = 4


def check_shared(folder: SnapshotFolder, natives: Iterable[NativeState]) -> None:
    """Read the shared files that a snapshot refers to, each once.

    Raises:
        CorruptSnapshotError: one is missing, cut or changed; it is named.
    """
    files = {one.file: one for native in natives for one in native.shared}
    if files:
        with ThreadPoolExecutor(min(_CHECKERS, len(files)), "snapshot-check") as threads:
            for _ in threads.map(lambda one: _check(folder, one), files.values()):
                pass


def _check(folder: SnapshotFolder, one: SharedFile) -> None:
    place, name = place_of(folder, one.file)
    try:
        data = place.read(name)
    except ConnectorError as error:
        if error.code == "snapshot-file-missing":
            raise CorruptSnapshotError(place.location(name), "is missing") from error
        raise
    _check_bytes(data, KnownFile(place.location(name), one.length, one.digest))


def _check_bytes(data: Any, known: KnownFile) -> None:
    if len(data) != known.length:
        what = f"is cut: it has {len(data)} of {known.length} bytes"
        raise CorruptSnapshotError(known.location, what)
    if digest_of(data) != known.digest:
        raise CorruptSnapshotError(known.location, "is damaged: it has another checksum")


class StoredNative:
    """Implements ``NativeSource``.

    Args:
        folder: of the snapshot.
        native: where things are.
        read: gives the bytes of a part.
    """

    def __init__(self, folder: SnapshotFolder, native: NativeState, read: Callable[[Part], memoryview]) -> None:
        self._folder = folder
        self._native = native
        self._read = read

    @property
    def backend(self) -> str:
        """Value of ``state.backend.type``."""
        return self._native.backend

    @property
    def groups(self) -> range:
        """Key groups of the old subtask."""
        first, last = self._native.groups
        return range(first, last + 1)

    @property
    def known(self) -> Mapping[str, KnownFile]:
        """The shared files by name."""
        return known_files(self._folder, self._native)

    @property
    def private_names(self) -> tuple[str, ...]:
        """Names of the files of this snapshot alone."""
        return tuple(self._native.private)

    def private(self, name: str) -> memoryview:
        """One of them."""
        return self._read(self._native.private[name])

    @property
    def length(self) -> int:
        """Bytes of the shared files."""
        return sum(one.length for one in self._native.shared)

    @property
    def state_names(self) -> tuple[str, ...]:
        """Names of the states that are in the files."""
        return names_in(self)

    def check(self) -> None:
        """Read the shared files.

        Raises:
            CorruptSnapshotError: one is missing, cut or changed.
        """
        check_shared(self._folder, (self._native,))

    def fetch(self, folder: Path, threads: int) -> None:
        """Links where that can be; what had to be copied is checked."""
        if self._native.shared:
            with ThreadPoolExecutor(min(threads, len(self._native.shared)), "state-download") as pool:
                for _ in pool.map(lambda one: self._fetch(one, folder), self._native.shared):
                    pass

    def _fetch(self, one: SharedFile, target: Path) -> None:
        place, name = place_of(self._folder, one.file)
        known = KnownFile(place.location(name), one.length, one.digest)
        try:
            copied = place.fetch(name, target / one.name)
        except ConnectorError as error:
            if error.code == "snapshot-file-missing":
                raise CorruptSnapshotError(known.location, "is missing") from error
            raise
        if copied:
            _check_bytes((target / one.name).read_bytes(), known)

    def tables(self, key_groups: range, folders: str = "") -> Iterator[tuple[str, Any]]:
        """Pieces of tables."""
        return tables_in(self, key_groups, folders)
