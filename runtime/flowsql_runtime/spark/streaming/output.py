"""The sinks of a stream on Spark: committers that show what tasks prepared, and writers to the program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from flowsql_connectors import registry
from flowsql_connectors.spi.sink import Committable, SinkWriter, TableSink, WriterContext
from flowsql_core.batch import ChangelogBatch
from flowsql_core.clock import SystemClock
from flowsql_core.graph.job import JobGraph
from flowsql_core.graph.specs import CollectSinkSpec, SinkSpec
from flowsql_runtime.operators.sink.table_sink import WRITE_TEXT_RESOURCE, lineage_of


class BatchedSinks:
    """Everything that a job writes.

    Args:
        graph: as it was planned.
        lineage: of the query: hidden files are named after it.
    """

    def __init__(self, graph: JobGraph, lineage: str) -> None:
        self._graph = graph
        self._parameters = dict(graph.configuration)
        self._lineage = lineage
        self._sinks: dict[str, TableSink] = {}
        self._receivers: dict[str, CollectSinkSpec] = {}
        self._widths: dict[str, int] = {}
        self._writers: dict[tuple[str, int], SinkWriter] = {}
        for vertex in graph.vertices:
            for node in vertex.operators:
                match node.spec:
                    case SinkSpec() as spec:
                        self._sinks[node.uid] = registry.create_sink(spec, self._parameters)
                        self._widths[node.uid] = vertex.parallelism
                    case CollectSinkSpec() as spec:
                        self._receivers[node.uid] = spec

    def commit(self, committables: Mapping[str, Sequence[bytes]]) -> None:
        """Show what a batch prepared."""
        for uid, prepared in committables.items():
            committer = self._sinks[uid].create_committer()
            if committer is not None and prepared:
                committer.commit([Committable(data) for data in prepared], end_of_input=False)

    def commit_again(self, committables: Mapping[str, Sequence[bytes]]) -> None:
        """Show what the last batch prepared, of which nobody knows whether it was shown; other leftovers go."""
        for uid, sink in self._sinks.items():
            committer = sink.create_committer()
            if committer is None:
                continue
            if committables.get(uid):
                committer.restore(b"")
                committer.commit([Committable(data) for data in committables[uid]], end_of_input=False)
            committer.discard(lineage_of(self._lineage, uid))

    def discard(self) -> None:
        """What tasks left behind that failed, or ran twice; between two batches."""
        self.commit_again({})

    def show(self, uid: str, subtask: int, batch: ChangelogBatch) -> None:
        """Rows for the program."""
        if uid in self._receivers:
            self._graph.resources[self._receivers[uid].resource].accept(batch)
            return
        if (uid, subtask) not in self._writers:
            self._writers[uid, subtask] = self._writer(uid, subtask)
        self._writers[uid, subtask].write(batch)

    def flush(self) -> None:
        """All that was shown has left."""
        for writer in self._writers.values():
            writer.flush(False)

    def close(self) -> None:
        """Nothing is shown any more."""
        for writer in self._writers.values():
            writer.close()

    def _writer(self, uid: str, subtask: int) -> SinkWriter:
        return self._sinks[uid].create_writer(
            WriterContext(
                job_name=self._graph.name,
                subtask=subtask,
                parallelism=self._widths[uid],
                clock=SystemClock(),
                configuration=self._parameters,
                count=lambda name, by: None,
                submit=lambda work: work(),
                write_text=self._graph.resources.get(WRITE_TEXT_RESOURCE),
                lineage=lineage_of(self._lineage, uid),
            )
        )
