"""The embedded cluster: a job's tasks as threads of this process, or in the caller's thread for a lone task."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from flowsql_core.clock import Clock, SystemClock
from flowsql_core.config import Configuration
from flowsql_core.graph.job import JobGraph
from flowsql_runtime.checkpoint.settings import LATEST, RECOVERY_PATH
from flowsql_runtime.cluster.allocator import reuse_freed_memory
from flowsql_runtime.cluster.deploy import Cut
from flowsql_runtime.cluster.job import Job
from flowsql_runtime.cluster.master import JobMaster
from flowsql_runtime.cluster.receivers import collect_resources
from flowsql_runtime.task.memory import MEMORY, MemoryBudget
from flowsql_runtime.task.part import JobPart
from flowsql_runtime.task.restore import JobSnapshot

if TYPE_CHECKING:
    from flowsql_runtime.checkpoint.continuation import Continuation


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
        part: JobPart | None = None,
        continuation: Continuation | None = None,
    ) -> Job:
        """Start a job and return; it runs in threads of its own.

        Args:
            graph: what to run.
            restored: snapshots of a stopped job of the same operators, at any parallelism.
            cut: rows after which each source subtask suspends; then everything in flight is drained, all operators
                are saved to ``Job.snapshot``, and the job finishes.
            part: the job does a part of a larger one's work.
            continuation: how the job goes on from its last process; None: its options say whether it does. One that
                has ended there does nothing.
        """
        if continuation is None and part is None and restored is None and cut is None:
            continuation = _continuation_of(graph)
        if continuation is not None and continuation.finished:
            return _ended(graph, continuation)
        master = self._master(graph, restored, cut, part, continuation)
        master.start()
        return master.job

    def run(
        self,
        graph: JobGraph,
        *,
        restored: JobSnapshot | None = None,
        cut: Cut | None = None,
        on_job: Callable[[Job], None] | None = None,
    ) -> Job:
        """Run a job to its end; raises its exception. A lone task runs in the calling thread.

        The collect sinks of the graph must not wait for the caller to read them. ``on_job`` hears of the job before it
        starts: others may want to look at it, or to stop it, while the caller waits.
        """
        continuation = _continuation_of(graph) if restored is None and cut is None else None
        if continuation is not None and continuation.finished:
            return _ended(graph, continuation)
        master = self._master(graph, restored, cut, None, continuation)
        if on_job is not None:
            on_job(master.job)
        if master.runs_in_caller:
            master.run_here()
        else:
            master.start()
        master.job.wait()
        return master.job

    def _master(
        self,
        graph: JobGraph,
        restored: JobSnapshot | None,
        cut: Cut | None,
        part: JobPart | None,
        continuation: Continuation | None,
    ) -> JobMaster:
        reuse_freed_memory()
        configuration = Configuration(values=dict(graph.configuration))
        if self.budget is None:
            self.budget = MemoryBudget.of_option(configuration.get(MEMORY))
        elif self._follows_option:
            # A session may change the option between two jobs.
            self.budget.total_bytes = MemoryBudget.of_option(configuration.get(MEMORY)).total_bytes
        try:
            return JobMaster(
                Job(graph, None if continuation is None else continuation.job_id),
                graph,
                clock=self.clock,
                budget=self.budget,
                seed=self._seed,
                restored=restored,
                cut=cut,
                part=part,
                continuation=continuation,
            )
        except BaseException:
            if continuation is not None:
                continuation.over()
            raise


def _continuation_of(graph: JobGraph) -> Continuation | None:
    """How a job goes on by itself, where its options ask for it."""
    if dict(graph.configuration).get(RECOVERY_PATH.key) != LATEST:
        return None
    from flowsql_runtime.checkpoint.resume_folder import continuation_of

    return continuation_of(graph)


def _ended(graph: JobGraph, continuation: Continuation) -> Job:
    """A job that another process ran to its end."""
    job = Job(graph, continuation.job_id)
    job.ended_before = True
    job._end()
    for receiver in collect_resources(graph):
        receiver.finish()
    return job


def run_job(graph: JobGraph, clock: Clock | None = None) -> Job:
    """Run one job to its end in a cluster of its own; raises its exception."""
    return LocalCluster(clock).run(graph)
