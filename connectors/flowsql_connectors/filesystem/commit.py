"""Making part files visible, and marking partitions that are complete.

A file appears by one rename, so committing twice is committing once. A partition is complete when the policy's time
has passed for every writer, or when the input has ended.
"""

from __future__ import annotations

import os

import orjson

from flowsql_connectors.filesystem.partition import CommitPolicy
from flowsql_connectors.filesystem.writer import remove_hidden
from flowsql_connectors.spi.sink import Committable, Committer
from flowsql_core.element import MIN_WATERMARK
from flowsql_core.errors import ConnectorError


class FileCommitter(Committer):
    """Commits all writers' files of one INSERT.

    Args:
        root: the table's folder.
        policy: when partitions are complete; None marks none.
        overwritten: with ``overwrite``, the folder that is emptied first; None: the folders that got files.
        overwrite: INSERT OVERWRITE.
        at_end_only: batch mode: nothing becomes visible before all is written.
    """

    def __init__(
        self, root: str, policy: CommitPolicy | None, overwritten: str | None, overwrite: bool, at_end_only: bool
    ) -> None:
        self._root = root
        self._policy = policy
        self._overwritten = overwritten
        self._overwrite = overwrite
        self._at_end_only = at_end_only or overwrite
        self._held: list[list[str]] = []
        self._pending: dict[str, int] = {}
        self._marked: set[str] = set()
        self._watermarks: dict[int, int] = {}
        self._writers = 1
        self._now_ms = 0

    def commit(self, committables: list[Committable], end_of_input: bool) -> None:
        """Show the files, then mark what is complete."""
        files: list[list[str]] = []
        for committable in committables:
            part, (subtask, writers, watermark_ms, now_ms), partitions = orjson.loads(committable.data)
            files.extend(part)
            self._writers = writers
            self._watermarks[subtask] = watermark_ms
            self._now_ms = max(self._now_ms, now_ms)
            # Writers name all their partitions each time; one that was marked comes back only with late files.
            self._marked.difference_update(folder for _, _, folder in part)
            for folder, created_ms in partitions.items():
                if folder not in self._marked:
                    self._pending[folder] = min(created_ms, self._pending.get(folder, created_ms))
        if self._at_end_only and not end_of_input:
            self._held.extend(files)
            return
        files, self._held = [*self._held, *files], []
        if self._overwrite:
            self._empty_folders(files)
        for hidden, final, _ in files:
            _show(hidden, final)
        if self._policy is not None:
            self._mark_complete(self._policy, end_of_input)

    def abort(self, committables: list[Committable]) -> None:
        """Remove hidden files that will not be shown."""
        for committable in committables:
            for hidden, _, _ in orjson.loads(committable.data)[0]:
                remove_hidden(hidden)
        for hidden, _, _ in self._held:
            remove_hidden(hidden)
        self._held = []

    def _empty_folders(self, files: list[list[str]]) -> None:
        folders = {folder for _, _, folder in files}
        if self._overwritten is not None:
            folders.add(self._overwritten)
        for folder in folders:
            _remove_visible(os.path.join(self._root, folder) if folder else self._root)

    def _mark_complete(self, policy: CommitPolicy, end_of_input: bool) -> None:
        watermark_ms = min(self._watermarks.values()) if len(self._watermarks) >= self._writers else MIN_WATERMARK
        for folder, created_ms in list(self._pending.items()):
            if not end_of_input:
                if policy.by_watermark:
                    complete = watermark_ms >= policy.partition_ms(folder) + policy.delay_ms
                else:
                    complete = self._now_ms >= created_ms + policy.delay_ms
                if not complete:
                    continue
            directory = os.path.join(self._root, folder)
            os.makedirs(directory, exist_ok=True)
            with open(os.path.join(directory, policy.success_name), "wb"):
                pass
            del self._pending[folder]
            self._marked.add(folder)


def _show(hidden: str, final: str) -> None:
    try:
        os.replace(hidden, final)
    except FileNotFoundError as error:
        # Committed before a failure: the same committable comes again after the restore.
        if not os.path.exists(final):
            raise ConnectorError("lost-part", f"Part file {hidden} is gone before it was committed.") from error
    except OSError as error:
        raise ConnectorError("cannot-write", f"File {final} cannot be written: {error.strerror}") from error


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
