"""Runs a :class:`SparkJob`: jobs of FlowSQL that read, one query of Spark an answer, jobs that write.

Files are read and written inside of Spark's tasks; what stands in the program, and small files on this machine, the
driver hands over. Spark looks at every query before the first table is read, so that what it cannot run is refused at
once. A job's files live in a folder of its own, which goes with it.
"""

from __future__ import annotations

import contextlib
import logging
import shutil
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, Protocol, TypeVar

import pyarrow as pa

from flowsql_connectors.handed import HandedRows
from flowsql_core.batch import ChangelogBatch
from flowsql_core.config import Configuration
from flowsql_core.errors import FlowSqlError
from flowsql_core.graph.constraints import constraints_of
from flowsql_core.graph.job import JobGraph
from flowsql_core.graph.spark import ROWS_RESOURCE, STAGE_RESOURCE, SparkJob, SparkQuery, StagedInput
from flowsql_core.record import record
from flowsql_runtime.cluster.job import Job, JobStatus
from flowsql_runtime.cluster.local import LocalCluster
from flowsql_runtime.metrics.volumes import Volumes
from flowsql_runtime.operators.sink.constraints import Judge
from flowsql_runtime.spark.errors import translate
from flowsql_runtime.spark.frames import as_program_sees
from flowsql_runtime.spark.kernels import register
from flowsql_runtime.spark.measured import volumes_of
from flowsql_runtime.spark.parts import view_in_place
from flowsql_runtime.spark.rows import ArrowStage, ParquetStage, Stage, answer_batches
from flowsql_runtime.spark.sessions.current import spark_host
from flowsql_runtime.spark.sessions.host import SparkHost
from flowsql_runtime.spark.tasks import TakeFurther, TaskMemory
from flowsql_runtime.spark.writing import PreparedSink, can_write_in_tasks, prepared_sinks, write_in_tasks
from flowsql_runtime.task.memory import MEMORY
from flowsql_runtime.task.part import JobPart

logger = logging.getLogger(__name__)
T = TypeVar("T")

#: How soon Spark is told again to cancel a job.
_AGAIN_S: Final = 0.3
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

    def __init__(
        self,
        spark: SparkJob,
        cluster: LocalCluster,
        receiver: Receiver | None = None,
        given: SparkHost | None = None,
    ) -> None:
        super().__init__(JobGraph(spark.name, (), ()))
        self._spark = spark
        self._cluster = cluster
        self._receiver = receiver
        self._child: Job | None = None
        self._given = given
        self._host: SparkHost | None = None
        self._stage_text = "starting Spark"
        self._answering = False
        self._cancelling = False
        #: Whether rows of the program may stand in no file: the job's folder goes before they are read.
        self._in_memory = False
        #: What one task may hold.
        self._memory = TaskMemory(0, None)
        #: Frames that Spark keeps while the job runs.
        self._kept: list[Any] = []
        #: Frames that Spark has computed, and bytes of files that FlowSQL's readers read.
        self._computed: list[Any] = []
        self._own_bytes = 0

    def start(self) -> None:
        """Start; returns at once."""
        threading.Thread(target=self._run, name=f"spark-{self.id[:8]}", daemon=True).start()

    def is_computing(self) -> bool:
        """Whether no row of an answer has left the job yet."""
        return not self._answering and not self.is_over()

    def progress_text(self) -> str:
        """What the job is doing, in a few words."""
        text, host = self._stage_text, self._host
        return text if text != "Spark" or host is None else str(host.progress())

    def volumes(self) -> Volumes:
        """Spark is asked what it counted; None where the session has ended meanwhile. Small files that this program
        reads, and those that tasks read, count once, whatever reads them."""
        host = self._host
        found = Volumes()
        if host is not None:
            with contextlib.suppress(Exception):
                plans = host.counted(self._computed, self._spark.folder)
                if plans is not None:
                    found = volumes_of(plans)
        at_home = super().volumes()
        return replace(
            found,
            bytes_read=None if found.bytes_read is None else found.bytes_read + self._own_bytes,
            rows_written=at_home.rows_written,
            bytes_written=at_home.bytes_written,
        )

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
        self._host = host = spark_host(configuration, self._given)
        commits: list[PreparedSink] = []
        try:
            self._prepare(host, configuration)
            for query in spark.queries:
                self._answer(host, query, configuration, commits)
            # One INSERT of a statement set is seen only with all others: from here a cancellation comes too late.
            self._check_cancelled()
            for sink in commits:
                sink.commit()
        finally:
            for sink in commits:
                sink.discard()
            host.drop_views(spark.views())
            for frame in self._kept:
                frame.unpersist()

    def frame(self) -> Any:
        """The one answer as a DataFrame in the program's session; the job is not started.

        What tasks make of rows that only FlowSQL can take further stays with Spark, so that each row is computed once,
        as long as the session does.
        """
        configuration = Configuration(values=dict(self._spark.configuration))
        with _running:
            host = spark_host(configuration, self._given)
            try:
                self._in_memory = True
                self._prepare(host, configuration)
                (query,) = self._spark.queries
                made = as_program_sees(host, self._planned(host, query), query.columns)
            finally:
                # Spark forgets what it keeps of a view with the view.
                host.drop_views(self._spark.views())
            for kept in self._kept:
                kept.persist()
            return made

    def _prepare(self, host: SparkHost, configuration: Configuration) -> None:
        """Functions and views that the queries ask for."""
        self._check_cancelled()
        self._memory = task_memory(host, configuration)
        ready = made_ready(host, self._spark, configuration, self._memory)
        self._own_bytes = ready.own_bytes
        self._kept += [frame.persist() for frame in ready.shared]
        if any(staged.source is None for staged in ready.waiting):
            self._look_ahead(host, ready.waiting)
        for staged in ready.waiting:
            self._hand_over(host, staged)

    def _look_ahead(self, host: SparkHost, waiting: Sequence[StagedInput]) -> None:
        """Let Spark plan every query before FlowSQL reads a row; inputs that wait are empty."""
        register_empty(host.session, waiting)
        for query in self._spark.every_query():
            self._planned(host, query)

    def _planned(self, host: SparkHost, query: SparkQuery) -> Any:
        """The DataFrame of a query that Spark can run."""
        self._stage_text = "Spark"
        try:
            frame = host.session.sql(query.sql)
            host.check(frame)
        except Exception as error:
            raise self._translated(error, planning=True) from error
        return frame

    def _hand_over(self, host: SparkHost, staged: StagedInput) -> None:
        """The view of an input that the driver reads, or that tasks make of an answer of Spark."""
        source = staged.source
        if source is None:
            self._stage_text = "reading tables"
            self._read_here(host, staged).createOrReplaceTempView(staged.view)
            return
        rows = self._planned(host, source)
        if staged.keys is not None:
            keys = [f"c{index}" for index in staged.keys]
            rows = rows.repartition(*keys) if keys else rows.repartition(1)
        if staged.placed:
            place = rows.columns[-1]
            rows = rows.sortWithinPartitions(place).drop(place)
        task = TakeFurther(staged.job, self._memory, source.columns, staged.columns)
        # A function that gives another value with each call is asked once for each row.
        frame = host.map_in_arrow(rows, task, staged.ddl).persist()
        self._kept.append(frame)
        frame.createOrReplaceTempView(staged.view)

    def _read_here(self, host: SparkHost, staged: StagedInput) -> Any:
        """The rows of an input that the driver reads."""
        rows: Stage
        if host.is_local and not self._in_memory:
            rows = ParquetStage(f"{self._spark.folder}/{staged.view}.parquet", staged.columns)
        else:
            rows = ArrowStage(staged.columns)
        self._local(replace(staged.job, resources={**staged.job.resources, STAGE_RESOURCE: rows}), None)
        return rows.frame(host.session, staged.ddl)

    def _answer(
        self, host: SparkHost, query: SparkQuery, configuration: Configuration, commits: list[PreparedSink]
    ) -> None:
        self._check_cancelled()
        host.begin(self.id, self.name)
        frame = self._planned(host, query)
        sinks = [] if query.then is None else prepared_sinks(query.then, self.id)
        # Also where it fails: what tasks had written goes.
        commits += sinks
        if query.then is not None and sinks and all(can_write_in_tasks(query, sink) for sink in sinks):
            self._answering = True
            self.metrics.tasks.append(
                self._asked(lambda: write_in_tasks(host, frame, query, sinks, self._memory, self.id, self._table))
            )
            return
        table = self._asked(lambda: self._table(frame))
        self._answering = True
        if query.then is not None:
            self._stage_text = "writing"
            rows = HandedRows(answer_batches(table, query.columns))
            part = JobPart(lineage=self.id)
            self._local(replace(query.then, resources={**query.then.resources, ROWS_RESOURCE: rows}), part)
            for sink in sinks:
                sink.take(part.committables)
            return
        assert self._receiver is not None
        # What stands in front of a collected answer in Flink, too.
        judge = Judge(constraints_of(query.columns, configuration), query.columns)
        for batch in answer_batches(table, query.columns):
            self._check_cancelled()
            passed, _ = judge.check(batch)
            self._receiver.accept(passed)

    def _table(self, frame: Any) -> pa.Table:
        """The rows of a frame, in this program."""
        self._computed.append(frame)
        return frame.toArrow()

    def _asked(self, ask: Callable[[], T]) -> T:
        """What Spark answers."""
        try:
            answer = ask()
        except Exception as error:
            self._check_cancelled()
            raise self._translated(error, planning=False) from error
        self._check_cancelled()
        return answer

    def _local(self, graph: JobGraph, part: JobPart | None) -> None:
        """Run a job of FlowSQL itself to its end."""
        self._check_cancelled()
        self._child = child = self._cluster.submit(graph, part=part)
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
        child, host = self._child, self._host
        if child is not None:
            child.cancel()
        if host is not None and self.status is JobStatus.CANCELLING and not self._cancelling:
            self._cancelling = True
            threading.Thread(target=self._cancel_on, args=(host,), name=f"cancel-{self.id[:8]}", daemon=True).start()

    def _cancel_on(self, host: SparkHost) -> None:
        """Tell Spark until the job is over: it does not know yet of a query that is just being handed over."""
        while not self.is_over():
            host.cancel(self.id)
            time.sleep(_AGAIN_S)


def task_memory(host: SparkHost, configuration: Configuration) -> TaskMemory:
    """What one task of a job may hold."""
    return TaskMemory(configuration.get(MEMORY), host.slots() if host.is_local else None)


@record
class Ready:
    """Inputs that have no view yet, bytes of files that FlowSQL's readers read for all, and frames behind views whose
    rows Spark is to keep."""

    waiting: tuple[StagedInput, ...]
    own_bytes: int
    shared: tuple[Any, ...]


def made_ready(host: SparkHost, job: SparkJob, configuration: Configuration, memory: TaskMemory) -> Ready:
    """Make the functions of a job known, and views of inputs that never pass through the driver."""
    register(host, job.kernels, configuration)
    placed = [view_in_place(host, staged, memory) for staged in job.inputs]
    return Ready(
        tuple(staged for staged, place in zip(job.inputs, placed, strict=True) if not place.is_view),
        sum(place.own_bytes for place in placed),
        tuple(place.shared for place in placed if place.shared is not None),
    )


def register_empty(session: Any, inputs: Sequence[StagedInput]) -> None:
    """Views of inputs without rows: what Spark needs to plan queries."""
    for staged in inputs:
        session.createDataFrame([], staged.ddl).createOrReplaceTempView(staged.view)


def spark_plan(job: SparkJob, given: SparkHost | None = None) -> str:
    """Spark's physical plan of every query of a job.

    Args:
        job: which is not run.
        given: beside the session that the program handed in.

    Raises:
        FlowSqlError: Spark is missing, or cannot run a query.
    """
    with _running:
        configuration = Configuration(values=dict(job.configuration))
        host = spark_host(configuration, given)
        session = host.session
        try:
            ready = made_ready(host, job, configuration, task_memory(host, configuration))
            try:
                for frame in ready.shared:
                    frame.persist()
                register_empty(session, ready.waiting)
                return "\n".join(host.physical_plan(session.sql(query.sql)) for query in job.every_query())
            finally:
                for frame in ready.shared:
                    frame.unpersist()
        except Exception as error:
            raise translate(error, job, planning=True) from error
        finally:
            host.drop_views(job.views())
