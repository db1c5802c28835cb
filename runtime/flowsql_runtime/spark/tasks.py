"""Jobs of FlowSQL inside of Spark's tasks: what travels to the executors (functions of ``mapInArrow``).

Each task runs the whole job by itself, with parallelism 1, over its part of a table or over the rows of its partition.
"""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import queue
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

import pyarrow as pa

from flowsql_connectors.handed import HandedRows
from flowsql_connectors.spi.counters import BYTES_SENT
from flowsql_connectors.spi.source import Split
from flowsql_core.batch import ChangelogBatch
from flowsql_core.errors import ExecutionError, FlowSqlError
from flowsql_core.graph.expectation import ExpectationCounts
from flowsql_core.graph.job import JobGraph
from flowsql_core.graph.spark import ROWS_RESOURCE, STAGE_RESOURCE
from flowsql_core.record import record
from flowsql_core.types.logical import Schema
from flowsql_runtime.cluster.local import LocalCluster
from flowsql_runtime.metrics.registry import RECORDS_SENT, JobMetrics, OperatorMetrics
from flowsql_runtime.python.by_value import dumps
from flowsql_runtime.python.options import EXECUTION_MODE, ExecutionMode
from flowsql_runtime.spark.failures import job_failure
from flowsql_runtime.spark.rows import Carrier, batches_of
from flowsql_runtime.task.memory import MemoryBudget
from flowsql_runtime.task.part import JobPart

#: Batches that wait between the job and the task.
_WAITING: Final = 4
#: How often a job that cannot give a batch away looks whether anybody still wants it.
_LOOK_S: Final = 0.2
#: What a task that writes hands back.
COMMITTABLES: Final = pa.schema([pa.field("uid", pa.string()), pa.field("committable", pa.binary())])
COMMITTABLES_DDL: Final = "uid STRING, committable BINARY"
#: What stands in place of a sink's uid beside the counts of a task; see :func:`counted`.
COUNTS: Final = ""


@record
class TaskMemory:
    """What a task may hold, so that those that run at once on a machine hold no more than a process of FlowSQL.

    ``configured_bytes``: of ``flowsql.memory``; 0: a share of the machine's. ``sharers``: tasks that run at once; None:
    as many as the machine has processors.
    """

    configured_bytes: int
    sharers: int | None

    def here(self) -> int:
        """Bytes, in the process of the task."""
        sharers = self.sharers or os.cpu_count() or 1
        return MemoryBudget.of_option(self.configured_bytes).total_bytes // sharers


class _Wanted:
    """The receiver of a job's rows: they wait for who asks for them."""

    def __init__(self) -> None:
        self._queue: queue.Queue[ChangelogBatch | None] = queue.Queue(_WAITING)
        self._unwanted = False

    def accept(self, batch: ChangelogBatch) -> None:
        """The next rows, as soon as there is room."""
        self._put(batch)

    def finish(self) -> None:
        """There are no more."""
        self._put(None)

    def _put(self, batch: ChangelogBatch | None) -> None:
        while not self._unwanted:
            with contextlib.suppress(queue.Full):
                self._queue.put(batch, timeout=_LOOK_S)
                return

    def __iter__(self) -> Iterator[ChangelogBatch]:
        while (batch := self._queue.get()) is not None:
            yield batch

    def give_up(self) -> None:
        """Nobody wants more."""
        self._unwanted = True


class SentJob:
    """A job on its way to tasks.

    Args:
        graph: whose resources travel with it.
        memory: what one task may hold.

    Raises:
        ExecutionError: a Python function that cannot be sent to other processes.
    """

    def __init__(self, graph: JobGraph, memory: TaskMemory) -> None:
        # Tasks of Spark run side by side, each in a process of its own: a job is one thread there.
        configuration = {**dict(graph.configuration), EXECUTION_MODE.key: ExecutionMode.THREAD.value}
        try:
            self._graph_bytes = dumps(replace(graph, configuration=tuple(configuration.items())))
        except Exception as error:  # a user's object
            raise ExecutionError(
                "python-function-not-sent",
                f"What the statement calls cannot be sent to Spark's tasks: {type(error).__name__}: {error}",
                hint="make what a Python function holds in open()",
            ) from error
        self._memory = memory
        self._folder = os.getcwd()
        self._paths = tuple(sys.path)
        #: Of the job that ran last, in the process of the task.
        self._measured: JobMetrics | None = None

    def memory_here(self) -> int:
        """Bytes that a task may hold, in its process."""
        return self._memory.here()

    def graph_here(self) -> JobGraph:
        """The job, in a process that finds modules and relative paths where the program finds them."""
        with contextlib.suppress(OSError):
            os.chdir(self._folder)
        sys.path += [path for path in self._paths if path not in sys.path]
        graph: JobGraph = pickle.loads(self._graph_bytes)
        return graph


class JobInTasks(SentJob):
    """A job as each task runs it: whole.

    Args:
        graph: see :class:`SentJob`.
        memory: likewise.
        lineage: of the larger job, for files of sinks.
    """

    def __init__(self, graph: JobGraph, memory: TaskMemory, lineage: str = "") -> None:
        super().__init__(
            replace(graph, vertices=tuple(replace(vertex, parallelism=1) for vertex in graph.vertices)), memory
        )
        self._lineage = lineage

    def _run(self, part: JobPart, rows: Iterable[ChangelogBatch] | None = None) -> Iterator[ChangelogBatch]:
        """Run the job to its end; gives what its collect sink takes."""
        graph = self.graph_here()
        wanted = _Wanted()
        resources = {**graph.resources, STAGE_RESOURCE: wanted}
        if rows is not None:
            resources[ROWS_RESOURCE] = HandedRows(rows)
        try:
            cluster = LocalCluster(memory_bytes=self.memory_here())
            job = cluster.submit(replace(graph, resources=resources), part=part)
            self._measured = job.metrics
            job.on_end(wanted.finish)
            try:
                yield from wanted
            finally:
                wanted.give_up()
                if not job.is_over():
                    job.cancel()
            job.wait()
        except FlowSqlError as error:
            raise job_failure(error, graph) from None


class ReadParts(JobInTasks):
    """Task ``n`` reads part ``n`` of the tables of a job: ``parts`` says the splits of each source, by uid."""

    def __init__(
        self, graph: JobGraph, memory: TaskMemory, parts: Sequence[Mapping[str, Sequence[Split]]], columns: Schema
    ) -> None:
        super().__init__(graph, memory)
        self._parts = parts
        self._columns = columns

    def __call__(self, numbers: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The rows of the parts whose numbers a task gets."""
        carrier = Carrier(self._columns)
        for batch in numbers:
            for number in batch.column(0).to_pylist():
                yield from map(carrier.carry, self._run(JobPart(self._parts[number])))


class TakeFurther(JobInTasks):
    """Runs a job over the rows of a partition.

    Args:
        source: columns of the rows.
        columns: what comes out.
    """

    def __init__(self, graph: JobGraph, memory: TaskMemory, source: Schema, columns: Schema) -> None:
        super().__init__(graph, memory)
        self._source = source
        self._columns = columns

    def __call__(self, rows: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The rows of one partition, taken further."""
        yield from map(Carrier(self._columns).carry, self._run(JobPart(), batches_of(rows, self._source)))


class WriteRows(JobInTasks):
    """Writes the rows of a partition; what its writers prepared is committed by the driver, and what they counted."""

    def __init__(self, graph: JobGraph, memory: TaskMemory, source: Schema, lineage: str) -> None:
        super().__init__(graph, memory, lineage)
        self._source = source

    def __call__(self, rows: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The committables of one partition, and the counts of the job."""
        batches = (batch for batch in batches_of(rows, self._source) if batch.num_rows)
        first = next(batches, None)
        if first is None:
            return
        part = JobPart(lineage=self._lineage)
        for _ in self._run(part, _behind(first, batches)):
            pass
        pairs = [(uid, data) for uid, prepared in part.committables.items() for data in prepared]
        assert self._measured is not None
        pairs.append((COUNTS, counted(self._measured)))
        yield pa.RecordBatch.from_arrays(
            [pa.array([uid for uid, _ in pairs], pa.string()), pa.array([data for _, data in pairs], pa.binary())],
            schema=COMMITTABLES,
        )


def counted(metrics: JobMetrics) -> bytes:
    """What the driver wants to know of a job that wrote rows, as JSON."""
    expectations = [[each.table, each.name, each.passed, each.dropped, each.warned] for each in metrics.expectations()]
    counts = {name: int(metrics.total(name)) for name in (RECORDS_SENT, BYTES_SENT)}
    return json.dumps({"counts": counts, "expectations": expectations}).encode()


def counts_of(told: bytes) -> OperatorMetrics:
    """What a task counted, as the metrics of an operator."""
    found = json.loads(told)
    metrics = OperatorMetrics("Sink")
    for name, count in found["counts"].items():
        metrics.count(name, count)
    metrics.expectations += [ExpectationCounts(*each) for each in found["expectations"]]
    return metrics


def _behind(first: ChangelogBatch, rest: Iterator[ChangelogBatch]) -> Iterator[ChangelogBatch]:
    yield first
    yield from rest
