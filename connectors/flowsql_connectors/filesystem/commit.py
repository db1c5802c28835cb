"""Making part files visible, and marking partitions that are complete.

Showing a file twice is showing it once. A partition is complete when the policy's time has passed for every writer and
none of them goes on writing a part of it, or when the input has ended.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from flowsql_connectors.filesystem.compact import Compactor
from flowsql_connectors.filesystem.leftovers import remove_leftovers
from flowsql_connectors.filesystem.names import PartNames
from flowsql_connectors.filesystem.packing import Waiting
from flowsql_connectors.filesystem.part import Part, PartsOfWriter
from flowsql_connectors.filesystem.partitions.folders import CommitPolicy
from flowsql_connectors.filesystem.stores.store import PartStore, part_store
from flowsql_connectors.spi.sink import Committable, Committer
from flowsql_core.element import MAX_WATERMARK, MIN_WATERMARK


class FileCommitter(Committer):
    """Commits all writers' files of one sink.

    Args:
        store: the sink's folder.
        settings: of the job: a restored checkpoint may hold parts of another folder.
        names: of its parts.
        policy: when partitions are complete; None marks none.
        overwritten: with ``overwrite``, the folder that is emptied first; None: the folders that got files.
        overwrite: INSERT OVERWRITE.
        at_end_only: batch mode: nothing becomes visible before all is written.
        compactor: merges files before they are shown; None shows them as they are.
    """

    def __init__(
        self,
        store: PartStore,
        settings: Mapping[str, str],
        names: PartNames,
        policy: CommitPolicy | None,
        overwritten: str | None,
        overwrite: bool,
        at_end_only: bool,
        compactor: Compactor | None = None,
    ) -> None:
        self._store = store
        self._settings = settings
        self._root = store.root
        self._names = names
        self._policy = policy
        self._overwritten = overwritten
        self._overwrite = overwrite
        self._at_end_only = at_end_only or overwrite
        self._compactor = compactor
        self._held: list[Waiting] = []
        #: Parts of complete checkpoints that wait to be merged, and the checkpoints since none had to.
        self._waiting: tuple[Waiting, ...] = ()
        self._checkpoints = 0
        #: What each writer said last.
        self._said: dict[int, PartsOfWriter] = {}
        #: Partitions with files that are not marked complete, and when they were first written to.
        self._pending: dict[str, int] = {}
        #: Of what a checkpoint asks for while a commit runs.
        self._lock = threading.Lock()
        #: The next commit is the restored checkpoint's, which may have been committed before.
        self._repeats = False
        self._leftovers = False
        #: The writers that were there when some went back: what those left goes once the new ones have said something.
        self._before_going_back: dict[int, str] = {}
        #: Hidden parts that the last committed checkpoint counts on: a restore goes on writing them.
        self._counted: set[str] = set()
        #: Of the restored checkpoint, for the case that all writers had ended before it.
        self._lineages: set[str] = set()

    def commit(self, committables: list[Committable], end_of_input: bool) -> None:
        """Show the files, then mark what is complete."""
        said = [PartsOfWriter.decode(committable) for committable in committables]
        self._listen(said)
        self._counted = {part.hidden_path for one in self._said.values() for part in one.growing}
        self._held += [Waiting(one.lineage, part) for one in said for part in one.closed]
        if self._at_end_only and not end_of_input:
            return
        if self._at_end_only:
            # As in Flink, an INSERT in batch mode makes a table without rows, which can be read.
            self._store.make_root()
        new, self._held = self._held, []
        if self._overwrite:
            self._empty_folders([one.part for one in new])
        ended = end_of_input or self._drained()
        if self._compactor is not None:
            self._show_merged(self._compactor, new, {one.lineage for one in said}, ended)
        else:
            self._show([one.part for one in (*self._waiting, *new)])
            with self._lock:
                self._waiting = ()
        if self._policy is not None:
            self._mark_complete(self._policy, ended)
        if self._leftovers and (end_of_input or (not self._repeats and self._all_said() and self._others_said())):
            self._leftovers = False
            self._before_going_back = {}
            self._remove_leftovers()
        if self._repeats:
            # The writers of the restored job count from here on.
            self._repeats = False
            self._lineages = {one.lineage for one in said}
            self._said.clear()

    def _listen(self, said: Sequence[PartsOfWriter]) -> None:
        with self._lock:
            for one in said:
                before = self._said.get(one.subtask)
                if before is None or before.run != one.run or before.sequence < one.sequence:
                    self._said[one.subtask] = one
                if self._policy is not None:
                    for part in one.closed:
                        first_ms = self._pending.get(part.folder, part.partition_ms)
                        self._pending[part.folder] = min(part.partition_ms, first_ms)

    def _all_said(self) -> bool:
        return bool(self._said) and len(self._said) >= max(one.writers for one in self._said.values())

    def _others_said(self) -> bool:
        """Whether the writers that went back have said something. A commit that was under way comes before that."""
        before = self._before_going_back
        return not before or any(before.get(subtask) != one.run for subtask, one in self._said.items())

    def _drained(self) -> bool:
        """Whether the last watermark has reached every writer: a savepoint that drains the job is its end."""
        return self._all_said() and all(one.watermark_ms >= MAX_WATERMARK for one in self._said.values())

    def snapshot(self) -> bytes:
        """The partitions that wait to be marked, and the parts that wait to be merged."""
        with self._lock:
            return orjson.dumps(
                {
                    "partitions": self._pending,
                    "waiting": [[one.lineage, one.part.fields()] for one in self._waiting],
                    "checkpoints": self._checkpoints,
                }
            )

    def restore(self, state: bytes) -> None:
        """Wait for the same partitions and parts; hidden files of attempts that died go with the first new commit."""
        self._repeats = self._leftovers = True
        body: dict[str, Any] = orjson.loads(state) if state else {"partitions": {}, "waiting": [], "checkpoints": 0}
        waiting = tuple(Waiting(lineage, Part.of_fields(fields)) for lineage, fields in body["waiting"])
        with self._lock:
            self._said.clear()
            self._pending = body["partitions"]
            self._checkpoints = body["checkpoints"]
            self._waiting = waiting

    def take_back(self) -> None:
        """Hidden files of the writers that were go with the next commit of those that follow them."""
        self._leftovers = True
        with self._lock:
            self._before_going_back = {subtask: one.run for subtask, one in self._said.items()}

    def abort(self, committables: list[Committable]) -> None:
        """Remove hidden files that will not be shown."""
        for committable in committables:
            for part in PartsOfWriter.decode(committable).closed:
                if part.hidden_path not in self._counted:
                    self._store_of(part).remove(part.hidden_path)
        for held in self._held:
            self._store_of(held.part).remove(held.part.hidden_path)
        self._held = []

    def discard(self, lineage: str) -> None:
        """Hidden parts of the lineage go."""
        remove_leftovers(self._store, self._names, {lineage}, set(), set())

    def _show_merged(self, compactor: Compactor, new: Sequence[Waiting], lineages: set[str], ended: bool) -> None:
        with self._lock:
            self._waiting = (*self._waiting, *new)
            self._checkpoints += 1
        left = compactor.show(
            self._waiting,
            self._root,
            lineages | {one.lineage for one in self._waiting},
            self._checkpoints,
            repeats=self._repeats,
            ended=ended,
        )
        with self._lock:
            self._waiting = tuple(left)
            if compactor.packing.due(self._checkpoints):
                self._checkpoints = 0

    def _show(self, parts: Sequence[Part]) -> None:
        if self._store.at_once == 1 or len(parts) < 2:
            for part in parts:
                self._show_one(part)
        else:
            from concurrent.futures import ThreadPoolExecutor

            with ThreadPoolExecutor(self._store.at_once, thread_name_prefix="file-commit") as pool:
                for _ in pool.map(self._show_one, parts):
                    pass
        if not self._at_end_only:
            self._store.shown(parts)

    def _show_one(self, part: Part) -> None:
        self._store_of(part).show(part, self._repeats)

    def _store_of(self, part: Part) -> PartStore:
        return self._store if part.root == self._root else part_store(part.root, self._settings)

    def _empty_folders(self, parts: Sequence[Part]) -> None:
        folders = {part.folder for part in parts}
        if self._overwritten is not None:
            folders.add(self._overwritten)
        for folder in folders:
            self._store.empty(folder)

    def _mark_complete(self, policy: CommitPolicy, ended: bool) -> None:
        for folder in self._complete(policy, ended):
            policy.mark(self._root, folder)
            with self._lock:
                del self._pending[folder]

    def _complete(self, policy: CommitPolicy, ended: bool) -> list[str]:
        if ended:
            return list(self._pending)
        said = self._said.values()
        watermark_ms = min(one.watermark_ms for one in said) if self._all_said() else MIN_WATERMARK
        now_ms = max((one.now_ms for one in said), default=0)
        growing = {part.folder for one in said for part in one.growing}
        return [
            folder
            for folder, first_ms in self._pending.items()
            if folder not in growing and policy.is_complete(folder, first_ms, watermark_ms, now_ms)
        ]

    def _remove_leftovers(self) -> None:
        said = self._said.values()
        waiting = {one.part.hidden_path for one in self._waiting}
        remove_leftovers(
            self._store,
            self._names,
            {one.lineage for one in said} or self._lineages,
            {one.run for one in said},
            {part.hidden_path for one in said for part in one.growing} | waiting,
        )
