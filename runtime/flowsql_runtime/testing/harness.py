"""One operator without a job: feed it, look at what it emits, snapshot it, go on at another parallelism."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any, Generic, TypeVar

from flowsql_compute.keys import key_group_range
from flowsql_core.batch import ChangelogBatch
from flowsql_core.clock import ManualClock
from flowsql_core.config import Configuration
from flowsql_core.element import ACTIVE, IDLE, MAX_WATERMARK, LatencyMarker, Watermark, WatermarkStatus
from flowsql_core.graph.job import Partitioning, ShipStrategy
from flowsql_core.graph.specs import OperatorSpec
from flowsql_core.row import SHORT_STRINGS
from flowsql_runtime.checkpoint.of_snapshots import reader_of
from flowsql_runtime.cluster.deploy import StateMemory, make_state
from flowsql_runtime.metrics.registry import OperatorMetrics
from flowsql_runtime.network.selector import ChannelSelector, make_selector
from flowsql_runtime.operators.base import Operator, OperatorContext, OperatorSnapshot
from flowsql_runtime.operators.registry import make_operator, operator_class
from flowsql_runtime.task.chain import freeze
from flowsql_runtime.task.restore import TaskPlace
from flowsql_runtime.task.services import JobServices
from flowsql_runtime.time.timers import TimerService

Emitted = ChangelogBatch | Watermark | WatermarkStatus | LatencyMarker
S = TypeVar("S", bound=OperatorSpec)


class RecordingOutput:
    """Keeps everything in order; every batch is frozen, so that an operator that writes into one later fails."""

    def __init__(self) -> None:
        self.elements: list[Emitted] = []
        self.side: dict[str, list[ChangelogBatch]] = {}

    def collect(self, batch: ChangelogBatch) -> None:
        """Keep rows."""
        freeze(batch)
        self.elements.append(batch)

    def collect_side(self, tag: str, batch: ChangelogBatch) -> None:
        """Keep rows of a side output."""
        freeze(batch)
        self.side.setdefault(tag, []).append(batch)

    def emit_watermark(self, watermark: Watermark) -> None:
        """Keep a watermark."""
        self.elements.append(watermark)

    def emit_watermark_status(self, status: WatermarkStatus) -> None:
        """Keep a status."""
        self.elements.append(status)

    def emit_latency_marker(self, marker: LatencyMarker) -> None:
        """Keep a marker."""
        self.elements.append(marker)


class OperatorHarness(Generic[S]):
    """All subtasks of one operator, driven from the test's thread; time stands until the test moves it.

    Args:
        spec: which operator.
        parallelism: subtasks; rows go to them by the hash of ``keys``.
        max_parallelism: key groups.
        keys: key columns of each input; needed from parallelism 2 on.
        clock: processing time.
        parameters: job parameters.
        resources: the job's objects.
        snapshot: of all old subtasks, to go on from.
        output: to go on recording into.
        job: what the subtasks share; each has its own without it.
    """

    def __init__(
        self,
        spec: S,
        parallelism: int = 1,
        max_parallelism: int = 128,
        keys: Sequence[tuple[int, ...]] = (),
        clock: ManualClock | None = None,
        parameters: Mapping[str, str] | None = None,
        resources: Mapping[str, Any] | None = None,
        snapshot: Sequence[OperatorSnapshot] | None = None,
        output: RecordingOutput | None = None,
        job: JobServices | None = None,
    ) -> None:
        self.spec = spec
        self._job = job
        self.clock = clock or ManualClock()
        self.output = output or RecordingOutput()
        self.parallelism = parallelism
        self.max_parallelism = max_parallelism
        self._keys = tuple(keys)
        self._parameters = dict(parameters or {})
        self._resources = dict(resources or {})
        dealt = [None] * parallelism if snapshot is None else self._dealt(snapshot)
        self.operators: list[Operator[Any]] = [self._make(subtask, dealt[subtask]) for subtask in range(parallelism)]
        self._selectors: list[ChannelSelector] = [
            make_selector(Partitioning(ShipStrategy.HASH, key), parallelism, max_parallelism, random.Random(0), {})
            for key in (self._keys or ((),))
        ]

    def _dealt(self, snapshot: Sequence[OperatorSnapshot]) -> list[OperatorSnapshot | None]:
        """What each new subtask takes over, written to bytes and read again."""
        reader = reader_of({"operator": snapshot}, self.max_parallelism)
        places = [
            TaskPlace(
                subtask,
                self.parallelism,
                key_group_range(self.max_parallelism, self.parallelism, subtask),
                self.max_parallelism,
            )
            for subtask in range(self.parallelism)
        ]
        return [reader.task(["operator"], place).operators.get("operator", OperatorSnapshot()) for place in places]

    def _make(self, subtask: int, snapshot: OperatorSnapshot | None) -> Operator[Any]:
        operator = make_operator(self.spec, self._resources)
        state, operator_state = make_state(
            operator_class(self.spec).stateful,
            self.max_parallelism,
            self.parallelism,
            subtask,
            Configuration(values=self._parameters),
            StateMemory(1 << 30, self.parallelism),
        )
        name = type(self.spec).__name__
        ctx = OperatorContext(
            name=name,
            uid=name,
            subtask=subtask,
            parallelism=self.parallelism,
            max_parallelism=self.max_parallelism,
            clock=self.clock,
            rng=random.Random(subtask),
            state=state,
            operator_state=operator_state,
            timers=TimerService(),
            metrics=OperatorMetrics(name, subtask),
            parameters=self._parameters,
            resources=self._resources,
            submit=lambda mail: mail(),
            memory_bytes=1 << 30,
            spill_directory="",
            job=self._job or JobServices(),
            task_name=name,
        )
        operator.setup(ctx, self.output)
        if snapshot is not None:
            groups = key_group_range(self.max_parallelism, self.parallelism, subtask)
            ctx.state.restore(snapshot.keyed, groups, snapshot.native)
            ctx.operator_state.restore(snapshot.lists, snapshot.union, snapshot.broadcast)
            operator.restore_watermarks(snapshot.watermarks_ms)
        operator.open(ctx)
        ctx.state.opened()
        operator.initialize_state(snapshot)
        return operator

    # -- driving

    def batch(self, batch: ChangelogBatch, input_index: int = 0) -> None:
        """Rows of one input, dealt out by key."""
        if self.parallelism == 1:
            self.operators[0].process_batch(input_index, batch)
            self._settle()
            return
        parts = self._selectors[input_index].select(batch)
        for operator, part in zip(self.operators, parts, strict=True):
            if part is not None and part.num_rows:
                operator.process_batch(input_index, part)
            elif batch.track is not None:
                operator.process_watermark(input_index, Watermark(batch.track.last_ms))
        self._settle()

    def _settle(self) -> None:
        """What the task does between two elements."""
        for operator in self.operators:
            operator.ctx.state.settle()

    def watermark(self, timestamp_ms: int, input_index: int = 0) -> None:
        """A stand-alone watermark, to every subtask."""
        for operator in self.operators:
            operator.process_watermark(input_index, Watermark(timestamp_ms))
        self._settle()

    def idle(self, idle: bool = True, input_index: int = 0) -> None:
        """An input becomes idle or active."""
        for operator in self.operators:
            operator.process_watermark_status(input_index, IDLE if idle else ACTIVE)

    def advance(self, by_ms: int) -> None:
        """Move the clock and fire the processing timers that are due."""
        self.clock.advance(by_ms)
        for operator in self.operators:
            due = operator.ctx.timers.pop_processing_timers(self.clock.now_ms())
            if due is not None:
                operator.on_processing_timers(due.times_ms, due.slots)
        self._settle()

    def end(self) -> None:
        """The last watermark, the end of every input, the finish."""
        for operator in self.operators:
            for input_index in range(operator.number_of_inputs):
                operator.process_watermark(input_index, Watermark(MAX_WATERMARK))
            for input_index in range(operator.number_of_inputs):
                operator.end_input(input_index)
            operator.finish()

    def close(self) -> None:
        """Close every subtask."""
        for operator in self.operators:
            operator.close()
            operator.ctx.state.close()

    # -- snapshots

    def snapshot(self) -> list[OperatorSnapshot]:
        """One snapshot per subtask."""
        for operator in self.operators:
            operator.prepare_snapshot_pre_barrier(1)
        return [operator.snapshot_state(1) for operator in self.operators]

    def restored(self, parallelism: int) -> OperatorHarness[S]:
        """Stop here and go on at another parallelism; what comes out is recorded behind what came."""
        snapshot = self.snapshot()
        self.close()
        return OperatorHarness(
            self.spec,
            parallelism,
            self.max_parallelism,
            self._keys,
            self.clock,
            self._parameters,
            self._resources,
            snapshot,
            self.output,
        )

    # -- looking

    @property
    def batches(self) -> list[ChangelogBatch]:
        """Emitted batches in order."""
        return [element for element in self.output.elements if isinstance(element, ChangelogBatch)]

    @property
    def watermarks(self) -> list[int]:
        """Emitted watermarks in order, in tracks and stand-alone, epoch ms."""
        found: list[int] = []
        for element in self.output.elements:
            if isinstance(element, Watermark):
                found.append(element.timestamp_ms)
            elif isinstance(element, ChangelogBatch) and element.track is not None:
                found.extend(int(level) for level in element.track.wm_ms)
        return found

    @property
    def rows(self) -> list[tuple[Any, ...]]:
        """Emitted rows as tuples: the change kind, then Python values."""
        return [row for batch in self.batches for row in batch_rows(batch)]

    def side(self, tag: str) -> list[tuple[Any, ...]]:
        """Rows of a side output, as :attr:`rows`."""
        return [row for batch in self.output.side.get(tag, ()) for row in batch_rows(batch)]


def batch_rows(batch: ChangelogBatch) -> list[tuple[Any, ...]]:
    """Rows as tuples: the change kind (``+I`` ...), then Python values. For tests: rows are made here on purpose."""
    kinds = ["+I"] * batch.num_rows if batch.kinds is None else [SHORT_STRINGS[kind] for kind in batch.kinds]
    columns = [column.to_pylist() for column in batch.columns]
    return list(zip(kinds, *columns, strict=True))
