"""The checkpoint coordinator: triggers barriers at sources, collects what tasks wrote, completes or gives up.

One thread of its own per attempt of a job; tasks, which may be exchanged part by part, writers and callers only put
events into its queue. A checkpoint is complete when every task wrote its part (or had finished before the barrier) and
``_metadata`` is there; then sinks commit and every task hears of it. Source: Chandy and Lamport, "Distributed
Snapshots", TOCS 3(1), 1985; Carbone et al., "Lightweight Asynchronous Snapshots for Distributed Dataflows", 2015;
Flink, ``CheckpointCoordinator``.
"""

from __future__ import annotations

import itertools
import logging
import queue
import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field

from flowsql_core.clock import Clock, ManualClock
from flowsql_core.element import CheckpointBarrier, SnapshotKind
from flowsql_core.errors import ExecutionError, FlowSqlError
from flowsql_core.graph.job import JobGraph
from flowsql_runtime.checkpoint.assemble import assemble
from flowsql_runtime.checkpoint.completed import CompletedCheckpoint, CompletedCheckpoints
from flowsql_runtime.checkpoint.layout import OperatorLayout, new_states
from flowsql_runtime.checkpoint.settings import CheckpointSettings
from flowsql_runtime.checkpoint.shared_files import SharedFiles, SharedUpload
from flowsql_runtime.checkpoint.storage import CHECKPOINT_PREFIX, SnapshotFolder
from flowsql_runtime.checkpoint.write import SnapshotWriters, WrittenTask, write_task
from flowsql_runtime.metrics.checkpoints import CheckpointMetrics, CompletedStats
from flowsql_runtime.network.in_flight import InFlight
from flowsql_runtime.operators.base import OperatorSnapshot
from flowsql_runtime.task.services import JobServices
from flowsql_runtime.task.task import StreamTask, TaskKey

logger = logging.getLogger(__name__)


class CheckpointFailedError(ExecutionError):
    """A checkpoint or savepoint did not complete."""

    def __init__(self, checkpoint_id: int, kind: SnapshotKind, reason: str) -> None:
        what = "Savepoint" if kind.is_savepoint else f"Checkpoint {checkpoint_id}"
        super().__init__("checkpoint-failed", f"{what} did not complete: {reason}.")


@dataclass(slots=True)
class _Pending:
    """A snapshot under way."""

    barrier: CheckpointBarrier
    folder: SnapshotFolder
    shared: SharedFiles
    began_s: float
    expected: frozenset[TaskKey]
    enumerators: Mapping[str, bytes]
    future: Future[str] | None
    acknowledged: set[TaskKey] = field(default_factory=set)
    finished: set[TaskKey] = field(default_factory=set)
    written: dict[TaskKey, WrittenTask] = field(default_factory=dict)
    publishing: bool = False
    given_up: bool = False

    @property
    def id(self) -> int:
        return self.barrier.checkpoint_id

    def remove(self) -> None:
        """Remove what was written."""
        self.folder.remove()
        self.shared.release(self.id)

    def clean_up(self) -> None:
        """After a write (its thread): what was written once the snapshot was given up goes, too."""
        if self.given_up:
            self.remove()

    @property
    def whole(self) -> bool:
        return self.expected <= self.written.keys() | self.finished


@dataclass(frozen=True, slots=True)
class _Wanted:
    """Somebody asks for a savepoint."""

    folder: SnapshotFolder
    kind: SnapshotKind
    future: Future[str]


class CheckpointCoordinator:
    """Checkpoints and savepoints of one attempt of a job.

    Args:
        graph: what runs.
        tasks: all of them; sources are triggered.
        ids: checkpoint numbers, rising over all attempts.
        completed: the job's snapshots, kept over attempts.
        metrics: counts snapshots, over attempts too.
        on_failure: more checkpoints in a row failed than are tolerable, or a commit did.
        before_commit: hears of each complete snapshot (kind, number, path) before anything of it is committed; what it
            raises makes the job fail.
    """

    def __init__(
        self,
        *,
        job_id: str,
        graph: JobGraph,
        tasks: Sequence[StreamTask],
        services: JobServices,
        settings: CheckpointSettings,
        completed: CompletedCheckpoints,
        ids: itertools.count[int],
        metrics: CheckpointMetrics,
        clock: Clock,
        on_failure: Callable[[BaseException], None],
        before_commit: Callable[[SnapshotKind, int, str], None] | None = None,
    ) -> None:
        self._before_commit = before_commit
        self._job_id = job_id
        self._graph = graph
        self._tasks = {(task.vertex_id, task.subtask): task for task in tasks}
        self._services = services
        self._settings = settings
        self._completed = completed
        self._ids = ids
        self._metrics = metrics
        # What an attempt before this one had under way is given up.
        metrics.in_progress = 0
        self._clock = clock
        self._on_failure = on_failure
        self._writers = SnapshotWriters()
        self._events: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="checkpoint-coordinator", daemon=True)
        self._starting = set(self._tasks)
        self._finished: set[TaskKey] = set()
        #: Tasks that failed, or that ended for the sake of those, and will start again.
        self._down: set[TaskKey] = set()
        self._pending: dict[int, _Pending] = {}
        self._wanted: list[_Wanted] = []
        self._failures = 0
        self._asked: list[Future[str]] = []
        self._asking = threading.Lock()
        self._stopped = False
        self._known_layouts: dict[str, OperatorLayout] | None = None
        self._due_s: float | None = None
        self._last_end_s = float("-inf")
        #: The savepoint that ended the job, once it is complete.
        self.stopped_with: str | None = None
        if isinstance(clock, ManualClock):
            clock.on_advance(lambda: self._events.put(_nothing))
        for task in tasks:
            task.checkpoints = self

    # -- from outside

    def start(self) -> None:
        """Begin; the first checkpoint comes one interval after all tasks run."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread; what is under way is given up."""
        self._events.put(None)
        if self._thread.is_alive() and threading.current_thread() is not self._thread:
            self._thread.join()
        self._writers.close()

    def savepoint(self, folder: SnapshotFolder, kind: SnapshotKind) -> Future[str]:
        """Ask for a savepoint; the future gives its path, or :class:`CheckpointFailedError`."""
        future: Future[str] = Future()
        with self._asking:
            if self._stopped:
                future.set_exception(CheckpointFailedError(0, kind, "the job is not running"))
                return future
            self._asked = [one for one in self._asked if not one.done()] + [future]
        self._post(lambda: self._want(_Wanted(folder, kind, future)))
        return future

    def suspend(self, tasks: Collection[TaskKey], reason: str) -> Future[bool]:
        """These tasks will start again: give up what is under way, and begin nothing until :meth:`resume`.

        Returns:
            Once that is done, whether the other tasks can go on as they are. They cannot while the job is being stopped
            with a savepoint that is complete, nor when the last watermark is out.
        """
        future: Future[bool] = Future()
        self._post(lambda: self._suspend(tasks, reason, future))
        return future

    def resume(self, tasks: Sequence[StreamTask]) -> None:
        """New tasks stand in the place of those before, and start soon."""
        for task in tasks:
            task.checkpoints = self
        self._post(lambda: self._resume(tasks))

    # -- from tasks (any thread)

    def task_started(self, task: TaskKey) -> None:
        """All operators of the task are open."""
        self._post(lambda: self._note_started(task))

    def task_finished(self, task: TaskKey) -> None:
        """The task ended well; what it had not acknowledged it does not need."""
        self._post(lambda: self._note_finished(task))

    def acknowledge(
        self,
        task: TaskKey,
        barrier: CheckpointBarrier,
        snapshots: Mapping[str, OperatorSnapshot],
        in_flight: InFlight | None = None,
    ) -> None:
        """The barrier passed the task: write what its operators remember, and what the barrier overtook."""
        self._post(lambda: self._acknowledged(task, barrier.checkpoint_id, snapshots, in_flight))

    def decline(self, task: TaskKey, checkpoint_id: int, error: BaseException) -> None:
        """The task cannot take part."""
        self._post(lambda: self._fail(checkpoint_id, f"{self._tasks[task].name} could not take part: {error}"))

    def _post(self, event: Callable[[], None]) -> None:
        self._events.put(event)

    # -- the coordinator's thread

    def _run(self) -> None:
        while True:
            try:
                event = self._events.get(timeout=self._pause_s())
            except queue.Empty:
                event = _nothing
            if event is None:
                break
            try:
                event()
                self._look()
            except Exception as error:
                logger.exception("job=%s: the checkpoint coordinator failed", self._job_id)
                self._on_failure(error)
                break
        with self._asking:
            self._stopped = True
        for pending in list(self._pending.values()):
            self._give_up(pending, "the job ended")
        # Those that were not triggered yet, or whose question is still in the queue, which nobody reads any more.
        for future in (one for one in self._asked if not one.done()):
            future.set_exception(CheckpointFailedError(0, SnapshotKind.SAVEPOINT, "the job ended"))

    def _now_s(self) -> float:
        """Seconds that a stepping wall clock does not move; those of the test's clock where there is one."""
        return self._clock.now_ms() / 1000 if isinstance(self._clock, ManualClock) else time.monotonic()

    def _pause_s(self) -> float | None:
        if isinstance(self._clock, ManualClock):
            return None
        due = [pending.began_s + self._settings.timeout_ms / 1000 for pending in self._pending.values()]
        if self._due_s is not None and self._may_trigger():
            due.append(max(self._due_s, self._last_end_s + self._settings.min_pause_ms / 1000))
        return max(0.0, min(due) - self._now_s()) if due else None

    def _look(self) -> None:
        """After every event: what is due?"""
        now_s = self._now_s()
        for pending in list(self._pending.values()):
            if now_s >= pending.began_s + self._settings.timeout_ms / 1000:
                # Its writes may hang in the storage for ever.
                self._writers.abandon()
                missing = sorted(pending.expected - pending.written.keys() - pending.finished)
                names = ", ".join(f"{self._tasks[key].name} ({key[1]})" for key in missing[:3])
                self._fail(
                    pending.id, f"it took longer than {self._settings.timeout_ms} ms; missing: {names or 'none'}"
                )
        if self._starting or self._down:
            return
        if self._wanted and not self._stopping():
            wanted = self._wanted.pop(0)
            self._trigger(wanted.kind, wanted.folder, wanted.future)
        if self._due_s is None and self._settings.periodic:
            self._due_s = now_s + self._settings.interval_ms / 1000
        if (
            self._due_s is not None
            and now_s >= self._due_s
            and now_s >= self._last_end_s + self._settings.min_pause_ms / 1000
            and self._may_trigger()
        ):
            self._due_s = max(self._due_s + self._settings.interval_ms / 1000, now_s)
            self._trigger(SnapshotKind.CHECKPOINT, None, None)

    def _may_trigger(self) -> bool:
        if (
            self._starting
            or self._down
            or self._stopping()
            or (self._finished and not self._settings.after_tasks_finish)
        ):
            return False
        running = sum(not pending.barrier.kind.is_savepoint for pending in self._pending.values())
        return running < self._settings.max_concurrent and any(self._sources())

    def _stopping(self) -> bool:
        return self.stopped_with is not None or any(one.barrier.kind.stops for one in self._pending.values())

    def _sources(self) -> Iterable[StreamTask]:
        return (task for key, task in self._tasks.items() if task.is_source and key not in self._finished)

    def _want(self, wanted: _Wanted) -> None:
        if self._stopping():
            wanted.future.set_exception(CheckpointFailedError(0, wanted.kind, "the job is being stopped"))
        else:
            self._wanted.append(wanted)

    def _trigger(self, kind: SnapshotKind, folder: SnapshotFolder | None, future: Future[str] | None) -> None:
        number = next(self._ids)
        # Savepoints are always aligned: they hold no rows on their way and restore at any parallelism.
        unaligned_after_ms = None if kind.is_savepoint else self._settings.unaligned_after_ms
        barrier = CheckpointBarrier(number, self._clock.now_ms(), kind, unaligned_after_ms)
        if folder is None:
            folder = self._completed.storage.folder(f"{CHECKPOINT_PREFIX}{number}")
        alive = frozenset(self._tasks) - self._finished
        enumerators = self._services.snapshot_enumerators(number)
        pending = _Pending(barrier, folder, self._completed.shared, self._now_s(), alive, enumerators, future)
        self._pending[number] = pending
        self._metrics.in_progress = len(self._pending)
        sources = list(self._sources())
        if not sources:
            self._fail(number, "all sources have finished")
            return
        logger.debug("job=%s checkpoint=%d triggered at %d sources", self._job_id, number, len(sources))
        for task in sources:
            task.trigger_checkpoint(barrier)

    # -- what tasks and writers say

    def _note_started(self, task: TaskKey) -> None:
        self._starting.discard(task)

    def _suspend(self, tasks: Collection[TaskKey], reason: str, future: Future[bool]) -> None:
        self._down.update(tasks)
        drains = any(one.barrier.kind is SnapshotKind.DRAIN for one in self._pending.values())
        for pending in list(self._pending.values()):
            self._give_up(pending, reason)
        # A snapshot that was given up must not be found any more when the tasks write anew what it counts on.
        self._writers.settle()
        future.set_result(self.stopped_with is None and not drains)

    def _resume(self, tasks: Sequence[StreamTask]) -> None:
        for task in tasks:
            key = (task.vertex_id, task.subtask)
            self._tasks[key] = task
            self._down.discard(key)
            self._finished.discard(key)
            self._starting.add(key)

    def _note_finished(self, task: TaskKey) -> None:
        if task in self._down:
            return  # it ended before it could be stopped, and goes back nevertheless
        self._starting.discard(task)
        self._finished.add(task)
        for pending in list(self._pending.values()):
            if task in pending.expected and task not in pending.acknowledged:
                pending.finished.add(task)
                self._complete_if_whole(pending)

    def _acknowledged(
        self,
        task: TaskKey,
        checkpoint_id: int,
        snapshots: Mapping[str, OperatorSnapshot],
        in_flight: InFlight | None,
    ) -> None:
        pending = self._pending.get(checkpoint_id)
        if pending is None:
            # Given up meanwhile.
            for snapshot in snapshots.values():
                snapshot.release()
            return
        pending.acknowledged.add(task)
        settings, folder = self._settings, pending.folder
        # Savepoints are one file set that can be moved as a whole and read at any time: nothing is compressed there.
        compress = settings.compression and not pending.barrier.kind.is_savepoint
        shared = SharedUpload(pending.shared, checkpoint_id, self._completed.known, lambda: pending.given_up)

        def write() -> Callable[[], None]:
            try:
                name = f"{task[0]}-{task[1]}.state"
                written = write_task(
                    folder, name, task[1], snapshots, compress, settings.inline_bytes, in_flight, shared
                )
            finally:
                for snapshot in snapshots.values():
                    snapshot.release()
            return lambda: self._wrote(task, checkpoint_id, written)

        self._write(pending, write)

    def _write(self, pending: _Pending, work: Callable[[], Callable[[], None]]) -> None:
        """Run ``work`` in a writer's thread, and what it answers here; its failure is the snapshot's."""
        number = pending.id

        def write() -> None:
            try:
                done = work()
            except FlowSqlError as error:
                reason = str(error).rstrip(".")
                self._post(lambda: self._fail(number, reason))
            except Exception as error:
                logger.exception("job=%s checkpoint=%d: writing failed", self._job_id, number)
                text = f"{type(error).__name__}: {error}"
                self._post(lambda: self._fail(number, text))
            else:
                self._post(done)
            finally:
                pending.clean_up()

        self._writers.submit(write)

    def _wrote(self, task: TaskKey, checkpoint_id: int, written: WrittenTask) -> None:
        pending = self._pending.get(checkpoint_id)
        if pending is not None:
            pending.written[task] = written
            self._complete_if_whole(pending)

    def _layouts(self) -> dict[str, OperatorLayout]:
        """Of all operators whose state has names; made for the first snapshot."""
        if self._known_layouts is None:
            self._known_layouts = {uid: state.layout for uid, state in new_states(self._graph).items()}
        return self._known_layouts

    def _complete_if_whole(self, pending: _Pending) -> None:
        if not pending.whole or pending.publishing:
            return
        pending.publishing = True
        finished = pending.finished | (self._tasks.keys() - pending.expected)
        committables = self._services.prepared(pending.id, finished)
        manifest, metadata = assemble(
            pending.barrier,
            self._job_id,
            self._graph,
            pending.written,
            finished,
            committables,
            pending.enumerators,
            self._services.snapshot_committers(),
            self._services.lineage,
            self._layouts(),
        )
        folder, number = pending.folder, pending.id

        def publish() -> Callable[[], None]:
            folder.publish(metadata)
            return lambda: self._completed_one(number, CompletedCheckpoint(folder, manifest))

        self._write(pending, publish)

    def _completed_one(self, number: int, made: CompletedCheckpoint) -> None:
        pending = self._pending.pop(number, None)
        if pending is None:
            return  # given up while its metadata was on the way
        self._last_end_s = self._now_s()
        self._measure(pending, made)
        if not pending.barrier.kind.is_savepoint:
            self._failures = 0
            older = [one for one in self._pending.values() if one.id < number]
            for one in (one for one in older if not one.barrier.kind.is_savepoint):
                self._give_up(one, "a newer checkpoint completed before it")
        logger.info(
            "job=%s checkpoint=%d complete: %s, %s of %d bytes of state written",
            self._job_id,
            number,
            made.folder.path,
            made.manifest.checkpointed_bytes,
            made.manifest.size_bytes,
        )
        kind = pending.barrier.kind
        if kind.stops:
            self.stopped_with = made.folder.path
        # A savepoint beside a running job commits nothing: a restart would go back to the checkpoint before it.
        try:
            if self._before_commit is not None:
                self._before_commit(kind, number, made.folder.path)
            if kind is not SnapshotKind.SAVEPOINT:
                self._completed.add(made, self._writers.submit)
                self._services.commit(number)
        except Exception as error:
            if pending.future is not None:
                pending.future.set_exception(error)
            self._on_failure(error)
            return
        for task in self._tasks.values():
            task.notify_checkpoint_complete(number)
        if pending.future is not None:
            pending.future.set_result(made.folder.path)

    def _measure(self, pending: _Pending, made: CompletedCheckpoint) -> None:
        manifest = made.manifest
        written_bytes = manifest.checkpointed_bytes
        self._metrics.in_progress = len(self._pending)
        self._metrics.completed += 1
        self._metrics.last = CompletedStats(
            pending.id,
            pending.barrier.timestamp_ms,
            round(1000 * (self._last_end_s - pending.began_s)),
            manifest.size_bytes,
            manifest.size_bytes if written_bytes is None else written_bytes,
            pending.barrier.kind.is_savepoint,
            made.folder.path,
        )

    # -- giving up

    def _fail(self, number: int, reason: str) -> None:
        """A snapshot failed; too many checkpoints in a row make the job fail."""
        pending = self._pending.get(number)
        if pending is None:
            return
        kind = pending.barrier.kind
        self._give_up(pending, reason)
        if kind is SnapshotKind.DRAIN:
            # The last watermark is out: the job cannot go on as if nothing had been.
            self._on_failure(CheckpointFailedError(number, kind, reason))
        if kind.is_savepoint:
            return
        self._failures += 1
        logger.warning("job=%s checkpoint=%d failed: %s", self._job_id, number, reason)
        if self._failures > self._settings.tolerable_failures:
            self._on_failure(CheckpointFailedError(number, kind, reason))

    def _give_up(self, pending: _Pending, reason: str) -> None:
        self._pending.pop(pending.id, None)
        self._metrics.in_progress = len(self._pending)
        self._metrics.failed += 1
        pending.given_up = True
        self._last_end_s = self._now_s()
        self._writers.submit(pending.remove)
        for task in self._tasks.values():
            task.notify_checkpoint_aborted(pending.id)
        if pending.future is not None:
            pending.future.set_exception(CheckpointFailedError(pending.id, pending.barrier.kind, reason))


def _nothing() -> None:
    """An event that only makes the coordinator look at the time."""
