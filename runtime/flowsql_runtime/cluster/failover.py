"""Starting a part of a job again while the rest goes on: what ``jobmanager.execution.failover-strategy: region`` means.

The tasks that have to go back with one that failed (``regions.py``) are stopped; when they have ended and the restart
strategy's wait is over, new ones start in their place, from their own state in the newest checkpoint of the attempt,
or as the attempt began. A snapshot under way is given up, and none begins before they run: one that counts rows behind
the checkpoint in some tasks, and will count them once more in others, must not become complete. What the stopped tasks
did since the checkpoint is forgotten: committables, rows for the program; sources get again what they were given.

Source: Flink, ``DefaultScheduler.restartTasksWithDelay``, ``restoreLatestCheckpointedStateToSubtasks``.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from flowsql_runtime.cluster.attempt import Attempt
from flowsql_runtime.cluster.job import Job, JobStatus, Restart, named
from flowsql_runtime.cluster.regions import Regions
from flowsql_runtime.task.restore import RestoredState
from flowsql_runtime.task.task import StreamTask, TaskKey

if TYPE_CHECKING:
    from flowsql_connectors.spi.source import Split
    from flowsql_runtime.checkpoint.completed import CompletedCheckpoint
    from flowsql_runtime.checkpoint.coordinator import CheckpointCoordinator

logger = logging.getLogger(__name__)

#: Who waits for the coordinator looks so often whether the attempt is to end.
LOOK_UP_S: Final = 0.1


class Restarts(Protocol):
    """What outlives attempts: the job's master."""

    @property
    def coordinator(self) -> CheckpointCoordinator | None:
        """Of this attempt."""
        ...

    def delay_ms(self, error: BaseException, operators: Sequence[tuple[str, int]] | None) -> int | None:
        """The wait before a restart (of some operators' subtasks), milliseconds; None: there is none. Asked once."""
        ...

    def newest_checkpoint(self) -> CompletedCheckpoint | None:
        """The newest that was made in this attempt."""
        ...

    def tell(self, restart: Restart) -> None:
        """A line of the log."""
        ...

    def restart_whole(self, error: BaseException) -> None:
        """The strategy allowed a restart after a failure, and it must be one of the whole job."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class _Part:
    """Tasks that are stopped, or about to be, and start again."""

    keys: frozenset[TaskKey]
    error: BaseException
    #: By ``time.monotonic``.
    due_s: float


class RegionFailover:
    """Restarts of parts of one attempt. Any thread."""

    def __init__(self, job: Job, attempt: Attempt, regions: Regions, master: Restarts) -> None:
        self._job = job
        self._attempt = attempt
        self._regions = regions
        self._master = master
        #: Guards which tasks there are.
        self.lock = threading.RLock()
        self._parts: list[_Part] = []

    @property
    def down(self) -> frozenset[TaskKey]:
        """Tasks that are stopped, or about to be."""
        return frozenset().union(*(part.keys for part in self._parts))

    def failed(self, task: StreamTask, error: BaseException) -> bool:
        """A task failed, in its thread: stop those that have to go back with it.

        Returns:
            Whether that is all there is to do; else the attempt is to end.
        """
        with self.lock:
            if task.key in self.down:
                logger.debug("job=%s task=%s: failure while it is stopped: %s", self._job.id, task.full_name, error)
                return True
            if self._job.status not in (JobStatus.RUNNING, JobStatus.RESTARTING):
                return False
            keys = self._regions.restarted_with(task.key, self._attempt.deployment.intact)
            absorbed = [part for part in self._parts if not part.keys.isdisjoint(keys)]
            keys = keys.union(*(part.keys for part in absorbed))
            if keys == self._regions.all:
                return False
            delay_ms = self._master.delay_ms(error, self._operators(keys))
            if delay_ms is None:
                return False
            part = _Part(keys, error, time.monotonic() + delay_ms / 1000)
            self._parts = [one for one in self._parts if one not in absorbed] + [part]
            self._attempt.hold()
            coordinator = self._master.coordinator
            suspended = None
            if coordinator is not None:
                suspended = coordinator.suspend(keys, f"{task.full_name} failed: {named(error).message}")
            tasks = [one for one in self._attempt.tasks if one.key in keys]
            for one in tasks:
                one.mailbox.cancel()
        try:
            restart = self._job._restarting_part(error, delay_ms, tasks)
            if restart is not None:
                self._master.tell(restart)
        finally:
            again = threading.Thread(target=self._start_again, args=(part, suspended), name="part-restart", daemon=True)
            again.start()
        return True

    def _start_again(self, part: _Part, suspended: Future[bool] | None) -> None:
        try:
            self._attempt.await_end(part.keys)
            if self._job._halted.wait(max(0.0, part.due_s - time.monotonic())):
                return
            if self._others_go_on(suspended):
                self._redeploy(part)
            elif part in self._parts:
                self._master.restart_whole(part.error)
        except Exception:
            # The checkpoint is damaged, or its storage is away: a restart of the whole job knows what then.
            logger.warning("job=%s: a part of it could not start again by itself", self._job.id, exc_info=True)
            self._master.restart_whole(part.error)
        finally:
            self._attempt.let_go()

    def _others_go_on(self, suspended: Future[bool] | None) -> bool:
        while suspended is not None:
            try:
                return suspended.result(LOOK_UP_S)
            except TimeoutError:
                if self._job._halted.is_set():
                    return False
        return True

    def _redeploy(self, part: _Part) -> None:
        deployment = self._attempt.deployment
        operators = self._operators(part.keys)
        restored, number = self._restored(operators)

        def splits(uid: str, subtask: int) -> list[Split] | None:
            if number is None:
                return None
            from flowsql_runtime.operators.source import SPLITS, decode_splits

            return decode_splits(restored.operator_lists(uid, SPLITS, subtask) or ())

        with self.lock:
            if part not in self._parts or self._job._halted.is_set():
                return
            deployment.services.go_back(part.keys, operators, number, splits)
            tasks = deployment.tasks_again(part.keys, restored, own=number is not None)
            self._attempt.exchange(tasks)
            coordinator = self._master.coordinator
            if coordinator is not None:
                coordinator.resume(tasks)
            self._parts.remove(part)
            if not self._job._part_restarted(self._attempt.tasks, complete=not self._parts):
                for task in tasks:
                    task.mailbox.cancel()
            # Also tasks that are to end at once are run: they give back what they hold.
            self._attempt.start_again(tasks)

    def _restored(self, operators: Sequence[tuple[str, int]]) -> tuple[RestoredState, int | None]:
        """What the tasks of some operators start from, and the number of that checkpoint; None: as the attempt did."""
        newest = self._master.newest_checkpoint()
        if newest is None:
            return self._attempt.deployment.restored, None
        from flowsql_runtime.checkpoint.recovery import SnapshotReader
        from flowsql_runtime.checkpoint.trust import holds_objects

        wanted: dict[str, set[int]] = {}
        for uid, subtask in operators:
            wanted.setdefault(uid, set()).add(subtask)
        return SnapshotReader(newest.folder, wanted, holds_objects(self._attempt.deployment.graph)), newest.id

    def _operators(self, keys: frozenset[TaskKey]) -> list[tuple[str, int]]:
        """The operators of some tasks, by uid and subtask."""
        return [
            (node.uid, subtask)
            for vertex in self._attempt.deployment.graph.vertices
            for subtask in range(vertex.parallelism)
            if (vertex.id, subtask) in keys
            for node in vertex.operators
        ]
