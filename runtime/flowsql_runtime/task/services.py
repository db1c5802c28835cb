"""What the subtasks of one job share: splits dealt out once, committables gathered until the whole job succeeded."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from flowsql_connectors.spi.sink import Committable, Committer
    from flowsql_connectors.spi.source import Split, SplitEnumerator

logger = logging.getLogger(__name__)


class JobServices:
    """Job-wide coordination of sources and sinks. Any thread."""

    def __init__(self, job_name: str = "", job_id: str = "") -> None:
        self.job_name = job_name
        self.job_id = job_id
        self._lock = threading.Lock()
        self._splits: dict[str, list[list[Split]]] = {}
        self._restored: dict[str, list[Split]] = {}
        self._commits: dict[str, tuple[Committer, list[Committable]]] = {}

    # -- sources

    def restore_splits(self, uid: str, splits: Sequence[Split]) -> None:
        """The unfinished splits of a snapshot, over all old subtasks; before the tasks start."""
        self._restored[uid] = list(splits)

    def splits_of(
        self, uid: str, subtask: int, parallelism: int, create_enumerator: Callable[[], SplitEnumerator]
    ) -> list[Split]:
        """The splits of one source subtask; the first to ask runs the enumerator for all."""
        with self._lock:
            if uid not in self._splits:
                enumerator = create_enumerator()
                restored = self._restored.get(uid)
                self._splits[uid] = (
                    enumerator.initial_splits(parallelism)
                    if restored is None
                    else enumerator.redistribute(restored, parallelism)
                )
            return self._splits[uid][subtask]

    # -- sinks

    def add_committables(
        self, uid: str, create_committer: Callable[[], Committer | None], new: list[Committable]
    ) -> None:
        """What one sink subtask prepared at its end of input (possibly nothing)."""
        with self._lock:
            if uid not in self._commits:
                committer = create_committer()
                if committer is None:
                    return
                self._commits[uid] = (committer, [])
            self._commits[uid][1].extend(new)

    def commit_all(self) -> None:
        """Every task of the job succeeded: make all results visible."""
        for committer, committables in self._commits.values():
            committer.commit(committables, end_of_input=True)

    def abort_all(self) -> None:
        """The job failed or was cancelled: remove what was prepared."""
        for uid, (committer, committables) in self._commits.items():
            try:
                committer.abort(committables)
            except Exception:
                # The job's own failure is what the user must see.
                logger.exception("job=%s op=%s: removing prepared results failed", self.job_id, uid)


class SplitProgress:
    """Which splits one source subtask reads: the watermark assigner behind it in the chain keeps one watermark each.

    A reader that takes files one behind another must not let the first one's end decide the watermark: splits that have
    not started hold it back. Empty for sources without splits.
    """

    __slots__ = ("bounded", "current", "unfinished")

    def __init__(self) -> None:
        self.bounded = False
        self.current: str | None = None
        self.unfinished: set[str] = set()
