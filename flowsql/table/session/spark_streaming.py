"""Streaming mode on Spark: planning for it, EXPLAIN, and the handle on the job. Nothing else loads this module."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from flowsql.common.job_client import JobClient
from flowsql.common.public_api import public_api
from flowsql.jobs.watch import watch
from flowsql_core.config import PARALLELISM, Configuration
from flowsql_core.errors import BindError, NotSupportedYetError
from flowsql_core.graph.job import JobGraph
from flowsql_core.graph.spark import EXECUTION_TARGET, SPARK_REMOTE
from flowsql_planner.bind import operations as op
from flowsql_planner.planner import Explainable, Planner
from flowsql_planner.translate.options import CHAIN_SINGLE_PARTITION, SQL_PARALLELISM, sql_parallelism
from flowsql_runtime.checkpoint.settings import DIRECTORY, RECOVERY_PATH
from flowsql_runtime.cluster.deploy import STATE_BACKEND, StateBackendType
from flowsql_runtime.spark.sessions.current import missing
from flowsql_runtime.spark.sessions.host import SparkHost
from flowsql_runtime.spark.streaming.checkpoint import stored_query
from flowsql_runtime.spark.streaming.stages import explain_stages

if TYPE_CHECKING:
    from flowsql.table.session.collect import CollectBuffer
    from flowsql_runtime.spark.streaming.job import SparkStreamingJob

STAGES_TITLE: Final = "== Spark Stages =="


@public_api
class SparkStreamClient(JobClient):
    """A stream on Spark."""

    def __init__(self, job: SparkStreamingJob, graph: JobGraph) -> None:
        super().__init__(job, graph)
        self._stream = job

    def progress_text(self) -> str:
        """The batch that is under way, and what was read before it."""
        return f"{self._stream.progress_text()}, {self.records_read():,} rows read"

    def records_read(self) -> int:
        """Rows of the batches of this run."""
        return self._stream.rows_read


def submit_query(
    configuration: Configuration, query: op.Query, collector: CollectBuffer, given: SparkHost | None
) -> SparkStreamClient:
    """Start a query.

    Args:
        given: beside the session of Spark that the program handed in; None: FlowSQL starts one.
    """
    return _submit(configuration, lambda planner: planner.plan_query(query, collector), collector, given)


def submit_inserts(
    configuration: Configuration, inserts: Sequence[op.Insert], given: SparkHost | None
) -> SparkStreamClient:
    """Start INSERTs as one stream; ``given`` as of :func:`submit_query`."""
    return _submit(configuration, lambda planner: planner.plan_inserts(inserts), None, given)


def explain(configuration: Configuration, operation: Explainable, details: Sequence[str]) -> str:
    """EXPLAIN, and the stages of a batch."""
    planner = Planner(_planned_under(configuration))
    text = planner.explain(operation, details)
    match operation:
        case op.Query():
            graph = planner.plan_query(operation, None)
        case op.Insert():
            graph = planner.plan_inserts((operation,))
        case op.StatementSet(inserts):
            graph = planner.plan_inserts(inserts)
    return f"{text}\n{STAGES_TITLE}\n{explain_stages(graph)}"


def _submit(
    configuration: Configuration,
    plan: Callable[[Planner], JobGraph],
    collector: CollectBuffer | None,
    given: SparkHost | None,
) -> SparkStreamClient:
    configuration = _planned_under(configuration)
    graph = plan(Planner(configuration))
    location = configuration.get(DIRECTORY)
    if not location:
        raise BindError(
            "missing-option",
            f"A stream on Spark needs a checkpoint, and '{DIRECTORY.key}' is not set.",
            hint=f"name a folder for this statement alone in '{DIRECTORY.key}'",
        )
    if configuration.get(SPARK_REMOTE) or (given is not None and given.is_remote):
        raise NotSupportedYetError(
            "a stream on a Spark Connect server", hint=f"leave '{SPARK_REMOTE.key}' out, and name 'spark.master'"
        )
    lack = None if given is not None else missing(configuration)
    if lack is not None:
        raise BindError("spark-missing", f"'{EXECUTION_TARGET.key}' is 'spark', and Spark cannot run here: {lack}.")
    from flowsql_runtime.spark.streaming.job import SparkStreamingJob

    job = SparkStreamingJob(graph, location, sql_parallelism(configuration), collector, given)
    watch(job)
    job.start()
    return SparkStreamClient(job, graph)


def _planned_under(configuration: Configuration) -> Configuration:
    """The options of planning: rows of one key always pass an exchange, and parallelism is that of the first run.

    Raises:
        BindError: an option asks for what batches have not.
    """
    if configuration.get(STATE_BACKEND) is not StateBackendType.HASHMAP:
        raise BindError(
            "option-refused",
            f"'{STATE_BACKEND.key}' = '{configuration.get(STATE_BACKEND).value}' is refused for a stream on Spark: its "
            "tasks hold their part of the state in memory while a batch runs.",
            hint="leave it out",
        )
    if configuration.get(RECOVERY_PATH):
        raise BindError(
            "option-refused",
            f"'{RECOVERY_PATH.key}' is refused for a stream on Spark: it goes on from its own checkpoint.",
            hint=f"leave it out; '{DIRECTORY.key}' names the checkpoint",
        )
    made = {CHAIN_SINGLE_PARTITION.key: "false"}
    location = configuration.get(DIRECTORY)
    stored = stored_query(location) if location else None
    if stored is not None:
        made |= {PARALLELISM.key: str(stored.parallelism), SQL_PARALLELISM.key: "-1"}
    return configuration.with_layer(made)
