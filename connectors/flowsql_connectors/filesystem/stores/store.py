"""What writers and the committer ask of the storage that holds part files, hidden and visible ones."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

from flowsql_connectors.file_systems.choice import is_remote
from flowsql_connectors.filesystem.files import local_path
from flowsql_connectors.filesystem.part import Part, PartFile
from flowsql_core.errors import ConnectorError


class PartStore(Protocol):
    """The storage below one folder."""

    @property
    def root(self) -> str:
        """The folder: an absolute path, or a URI."""
        ...

    @property
    def ends_with_checkpoint(self) -> bool:
        """Whether a file cannot be written on once a checkpoint counts on it."""
        ...

    @property
    def at_once(self) -> int:
        """Parts that are shown at once: where it takes requests, most of the time is spent waiting for answers."""
        ...

    # -- of writers

    def new_file(self, folder: str, final: str, hidden: str) -> PartFile:
        """A hidden file that is not there yet."""
        ...

    def settle(self, files: Sequence[PartFile], durable: bool) -> None:
        """What was written to hidden files can be committed by any process; ``durable``: it survives the machine.

        Raises:
            ConnectorError: the storage refused, or did not answer.
        """
        ...

    # -- of the committer

    def show(self, part: Part, repeats: bool) -> None:
        """Make a hidden file visible, whole. Once more is no harm.

        Args:
            part: that was settled.
            repeats: an earlier commit may have shown it, and somebody may have taken it away since.

        Raises:
            ConnectorError: ``lost-part``; the storage refused, or did not answer.
        """
        ...

    def shown(self, parts: Sequence[Part]) -> None:
        """The names of parts that were shown survive the machine."""
        ...

    def remove(self, path: str) -> None:
        """Remove a file, if it is there."""
        ...

    def walk(self) -> Iterator[str]:
        """All files, hidden ones too; none where there is no folder."""
        ...

    def empty(self, folder: str) -> None:
        """Remove the visible files of a folder below the root and of its sub-folders."""
        ...

    def touch(self, path: str) -> None:
        """Write an empty file, or write it again."""
        ...

    def make_root(self) -> None:
        """The table's folder is there from now on, where there are folders; nothing else is changed."""
        ...

    def check(self) -> None:
        """Refuse what can be seen to fail before anything is written.

        Raises:
            ConnectorError: there is no such bucket, or the storage does not answer.
        """
        ...


def sink_folder(path: str, writer: str) -> str:
    """The folder that something writes into: an absolute path, or a URI.

    Args:
        writer: for messages: ``table t``.

    Raises:
        ConnectorError: the path is of a file.
    """
    if is_remote(path):
        return path.rstrip("/")
    root = os.path.abspath(local_path(path))
    if os.path.exists(root) and not os.path.isdir(root):
        raise ConnectorError("path-is-a-file", f"Path {root} of {writer} is a file.")
    return root


def part_store(root: str, settings: Mapping[str, str]) -> PartStore:
    """The storage of a folder; ``settings`` are those of the job.

    Raises:
        ConnectorError: nothing opens the URI.
        NotSupportedYetError: a storage in which files do not appear whole.
    """
    if is_remote(root):
        from flowsql_connectors.filesystem.stores.objects import ObjectStore

        return ObjectStore(root, settings)
    from flowsql_connectors.filesystem.stores.disk import DiskStore

    return DiskStore(root)
