"""``JobClient``: a handle on a job that was started."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flowsql.common.completable_future import CompletableFuture
from flowsql.common.failure import explain_failure
from flowsql.common.job_execution_result import JobExecutionResult
from flowsql.common.public_api import public_api
from flowsql_core.errors import ExecutionError, FlowSqlError

if TYPE_CHECKING:
    from collections.abc import Callable

    from flowsql_core.element import SnapshotKind
    from flowsql_core.graph.expectation import ExpectationCounts
    from flowsql_core.graph.job import JobGraph
    from flowsql_runtime.cluster.job import Job, JobStatus, Restart
    from flowsql_runtime.diagnosis.lost import LostRows, TableRows
    from flowsql_runtime.diagnosis.reasons.base import Finding
    from flowsql_runtime.metrics.volumes import Volumes


class Accumulators(dict[str, int]):
    """Sums by name."""

    def result(self) -> dict[str, int]:
        """The sums themselves: PyFlink asks for them through a future."""
        return dict(self)


@public_api
class JobClient:
    """A running (or ended) job. Every method may be called from any thread."""

    def __init__(self, job: Job, graph: JobGraph) -> None:
        self._job = job
        self._graph = graph

    def get_job_id(self) -> str:
        """32 hexadecimal digits."""
        return self._job.id

    def get_job_status(self) -> JobStatus:
        """Where the job stands, in Flink's words."""
        return self._job.status

    def get_job_name(self) -> str:
        """As it was submitted under, ``pipeline.name``, or what its INSERTs write."""
        return self._job.name

    def started_from(self) -> str | None:
        """Path of the checkpoint or savepoint that the job started from; None: from its beginning."""
        return self._job.started_from

    def ended_before(self) -> bool:
        """Whether an earlier process ran the job to its end, so that it does nothing here.

        Only with ``execution.state-recovery.path`` = ``latest``.
        """
        return self._job.ended_before

    def is_over(self) -> bool:
        """Whether the job finished, failed or was cancelled."""
        return self._job.is_over()

    def wait(self, timeout_s: float | None = None) -> None:
        """Block until the job is over; raises what made it fail, or TimeoutError."""
        try:
            self._job.wait(timeout_s)
        except FlowSqlError as error:
            explain_failure(error, self._graph)
            raise

    def check_not_cancelled(self) -> None:
        """For whoever waited: a job that somebody cancelled did not do what was asked.

        Raises:
            ExecutionError: ``job-cancelled``.
        """
        if self._job.status.value == "CANCELED":
            raise ExecutionError("job-cancelled", "Job was cancelled.")

    def get_job_execution_result(self) -> CompletableFuture[JobExecutionResult]:
        """The result; ``result()`` on it waits for the end of the job and raises what kept it from finishing."""
        return CompletableFuture(self._result, self._job.is_over)

    def _result(self) -> JobExecutionResult:
        self.wait()
        self.check_not_cancelled()
        tasks = [task for task in self._job.metrics.tasks if task.started_ns]
        ran_ns = max((t.stopped_ns for t in tasks), default=0) - min((t.started_ns for t in tasks), default=0)
        return JobExecutionResult(self._job.id, max(0, ran_ns) // 1_000_000, self._job.accumulators)

    def cancel(self) -> CompletableFuture[None]:
        """Ask the job to stop; nothing half-written stays visible. The request is made when this returns."""
        self._job.cancel()
        return CompletableFuture(lambda: None, lambda: True)

    def cancel_and_wait(self) -> None:
        """Stop the job and wait until all its operators are closed."""
        self._job.cancel_and_wait()

    def exceptions(self) -> tuple[BaseException, ...]:
        """What made the job fail, the root cause first, then what broke while it unwound; empty if nothing did."""
        return self._job.exceptions

    def get_accumulators(self) -> Accumulators:
        """Job-wide sums of what operators accumulated so far."""
        return Accumulators(self._job.accumulators)

    def get_metric(self, name: str) -> int | float:
        """A metric such as ``numLateRecordsDropped``, summed over all operators and subtasks."""
        return self._job.metrics.total(name)

    def expectations(self) -> list[ExpectationCounts]:
        """What became so far of rows by the expectations of the tables that the job writes."""
        return self._job.metrics.expectations()

    def lost_rows(self) -> list[LostRows]:
        """Rows that got lost on their way so far, by table and operator.

        Skipped, as they do not fit their table, or too late for what they belong to; and fields that became NULL.
        """
        if not self._job.metrics.any_lost():
            return []
        from flowsql_runtime.diagnosis.lost import lost_rows

        return lost_rows(self._job.metrics, self._graph)

    def table_rows(self) -> list[TableRows]:
        """Rows that the job read from each table and wrote to each, so far; empty of jobs on Spark."""
        from flowsql_runtime.diagnosis.lost import table_rows

        return table_rows(self._job.metrics, self._graph)

    def explain_silence(self, rows_read_before: int | None = None) -> Finding | None:
        """Why a running job gives no rows, in a few words; None where no reason is known, as while it computes.

        Args:
            rows_read_before: what :meth:`records_read` said a while ago: a job that reads on is not asked to hurry.
        """
        from flowsql_runtime.diagnosis.silence import explain
        from flowsql_runtime.diagnosis.snapshot import job_now

        return explain(job_now(self._graph, self._job.metrics, rows_read_before))

    def is_endless(self) -> bool:
        """Whether the job reads a table whose rows never end."""
        from flowsql.display.endless import job_is_endless

        return job_is_endless(self._graph)

    def has_only_inserts(self) -> bool:
        """Whether each row that a query gives is final."""
        from flowsql.display.endless import has_only_inserts

        return has_only_inserts(self._graph)

    def get_volumes(self) -> Volumes:
        """Rows and bytes that the job read, wrote, sent between tasks and spilled so far."""
        return self._job.volumes()

    def records_written(self) -> int:
        """Rows that the job's sinks have taken so far."""
        from flowsql_runtime.metrics.registry import RECORDS_SENT

        return int(self._job.metrics.total(RECORDS_SENT))

    def is_computing(self) -> bool:
        """Whether the whole answer is made before its first row comes, and is not there yet."""
        return False

    def progress_text(self) -> str:
        """How far the job is, in a few words."""
        return f"{self.records_read():,} rows read"

    def records_read(self) -> int:
        """Rows that the job's sources have read so far."""
        from flowsql_runtime.metrics.volumes import records_read

        return records_read(self._job.metrics)

    def watermark_ms(self) -> int | None:
        """The watermark that has come through to all sinks, in milliseconds since 1970; None: there is none yet."""
        from flowsql_runtime.metrics.watermarks import watermark_ms

        return watermark_ms(self._job.metrics)

    def on_restart(self, listener: Callable[[Restart], None]) -> None:
        """Call ``listener`` at each restart of the job, from the job's threads; at once for those that have been."""
        self._job.on_restart(listener)

    def trigger_savepoint(self, savepoint_directory: str | None = None) -> CompletableFuture[str]:
        """Take a savepoint below a folder while the job goes on; the future's result is its path.

        Args:
            savepoint_directory: None: ``execution.checkpointing.savepoint-dir`` of the job.

        Raises:
            ExecutionError: the job is over, or no folder is known; from the future: the savepoint did not complete.
        """
        from flowsql_core.element import SnapshotKind

        return self._savepoint(savepoint_directory, SnapshotKind.SAVEPOINT)

    def stop_with_savepoint(
        self, advance_to_end_of_event_time: bool, savepoint_directory: str | None = None
    ) -> CompletableFuture[str]:
        """End the job with a savepoint; the future's result is its path, once the job has finished.

        Args:
            advance_to_end_of_event_time: send the last watermark before it, so that all event-time windows and timers
                fire: for a job that will not go on.
            savepoint_directory: as in :meth:`trigger_savepoint`.

        Raises:
            ExecutionError: as :meth:`trigger_savepoint`.
        """
        from flowsql_core.element import SnapshotKind

        return self._savepoint(
            savepoint_directory, SnapshotKind.DRAIN if advance_to_end_of_event_time else SnapshotKind.SUSPEND
        )

    def stopped_with(self) -> str | None:
        """The path of the savepoint that ended the job, whoever asked for it; None: it ended otherwise, or runs."""
        return self._job.stopped_with

    def _savepoint(self, directory: str | None, kind: SnapshotKind) -> CompletableFuture[str]:
        from flowsql_runtime.cluster.job import path_of

        future = self._job.savepoint(directory, kind)

        def path() -> str:
            found = path_of(future)
            if kind.stops:
                self.wait()
            return found

        return CompletableFuture(path, lambda: future.done() and (not kind.stops or self.is_over()))
