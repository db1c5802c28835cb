"""Batch mode: which engine runs a statement, and the handle on a job of Spark. Streaming never loads this module."""

from __future__ import annotations

import secrets
import tempfile
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar

from flowsql.common.failure import explain_failure
from flowsql.common.job_client import JobClient
from flowsql.common.public_api import public_api
from flowsql.jobs.watch import watch
from flowsql_core.config import Configuration
from flowsql_core.errors import FlowSqlError, NotSupportedYetError
from flowsql_core.graph.job import JobGraph
from flowsql_core.graph.spark import BATCH_ENGINE, LOCAL_THRESHOLD, BatchEngine, SparkJob
from flowsql_planner.bind import operations as op
from flowsql_planner.physical.bounded.inputs import Inputs
from flowsql_planner.planner import Explainable, Planner
from flowsql_runtime.operators.evaluation import QUERY_START_PARAMETER

if TYPE_CHECKING:
    from flowsql.table.session.collect import CollectBuffer
    from flowsql_planner.spark.plan import SparkPlanner
    from flowsql_runtime.cluster.local import LocalCluster
    from flowsql_runtime.spark.batch import SparkBatchJob
    from flowsql_runtime.spark.sessions.host import SparkHost

ENGINE_TITLE: Final = "== Batch Engine =="
#: Gives the inputs of a job the rows that the program gave.
WithRows = Callable[[SparkJob], SparkJob]
#: What an engine makes of a statement.
L = TypeVar("L")
S = TypeVar("S")


@public_api
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


def plan_query(
    configuration: Configuration, query: op.Query, collector: CollectBuffer, given: SparkHost | None
) -> JobGraph | SparkJob:
    """A query in batch mode, for the engine that the configuration and its inputs choose.

    Args:
        given: beside the session of Spark that the program handed in; None: FlowSQL starts one when it needs it.
    """
    configuration = _started(configuration)
    _start_early(configuration, given)
    return _chosen(
        configuration,
        given,
        query,
        lambda _: Planner(configuration).plan_query(query, collector),
        lambda spark, _: spark.plan_query(query, collector),
    )


def plan_inserts(
    configuration: Configuration, inserts: Sequence[op.Insert], given: SparkHost | None, *, starts: bool = True
) -> JobGraph | SparkJob:
    """INSERTs in batch mode; arguments as of :func:`plan_query`. ``starts``: the job is going to be started."""
    configuration = _started(configuration)
    if starts:
        _start_early(configuration, given)
    return _chosen(
        configuration,
        given,
        op.StatementSet(tuple(inserts)),
        lambda _: Planner(configuration).plan_inserts(inserts),
        lambda spark, _: spark.plan_inserts(inserts),
    )


def frame_of(
    configuration: Configuration, query: op.Query, cluster: LocalCluster, with_rows: WithRows, given: SparkHost | None
) -> Any:
    """The answer of a query as a DataFrame in the program's session of Spark.

    Args:
        cluster: runs jobs in this program.
        with_rows: gives a job the rows that its scans name.
        given: as of :func:`plan_query`.
    """
    from flowsql_runtime.spark.batch import SparkBatchJob
    from flowsql_runtime.spark.frames import refuse_strange

    refuse_strange(query.schema)
    planned = with_rows(_spark_planner(_started(configuration)).plan_frame(query))
    return SparkBatchJob(planned, cluster, given=given).frame()


def explain(
    configuration: Configuration, operation: Explainable, details: Sequence[str], given: SparkHost | None
) -> str:
    """EXPLAIN in batch mode: of the engine that would run the statement, and why it is that one."""

    def local(reason: str) -> str:
        planner = Planner(configuration)
        # EXPLAIN shows plans that nothing runs yet; whether this one runs decides who explains it.
        match operation:
            case op.Query():
                planner.plan_query(operation, None)
            case op.Insert():
                planner.plan_inserts((operation,))
            case op.StatementSet(inserts):
                planner.plan_inserts(inserts)
        return _with_engine(planner.explain(operation, details), BatchEngine.LOCAL, reason)

    def on_spark(planner: SparkPlanner, reason: str) -> str:
        from flowsql_runtime.spark.batch import spark_plan

        text = planner.explain(operation, details, lambda job: spark_plan(job, given))
        return _with_engine(text, BatchEngine.SPARK, reason)

    return _chosen(configuration, given, operation, local, on_spark)


def _with_engine(text: str, engine: BatchEngine, reason: str) -> str:
    return f"{text}\n{ENGINE_TITLE}\n{engine.value}: {reason}\n"


def submit(
    cluster: LocalCluster, spark: SparkJob, collector: CollectBuffer | None, given: SparkHost | None
) -> SparkJobClient:
    """Start a job on Spark. Rows go to ``collector`` unless a job behind Spark delivers them."""
    from flowsql_runtime.spark.batch import SparkBatchJob

    job = SparkBatchJob(spark, cluster, collector, given)
    watch(job)
    job.start()
    return SparkJobClient(job, spark)


def _started(configuration: Configuration) -> Configuration:
    """The clock stands still in batch mode: all jobs of a statement know when it began."""
    return configuration.with_layer({QUERY_START_PARAMETER: str(time.time_ns() // 1_000_000)})


def _chosen(
    configuration: Configuration,
    given: SparkHost | None,
    operation: Explainable,
    local: Callable[[str], L],
    on_spark: Callable[[SparkPlanner, str], S],
) -> L | S:
    """What the engine of a statement makes of it; both get the reason for which they were chosen.

    ``auto`` turns to the other engine where one has no exact plan for the statement.
    """
    engine = configuration.get(BATCH_ENGINE)
    if engine is BatchEngine.LOCAL:
        return local(f"'{BATCH_ENGINE.key}' says so")
    if engine is BatchEngine.SPARK:
        return on_spark(_spark_planner(configuration), f"'{BATCH_ENGINE.key}' says so")
    try:
        inputs = Planner(configuration).inputs(operation)
    except NotSupportedYetError as refusal:
        return _spark_instead(configuration, given, refusal, on_spark)
    reason = _reason_for_local(configuration, given, inputs)
    if reason is not None:
        try:
            return local(reason)
        except NotSupportedYetError as refusal:
            return _spark_instead(configuration, given, refusal, on_spark)
    try:
        return on_spark(_spark_planner(configuration), _reason_for_spark(configuration.get(LOCAL_THRESHOLD), inputs))
    except NotSupportedYetError as refusal:
        try:
            return local(f"Spark has no exact form of the statement ({refusal.message})")
        except NotSupportedYetError:
            raise refusal from None


def _spark_instead(
    configuration: Configuration,
    given: SparkHost | None,
    refusal: NotSupportedYetError,
    on_spark: Callable[[SparkPlanner, str], S],
) -> S:
    """What FlowSQL's own runtime refuses, on Spark where that is installed."""
    lack = _spark_lacks(configuration, given)
    if lack is not None:
        refusal.hint = f"Spark may run it, but {lack}"
        raise refusal
    try:
        return on_spark(_spark_planner(configuration), f"FlowSQL's own runtime does not run it ({refusal.message})")
    except NotSupportedYetError:
        raise refusal from None


def _reason_for_local(configuration: Configuration, given: SparkHost | None, inputs: Inputs) -> str | None:
    """Why a statement stays in FlowSQL's own runtime; None where Spark shall run it."""
    threshold_bytes = configuration.get(LOCAL_THRESHOLD)
    if threshold_bytes and not inputs.waits:
        return "no operator waits for all rows of its input"
    if threshold_bytes and inputs.unknown is None and inputs.size_bytes < threshold_bytes:
        size, most = _shown(inputs.size_bytes), _shown(threshold_bytes)
        return f"all inputs are known, {size} in all, below '{LOCAL_THRESHOLD.key}' ({most})"
    if inputs.here is not None:
        return inputs.here
    lack = _spark_lacks(configuration, given)
    return None if lack is None else f"Spark cannot run here: {lack}"


def _reason_for_spark(threshold_bytes: int, inputs: Inputs) -> str:
    if not threshold_bytes:
        return f"'{LOCAL_THRESHOLD.key}' is 0"
    if inputs.unknown is not None:
        return f"how much '{inputs.unknown}' holds is not known"
    return f"the inputs have {_shown(inputs.size_bytes)}, not below '{LOCAL_THRESHOLD.key}' ({_shown(threshold_bytes)})"


def _shown(size_bytes: int) -> str:
    """``1.5 mb``, as sizes are written in options."""
    size, unit = float(size_bytes), "bytes"
    for larger in ("kb", "mb", "gb"):
        if size < 1024:
            break
        size, unit = size / 1024, larger
    return f"{size:.1f}".removesuffix(".0") + f" {unit}"


def _start_early(configuration: Configuration, given: SparkHost | None) -> None:
    """Let Spark start while the statement is planned, where it is sure to be asked."""
    if given is None and configuration.get(BATCH_ENGINE) is BatchEngine.SPARK:
        from flowsql_runtime.spark.sessions.current import start_early

        start_early(configuration)


def _spark_lacks(configuration: Configuration, given: SparkHost | None) -> str | None:
    from flowsql_runtime.spark.sessions.current import missing

    return missing(configuration) if given is None else None


def _spark_planner(configuration: Configuration) -> SparkPlanner:
    from flowsql_planner.spark.plan import SparkPlanner

    folders = (configuration.text("io.tmp.dirs") or "").replace("|", ",").split(",")
    base = folders[0].strip() or tempfile.gettempdir()
    return SparkPlanner(configuration, f"{base}/flowsql-spark-{secrets.token_hex(8)}")
