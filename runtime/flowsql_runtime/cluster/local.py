"""The embedded cluster: a job's tasks as threads of this process, or in the caller's thread for a lone task."""

from __future__ import annotations

from collections.abc import Callable

from flowsql_core.clock import Clock, SystemClock
from flowsql_core.config import Configuration
from flowsql_core.graph.job import JobGraph
from flowsql_runtime.cluster.allocator import reuse_freed_memory
from flowsql_runtime.cluster.deploy import Cut
from flowsql_runtime.cluster.job import Job
from flowsql_runtime.cluster.master import JobMaster
from flowsql_runtime.task.memory import MEMORY, MemoryBudget
from flowsql_runtime.task.part import JobPart
from flowsql_runtime.task.restore import JobSnapshot


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
    ) -> Job:
        """Start a job and return; it runs in threads of its own.

        Args:
            graph: what to run.
            restored: snapshots of a stopped job of the same operators, at any parallelism.
            cut: rows after which each source subtask suspends; then everything in flight is drained, all operators
                are saved to ``Job.snapshot``, and the job finishes.
            part: the job does a part of a larger one's work.
        """
        master = self._master(graph, restored, cut, part)
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
        master = self._master(graph, restored, cut)
        if on_job is not None:
            on_job(master.job)
        if master.runs_in_caller:
            master.run_here()
        else:
            master.start()
        master.job.wait()
        return master.job

    def _master(
        self, graph: JobGraph, restored: JobSnapshot | None, cut: Cut | None, part: JobPart | None = None
    ) -> JobMaster:
        reuse_freed_memory()
        configuration = Configuration(values=dict(graph.configuration))
        if self.budget is None:
            self.budget = MemoryBudget.of_option(configuration.get(MEMORY))
        elif self._follows_option:
            # A session may change the option between two jobs.
            self.budget.total_bytes = MemoryBudget.of_option(configuration.get(MEMORY)).total_bytes
        return JobMaster(
            Job(graph),
            graph,
            clock=self.clock,
            budget=self.budget,
            seed=self._seed,
            restored=restored,
            cut=cut,
            part=part,
        )


def run_job(graph: JobGraph, clock: Clock | None = None) -> Job:
    """Run one job to its end in a cluster of its own; raises its exception."""
    return LocalCluster(clock).run(graph)
