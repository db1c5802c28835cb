"""Tables that FlowSQL writes inside of Spark's tasks: each prepares its files, the driver shows all at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from flowsql_connectors import registry
from flowsql_connectors.spi.sink import Committable
from flowsql_core.graph.job import JobGraph
from flowsql_core.graph.spark import SparkQuery
from flowsql_core.graph.specs import SinkSpec
from flowsql_runtime.metrics.registry import TaskMetrics
from flowsql_runtime.operators.sink.table_sink import lineage_of
from flowsql_runtime.spark.sessions.host import SparkHost
from flowsql_runtime.spark.tasks import COMMITTABLES_DDL, COUNTS, TaskMemory, WriteRows, counts_of


class PreparedSink:
    """A sink of a statement, and what its writers have prepared."""

    def __init__(self, uid: str, spec: SinkSpec, parameters: Mapping[str, str], lineage: str) -> None:
        self.uid = uid
        self.spec = spec
        self.sink = registry.create_sink(spec, parameters)
        self._committer = self.sink.create_committer()
        self._lineage = lineage_of(lineage, uid)
        self._prepared: list[Committable] = []

    def take(self, committables: Mapping[str, Sequence[bytes]]) -> None:
        """What a job prepared, by the sinks' uids."""
        self._prepared += map(Committable, committables.get(self.uid, ()))

    def commit(self) -> None:
        """Show all of it."""
        if self._committer is not None:
            self._committer.commit(self._prepared, end_of_input=True)

    def discard(self) -> None:
        """What was not shown goes: files of tasks that failed, or ran twice."""
        if self._committer is not None:
            self._committer.discard(self._lineage)


def prepared_sinks(graph: JobGraph, lineage: str) -> list[PreparedSink]:
    """The tables that a job writes."""
    parameters = dict(graph.configuration)
    nodes = [node for vertex in graph.vertices for node in vertex.operators]
    return [PreparedSink(node.uid, node.spec, parameters, lineage) for node in nodes if isinstance(node.spec, SinkSpec)]


def can_write_in_tasks(query: SparkQuery, sink: PreparedSink) -> bool:
    """Whether the tasks that make a query's rows may write them."""
    # Rows are dealt out to writers by columns of the table, which only the job behind the query may know.
    dealt = sink.sink.shuffles_by_partition() and not query.is_written
    return sink.sink.writes_anywhere() and not dealt


def write_in_tasks(
    host: SparkHost,
    frame: Any,
    query: SparkQuery,
    sinks: Sequence[PreparedSink],
    memory: TaskMemory,
    lineage: str,
    table_of: Callable[[Any], pa.Table],
) -> TaskMetrics:
    """Run the job behind a query in the tasks that make its rows, and gather what the writers prepared and counted.

    Args:
        table_of: asks Spark for the rows of a frame.
    """
    assert query.then is not None
    (sink,) = sinks
    keys = sink.spec.table.partition_keys
    writers = sink.sink.parallelism()
    if sink.sink.shuffles_by_partition() and keys:
        names = [column.name for column in sink.spec.table.columns]
        by = [f"c{names.index(key)}" for key in keys]
        frame = frame.repartition(*by) if writers is None else frame.repartition(writers, *by)
    elif writers is not None:
        frame = frame.repartition(writers)
    task = WriteRows(query.then, memory, query.columns, lineage)
    told = table_of(host.map_in_arrow(frame, task, COMMITTABLES_DDL))
    found = list(zip(*told.to_pydict().values(), strict=True))
    for one in sinks:
        one.take({one.uid: [data for uid, data in found if uid == one.uid]})
    measured = TaskMetrics(query.then.name, 0)
    measured.operators += [counts_of(data) for uid, data in found if uid == COUNTS]
    return measured
