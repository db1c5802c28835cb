"""A job as its submitter sees it: status, failure, restarts, cancellation."""

from __future__ import annotations

import enum
import logging
import secrets
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Final, Protocol

from flowsql_core.element import SnapshotKind
from flowsql_core.errors import ExecutionError, FlowSqlError, InternalError
from flowsql_core.graph.job import JobGraph
from flowsql_runtime.metrics.registry import JobMetrics
from flowsql_runtime.metrics.volumes import Volumes, volumes_at_home
from flowsql_runtime.operators.base import OperatorSnapshot
from flowsql_runtime.sampling.tap import JobTaps
from flowsql_runtime.task.restore import JobSnapshot
from flowsql_runtime.task.task import StreamTask

logger = logging.getLogger(__name__)

#: A waiting thread looks up so often. The kernel may hand a signal to any thread: Ctrl-C then ends no wait of the main
#: thread, and Python handles it there only once it runs again.
LOOK_UP_S = 0.1


#: Tasks that a message names.
SHOWN_TASKS: Final = 3


class JobStatus(enum.Enum):
    """Flink's job states."""

    INITIALIZING = "INITIALIZING"
    CREATED = "CREATED"
    RUNNING = "RUNNING"
    FAILING = "FAILING"
    FAILED = "FAILED"
    RESTARTING = "RESTARTING"
    CANCELLING = "CANCELLING"
    CANCELED = "CANCELED"
    FINISHED = "FINISHED"

    @property
    def terminal(self) -> bool:
        """Whether the job is over."""
        return self in (JobStatus.FAILED, JobStatus.CANCELED, JobStatus.FINISHED)

    def is_terminal_state(self) -> bool:
        """:attr:`terminal`, under PyFlink's name."""
        return self.terminal

    def is_globally_terminal_state(self) -> bool:
        """:attr:`terminal`: a job that is restarted never leaves through one of these."""
        return self.terminal

    def result(self) -> JobStatus:
        """The status itself: PyFlink asks for it through a future."""
        return self


_CANCELLABLE: Final = (JobStatus.CREATED, JobStatus.RUNNING, JobStatus.INITIALIZING, JobStatus.RESTARTING)


def not_a_streaming_job(job_id: str) -> ExecutionError:
    """A job of batch mode has no snapshots."""
    return ExecutionError(
        "not-a-streaming-job", f"Job {job_id} is not a streaming job.", hint="jobs of batch mode have no savepoints"
    )


def path_of(savepoint: Future[str]) -> str:
    """Wait for a savepoint's path; raises what kept it from completing. Ctrl-C ends the wait (see ``LOOK_UP_S``)."""
    while True:
        try:
            return savepoint.result(LOOK_UP_S)
        except TimeoutError:
            if savepoint.done():
                return savepoint.result()


def named(error: BaseException) -> FlowSqlError:
    """A failure as the user sees it; one that has no code is a bug."""
    if isinstance(error, FlowSqlError):
        return error
    wrapped = InternalError(f"{type(error).__name__}: {error}")
    wrapped.__cause__ = error
    return wrapped


@dataclass(frozen=True, slots=True)
class Restart:
    """A failure after which job ``job`` starts again: the how many-th from 1, the wait before it, what failed.

    ``tasks``: where only some of its ``of`` tasks do, these: ``Source: clicks (2/3)``.
    """

    job: str
    number: int
    delay_ms: int
    cause: FlowSqlError
    tasks: tuple[str, ...] = ()
    of: int = 0

    @property
    def headline(self) -> str:
        """What starts again, when, and for the how many-th time."""
        when = f"again in {self.delay_ms} ms (restart {self.number})"
        if not self.tasks:
            return f"Job {self.job} failed and starts {when}"
        few = ", ".join(name if len(name) <= 70 else f"{name[:50]}...{name[-17:]}" for name in self.tasks[:SHOWN_TASKS])
        more = len(self.tasks) - SHOWN_TASKS
        which = f"{few} and {more} more" if more > 0 else few
        many = f"{len(self.tasks)} of its {self.of} tasks"
        return f"Job {self.job} failed in part and starts {many} {when}: {which}"


class SavepointTaker(Protocol):
    """Who runs the job."""

    @property
    def last_checkpoint(self) -> str | None:
        """Where the newest complete snapshot is that a restart would begin with; None: from the start."""
        ...

    def savepoint(self, directory: str | None, kind: SnapshotKind) -> Future[str]:
        """Take one."""
        ...


class Job:
    """A submitted job. All methods may be called from any thread."""

    def __init__(self, graph: JobGraph, job_id: str | None = None) -> None:
        self.id = job_id or secrets.token_hex(16)
        self.name = graph.name
        #: What runs.
        self.graph = graph
        self.metrics = JobMetrics()
        #: Where somebody may look at rows.
        self.taps = JobTaps()
        self._status = JobStatus.INITIALIZING
        self._exception: FlowSqlError | None = None
        self._consequences: list[BaseException] = []
        self._tasks: Sequence[StreamTask] = ()
        self._over = threading.Event()
        self._lock = threading.Lock()
        self._listeners: list[Callable[[], None]] = []
        self._sealed = False
        self._snapshots: dict[str, list[OperatorSnapshot]] = {}
        self._restarts: list[Restart] = []
        self._restart_listeners: list[Callable[[Restart], None]] = []
        self._submitted_ms = time.time_ns() // 1_000_000
        self._ended_ms: int | None = None
        self._cancelled = threading.Event()
        #: Whether the attempt that runs, or waits to run again in part, shall end.
        self._halted = threading.Event()
        self.master: SavepointTaker | None = None
        #: The savepoint that ended the job, where one did.
        self.stopped_with: str | None = None
        #: The snapshot that the job started from, where it did.
        self.started_from: str | None = None
        #: Whether the job had ended in another process, and does nothing here.
        self.ended_before = False

    @property
    def status(self) -> JobStatus:
        """Where the job stands."""
        return self._status

    def volumes(self) -> Volumes:
        """Rows and bytes that the job moved so far."""
        return volumes_at_home(self.metrics)

    @property
    def exception(self) -> FlowSqlError | None:
        """What made the job fail: the first failure, with the operator's name."""
        return self._exception

    @property
    def exceptions(self) -> tuple[BaseException, ...]:
        """Every failure, the root cause first, then what broke while the job unwound; empty if nothing failed."""
        with self._lock:
            return () if self._exception is None else (self._exception, *self._consequences)

    @property
    def accumulators(self) -> Mapping[str, int]:
        """Job-wide sums."""
        return self.metrics.accumulators()

    @property
    def restarts(self) -> tuple[FlowSqlError, ...]:
        """The failures after which the job was started again, the oldest first."""
        with self._lock:
            return tuple(restart.cause for restart in self._restarts)

    @property
    def submitted_ms(self) -> int:
        """When the job was made, epoch milliseconds."""
        return self._submitted_ms

    @property
    def ended_ms(self) -> int | None:
        """When the job was over, epoch milliseconds; None while it is not."""
        return self._ended_ms

    @property
    def last_checkpoint(self) -> str | None:
        """Path of the newest complete snapshot that a restart would begin with; None: from the start."""
        return None if self.master is None else self.master.last_checkpoint

    def on_restart(self, listener: Callable[[Restart], None]) -> None:
        """Call ``listener`` at each restart, from the job's threads; at once for those that have been."""
        with self._lock:
            past = tuple(self._restarts)
            self._restart_listeners.append(listener)
        for restart in past:
            listener(restart)

    def savepoint(self, directory: str | None = None, kind: SnapshotKind = SnapshotKind.SAVEPOINT) -> Future[str]:
        """Ask for a savepoint, with or without the end of the job; the future gives its path.

        Args:
            directory: a folder below which the savepoint gets one of its own; None: the job's option.

        Raises:
            ExecutionError: the job does not run or runs in batch mode, or no folder is known.
        """
        if self._status.terminal:
            raise ExecutionError("job-over", f"Job {self.id} is {self._status.value}: there is nothing to save.")
        if self._status in (JobStatus.RESTARTING, JobStatus.FAILING, JobStatus.CANCELLING):
            raise ExecutionError(
                "job-not-running", f"Job {self.id} is {self._status.value}: only a running job can be saved."
            )
        if self.master is None:
            raise not_a_streaming_job(self.id)
        return self.master.savepoint(directory, kind)

    def is_over(self) -> bool:
        """Whether the job reached a terminal state."""
        return self._over.is_set()

    def on_end(self, listener: Callable[[], None]) -> None:
        """Call ``listener`` once the job is over (now, if it is)."""
        with self._lock:
            if not self._status.terminal:
                self._listeners.append(listener)
                return
        listener()

    def wait(self, timeout_s: float | None = None) -> JobStatus:
        """Block until the job is over; raises its exception, or TimeoutError after ``timeout_s`` seconds."""
        if not self._wait_for_end(timeout_s):
            raise TimeoutError(f"job {self.id} is {self._status.value} after {timeout_s} s")
        if self._exception is not None:
            raise self._exception
        return self._status

    def cancel(self) -> None:
        """Ask all tasks to stop; returns at once. Without effect on a job that is over or failing."""
        with self._lock:
            if self._sealed or self._status not in _CANCELLABLE:
                return
            self._status = JobStatus.CANCELLING
        self._cancelled.set()
        self._halted.set()
        self._cancel_tasks()

    def cancel_and_wait(self) -> None:
        """:meth:`cancel`, then until every operator is closed."""
        self.cancel()
        self._wait_for_end(None)

    def _wait_for_end(self, timeout_s: float | None) -> bool:
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        while not self._over.wait(LOOK_UP_S if deadline is None else min(LOOK_UP_S, deadline - time.monotonic())):
            if deadline is not None and time.monotonic() >= deadline:
                return False
        return True

    @property
    def snapshot(self) -> JobSnapshot:
        """Everything that the operators of a cut job remembered."""
        return self._snapshots

    # -- for the cluster

    def _add_snapshots(self, taken: Mapping[str, OperatorSnapshot]) -> None:
        with self._lock:
            for uid, snapshot in taken.items():
                self._snapshots.setdefault(uid, []).append(snapshot)

    def _restarting(self, delay_ms: int) -> Restart | None:
        """The attempt failed and another one shall follow; None where the job was cancelled."""
        with self._lock:
            if self._status is not JobStatus.FAILING or self._exception is None:
                return None
            failure, self._exception = self._exception, None
            self._consequences.clear()
            restart = Restart(self.name, len(self._restarts) + 1, delay_ms, failure)
            listeners = self._note_restart(restart)
        for listener in listeners:
            listener(restart)
        return restart

    def _restarting_part(self, error: BaseException, delay_ms: int, tasks: Sequence[StreamTask]) -> Restart | None:
        """Some tasks will start again after a failure while the others go on; None where the attempt is ending."""
        with self._lock:
            if self._status not in (JobStatus.RUNNING, JobStatus.RESTARTING) or self._sealed:
                return None
            names = tuple(task.full_name for task in tasks)
            number = len(self._restarts) + 1
            restart = Restart(self.name, number, delay_ms, named(error), names, len(self._tasks))
            listeners = self._note_restart(restart)
        for listener in listeners:
            listener(restart)
        return restart

    def _note_restart(self, restart: Restart) -> tuple[Callable[[Restart], None], ...]:
        """With the lock; whom to tell without it."""
        self._restarts.append(restart)
        self._status = JobStatus.RESTARTING
        return tuple(self._restart_listeners)

    def _part_restarted(self, tasks: Sequence[StreamTask], complete: bool) -> bool:
        """New tasks stand among the job's; whether they may run. ``complete``: no other ones are missing."""
        with self._lock:
            if self._status is not JobStatus.RESTARTING:
                return False
            self._tasks = tasks
            if complete:
                self._status = JobStatus.RUNNING
            return True

    def _start(self, tasks: Sequence[StreamTask]) -> None:
        with self._lock:
            self._tasks = tasks
            if self._status is JobStatus.RESTARTING:
                self._halted.clear()
            if self._status in (JobStatus.INITIALIZING, JobStatus.RESTARTING):
                self._status = JobStatus.CREATED

    def _running(self) -> None:
        with self._lock:
            if self._status is JobStatus.CREATED:
                self._status = JobStatus.RUNNING
        if self._status is JobStatus.CANCELLING:
            self._cancel_tasks()

    def _seal(self) -> bool:
        """Whether all tasks ended well and results may be committed; from here only a failure changes the outcome."""
        with self._lock:
            self._sealed = self._status is JobStatus.RUNNING
            return self._sealed

    def _cancel_tasks(self) -> None:
        for task in self._tasks:
            task.mailbox.cancel()

    def _fail(self, error: BaseException) -> bool:
        """End the attempt; whether this is the failure that does."""
        with self._lock:
            if self._status.terminal or self._exception is not None or self._status is JobStatus.CANCELLING:
                # What breaks while a job unwinds is a consequence.
                logger.debug("job=%s: failure while %s: %s", self.id, self._status.value, error)
                self._consequences.append(error)
                return False
            self._exception = named(error)
            self._status = JobStatus.FAILING
        self._halted.set()
        self._cancel_tasks()
        return True

    def _end(self) -> None:
        with self._lock:
            match self._status:
                case JobStatus.FAILING:
                    self._status = JobStatus.FAILED
                case JobStatus.CANCELLING:
                    self._status = JobStatus.CANCELED
                case _:
                    self._status = JobStatus.FINISHED
            self._ended_ms = time.time_ns() // 1_000_000
            listeners, self._listeners = self._listeners, []
        self._over.set()
        for listener in listeners:
            listener()
