"""Runs a streaming job on Spark Structured Streaming: Spark tells what is new, FlowSQL's operators run in its tasks."""

from __future__ import annotations

import logging
import pickle
import threading
from concurrent.futures import Future
from typing import Any, Final

import pyarrow as pa

from flowsql_core.config import Configuration, parse_duration_ms
from flowsql_core.element import SnapshotKind
from flowsql_core.errors import ExecutionError, FlowSqlError
from flowsql_core.graph.job import JobGraph
from flowsql_core.graph.spark import AVAILABLE_NOW, SPARK_TRIGGER
from flowsql_runtime.cluster.job import Job, JobStatus, named
from flowsql_runtime.metrics.volumes import Volumes
from flowsql_runtime.network.batch_bytes import decode_batch
from flowsql_runtime.spark.batch import task_memory
from flowsql_runtime.spark.errors import spark_failed, text_of
from flowsql_runtime.spark.failures import failure_in
from flowsql_runtime.spark.sessions.current import spark_host
from flowsql_runtime.spark.sessions.host import SparkHost
from flowsql_runtime.spark.streaming.checkpoint import StreamCheckpoint
from flowsql_runtime.spark.streaming.input import BatchedSources
from flowsql_runtime.spark.streaming.output import BatchedSinks
from flowsql_runtime.spark.streaming.packed import DDL, ORDER, Kind, unpacked
from flowsql_runtime.spark.streaming.stages import Stage, for_tasks, stages_of
from flowsql_runtime.spark.streaming.task import Batch, RunStage, TaskReport
from flowsql_runtime.spark.tasks import SentJob
from flowsql_runtime.task.collected import Receiver

logger = logging.getLogger(__name__)

#: How often the job's thread looks whether somebody cancelled it.
_LOOK_S: Final = 0.2


class SparkStreamingJob(Job):
    """A submitted job; it runs in a thread of its own. All methods may be called from any thread.

    Args:
        graph: as it was planned, and refused where Spark cannot run it.
        location: of its checkpoint.
        parallelism: that it was planned with.
        receiver: takes the rows of a query.
        given: beside the session that the program handed in.
    """

    def __init__(
        self,
        graph: JobGraph,
        location: str,
        parallelism: int,
        receiver: Receiver | None = None,
        given: SparkHost | None = None,
    ) -> None:
        super().__init__(graph)
        self._given = given
        self._graph = graph
        self._location = location
        self._parallelism = parallelism
        self._receiver = receiver
        self._stages: tuple[Stage, ...] = stages_of(graph)
        self._stage_text = "starting Spark"
        self._batch_failure: BaseException | None = None
        self._query: Any = None
        self._checkpoint: StreamCheckpoint | None = None
        self.rows_read = 0

    def start(self) -> None:
        """Start; returns at once."""
        threading.Thread(target=self._run, name=f"spark-{self.id[:8]}", daemon=True).start()

    def volumes(self) -> Volumes:
        """Rows that sources gave; of the rest nobody tells the driver."""
        return Volumes(rows_read=self.rows_read)

    def progress_text(self) -> str:
        """What the job is doing, in a few words."""
        return self._stage_text

    @property
    def last_checkpoint(self) -> str | None:
        """The folder of the last batch's snapshot."""
        checkpoint = self._checkpoint
        return None if checkpoint is None or not checkpoint.newest else checkpoint.folder(checkpoint.newest).path

    def savepoint(self, directory: str | None = None, kind: SnapshotKind = SnapshotKind.SAVEPOINT) -> Future[str]:
        """There are none.

        Raises:
            ExecutionError: always.
        """
        raise ExecutionError(
            "no-savepoint",
            f"Job {self.id} runs on Spark, where no savepoints are taken: its checkpoint in '{self._location}' is "
            "whole after each batch.",
            hint="cancel the job; the next run goes on from there",
        )

    # In the job's own thread

    def _run(self) -> None:
        self._start([])
        self._running()
        try:
            self._stream()
        except BaseException as error:  # whoever waits must hear of every end
            logger.debug("job=%s failed", self.id, exc_info=True)
            self._fail(error)
        finally:
            self._end()
            if self._receiver is not None:
                self._receiver.finish()

    def _stream(self) -> None:
        graph = self._graph
        configuration = Configuration(values=dict(graph.configuration))
        self._checkpoint = checkpoint = StreamCheckpoint(self._location, graph, self._parallelism)
        self._sources = BatchedSources(graph)
        self._sinks = BatchedSinks(graph, checkpoint.lineage)
        self._host = host = spark_host(configuration, self._given)
        self._sent = SentJob(for_tasks(graph), task_memory(host, configuration))
        manifest = checkpoint.newest_manifest()
        prepared = {} if manifest is None else manifest.committables
        self._sinks.commit_again(prepared)
        writer = self._sources.frame(host.session).writeStream.queryName(f"{graph.name}-{self.id[:8]}")
        writer = writer.foreachBatch(self._batch).option("checkpointLocation", checkpoint.spark_location)
        try:
            self._query = writer.trigger(**trigger_of(configuration)).start()
            self._wait()
        finally:
            self._sinks.close()

    def _wait(self) -> None:
        query = self._query
        try:
            while not query.awaitTermination(_LOOK_S):
                if self.status is JobStatus.CANCELLING:
                    query.stop()
        except Exception as error:
            if self.status is JobStatus.CANCELLING:
                return
            failure = self._batch_failure or error
            raise self._translated(failure) from error

    def _translated(self, error: BaseException) -> FlowSqlError:
        if isinstance(error, FlowSqlError):
            return error
        # What a task says stands in what Python made of the failure, or in what Java did.
        found = failure_in(f"{error}\n{text_of(error)}", (), (self._graph,))
        if found is not None:
            return found
        if not isinstance(error, Exception) or not type(error).__module__.startswith(("pyspark", "py4j")):
            return named(error)
        return spark_failed(error)

    # In the thread in which Spark runs the query

    def _batch(self, frame: Any, spark_number: int) -> None:
        try:
            self._one_batch(frame, spark_number + 1)
        except BaseException as error:
            self._batch_failure = error
            raise

    def _one_batch(self, frame: Any, number: int) -> None:
        checkpoint = self._checkpoint
        assert checkpoint is not None
        if number == checkpoint.newest:
            # Spark did not get to note that it was done; what it wrote was shown when the job started.
            return
        checkpoint.check_begins(number)
        self._stage_text = f"batch {number}"
        splits = self._sources.splits(tuple(row) for row in frame.collect())
        batch = Batch(
            number,
            checkpoint.folder(number).path,
            checkpoint.folder(number - 1).path if number > 1 else None,
            splits,
            checkpoint.lineage,
        )
        reports = self._through(frame.sparkSession, batch)
        committables: dict[str, list[bytes]] = {}
        for report in reports:
            self.rows_read += report.rows_read
            for uid, prepared in report.committables.items():
                committables.setdefault(uid, []).extend(prepared)
        self._sinks.flush()
        checkpoint.publish(number, reports, committables)
        self._sinks.commit(committables)
        if any(report.attempt for report in reports):
            self._sinks.discard()

    def _through(self, session: Any, batch: Batch) -> list[TaskReport]:
        """Run the stages. What is for the program is shown before the batch counts: at least once."""
        # The session is the query's own. What stages hand over is dealt out already: there is nothing to plan anew.
        session.conf.set("spark.sql.adaptive.enabled", "false")
        first = self._stages[0].tasks
        frame = session.range(0, first, 1, first)
        for number, stage in enumerate(self._stages):
            if number:
                frame = frame.repartitionById(stage.tasks, "target").sortWithinPartitions(*ORDER)
            frame = self._host.map_in_arrow(frame, RunStage(self._sent, number, batch), DDL)
        table: pa.Table = frame.toArrow()
        reports: list[TaskReport] = []
        for packed in unpacked(table.to_batches()):
            found = pickle.loads(packed.payload)
            if packed.kind is Kind.REPORT:
                reports.append(found)
            else:
                uid, data = found
                self._sinks.show(uid, packed.origin, decode_batch(data, objects=True))
        return reports


def trigger_of(configuration: Configuration) -> dict[str, Any]:
    """When a batch begins, as arguments of Spark's ``trigger``."""
    trigger = configuration.get(SPARK_TRIGGER)
    if trigger == AVAILABLE_NOW:
        return {"availableNow": True}
    return {"processingTime": f"{parse_duration_ms(trigger)} milliseconds"}
