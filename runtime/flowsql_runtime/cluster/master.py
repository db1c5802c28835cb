"""The master of one job: attempts to run it, checkpoints meanwhile, restarts after failures, the commit at its end.

What outlives attempts (``attempt.py``) stands here: the completed checkpoints, their numbers, the restart strategy.
Where a part of an attempt can start again while the rest goes on, ``failover.py`` does it.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
import random
import secrets
import sys
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING

from flowsql_core.clock import Clock
from flowsql_core.config import RUNTIME_MODE, Configuration, RuntimeMode
from flowsql_core.element import CheckpointBarrier, SnapshotKind
from flowsql_core.errors import BindError, ExecutionError
from flowsql_core.graph.job import JobGraph
from flowsql_runtime.checkpoint.settings import LATEST, CheckpointSettings, RecoverySettings, Retention
from flowsql_runtime.cluster.attempt import Attempt
from flowsql_runtime.cluster.available_now import AvailableNow, check_can_stop
from flowsql_runtime.cluster.committers import commit_again, discard_leftovers
from flowsql_runtime.cluster.cut_snapshots import CutSnapshots
from flowsql_runtime.cluster.deploy import Cut, Deployment, blocking_edges, make_spill_space
from flowsql_runtime.cluster.failover import RegionFailover
from flowsql_runtime.cluster.job import Job, JobStatus, Restart, not_a_streaming_job
from flowsql_runtime.cluster.key_groups import with_restored_key_groups
from flowsql_runtime.cluster.receivers import collect_resources
from flowsql_runtime.cluster.regions import Regions
from flowsql_runtime.cluster.restart import FAILOVER_STRATEGY, FailoverStrategy, NoRestart, strategy_of
from flowsql_runtime.task.collected import CollectedRows
from flowsql_runtime.task.memory import MemoryBudget, OperatorMemory
from flowsql_runtime.task.part import JobPart
from flowsql_runtime.task.restore import JobSnapshot, NothingRestored, RestoredState
from flowsql_runtime.task.services import JobServices
from flowsql_runtime.task.task import StreamTask, TaskKey
from flowsql_runtime.task.trigger import reads_what_is_there
from flowsql_runtime.time.processing import ProcessingTime

if TYPE_CHECKING:
    from flowsql_runtime.checkpoint.completed import CompletedCheckpoint, CompletedCheckpoints
    from flowsql_runtime.checkpoint.continuation import Continuation
    from flowsql_runtime.checkpoint.coordinator import CheckpointCoordinator
    from flowsql_runtime.checkpoint.evolution import Change
    from flowsql_runtime.checkpoint.recovery import SnapshotReader
    from flowsql_runtime.checkpoint.storage import SnapshotFolder

logger = logging.getLogger(__name__)
#: What restarts say; a front end that tells of them itself (``Job.on_restart``) turns this one off.
restart_logger = logging.getLogger(f"{__name__}.restarts")

#: An Arrow pipeline beside a pure-Python thread starves at the interpreter's default of 5 ms.
SWITCH_INTERVAL_S = 1e-4


class _SwitchInterval:
    """The interpreter's switch interval is short while jobs run in threads, and what it was when none does."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._jobs = 0
        self._before = 0.0

    def enter(self) -> None:
        with self._lock:
            self._jobs += 1
            if self._jobs == 1:
                self._before = sys.getswitchinterval()
                sys.setswitchinterval(min(self._before, SWITCH_INTERVAL_S))

    def leave(self) -> None:
        with self._lock:
            self._jobs -= 1
            if not self._jobs:
                sys.setswitchinterval(self._before)


_SWITCH_INTERVAL = _SwitchInterval()


class JobMaster:
    """Runs one job to its end.

    Args:
        job: what the submitter holds.
        graph: what to run.
        restored: snapshots of a stopped job in memory, at any parallelism; else the job's own options say what it
            starts from.
        cut: rows after which each source subtask suspends; then everything in flight is drained, all operators
            are saved to ``Job.snapshot``, and the job finishes.
        seed: of everything random; None draws one.
        part: the job does a part of a larger one's work.
        continuation: the job goes on from process to process; it says what the job starts from, and hears how far the
            job is.

    Raises:
        FlowSqlError: the configuration is wrong, or what the job shall start from cannot be read.
    """

    def __init__(
        self,
        job: Job,
        graph: JobGraph,
        *,
        clock: Clock,
        budget: MemoryBudget,
        seed: int | None,
        restored: JobSnapshot | None = None,
        cut: Cut | None = None,
        part: JobPart | None = None,
        continuation: Continuation | None = None,
    ) -> None:
        self.job = job
        self._continuation = continuation
        self._graph = graph
        self._clock = clock
        self._budget = budget
        self._seed = random.randrange(1 << 62) if seed is None else seed
        self._cut = cut
        self._part = part
        self._configuration = Configuration(values=dict(graph.configuration))
        self._settings = CheckpointSettings.of(self._configuration)
        self._checkpoints = self._settings.periodic and cut is None and part is None
        # Of a part the larger job decides: what it was handed does not come twice.
        self._strategy = (
            NoRestart()
            if part is not None
            else strategy_of(self._configuration, self._checkpoints, random.Random(self._seed))
        )
        self._receivers = collect_resources(graph)
        self._collected = CollectedRows(held=self._checkpoints and self._settings.exactly_once)
        self._restored: RestoredState = NothingRestored()
        self._reader: SnapshotReader | None = None
        self._completed: CompletedCheckpoints | None = None
        self._ids = itertools.count(1)
        self._coordinator: CheckpointCoordinator | None = None
        #: The last task of the attempt has ended.
        self._ending = False
        self._failover: RegionFailover | None = None
        #: How often each task was made.
        self._attempts: Counter[TaskKey] = Counter()
        self._lock = threading.Lock()
        self._in_threads = False
        #: What the restart strategy said of the failure that ends the attempt, where it was asked before.
        self._refused = self._granted = False
        self._lineage = job.id if part is None else part.lineage
        recovery = RecoverySettings.of(self._configuration)
        if restored is not None:
            from flowsql_runtime.checkpoint.of_snapshots import reader_of

            groups = max((vertex.max_parallelism for vertex in graph.vertices), default=1)
            self._restored = reader_of(restored, groups)
        elif continuation is not None:
            self._go_on(continuation, recovery)
        elif recovery.path not in ("", LATEST) and part is None:
            from flowsql_runtime.checkpoint.recovery import open_snapshot

            self._recover(open_snapshot(recovery.path, dict(self._configuration.items())), recovery)
        stops_itself = cut is None and part is None and reads_what_is_there(dict(graph.configuration))
        if stops_itself:
            check_can_stop(graph, self._configuration)
        self._deploy()
        if cut is None:
            job.master = self
        if stops_itself:
            AvailableNow(job).start()

    @property
    def runs_in_caller(self) -> bool:
        """Whether the job is one task that can run in the caller's thread."""
        return len(self._attempt.tasks) == 1 and not self._checkpoints

    # -- what a job starts from

    def _go_on(self, continuation: Continuation, recovery: RecoverySettings) -> None:
        """Start from the newest snapshot of the job's last process, if there is one."""
        from flowsql_runtime.checkpoint.completed import CompletedCheckpoint
        from flowsql_runtime.checkpoint.manifest import CorruptSnapshotError
        from flowsql_runtime.checkpoint.recovery import SnapshotReader, open_snapshot

        settings = dict(self._configuration.items())
        folder = continuation.newest(settings)
        if folder is not None:
            try:
                reader = SnapshotReader(folder)
            except CorruptSnapshotError as error:
                raise continuation.damaged(error, folder) from error
            self._check_trusted(reader)
            try:
                changes = self._compare(reader, recovery)
            except BindError as error:
                raise continuation.other_query(error) from error
            self._take_over(reader, changes, owns=reader.manifest.job_id == self.job.id)
            own = reader.manifest.kind == "checkpoint" and reader.manifest.job_id == self.job.id
            for older, manifest in continuation.older(folder, settings):
                self._snapshots().add(CompletedCheckpoint(older, manifest))
            self._snapshots().add(CompletedCheckpoint(reader.folder, reader.manifest, owned=own))
        elif recovery.path not in ("", LATEST):
            # Its first process starts where the user says.
            reader = open_snapshot(recovery.path, settings)
            self._check_trusted(reader)
            self._take_over(reader, self._compare(reader, recovery), owns=False)
        elif continuation.ran_before:
            discard_leftovers(self._graph, self._configuration, self.job.id)
        if self._settings.directory:
            completed = self._snapshots()
            completed.storage.sweep(completed.shared.names())
        continuation.begin(self._location if self._settings.directory else "")

    def _recover(self, reader: SnapshotReader, recovery: RecoverySettings) -> None:
        """Start from a snapshot that the options name."""
        from flowsql_runtime.checkpoint.completed import CompletedCheckpoint

        self._check_trusted(reader)
        # From a savepoint that others own, other jobs may start as well.
        owns = recovery.claim or reader.manifest.kind == "checkpoint"
        self._take_over(reader, self._compare(reader, recovery), owns=owns)
        if self._checkpoints:
            self._snapshots().add(CompletedCheckpoint(reader.folder, reader.manifest, owned=recovery.claim))

    def _check_trusted(self, reader: SnapshotReader) -> None:
        from flowsql_runtime.checkpoint.trust import check_trusted, holds_objects

        check_trusted(reader.folder.path, reader.manifest, self._graph, self._configuration)
        reader.objects = holds_objects(self._graph)

    def _compare(self, reader: SnapshotReader, recovery: RecoverySettings) -> tuple[Change, ...]:
        """What becomes of the state of a snapshot; raises what the options do not allow."""
        from flowsql_runtime.checkpoint.evolution import check, compare, remembered_in
        from flowsql_runtime.checkpoint.late_calls import with_late_calls

        remembered = remembered_in(reader.manifest)
        self._graph = with_late_calls(remembered, self._graph)
        changes = compare(remembered, self._graph)
        check(changes, recovery.ignore_unclaimed, recovery.changed_state)
        for one in changes:
            logger.info("job=%s state of %s (%s): %s %s", self.job.id, one.uid, one.name, one.fate.value, one.reasons)
        return changes

    def _take_over(self, reader: SnapshotReader, changes: tuple[Change, ...], *, owns: bool) -> None:
        """Let the job start from a snapshot; ``owns``: what the last job left half done is this one's."""
        reader.evolve(changes)
        self._restored = self._reader = reader
        if owns:
            self._lineage = reader.manifest.lineage
        self._ids = itertools.count(reader.manifest.checkpoint_id + 1)
        self.job.started_from = reader.folder.path
        logger.info("job=%s starts from %s", self.job.id, reader.folder.path)

    @property
    def _location(self) -> str:
        """Where the job's checkpoints are."""
        from flowsql_runtime.checkpoint.storage import below

        settings = self._settings
        return below(settings.directory, self.job.id) if settings.create_subdirectory else settings.directory

    def _snapshots(self) -> CompletedCheckpoints:
        """The job's completed checkpoints; their storage is opened when the first one needs it."""
        if self._completed is None:
            from flowsql_runtime.checkpoint.completed import CompletedCheckpoints
            from flowsql_runtime.checkpoint.storage import MemoryStorage, SnapshotStorage, open_storage

            settings = self._settings
            storage: SnapshotStorage = MemoryStorage()
            if settings.directory:
                own = settings.create_subdirectory
                storage = open_storage(self._location, own, dict(self._configuration.items()))
            self._completed = CompletedCheckpoints(storage, settings.num_retained)
        return self._completed

    # -- attempts

    def _deploy(self) -> None:
        """Make the tasks of the next attempt; nothing runs yet."""
        graph = with_restored_key_groups(self._graph, self._restored)
        services = JobServices(graph.name, self.job.id, self._collected, self._lineage, self._part)
        services.alignment.expect(graph)
        if self._reader is not None:
            manifest = self._reader.manifest
            services.restore_enumerators({uid: bytes.fromhex(state) for uid, state in manifest.enumerators.items()})
            services.restore_committers({uid: bytes.fromhex(state) for uid, state in manifest.committers.items()})
            commit_again(self._graph, self._configuration, manifest, services)
        self.job.metrics.tasks.clear()
        regions = self._regions(graph)
        deployment = Deployment(
            graph=graph,
            configuration=self._configuration,
            services=services,
            processing_time=ProcessingTime(self._clock),
            budget=self._budget,
            metrics=self.job.metrics,
            taps=self.job.taps,
            network_memory=OperatorMemory(self._budget, "exchange"),
            spill=make_spill_space(graph, self._configuration, self.job.id),
            seed=self._seed,
            restored=self._restored,
            cut=self._cut,
            exactly_once=self._settings.exactly_once,
            restarts_parts=regions is not None,
            attempts=self._attempts,
        )
        self._attempt = Attempt(self.job, deployment, self._task_failed, self._finish)
        self._failover = None if regions is None else RegionFailover(self.job, self._attempt, regions, self)
        self._services = services
        self._coordinator = None
        self._ending = False
        self._refused = self._granted = False
        if self._cut is not None:
            cut = CutSnapshots(self.job)
            for task in self._attempt.tasks:
                task.checkpoints = cut
        elif self._checkpoints:
            self._coordinate()
        self.job._start(self._attempt.tasks)

    def _regions(self, graph: JobGraph) -> Regions | None:
        """The parts of the job that can start again by themselves; None where there is but one, or none may."""
        if self._configuration.get(FAILOVER_STRATEGY) is FailoverStrategy.FULL:
            return None
        if self._cut is not None or isinstance(self._strategy, NoRestart):
            return None
        regions = Regions(graph, blocking_edges(graph, self._configuration))
        return regions if len(regions) > 1 else None

    def _coordinate(self) -> CheckpointCoordinator:
        from flowsql_runtime.checkpoint.coordinator import CheckpointCoordinator

        self._coordinator = CheckpointCoordinator(
            job_id=self.job.id,
            graph=self._graph,
            tasks=self._attempt.tasks,
            services=self._services,
            settings=self._settings,
            completed=self._snapshots(),
            ids=self._ids,
            metrics=self.job.metrics.checkpoints,
            clock=self._clock,
            on_failure=self._checkpoints_failed,
            before_commit=None if self._continuation is None else self._continuation.before_commit,
        )
        return self._coordinator

    def start(self) -> None:
        """One thread per task."""
        self._in_threads = len(self._attempt.tasks) > 1
        if self._in_threads:
            _SWITCH_INTERVAL.enter()
        self.job._running()
        if self._coordinator is not None:
            self._coordinator.start()
        self._attempt.start()

    def run_here(self) -> None:
        """The lone task in this thread. An interrupt cancels the job and is raised again."""
        self.job._running()
        self._attempt.run_here()

    # -- failures

    def _task_failed(self, task: StreamTask, error: BaseException) -> None:
        """Where the failure concerns a part of the job only, that part starts again; else the attempt ends."""
        if self._failover is None or not self._failover.failed(task, error):
            self.job._fail(error)

    def _checkpoints_failed(self, error: BaseException) -> None:
        """More of them than are tolerable, or a commit: no task can help, all start again."""
        self.job._fail(error)

    @property
    def coordinator(self) -> CheckpointCoordinator | None:
        """Of this attempt; None while nobody takes snapshots."""
        return self._coordinator

    def delay_ms(self, error: BaseException, operators: Sequence[tuple[str, int]] | None) -> int | None:
        """Ask the restart strategy, once a failure: the wait, milliseconds; None: the job fails.

        Args:
            operators: what would start again, by uid and subtask; None: all.
        """
        delay_ms = self._strategy.delay_ms(self._clock.now_ms(), error)
        if delay_ms is not None and not self._checkpoints and self._collected.shown(operators):
            logger.warning("Job %s is not restarted: the program has seen rows that would come again.", self.job.name)
            delay_ms = None
        if delay_ms is None:
            self._refused = True
        return delay_ms

    def newest_checkpoint(self) -> CompletedCheckpoint | None:
        """The newest of this attempt, which began with an older one or with none."""
        found = [] if self._completed is None else self._completed.newest_first()
        if not found or (self._reader is not None and found[0].folder.path == self._reader.folder.path):
            return None
        return found[0]

    def restart_whole(self, error: BaseException) -> None:
        """The strategy allowed a restart after this failure; it will be one of the whole job."""
        if self.job._fail(error):
            self._granted = True

    def tell(self, restart: Restart) -> None:
        """A line of the log."""
        restart_logger.warning("%s. Cause: %s", restart.headline, restart.cause.render())

    # -- the end of an attempt

    def _finish(self) -> None:
        """After the last task: commit or abort; start again, or tell everyone."""
        stopped_with = None
        with self._lock:
            # A coordinator that is made from here on would never be stopped, nor answer.
            self._ending = True
        if self._coordinator is not None:
            self._coordinator.stop()
            stopped_with = self.job.stopped_with = self._coordinator.stopped_with
        try:
            # From here a cancellation comes too late.
            if self.job._seal() and stopped_with is None:
                self._commit_all()
        except BaseException as error:
            self.job._fail(error)
        if self.job.status is not JobStatus.RUNNING:
            self._services.abort_all()
        self._attempt.finish()
        if self._in_threads:
            _SWITCH_INTERVAL.leave()
            self._in_threads = False
        if self.job.status is JobStatus.FAILING and self._restart():
            return
        self._end()

    def _commit_all(self) -> None:
        """Make all results visible.

        With checkpoints, and where another process may go on, a last one says what is to be committed, so that a crash
        in the middle of the commits finds all of it again: it is as if the job had ended there.
        """
        if (self._checkpoints or self._continuation is not None) and self._services.has_committers:
            from flowsql_runtime.checkpoint.assemble import assemble
            from flowsql_runtime.checkpoint.completed import CompletedCheckpoint
            from flowsql_runtime.checkpoint.coordinator import CheckpointFailedError
            from flowsql_runtime.checkpoint.storage import CHECKPOINT_PREFIX
            from flowsql_runtime.checkpoint.write import publish_within

            number = next(self._ids)
            folder = self._snapshots().storage.folder(f"{CHECKPOINT_PREFIX}{number}")
            manifest, metadata = assemble(
                CheckpointBarrier(number, self._clock.now_ms()),
                self.job.id,
                self._graph,
                {},
                {task.key for task in self._attempt.tasks},
                self._services.everything_prepared(),
                {},
                self._services.snapshot_committers(),
                self._services.lineage,
                {},
            )
            if not publish_within(folder, metadata, self._settings.timeout_ms / 1000):
                reason = f"it took longer than {self._settings.timeout_ms} ms"
                raise CheckpointFailedError(number, SnapshotKind.CHECKPOINT, reason)
            if self._continuation is not None:
                self._continuation.before_commit(SnapshotKind.CHECKPOINT, number, folder.path)
            self._snapshots().add(CompletedCheckpoint(folder, manifest))
            self._services.cover_all()
        self._services.commit_all()

    def _restart(self) -> bool:
        """Whether another attempt follows this one, which failed."""
        failure = self.job.exception
        assert failure is not None
        if self._refused:
            return False
        granted, self._granted = self._granted, False
        delay_ms = 0 if granted else self.delay_ms(failure, None)
        if delay_ms is None:
            return False
        restart = self.job._restarting(delay_ms)
        if restart is None:
            return False
        self.tell(restart)
        threading.Thread(target=self._again, args=(delay_ms / 1000,), name="job-restart", daemon=True).start()
        return True

    def _again(self, delay_s: float) -> None:
        if self.job._cancelled.wait(delay_s):
            self._end()
            return
        try:
            self._go_back()
            self._deploy()
        except BaseException as error:
            # A storage that is away, a commit that fails again: the strategy says whether to try once more.
            self.job._fail(error)
            if self.job.status is not JobStatus.FAILING or not self._restart():
                self._end()
            return
        self.start()

    def _go_back(self) -> None:
        """Find the newest checkpoint that can be read, and commit what it says again."""
        from flowsql_runtime.checkpoint.evolution import compare, remembered_in
        from flowsql_runtime.checkpoint.recovery import newest_readable
        from flowsql_runtime.checkpoint.trust import holds_objects

        if self._completed is None:
            return
        found = self._completed.newest_first()
        readable = newest_readable(found, holds_objects(self._graph))
        if readable is not None:
            for damaged in found[: found.index(readable[0])]:
                self._completed.forget(damaged)
            self._restored = self._reader = readable[1]
            # The oldest of them may be what a changed query started from.
            self._reader.evolve(compare(remembered_in(self._reader.manifest), self._graph))
            self._collected.go_back(readable[0].id)
            logger.info("job=%s goes back to %s", self.job.id, self._reader.folder.path)
        elif not found:
            # It failed before its first checkpoint: it starts where it started.
            self._collected.go_back(0)
        else:
            # Starting over would show every row once more.
            raise ExecutionError(
                "no-checkpoint-left",
                "None of the job's checkpoints can be read, so the job cannot go on without losing state.",
            )

    def _end(self) -> None:
        status = self.job.status
        finished, failed = status is JobStatus.RUNNING, status is JobStatus.FAILING
        retention = self._settings.retention
        try:
            if self._continuation is not None and not finished:
                retention = self._continuation.ends(self._configuration, failed=failed)
            elif self._continuation is not None and self.job.stopped_with is None:
                self._continuation.finish()
        except Exception:
            # What cannot be noted must not be removed either: the next process finds the checkpoints.
            logger.exception("job=%s: how it ended could not be noted", self.job.id)
            retention, finished = Retention.RETAIN, False
        if self._completed is not None:
            self._completed.close(retention, finished=finished, failed=failed)
        if self._continuation is not None:
            self._continuation.over()
        self.job._end()
        for receiver in self._receivers:
            receiver.finish()

    # -- savepoints

    @property
    def last_checkpoint(self) -> str | None:
        """Where a restart would begin: the newest complete snapshot; None: where the job did."""
        found = [] if self._completed is None else self._completed.newest_first()
        if found:
            return found[0].folder.path
        return None if self._reader is None else self._reader.folder.path

    def savepoint(self, directory: str | None, kind: SnapshotKind) -> Future[str]:
        """Ask the coordinator; a job without periodic checkpoints gets one for this."""
        if self._configuration.get(RUNTIME_MODE) is RuntimeMode.BATCH:
            raise not_a_streaming_job(self.job.id)
        root = directory or self._settings.savepoint_directory
        if not root:
            raise ExecutionError(
                "no-savepoint-directory",
                "No folder for the savepoint is known.",
                hint="name one, or SET 'execution.checkpointing.savepoint-dir'",
            )
        with self._lock:
            if self._coordinator is None and self._ending:
                raise ExecutionError("job-not-running", f"Job {self.job.id} ends: only a running job can be saved.")
            coordinator = self._coordinator or self._coordinate_now()
        return coordinator.savepoint(_savepoint_folder(root, self.job.id, dict(self._configuration.items())), kind)

    def _coordinate_now(self) -> CheckpointCoordinator:
        """A coordinator for tasks that run."""
        failover = self._failover
        # While it is made no tasks are exchanged.
        with contextlib.nullcontext() if failover is None else failover.lock:
            coordinator = self._coordinate()
            coordinator.start()
            for task in self._attempt.tasks:
                (coordinator.task_finished if task.over else coordinator.task_started)(task.key)
            if failover is not None and failover.down:
                coordinator.suspend(failover.down, "a part of the job is to start again")
        return coordinator


def _savepoint_folder(root: str, job_id: str, settings: Mapping[str, str]) -> SnapshotFolder:
    from flowsql_runtime.checkpoint.storage import open_storage

    return open_storage(root, settings=settings).folder(f"savepoint-{job_id[:6]}-{secrets.token_hex(6)}")
