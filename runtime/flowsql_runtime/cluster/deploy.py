"""From a ``JobGraph`` to tasks: subtasks, channels, gates, writers and operator chains, wired but not started."""

from __future__ import annotations

import enum
import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias, assert_never

from flowsql_compute.keys import key_group_range
from flowsql_core.config import (
    OBJECT_REUSE,
    RUNTIME_MODE,
    Configuration,
    RuntimeMode,
    option,
    parse_bool,
    parse_enum,
)
from flowsql_core.errors import InternalError
from flowsql_core.graph.job import ExchangeEdge, JobGraph, JobVertex, OperatorNode, ResultPartitionType
from flowsql_core.graph.specs import ScanSpec
from flowsql_core.record import record
from flowsql_runtime.cluster.regions import Connection, connections
from flowsql_runtime.metrics.registry import JobMetrics, OperatorMetrics, TaskMetrics
from flowsql_runtime.network.channel import ConsumerQueue, LocalChannel
from flowsql_runtime.network.gate import InputGate, InputProcessor
from flowsql_runtime.network.partition import (
    BATCH_ROWS,
    BUFFER_TIMEOUT_ENABLED,
    BUFFER_TIMEOUT_MS,
    CHANNEL_BYTES,
    NEVER_FLUSH,
    RecordWriter,
    RecordWriterOutput,
)
from flowsql_runtime.network.selector import make_selector
from flowsql_runtime.operators.base import OperatorContext, SourceOperator
from flowsql_runtime.operators.registry import make_operator, operator_class
from flowsql_runtime.sampling.tap import JobTaps
from flowsql_runtime.task.chain import (
    ChainedOperator,
    ChainingOutput,
    CopyingChainingOutput,
    FreezingOutput,
    OperatorChain,
    OperatorOutput,
    Target,
)
from flowsql_runtime.task.mailbox import Mailbox
from flowsql_runtime.task.memory import MemoryBudget, OperatorMemory
from flowsql_runtime.task.restore import NothingRestored, RestoredState, TaskPlace
from flowsql_runtime.task.services import JobServices, SplitProgress
from flowsql_runtime.task.stateless import NoKeyedState, NoOperatorState
from flowsql_runtime.task.task import StreamTask, TaskKey
from flowsql_runtime.time.processing import ProcessingTime
from flowsql_runtime.time.timers import TimerService

if TYPE_CHECKING:
    from flowsql_runtime.metrics.latency import LatencyTracking
    from flowsql_runtime.network.blocking import SpillableSubpartition
    from flowsql_runtime.network.spill import SpillSpace


class BatchShuffleMode(enum.Enum):
    """``execution.batch-shuffle-mode``."""

    PIPELINED = "ALL_EXCHANGES_PIPELINED"
    BLOCKING = "ALL_EXCHANGES_BLOCKING"


BATCH_SHUFFLE_MODE = option(
    "execution.batch-shuffle-mode",
    parse_enum(BatchShuffleMode),
    BatchShuffleMode.PIPELINED,
    "In batch mode: whether receivers read at once, or when the sender has ended (rows wait in memory, then on disk).",
)
DEBUG = option(
    "flowsql.debug", parse_bool, False, "Mark every batch read-only, so that a write into one fails at once."
)


class StateBackendType(enum.Enum):
    """``state.backend.type``."""

    HASHMAP = "hashmap"
    ROCKSDB = "rocksdb"


STATE_BACKEND = option(
    "state.backend.type",
    parse_enum(StateBackendType),
    StateBackendType.HASHMAP,
    "Where keyed state is: in memory, or in memory as far as its share goes and in RocksDB on disk behind it.",
)


@record
class StateMemory:
    """What subtasks that keep state share: bytes of the process, and how many they are."""

    process_bytes: int
    sharers: int


#: Part of the memory budget that the exchanges of one job may take: once for the pipelined ones, once for the blocking.
NETWORK_SHARE = 0.25
SMALLEST_CHANNEL_BYTES = 64 << 10

#: Rows after which source subtasks suspend, by (operator uid, subtask): the cut of a whole graph.
Cut: TypeAlias = Mapping[tuple[str, int], int]


#: Makes what a task reads its inputs from.
MakeInputs: TypeAlias = Callable[[ConsumerQueue, Sequence[InputGate], TaskMetrics, bool], InputProcessor]


@dataclass(frozen=True, slots=True)
class LoneTask:
    """A task whose exchanges lead out of this process.

    Attributes:
        inputs: by position of the edge its channels, one for each sender.
        outputs: by position of the edge the receivers' subtasks with what waits for them.
    """

    task: StreamTask
    inputs: Mapping[int, Sequence[LocalChannel]]
    outputs: Mapping[int, Sequence[tuple[int, ConsumerQueue]]]


@dataclass(slots=True)
class Deployment:
    """What one job's tasks share while they are built."""

    graph: JobGraph
    configuration: Configuration
    services: JobServices
    processing_time: ProcessingTime
    budget: MemoryBudget
    metrics: JobMetrics
    network_memory: OperatorMemory
    spill: SpillSpace | None
    seed: int
    taps: JobTaps = field(default_factory=JobTaps)
    restored: RestoredState = field(default_factory=NothingRestored)
    cut: Cut | None = None
    #: Whether barriers wait for each other.
    exactly_once: bool = True
    #: Whether a part of the job may start again: results of blocking exchanges stay until they are read to the end.
    restarts_parts: bool = False
    #: Accounts of the blocking exchanges; closed when the job is over.
    exchange_memory: list[OperatorMemory] = field(default_factory=list)
    #: How often each task was made, over all attempts of the job.
    attempts: Counter[TaskKey] = field(default_factory=Counter)
    _builder: _Builder | None = None

    def tasks(self) -> list[StreamTask]:
        """One task per subtask of every vertex, sources first."""
        self._builder = _Builder(self)
        return self._builder.build()

    def lone_task(self, key: TaskKey, outside: Mailbox, make_inputs: MakeInputs) -> LoneTask:
        """One task of the job, which takes back its own state; somebody else moves what it exchanges with the others.

        Args:
            outside: is woken when the task hands something out, or has room again.
        """
        self._builder = _Builder(self)
        return self._builder.build_alone(key, outside, make_inputs)

    def tasks_again(self, keys: frozenset[TaskKey], restored: RestoredState, own: bool) -> list[StreamTask]:
        """New tasks in the place of some that have ended, and of all that exchange rows with them while they run.

        Args:
            restored: what they start from.
            own: whether each subtask takes back what was its own; else state is dealt out as at the first deployment.
        """
        assert self._builder is not None
        return self._builder.build_again(keys, restored, own)

    def intact(self, connection: Connection) -> bool:
        """Whether all that passes a blocking channel is there and can be read again."""
        assert self._builder is not None
        return self._builder.intact(connection)

    def let_go(self, task: TaskKey) -> None:
        """A task ended well: the blocking results that it read need not be kept for it."""
        assert self._builder is not None
        self._builder.let_go(task)

    def release(self) -> None:
        """The job is over, or was never started: give back the memory of its exchanges and remove its files."""
        self.network_memory.close()
        for memory in self.exchange_memory:
            memory.close()
        if self.spill is not None:
            self.spill.close()


class _Builder:
    def __init__(self, deployment: Deployment) -> None:
        self._job = deployment
        self._graph = deployment.graph
        configuration = deployment.configuration
        self._object_reuse = configuration.get(OBJECT_REUSE)
        self._output_class = FreezingOutput if configuration.get(DEBUG) else OperatorOutput
        self._timeout_ms = (
            configuration.get(BUFFER_TIMEOUT_MS) if configuration.get(BUFFER_TIMEOUT_ENABLED) else NEVER_FLUSH
        )
        self._target_rows = configuration.get(BATCH_ROWS)
        self._blocking = blocking_edges(self._graph, configuration)
        self._blocking_share_bytes = 0
        self._channel_bytes = self._reserve_channels(configuration.get(CHANNEL_BYTES))
        self._latency = latency_tracking(configuration)
        self._parameters = dict(configuration.items())
        self._restored = deployment.restored
        self._own = False
        self._make_inputs: MakeInputs = InputProcessor
        self._mailboxes: dict[TaskKey, Mailbox] = {}
        self._queues: dict[TaskKey, ConsumerQueue] = {}
        #: By position of the edge and subtask, the channels from a sender and those to a receiver, in order.
        self._outgoing: dict[tuple[int, int], list[LocalChannel]] = {}
        self._incoming: dict[tuple[int, int], list[LocalChannel]] = {}
        #: The channels of blocking exchanges.
        self._results: dict[Connection, SpillableSubpartition] = {}
        #: Where the metrics of a task stand among those of the job.
        self._measured: dict[TaskKey, int] = {}
        self._vertices = {vertex.id: vertex for vertex in self._graph.vertices}
        #: Vertex -> its edges with their positions.
        self._edges_from: dict[int, list[tuple[int, ExchangeEdge]]] = {}
        self._edges_to: dict[int, list[tuple[int, ExchangeEdge]]] = {}
        for position, edge in enumerate(self._graph.edges):
            self._edges_from.setdefault(edge.source_vertex, []).append((position, edge))
            self._edges_to.setdefault(edge.target_vertex, []).append((position, edge))
        subtasks = sum(vertex.parallelism * len(vertex.operators) for vertex in self._graph.vertices)
        keeping = sum(
            vertex.parallelism
            for vertex in self._graph.vertices
            for node in vertex.operators
            if operator_class(node.spec).stateful
        )
        self._state_memory = StateMemory(self._job.budget.total_bytes, max(1, keeping))
        self._operator_memory_bytes = self._job.budget.total_bytes // max(1, subtasks)

    def build(self) -> list[StreamTask]:
        self._restore_splits()
        return self._build(
            [(vertex.id, subtask) for vertex in self._graph.vertices for subtask in range(vertex.parallelism)]
        )

    def build_again(self, keys: frozenset[TaskKey], restored: RestoredState, own: bool) -> list[StreamTask]:
        self._restored, self._own = restored, own
        made = self._build([key for key in self._mailboxes if key in keys])
        # A snapshot is let go of with the last task that reads it.
        self._restored, self._own = self._job.restored, False
        return made

    def _build(self, keys: Sequence[TaskKey]) -> list[StreamTask]:
        """The tasks in the order of the graph; their channels are new, but for results that are there already."""
        for vertex, subtask in keys:
            self._mailboxes[vertex, subtask] = mailbox = Mailbox()
            self._queues[vertex, subtask] = ConsumerQueue(mailbox)
            for position, _ in self._edges_from.get(vertex, ()):
                self._outgoing[position, subtask] = []
            for position, _ in self._edges_to.get(vertex, ()):
                self._incoming[position, subtask] = []
        new = frozenset(keys)
        for connection in connections(self._graph):
            if connection.receiver in new:
                self._connect(connection, connection.sender in new)
        return [self._task(self._vertices[vertex], subtask) for vertex, subtask in keys]

    def build_alone(self, key: TaskKey, outside: Mailbox, make_inputs: MakeInputs) -> LoneTask:
        self._make_inputs = make_inputs
        self._own = True
        for vertex in self._graph.vertices:
            for subtask in range(vertex.parallelism):
                place = vertex.id, subtask
                self._mailboxes[place] = Mailbox() if place == key else outside
                self._queues[place] = ConsumerQueue(self._mailboxes[place])
                for position, _ in self._edges_from.get(vertex.id, ()):
                    self._outgoing[position, subtask] = []
                for position, _ in self._edges_to.get(vertex.id, ()):
                    self._incoming[position, subtask] = []
        outputs: dict[int, list[tuple[int, ConsumerQueue]]] = {}
        for connection in connections(self._graph):
            if key in (connection.sender, connection.receiver):
                self._connect(connection, True)
            if key == connection.sender:
                receiver = connection.receiver
                outputs.setdefault(connection.edge, []).append((receiver[1], self._queues[receiver]))
        inputs = {position: self._incoming[position, key[1]] for position, _ in self._edges_to.get(key[0], ())}
        return LoneTask(self._task(self._vertices[key[0]], key[1]), inputs, outputs)

    def intact(self, connection: Connection) -> bool:
        return self._results[connection].intact

    def let_go(self, task: TaskKey) -> None:
        for connection, results in self._results.items():
            if connection.receiver == task:
                results.let_go()

    def _reserve_channels(self, wanted_bytes: int) -> int:
        """Bytes of one channel: as configured, unless all of them together would take too much of the budget."""
        pipelined = blocking = 0
        for connection in connections(self._graph):
            if connection.edge in self._blocking:
                blocking += 1
            else:
                pipelined += 1
        share = int(self._job.budget.total_bytes * NETWORK_SHARE)
        if blocking:
            self._blocking_share_bytes = share // blocking
        if not pipelined:
            return wanted_bytes
        each = min(wanted_bytes, max(SMALLEST_CHANNEL_BYTES, share // pipelined))
        self._job.network_memory.reserve(each * pipelined)
        return each

    def _restore_splits(self) -> None:
        for vertex in self._graph.vertices:
            for node in vertex.operators:
                if isinstance(node.spec, ScanSpec):
                    from flowsql_runtime.operators.source import SPLITS, decode_splits

                    encoded = self._job.restored.operator_lists(node.uid, SPLITS)
                    if encoded is not None:
                        self._job.services.restore_splits(node.uid, decode_splits(encoded))

    def _connect(self, connection: Connection, sender_is_new: bool) -> None:
        position, (_, source), (_, target) = connection.edge, connection.sender, connection.receiver
        incoming = self._incoming[position, target]
        if not sender_is_new:
            results = self._results[connection]
            results.replay(self._queues[connection.receiver])
            incoming.append(results)
            return
        channel = self._channel(connection, len(incoming))
        incoming.append(channel)
        self._outgoing[position, source].append(channel)

    def _channel(self, connection: Connection, index: int) -> LocalChannel:
        producer = self._mailboxes[connection.sender]
        queue = self._queues[connection.receiver]
        input_index = self._graph.edges[connection.edge].input_index
        if connection.edge not in self._blocking:
            return LocalChannel(producer, queue, input_index, index, self._channel_bytes)
        # Only jobs with such an exchange load what writes files.
        from flowsql_runtime.network.blocking import SpillableSubpartition

        job = self._job
        assert job.spill is not None
        if connection in self._results:
            self._results[connection].discard()
        memory = OperatorMemory(job.budget, "blocking exchange")
        job.exchange_memory.append(memory)
        made = SpillableSubpartition(
            producer, queue, input_index, index, memory, self._blocking_share_bytes, job.spill, job.restarts_parts
        )
        self._results[connection] = made
        return made

    def _task(self, vertex: JobVertex, subtask: int) -> StreamTask:
        job = self._job
        job.attempts[vertex.id, subtask] += 1
        metrics = TaskMetrics(vertex.name, subtask)
        self._measure(vertex.id, subtask, metrics)
        rng = random.Random(f"{job.seed}/{vertex.id}/{subtask}")
        mailbox = self._mailboxes[vertex.id, subtask]
        writers: dict[int, RecordWriter] = {
            position: self._writer(position, edge, vertex, subtask, metrics, rng)
            for position, edge in self._edges_from.get(vertex.id, ())
        }
        chain = self._chain(vertex, subtask, writers, metrics, mailbox, rng)
        gates = self._gates(vertex, subtask)
        queue = self._queues[vertex.id, subtask]
        inputs = self._make_inputs(queue, gates, metrics, job.exactly_once) if gates else None
        uids = tuple(node.uid for node in vertex.operators)
        groups = key_group_range(vertex.max_parallelism, vertex.parallelism, subtask)
        return StreamTask(
            vertex_id=vertex.id,
            subtask=subtask,
            parallelism=vertex.parallelism,
            name=vertex.name,
            chain=chain,
            mailbox=mailbox,
            inputs=inputs,
            writers=tuple(writers.values()),
            processing_time=job.processing_time,
            metrics=metrics,
            restored=partial(self._restored.task, uids, self._place(vertex, subtask)),
            key_groups=groups,
            finished_before=self._restored.finished(uids, subtask if self._own else None),
            ends_early=job.cut is None,
            latency_interval_ms=0 if self._latency is None else self._latency.interval_ms,
        )

    def _measure(self, vertex: int, subtask: int, metrics: TaskMetrics) -> None:
        """The metrics of a task, instead of those of the one before it."""
        tasks = self._job.metrics.tasks
        at = self._measured.setdefault((vertex, subtask), len(tasks))
        tasks[at : at + 1] = [metrics]

    def _place(self, vertex: JobVertex, subtask: int) -> TaskPlace:
        edges = sorted(self._edges_to.get(vertex.id, ()), key=lambda found: found[1].input_index)
        return TaskPlace(
            subtask,
            vertex.parallelism,
            key_group_range(vertex.max_parallelism, vertex.parallelism, subtask),
            vertex.max_parallelism,
            tuple((edge.partitioning, self._vertices[edge.source_vertex].parallelism) for _, edge in edges),
            self._own,
        )

    def _writer(
        self,
        position: int,
        edge: ExchangeEdge,
        vertex: JobVertex,
        subtask: int,
        metrics: TaskMetrics,
        rng: random.Random,
    ) -> RecordWriter:
        channels = self._outgoing[position, subtask]
        target = self._vertices[edge.target_vertex]
        selector = make_selector(edge.partitioning, len(channels), target.max_parallelism, rng, self._graph.resources)
        timeout_ms = self._timeout_ms if edge.buffer_timeout_ms is None else edge.buffer_timeout_ms
        return RecordWriter(channels, selector, metrics, timeout_ms, self._target_rows)

    def _gates(self, vertex: JobVertex, subtask: int) -> list[InputGate]:
        by_input: dict[int, list[LocalChannel]] = {}
        for position, edge in self._edges_to.get(vertex.id, ()):
            if edge.input_index in by_input:
                raise InternalError(f"two edges lead to input {edge.input_index} of vertex {vertex.id}")
            by_input[edge.input_index] = self._incoming[position, subtask]
        if sorted(by_input) != list(range(len(by_input))):
            raise InternalError(f"the inputs of vertex {vertex.id} have gaps: {sorted(by_input)}")
        return [InputGate(index, by_input[index]) for index in range(len(by_input))]

    def _chain(
        self,
        vertex: JobVertex,
        subtask: int,
        writers: Mapping[int, RecordWriter],
        metrics: TaskMetrics,
        mailbox: Mailbox,
        rng: random.Random,
    ) -> OperatorChain:
        progress = SplitProgress()
        nodes: dict[int, ChainedOperator] = {}
        for node in vertex.operators:
            operator = make_operator(node.spec, self._graph.resources)
            if operator.number_of_inputs and node.number_of_inputs != operator.number_of_inputs:
                raise InternalError(
                    f"{node.name} is planned with {node.number_of_inputs} inputs and takes {operator.number_of_inputs}"
                )
            measured = OperatorMetrics(node.name, subtask, node.id)
            metrics.operators.append(measured)
            nodes[node.id] = ChainedOperator(node.id, node.uid, node.name, operator, measured)
            if self._job.cut is not None and isinstance(operator, SourceOperator):
                operator.stop_at(self._job.cut[node.uid, subtask])
        chaining = ChainingOutput if self._object_reuse else CopyingChainingOutput
        #: By operator: where its rows go, without a tag or by tag; first within the chain.
        main: dict[int, list[Target]] = {node.id: [] for node in vertex.operators}
        side: dict[int, dict[str, list[Target]]] = {node.id: {} for node in vertex.operators}
        for link in vertex.chain:
            targets = main[link.source] if link.tag is None else side[link.source].setdefault(link.tag, [])
            targets.append(chaining(nodes[link.target], link.input_index))
        for position, writer in writers.items():
            edge = self._graph.edges[position]
            targets = main[edge.source] if edge.tag is None else side[edge.source].setdefault(edge.tag, [])
            targets.append(RecordWriterOutput(writer))
        for node in vertex.operators:
            made = nodes[node.id]
            if self._latency is not None:
                made.report_latency = self._latency.reporter(made.metrics, node.uid, self._job.processing_time.clock)
            made.output = self._output_class(made.metrics, main[node.id], side[node.id], self._job.taps)
            context = self._context(vertex, node, subtask, made.metrics, mailbox, rng, progress)
            made.operator.setup(context, made.output)
        return OperatorChain([nodes[node.id] for node in vertex.operators])

    def _context(
        self,
        vertex: JobVertex,
        node: OperatorNode,
        subtask: int,
        metrics: OperatorMetrics,
        mailbox: Mailbox,
        rng: random.Random,
        progress: SplitProgress,
    ) -> OperatorContext:
        job = self._job
        state, operator_state = make_state(
            operator_class(node.spec).stateful,
            vertex.max_parallelism,
            vertex.parallelism,
            subtask,
            job.configuration,
            self._state_memory,
        )
        return OperatorContext(
            name=node.name,
            uid=node.uid,
            subtask=subtask,
            parallelism=vertex.parallelism,
            max_parallelism=vertex.max_parallelism,
            clock=job.processing_time.clock,
            rng=rng,
            state=state,
            operator_state=operator_state,
            timers=TimerService(),
            metrics=metrics,
            parameters=self._parameters,
            resources=self._graph.resources,
            submit=mailbox.submit,
            memory_bytes=self._operator_memory_bytes,
            spill_directory=self._parameters.get("io.tmp.dirs", ""),
            memory=OperatorMemory(job.budget, node.name),
            job=job.services,
            progress=progress,
            pause=mailbox.sleep,
            vertex_id=vertex.id,
            task_name=vertex.name,
            attempt=job.attempts[vertex.id, subtask] - 1,
        )


def blocking_edges(graph: JobGraph, configuration: Configuration) -> frozenset[int]:
    """Positions of the edges whose receivers wait for the end of the sender."""
    batch = configuration.get(RUNTIME_MODE) is RuntimeMode.BATCH
    if batch and configuration.get(BATCH_SHUFFLE_MODE) is BatchShuffleMode.BLOCKING:
        return frozenset(range(len(graph.edges)))
    return frozenset(
        position for position, edge in enumerate(graph.edges) if edge.partition_type is ResultPartitionType.BLOCKING
    )


def latency_tracking(configuration: Configuration) -> LatencyTracking | None:
    """How the job measures latency; what does so is loaded only for jobs that ask."""
    if configuration.text("metrics.latency.interval") is None:
        return None
    from flowsql_runtime.metrics.latency import LatencyTracking

    return LatencyTracking.of(configuration)


def make_spill_space(graph: JobGraph, configuration: Configuration, job_id: str) -> SpillSpace | None:
    """Temporary files of a job; None where it needs none and no folders were named.

    Raises:
        ExecutionError: a named folder cannot be written to.
    """
    named = configuration.text("io.tmp.dirs") or ""
    if not named and not blocking_edges(graph, configuration):
        return None
    from flowsql_runtime.network.spill import SpillSpace

    space = SpillSpace(named, job_id)
    if named:
        space.check()
    return space


def make_state(
    stateful: bool,
    max_parallelism: int,
    parallelism: int,
    subtask: int,
    configuration: Configuration,
    memory: StateMemory,
) -> tuple[Any, Any]:
    """Keyed and operator state of one subtask; the machinery is loaded only for operators that keep state."""
    if not stateful:
        return NoKeyedState(), NoOperatorState()
    from flowsql_runtime.state.backend import OperatorStateBackend

    groups = key_group_range(max_parallelism, parallelism, subtask)
    match configuration.get(STATE_BACKEND):
        case StateBackendType.HASHMAP:
            from flowsql_runtime.state.hashmap import HashMapBackend

            folders = configuration.text("io.tmp.dirs") or ""
            return HashMapBackend(max_parallelism, groups, folders), OperatorStateBackend()
        case StateBackendType.ROCKSDB:
            from flowsql_runtime.state.rocksdb.backend import RocksDBBackend
            from flowsql_runtime.state.rocksdb.settings import RocksDBSettings

            settings = RocksDBSettings.of(configuration, memory.process_bytes, memory.sharers)
            return RocksDBBackend(settings, max_parallelism, groups), OperatorStateBackend()
        case other:
            assert_never(other)
