"""Batch mode: which engine runs a statement, and the handle on a job of Spark. Streaming never loads this module."""

from __future__ import annotations

import secrets
import tempfile
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

from flowsql.common.failure import explain_failure
from flowsql.common.job_client import JobClient
from flowsql.jobs.watch import watch
from flowsql_core.config import Configuration
from flowsql_core.errors import FlowSqlError, NotSupportedYetError
from flowsql_core.graph.job import JobGraph
from flowsql_core.graph.spark import BATCH_ENGINE, BatchEngine, SparkJob
from flowsql_planner.bind import operations as op
from flowsql_planner.planner import Explainable, Planner
from flowsql_runtime.operators.evaluation import QUERY_START_PARAMETER

if TYPE_CHECKING:
    from flowsql.table.session.collect import CollectBuffer
    from flowsql_planner.spark.plan import SparkPlanner
    from flowsql_runtime.cluster.local import LocalCluster
    from flowsql_runtime.spark.batch import SparkBatchJob

#: What an engine makes of a statement.
L = TypeVar("L")
S = TypeVar("S")


class SparkJobClient(JobClient):
    """A job on Spark, with the local jobs around it."""

    def __init__(self, job: SparkBatchJob, spark: SparkJob) -> None:
        super().__init__(job, JobGraph(spark.name, (), ()))
        self._batch_job = job
        self._spark = spark

    def wait(self, timeout_s: float | None = None) -> None:
        """Block until the job is over; raises what made it fail, or TimeoutError."""
        try:
            self._job.wait(timeout_s)
        except FlowSqlError as error:
            for staged in self._spark.inputs:
                explain_failure(error, staged.job)
            for query in self._spark.queries:
                if query.then is not None:
                    explain_failure(error, query.then)
            raise

    def is_computing(self) -> bool:
        """Whether the first row of the answer is still to come."""
        return self._batch_job.is_computing()

    def progress_text(self) -> str:
        """How far the job is: rows that tables gave so far, then what Spark has done."""
        text = self._batch_job.progress_text()
        return f"{text}, {self.records_read():,} rows read"


def plan_query(configuration: Configuration, query: op.Query, collector: CollectBuffer) -> JobGraph | SparkJob:
    """A query in batch mode, for the engine that the configuration chooses."""
    configuration = _started(configuration)
    return _chosen(
        configuration,
        lambda: Planner(configuration).plan_query(query, collector),
        lambda spark: spark.plan_query(query, collector),
    )


def plan_inserts(configuration: Configuration, inserts: Sequence[op.Insert]) -> JobGraph | SparkJob:
    """INSERTs in batch mode."""
    configuration = _started(configuration)
    return _chosen(
        configuration,
        lambda: Planner(configuration).plan_inserts(inserts),
        lambda spark: spark.plan_inserts(inserts),
    )


def explain(configuration: Configuration, operation: Explainable, details: Sequence[str]) -> str:
    """EXPLAIN in batch mode: of the engine that would run the statement."""

    def local() -> str:
        planner = Planner(configuration)
        if configuration.get(BATCH_ENGINE) is BatchEngine.AUTO:
            # EXPLAIN shows plans that nothing runs yet; whether this one runs decides who explains it.
            match operation:
                case op.Query():
                    planner.plan_query(operation, None)
                case op.Insert():
                    planner.plan_inserts((operation,))
                case op.StatementSet(inserts):
                    planner.plan_inserts(inserts)
        return planner.explain(operation, details)

    def on_spark(planner: SparkPlanner) -> str:
        from flowsql_runtime.spark.batch import spark_plan

        return planner.explain(operation, details, spark_plan)

    return _chosen(configuration, local, on_spark)


def submit(cluster: LocalCluster, spark: SparkJob, collector: CollectBuffer | None = None) -> SparkJobClient:
    """Start a job on Spark. Rows go to ``collector`` unless a job behind Spark delivers them."""
    from flowsql_runtime.spark.batch import SparkBatchJob

    job = SparkBatchJob(spark, cluster, collector)
    watch(job)
    job.start()
    return SparkJobClient(job, spark)


def _started(configuration: Configuration) -> Configuration:
    """The clock stands still in batch mode: all jobs of a statement know when it began."""
    return configuration.with_layer({QUERY_START_PARAMETER: str(time.time_ns() // 1_000_000)})


def _chosen(configuration: Configuration, local: Callable[[], L], on_spark: Callable[[SparkPlanner], S]) -> L | S:
    """``auto`` takes FlowSQL's own runtime where it answers, then Spark where that is installed."""
    engine = configuration.get(BATCH_ENGINE)
    if engine is BatchEngine.LOCAL:
        return local()
    if engine is BatchEngine.SPARK:
        return on_spark(_spark_planner(configuration))
    try:
        return local()
    except NotSupportedYetError as refusal:
        from flowsql_runtime.spark.session import missing

        lack = missing()
        if lack is not None:
            refusal.hint = f"Spark runs more of batch mode, but {lack}"
            raise
    return on_spark(_spark_planner(configuration))


def _spark_planner(configuration: Configuration) -> SparkPlanner:
    from flowsql_planner.spark.plan import SparkPlanner

    folders = (configuration.text("io.tmp.dirs") or "").replace("|", ",").split(",")
    base = folders[0].strip() or tempfile.gettempdir()
    return SparkPlanner(configuration, f"{base}/flowsql-spark-{secrets.token_hex(8)}")
