"""Part files on a disk: they become visible by one rename."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Sequence

from flowsql_connectors.filesystem.durable import cannot_write, levels, remove, sync_paths
from flowsql_connectors.filesystem.part import Part, PartFile
from flowsql_core.errors import ConnectorError

logger = logging.getLogger(__name__)


class DiskStore:
    """See :class:`PartStore`."""

    ends_with_checkpoint = False
    at_once = 1

    def __init__(self, root: str) -> None:
        self.root = root

    def new_file(self, folder: str, final: str, hidden: str) -> PartFile:
        """Made with its first bytes."""
        return PartFile(self.root, folder, final, hidden)

    def settle(self, files: Sequence[PartFile], durable: bool) -> None:
        """Bytes and names that were written since the last time reach the disk."""
        if not durable:
            return
        sync_paths(sorted(file.path for file in files if file.bytes_unsynced))
        directories = {file.directory for file in files if file.name_unsynced}
        sync_paths(sorted({level for directory in directories for level in levels(self.root, directory)}))
        for file in files:
            file.bytes_unsynced = file.name_unsynced = False

    def show(self, part: Part, repeats: bool) -> None:
        """Rename it."""
        hidden, final = part.hidden_path, part.final_path
        try:
            size = os.path.getsize(hidden)
            if size != part.size:
                raise ConnectorError(
                    "lost-part", f"Part file {hidden} has {size} bytes; {part.size} were written before the commit."
                )
            os.replace(hidden, final)
        except FileNotFoundError as error:
            if os.path.exists(final):
                # Committed before a failure: the same committable comes again after the restore.
                return
            if not repeats:
                raise ConnectorError("lost-part", f"Part file {hidden} is gone before it was committed.") from error
            logger.warning("part file %s of the restored checkpoint was committed before and is gone", final)
        except OSError as error:
            raise cannot_write(final, error) from error

    def shown(self, parts: Sequence[Part]) -> None:
        """The folders reach the disk."""
        sync_paths(sorted({part.directory for part in parts}))

    def remove(self, path: str) -> None:
        """Unlink it."""
        remove(path)

    def walk(self) -> Iterator[str]:
        """With all sub-folders."""
        for directory, _, found in os.walk(self.root):
            for name in found:
                yield os.path.join(directory, name)

    def empty(self, folder: str) -> None:
        """Sub-folders that are empty then go, too."""
        _remove_visible(os.path.join(self.root, folder) if folder else self.root)

    def touch(self, path: str) -> None:
        """File and folder reach the disk."""
        directory = os.path.dirname(path)
        try:
            os.makedirs(directory, exist_ok=True)
            with open(path, "wb"):
                pass
        except OSError as error:
            raise cannot_write(path, error) from error
        sync_paths([path, directory])

    def make_root(self) -> None:
        """The table's folder is there from now on."""
        try:
            os.makedirs(self.root, exist_ok=True)
        except OSError as error:
            raise cannot_write(self.root, error) from error

    def check(self) -> None:
        """Folders are made when something is written."""


def _remove_visible(directory: str) -> None:
    """Empty a folder of files and sub-folders; hidden names (parts of this very INSERT) stay."""
    if not os.path.isdir(directory):
        return
    for inner in sorted(os.listdir(directory)):
        path = os.path.join(directory, inner)
        if os.path.isdir(path):
            _remove_visible(path)
            if not os.listdir(path):
                os.rmdir(path)
        elif not inner.startswith("."):
            os.remove(path)
