"""Runs a :class:`SparkJob`: local jobs that read, one query of Spark an answer, local jobs that write.

Spark looks at every query before the first table is read, so that what it cannot run is refused at once. A job's files
live in a folder of its own, which goes with it.
"""

from __future__ import annotations

import logging
import shutil
import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

from flowsql_core.batch import ChangelogBatch
from flowsql_core.config import Configuration
from flowsql_core.errors import FlowSqlError
from flowsql_core.graph.constraints import constraints_of
from flowsql_core.graph.job import JobGraph
from flowsql_core.graph.spark import STAGE_RESOURCE, SparkJob, SparkQuery, StagedInput
from flowsql_runtime.cluster.job import Job, JobStatus
from flowsql_runtime.cluster.local import LocalCluster
from flowsql_runtime.operators.sink.constraints import Judge
from flowsql_runtime.spark.errors import translate
from flowsql_runtime.spark.files import read_files, readable_by_spark
from flowsql_runtime.spark.kernels import register
from flowsql_runtime.spark.rows import ParquetStage, answer_batches, write_answer
from flowsql_runtime.spark.session import spark_session

logger = logging.getLogger(__name__)

#: One job at a time: the session's zone and options are those of the job that runs.
_running = threading.Lock()


class Receiver(Protocol):
    """Takes the rows of an answer."""

    def accept(self, batch: ChangelogBatch) -> None:
        """The next rows."""
        ...

    def finish(self) -> None:
        """There are no more rows, or never will be."""
        ...


class _CancelledError(Exception):
    """The job was cancelled between two of its steps."""


class SparkBatchJob(Job):
    """A submitted Spark job; it runs in a thread of its own. All methods may be called from any thread."""

    def __init__(self, spark: SparkJob, cluster: LocalCluster, receiver: Receiver | None = None) -> None:
        super().__init__(JobGraph(spark.name, (), ()))
        self._spark = spark
        self._cluster = cluster
        self._receiver = receiver
        self._child: Job | None = None
        self._session: Any = None
        self._stage_text = "starting Spark"
        self._answering = False

    def start(self) -> None:
        """Start; returns at once."""
        threading.Thread(target=self._run, name=f"spark-{self.id[:8]}", daemon=True).start()

    def is_computing(self) -> bool:
        """Whether no row of an answer has left the job yet."""
        return not self._answering and not self.is_over()

    def progress_text(self) -> str:
        """What the job is doing, in a few words."""
        text = self._stage_text
        if text != "Spark" or self._session is None:
            return text
        tracker = self._session.sparkContext.statusTracker()
        infos = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
        done = sum(info.numCompletedTasks for info in infos if info is not None)
        every = sum(info.numTasks for info in infos if info is not None)
        return f"Spark: {done} of {every} tasks" if every else "Spark"

    # The steps, in the job's own thread

    def _run(self) -> None:
        self._start([])
        self._running()
        try:
            with _running:
                self._steps()
        except _CancelledError:
            pass
        except BaseException as error:  # whoever waits must hear of every end
            logger.debug("job=%s failed", self.id, exc_info=True)
            self._fail(error)
        finally:
            shutil.rmtree(self._spark.folder, ignore_errors=True)
            self._end()
            if self._receiver is not None:
                self._receiver.finish()

    def _steps(self) -> None:
        spark = self._spark
        configuration = Configuration(values=dict(spark.configuration))
        Path(spark.folder).mkdir(parents=True)
        self._session = session = spark_session(configuration)
        register(session, spark.kernels, configuration)
        self._check_cancelled()
        try:
            waiting = [staged for staged in spark.inputs if not self._by_spark(session, staged)]
            if waiting:
                self._look_ahead(session, waiting)
            for staged in waiting:
                self._stage(session, staged)
            for query in spark.queries:
                self._answer(session, query, configuration)
        finally:
            for staged in spark.inputs:
                session.catalog.dropTempView(staged.view)

    def _by_spark(self, session: Any, staged: StagedInput) -> bool:
        """Whether Spark reads an input by itself; then its view stands."""
        if staged.files is None:
            return False
        paths = readable_by_spark(session, staged.files, staged.columns)
        if paths is None:
            return False
        read_files(session, paths, staged.files, staged.ddl).createOrReplaceTempView(staged.view)
        return True

    def _look_ahead(self, session: Any, waiting: Sequence[StagedInput]) -> None:
        """Let Spark plan every query before FlowSQL reads a row; inputs that wait are empty."""
        self._stage_text = "Spark"
        try:
            register_empty(session, waiting)
            for query in self._spark.every_query():
                session.sql(query.sql)._jdf.queryExecution().optimizedPlan()
        except Exception as error:
            raise self._translated(error, planning=True) from error

    def _stage(self, session: Any, staged: StagedInput) -> None:
        if staged.source is not None:
            # Between two queries of Spark: functions that only FlowSQL has.
            write_answer(self._asked(session, staged.source), staged.source.columns, staged.source.file)
        self._stage_text = "reading tables" if staged.source is None else "between queries"
        path = f"{self._spark.folder}/{staged.view}.parquet"
        writer = ParquetStage(path, staged.columns, staged.keys)
        self._local(replace(staged.job, resources={**staged.job.resources, STAGE_RESOURCE: writer}))
        writer.wait_until_closed()
        session.read.schema(staged.ddl).parquet(path).createOrReplaceTempView(staged.view)

    def _asked(self, session: Any, query: SparkQuery) -> Any:
        """Spark's answer as an Arrow table."""
        self._check_cancelled()
        self._stage_text = "Spark"
        session.sparkContext.setJobGroup(self.id, self.name, interruptOnCancel=True)
        try:
            frame = session.sql(query.sql)
            frame._jdf.queryExecution().optimizedPlan()
        except Exception as error:
            raise self._translated(error, planning=True) from error
        try:
            table = frame.toArrow()
        except Exception as error:
            self._check_cancelled()
            raise self._translated(error, planning=False) from error
        self._check_cancelled()
        return table

    def _answer(self, session: Any, query: SparkQuery, configuration: Configuration) -> None:
        table = self._asked(session, query)
        if query.then is not None:
            write_answer(table, query.columns, query.file)
            del table
            self._stage_text = "writing"
            # A query's rows leave through the job behind.
            self._answering = True
            self._local(query.then)
            return
        assert self._receiver is not None
        self._answering = True
        # What stands in front of a collected answer in Flink, too.
        judge = Judge(constraints_of(query.columns, configuration), query.columns)
        for batch in answer_batches(table, query.columns):
            self._check_cancelled()
            passed, _ = judge.check(batch)
            self._receiver.accept(passed)

    def _local(self, graph: JobGraph) -> None:
        """Run a job of FlowSQL itself to its end."""
        self._check_cancelled()
        self._child = child = self._cluster.submit(graph)
        self.metrics.tasks.extend(child.metrics.tasks)
        self._check_cancelled()
        if child.wait() is JobStatus.CANCELED:
            raise _CancelledError
        self._child = None

    def _translated(self, error: Exception, *, planning: bool) -> FlowSqlError:
        return error if isinstance(error, FlowSqlError) else translate(error, self._spark, planning=planning)

    def _check_cancelled(self) -> None:
        if self.status is JobStatus.CANCELLING:
            self._cancel_tasks()
            raise _CancelledError

    def _cancel_tasks(self) -> None:
        child, session = self._child, self._session
        if child is not None:
            child.cancel()
        if session is not None and self.status is JobStatus.CANCELLING:
            session.sparkContext.cancelJobGroup(self.id)


def register_empty(session: Any, inputs: Sequence[StagedInput]) -> None:
    """Views of inputs without rows: what Spark needs to plan queries."""
    for staged in inputs:
        session.createDataFrame([], staged.ddl).createOrReplaceTempView(staged.view)


def spark_plan(job: SparkJob) -> str:
    """Spark's physical plan of every query of a job.

    Raises:
        FlowSqlError: Spark is missing, or cannot run a query.
    """
    with _running:
        configuration = Configuration(values=dict(job.configuration))
        session = spark_session(configuration)
        try:
            register(session, job.kernels, configuration)
            register_empty(session, job.inputs)
            frames = [session.sql(query.sql) for query in job.every_query()]
            return "\n".join(frame._jdf.queryExecution().executedPlan().toString().rstrip() for frame in frames)
        except Exception as error:
            raise translate(error, job, planning=True) from error
        finally:
            for staged in job.inputs:
                session.catalog.dropTempView(staged.view)
