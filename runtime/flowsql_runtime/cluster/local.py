"""The embedded cluster: a job's tasks as threads of this process, or in the caller's thread for a lone task."""

from __future__ import annotations

import enum
import logging
import random
import secrets
import sys
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from flowsql_core.clock import Clock, SystemClock
from flowsql_core.config import Configuration
from flowsql_core.errors import FlowSqlError, InternalError
from flowsql_core.graph.job import JobGraph
from flowsql_runtime.cluster.deploy import Cut, Deployment, collect_resources, make_spill_space
from flowsql_runtime.metrics.registry import JobMetrics
from flowsql_runtime.network.partition import OutputFlusher
from flowsql_runtime.operators.base import OperatorSnapshot
from flowsql_runtime.task.mailbox import TaskCancelled
from flowsql_runtime.task.memory import MEMORY, MemoryBudget, OperatorMemory
from flowsql_runtime.task.restore import JobSnapshot
from flowsql_runtime.task.services import JobServices
from flowsql_runtime.task.task import StreamTask
from flowsql_runtime.time.processing import ProcessingTime

logger = logging.getLogger(__name__)

#: An Arrow pipeline beside a pure-Python thread starves at the interpreter's default of 5 ms.
SWITCH_INTERVAL_S = 1e-4

#: A waiting thread looks up so often. The kernel may hand a signal to any thread: Ctrl-C then ends no wait of the main
#: thread, and Python handles it there only once it runs again.
LOOK_UP_S = 0.1


class JobStatus(enum.Enum):
    """Flink's job states, as far as a job without restarts passes them."""

    INITIALIZING = "INITIALIZING"
    CREATED = "CREATED"
    RUNNING = "RUNNING"
    FAILING = "FAILING"
    FAILED = "FAILED"
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
        """:attr:`terminal`: nothing restarts a job."""
        return self.terminal

    def result(self) -> JobStatus:
        """The status itself: PyFlink asks for it through a future."""
        return self


class Job:
    """A submitted job. All methods may be called from any thread."""

    def __init__(self, graph: JobGraph, job_id: str | None = None) -> None:
        self.id = job_id or secrets.token_hex(16)
        self.name = graph.name
        self.metrics = JobMetrics()
        self._status = JobStatus.INITIALIZING
        self._exception: FlowSqlError | None = None
        self._consequences: list[BaseException] = []
        self._tasks: list[StreamTask] = []
        self._over = threading.Event()
        self._lock = threading.Lock()
        self._listeners: list[Callable[[], None]] = []
        self._sealed = False
        self._snapshots: dict[str, list[OperatorSnapshot]] = {}

    @property
    def status(self) -> JobStatus:
        """Where the job stands."""
        return self._status

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
            if self._sealed or self._status not in (JobStatus.CREATED, JobStatus.RUNNING, JobStatus.INITIALIZING):
                return
            self._status = JobStatus.CANCELLING
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

    def _add_snapshots(self, vertex: int, subtask: int, taken: Mapping[str, OperatorSnapshot]) -> None:
        with self._lock:
            for uid, snapshot in taken.items():
                self._snapshots.setdefault(uid, []).append(snapshot)

    def _start(self, tasks: list[StreamTask]) -> None:
        with self._lock:
            self._tasks = tasks
            if self._status is JobStatus.INITIALIZING:
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

    def _fail(self, error: BaseException) -> None:
        with self._lock:
            if self._status.terminal or self._exception is not None or self._status is JobStatus.CANCELLING:
                # What breaks while a job unwinds is a consequence.
                logger.debug("job=%s: failure while %s: %s", self.id, self._status.value, error)
                self._consequences.append(error)
                return
            if not isinstance(error, FlowSqlError):
                wrapped = InternalError(f"{type(error).__name__}: {error}")
                wrapped.__cause__ = error
                error = wrapped
            self._exception = error
            self._status = JobStatus.FAILING
        self._cancel_tasks()

    def _end(self) -> None:
        with self._lock:
            match self._status:
                case JobStatus.FAILING:
                    self._status = JobStatus.FAILED
                case JobStatus.CANCELLING:
                    self._status = JobStatus.CANCELED
                case _:
                    self._status = JobStatus.FINISHED
            listeners, self._listeners = self._listeners, []
        self._over.set()
        for listener in listeners:
            listener()


class LocalCluster:
    """Runs jobs in this process, within one memory budget.

    Args:
        clock: processing time of all jobs; a ManualClock in tests.
        memory_bytes: budget of the process; None follows ``flowsql.memory`` of each job.
        seed: of everything random in the jobs; None draws one.
    """

    def __init__(self, clock: Clock | None = None, memory_bytes: int | None = None, seed: int | None = None) -> None:
        self.clock = clock or SystemClock()
        self.budget = None if memory_bytes is None else MemoryBudget(memory_bytes)
        self._follows_option = memory_bytes is None
        self._seed = seed

    def submit(
        self,
        graph: JobGraph,
        *,
        restored: JobSnapshot | None = None,
        cut: Cut | None = None,
    ) -> Job:
        """Start a job and return; it runs in threads of its own.

        Args:
            graph: what to run.
            restored: snapshots of a stopped job of the same operators, at any parallelism.
            cut: rows after which each source subtask suspends; then everything in flight is drained, all operators
                are saved to ``Job.snapshot``, and the job finishes.
        """
        run = self._deploy(graph, restored or {}, cut)
        run.start()
        return run.job

    def run(
        self,
        graph: JobGraph,
        *,
        restored: JobSnapshot | None = None,
        cut: Cut | None = None,
    ) -> Job:
        """Run a job to its end; raises its exception. A lone task runs in the calling thread.

        The collect sinks of the graph must not wait for the caller to read them.
        """
        run = self._deploy(graph, restored or {}, cut)
        if len(run.tasks) == 1:
            run.run_here()
        else:
            run.start()
        run.job.wait()
        return run.job

    def _deploy(self, graph: JobGraph, restored: JobSnapshot, cut: Cut | None) -> _Run:
        configuration = Configuration(values=dict(graph.configuration))
        if self.budget is None:
            self.budget = MemoryBudget.of_option(configuration.get(MEMORY))
        elif self._follows_option:
            # A session may change the option between two jobs.
            self.budget.total_bytes = MemoryBudget.of_option(configuration.get(MEMORY)).total_bytes
        job = Job(graph)
        services = JobServices(graph.name, job.id)
        spill = make_spill_space(graph, configuration, job.id)
        network_memory = OperatorMemory(self.budget, "exchange")
        deployment = Deployment(
            graph=graph,
            configuration=configuration,
            services=services,
            processing_time=ProcessingTime(self.clock),
            budget=self.budget,
            metrics=job.metrics,
            network_memory=network_memory,
            spill=spill,
            seed=random.randrange(1 << 62) if self._seed is None else self._seed,
            restored=restored,
            cut=cut,
            on_snapshot=job._add_snapshots,
        )
        try:
            tasks = deployment.tasks()
        except BaseException:
            deployment.release()
            raise
        return _Run(job, tasks, services, collect_resources(graph), deployment.release)


class _Run:
    """One execution of a job: its threads and what happens at their end."""

    def __init__(
        self,
        job: Job,
        tasks: list[StreamTask],
        services: JobServices,
        receivers: Any,
        release: Callable[[], None],
    ) -> None:
        self.job = job
        self.tasks = tasks
        self._services = services
        self._receivers = receivers
        self._release = release
        self._flusher = OutputFlusher([writer for task in tasks for writer in task.writers])
        self._left = len(tasks)
        self._lock = threading.Lock()
        job._start(tasks)

    def start(self) -> None:
        """One thread per task."""
        if len(self.tasks) > 1 and sys.getswitchinterval() > SWITCH_INTERVAL_S:
            sys.setswitchinterval(SWITCH_INTERVAL_S)
        self.job._running()
        self._flusher.start()
        for task in self.tasks:
            name = f"{task.name[:40]}-{task.subtask}"
            threading.Thread(target=self._run_task, args=(task,), name=name, daemon=True).start()
        if not self.tasks:
            self._finish()

    def run_here(self) -> None:
        """The lone task in this thread. An interrupt cancels the job and is raised again."""
        self.job._running()
        self._run_task(self.tasks[0])

    def _run_task(self, task: StreamTask) -> None:
        try:
            task.run()
        except TaskCancelled:
            pass
        except KeyboardInterrupt:
            self.job.cancel()
            raise
        except BaseException as error:  # the job must hear of every end of a task
            logger.debug("job=%s task=%s subtask=%d failed", self.job.id, task.name, task.subtask, exc_info=True)
            self.job._fail(error)
        finally:
            with self._lock:
                self._left -= 1
                last = self._left == 0
            if last:
                self._finish()

    def _finish(self) -> None:
        """After the last task: commit or abort, then tell everyone."""
        self._flusher.stop()
        try:
            # From here a cancellation comes too late.
            if self.job._seal():
                self._services.commit_all()
        except BaseException as error:
            self.job._fail(error)
        if self.job.status is not JobStatus.RUNNING:
            self._services.abort_all()
        self._release()
        self.job._end()
        for receiver in self._receivers:
            receiver.finish()


def run_job(graph: JobGraph, clock: Clock | None = None) -> Job:
    """Run one job to its end in a cluster of its own; raises its exception."""
    return LocalCluster(clock).run(graph)
