"""The tasks of one stage: subtasks of FlowSQL's vertices over one batch, from their state and back (``mapInArrow``)."""

from __future__ import annotations

import pickle
import secrets
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from hashlib import blake2b
from typing import Any, Final

import pyarrow as pa

from flowsql_connectors.spi.source import Split
from flowsql_core.batch import ChangelogBatch
from flowsql_core.clock import SystemClock
from flowsql_core.config import Configuration
from flowsql_core.element import CheckpointBarrier, SnapshotKind, Watermark
from flowsql_core.graph.job import JobGraph, JobVertex
from flowsql_core.graph.specs import CollectSinkSpec
from flowsql_core.record import record
from flowsql_runtime.checkpoint.recovery import SnapshotReader
from flowsql_runtime.checkpoint.settings import COMPRESSION, INLINE_BYTES
from flowsql_runtime.checkpoint.storage import open_folder
from flowsql_runtime.checkpoint.write import WrittenTask, write_task
from flowsql_runtime.cluster.allocator import reuse_freed_memory
from flowsql_runtime.cluster.deploy import Deployment, LoneTask
from flowsql_runtime.cluster.job import named
from flowsql_runtime.metrics.registry import JobMetrics, TaskMetrics
from flowsql_runtime.network.batch_bytes import decode_batch, encode_batch
from flowsql_runtime.network.channel import ConsumerQueue, Element, LocalChannel, referenced_bytes
from flowsql_runtime.network.gate import InputGate, InputProcessor
from flowsql_runtime.network.in_flight import InFlight
from flowsql_runtime.network.partition import CHANNEL_BYTES
from flowsql_runtime.operators.base import OperatorSnapshot
from flowsql_runtime.operators.registry import is_source
from flowsql_runtime.spark.failures import job_failure
from flowsql_runtime.spark.streaming.packed import DRIVER, Kind, Packed, unpacked
from flowsql_runtime.spark.streaming.stages import Stage, stages_of
from flowsql_runtime.spark.tasks import SentJob
from flowsql_runtime.task.collected import CollectedRows
from flowsql_runtime.task.mailbox import Mailbox, TaskCancelled
from flowsql_runtime.task.memory import MemoryBudget, OperatorMemory
from flowsql_runtime.task.part import JobPart
from flowsql_runtime.task.restore import NothingRestored, RestoredState
from flowsql_runtime.task.services import JobServices
from flowsql_runtime.time.processing import ProcessingTime

#: The barrier behind the last row of a batch.
BARRIER: Final = 1


@record
class Batch:
    """What the tasks of a batch need to know.

    ``number``: from 1. ``folder``: of its snapshot. ``restored``: that of the batch before it. ``splits``: of each
    source by uid, a list for each subtask. ``lineage``: of the query.
    """

    number: int
    folder: str
    restored: str | None
    splits: Mapping[str, Sequence[Sequence[Split]]]
    lineage: str

    @property
    def seed(self) -> int:
        """Of what is random: the same when the batch is tried again."""
        return int.from_bytes(blake2b(f"{self.lineage}/{self.number}".encode(), digest_size=7).digest())


@record
class TaskReport:
    """How a subtask ended.

    ``written``: its state. ``committables``: what its sinks prepared, by uid. ``rows_read``: by its source.
    ``attempt``: from 0; others may have left files behind.
    """

    vertex: int
    subtask: int
    written: WrittenTask
    committables: Mapping[str, Sequence[bytes]]
    rows_read: int
    attempt: int


def placed(stages: Sequence[Stage]) -> list[JobVertex]:
    """The vertices of a job in the order in which they run; places of receivers count in it."""
    return [vertex for stage in stages for vertex in stage.vertices]


class RunStage:
    """Runs a stage: what it yields is for the stages behind it, and for the driver."""

    def __init__(self, job: SentJob, stage: int, batch: Batch) -> None:
        self._job = job
        self._stage = stage
        self._batch = batch

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """One task: what came for it, and what only passes."""
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        subtask = int(context.partitionId())
        reuse_freed_memory()
        graph = self._job.graph_here()
        stages = stages_of(graph)
        places = {vertex.id: place for place, vertex in enumerate(placed(stages))}
        if not self._stage:
            # Its tasks begin with numbers; what is not taken would cost the process of the worker.
            batches = [batch for batch in batches if not batch.num_rows]
        arriving = _Arriving(unpacked(batches))
        for vertex in stages[self._stage].vertices:
            if subtask < vertex.parallelism:
                rows = arriving.of(places[vertex.id])
                hosted = _Hosted(graph, vertex, subtask, self._batch, self._job.memory_here(), places, rows)
                yield from (packed.batch() for packed in hosted.run(int(context.attemptNumber())))
        yield from (packed.batch() for packed in arriving.rest())


class _Arriving:
    """The rows of a task, which stand in the order of their receivers."""

    def __init__(self, rows: Iterator[Packed]) -> None:
        self._rows = rows
        self._next: Packed | None = None

    def of(self, place: int) -> Iterator[Packed]:
        """Those for one vertex; the iterator is to be used up before the next one."""
        while (packed := self._peek()) is not None and packed.vertex == place:
            self._next = None
            yield packed

    def rest(self) -> Iterator[Packed]:
        """Those for later stages."""
        while (packed := self._peek()) is not None:
            self._next = None
            yield packed

    def _peek(self) -> Packed | None:
        if self._next is None:
            self._next = next(self._rows, None)
        return self._next


class _PulledInputs(InputProcessor):
    """Gets elements when the task has none: ``pull`` puts some onto its channels, or says that there are none left."""

    __slots__ = ("_pull",)

    def __init__(
        self,
        queue: ConsumerQueue,
        gates: Sequence[InputGate],
        metrics: TaskMetrics,
        exactly_once: bool,
        pull: Callable[[], bool],
    ) -> None:
        super().__init__(queue, gates, metrics, exactly_once)
        self._pull = pull

    def next(self) -> tuple[int, tuple[Element, ...]] | None:
        """The oldest element that is not only half of something."""
        while (found := super().next()) is None and self._pull():
            pass
        return found


class _Hosted:
    """One subtask, in a thread of its own; the thread of Spark's task hands out what it makes."""

    def __init__(
        self,
        graph: JobGraph,
        vertex: JobVertex,
        subtask: int,
        batch: Batch,
        memory_bytes: int,
        places: Mapping[int, int],
        rows: Iterator[Packed],
    ) -> None:
        self._graph = graph
        self._vertex = vertex
        self._subtask = subtask
        self._batch = batch
        self._places = places
        self._rows = rows
        self._all_pulled = False
        self._outside = Mailbox()
        self._configuration = configuration = Configuration(values=dict(graph.configuration))
        self._from_source = {
            position: any(v.id == edge.source_vertex and is_source(v.head.spec) for v in graph.vertices)
            for position, edge in enumerate(graph.edges)
        }
        #: By edge, watermarks of those that sent rows, and the one that the subtask itself has sent.
        self._arrived_ms: dict[int, list[int]] = {}
        self._sent_ms: dict[int, int] = {}
        self._sequence = 0
        self._written: WrittenTask | None = None
        self._failure: BaseException | None = None
        self._over = False
        self._to_driver: dict[str, _ToDriver] = {
            node.spec.resource: _ToDriver(node.uid, self._outside, configuration.get(CHANNEL_BYTES))
            for node in vertex.operators
            if isinstance(node.spec, CollectSinkSpec)
        }
        splits = {uid: dealt[subtask] for uid, dealt in batch.splits.items() if subtask < len(dealt)}
        part = JobPart(splits, batch.lineage, one_batch=True, reader=subtask)
        self._services = JobServices(graph.name, batch.lineage, CollectedRows(held=False), batch.lineage, part)
        budget = MemoryBudget(memory_bytes)
        self._deployment = Deployment(
            graph=replace(graph, resources={**graph.resources, **self._to_driver}),
            configuration=configuration,
            services=self._services,
            processing_time=ProcessingTime(SystemClock()),
            budget=budget,
            metrics=JobMetrics(),
            network_memory=OperatorMemory(budget, "exchange"),
            spill=None,
            seed=batch.seed,
            restored=self._restored(),
            # Sources stop where their splits end.
            cut={(node.uid, subtask): sys.maxsize for node in vertex.operators},
        )
        self._lone: LoneTask = self._deployment.lone_task(
            (vertex.id, subtask), self._outside, partial(_PulledInputs, pull=self._pull)
        )
        self._lone.task.checkpoints = self

    def _restored(self) -> RestoredState:
        if self._batch.restored is None:
            return NothingRestored()
        own = {node.uid: (self._subtask,) for node in self._vertex.operators}
        return SnapshotReader(open_folder(self._batch.restored), own)

    def run(self, attempt: int) -> Iterator[Packed]:
        """What the subtask makes of its part of the batch, and behind it how it ended."""
        thread = threading.Thread(target=self._run, name=self._vertex.name[:40], daemon=True)
        thread.start()
        try:
            while True:
                over = self._over
                yield from self._made()
                if over:
                    break
                self._outside.sleep(None)
        finally:
            if thread.is_alive():
                self._lone.task.mailbox.cancel()
                for receiver in self._to_driver.values():
                    receiver.give_up()
                thread.join()
            self._deployment.release()
        if self._failure is not None:
            raise job_failure(named(self._failure), self._graph) from self._failure
        # A subtask that wants no more leaves rows behind.
        for _ in self._rows:
            pass
        yield from self._watermarks()
        assert self._written is not None
        report = TaskReport(
            self._vertex.id,
            self._subtask,
            self._written,
            self._services.prepared(BARRIER, set()),
            self._lone.task.metrics.operators[0].records_out if self._lone.task.is_source else 0,
            attempt,
        )
        yield self._packed(self._subtask, DRIVER, 0, Kind.REPORT, pickle.dumps(report))

    def _run(self) -> None:
        try:
            self._lone.task.run()
        except TaskCancelled:
            pass
        except BaseException as error:  # whoever waits must hear of every end
            self._failure = error
        self._over = True
        self._outside.wake()

    # -- in

    def _pull(self) -> bool:
        """The next rows; behind the last ones the time of the batch, and the barrier that ends it."""
        if self._all_pulled:
            return False
        for packed in self._rows:
            if packed.kind is Kind.WATERMARK:
                at = int.from_bytes(packed.payload.to_pybytes(), "little", signed=True)
                self._arrived_ms.setdefault(packed.edge, []).append(at)
                continue
            batch = decode_batch(packed.payload, objects=True)
            self._lone.inputs[packed.edge][0].put(batch, referenced_bytes(batch))
            return True
        self._all_pulled = True
        for edge, found in sorted(self._arrived_ms.items()):
            # All that a table has for this batch was read, by whichever reader: nobody is behind. Subtasks of other
            # operators have the same time unless one holds it back.
            level = Watermark(max(found) if self._from_source[edge] else min(found))
            for channel in self._lone.inputs[edge]:
                channel.put(level)
        barrier = CheckpointBarrier(BARRIER, SystemClock().now_ms(), SnapshotKind.SUSPEND)
        for channels in self._lone.inputs.values():
            for channel in channels:
                channel.put(barrier)
        return True

    # -- out

    def _made(self) -> Iterator[Packed]:
        for edge, receivers in self._lone.outputs.items():
            place = self._places[self._graph.edges[edge].target_vertex]
            for target, queue in receivers:
                while queue.entries:
                    channel, entry, size_bytes = queue.entries.popleft()
                    rows = self._rows_of(edge, channel.take(entry, size_bytes))
                    if rows is not None:
                        yield self._packed(target, place, edge, Kind.ROWS, encode_batch(rows))
        for receiver in self._to_driver.values():
            for batch in receiver.taken():
                payload = pickle.dumps((receiver.uid, encode_batch(batch).to_pybytes()))
                yield self._packed(self._subtask, DRIVER, 0, Kind.SINK_ROWS, payload)

    def _rows_of(self, edge: int, element: Element) -> ChangelogBatch | None:
        """The rows of an element, if there are any; time is only remembered: no row of a batch is late in it."""
        match element:
            case ChangelogBatch():
                if element.track is not None and len(element.track):
                    self._sent_ms[edge] = max(self._sent_ms.get(edge, element.track.last_ms), element.track.last_ms)
                return element.with_track(None) if element.num_rows else None
            case Watermark(timestamp_ms=at):
                self._sent_ms[edge] = max(self._sent_ms.get(edge, at), at)
        return None

    def _watermarks(self) -> Iterator[Packed]:
        for edge, at in self._sent_ms.items():
            place = self._places[self._graph.edges[edge].target_vertex]
            for target, _ in self._lone.outputs[edge]:
                yield self._packed(target, place, edge, Kind.WATERMARK, at.to_bytes(8, "little", signed=True))

    def _packed(self, target: int, place: int, edge: int, kind: Kind, payload: Any) -> Packed:
        self._sequence += 1
        return Packed(target, place, edge, self._subtask, self._sequence, kind, payload)

    # -- TaskCheckpoints

    def task_started(self, task: tuple[int, int]) -> None:
        """Nobody waits for it."""

    def task_finished(self, task: tuple[int, int]) -> None:
        """The thread's end says so."""

    def acknowledge(
        self,
        task: tuple[int, int],
        barrier: CheckpointBarrier,
        snapshots: Mapping[str, OperatorSnapshot],
        in_flight: InFlight | None = None,
    ) -> None:
        """Write the state, under a name that no other attempt has."""
        self._written = write_task(
            open_folder(self._batch.folder),
            f"{self._vertex.id}-{self._subtask}-{secrets.token_hex(6)}.state",
            self._subtask,
            snapshots,
            self._configuration.get(COMPRESSION),
            self._configuration.get(INLINE_BYTES),
        )
        for snapshot in snapshots.values():
            snapshot.release()

    def decline(self, task: tuple[int, int], checkpoint_id: int, error: BaseException) -> None:
        """A task that stops fails instead."""
        self._failure = error


class _ToDriver:
    """The receiver of a sink's rows whose writer is in the program."""

    def __init__(self, uid: str, outside: Mailbox, capacity_bytes: int) -> None:
        self.uid = uid
        self._queue = ConsumerQueue(outside)
        #: The task's thread waits here for room.
        self._producer = Mailbox()
        self._channel = LocalChannel(self._producer, self._queue, 0, 0, capacity_bytes)

    def accept(self, batch: ChangelogBatch) -> None:
        """The next rows."""
        self._channel.put(batch, referenced_bytes(batch))
        self._channel.await_room()

    def finish(self) -> None:
        """The task's report says so."""

    def give_up(self) -> None:
        """Nobody takes more: whoever waits for room is unwound."""
        self._producer.cancel()

    def taken(self) -> Iterator[ChangelogBatch]:
        """What waits."""
        while self._queue.entries:
            channel, entry, size_bytes = self._queue.entries.popleft()
            element = channel.take(entry, size_bytes)
            assert isinstance(element, ChangelogBatch)
            yield element
