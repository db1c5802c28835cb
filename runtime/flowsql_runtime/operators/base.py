"""The operator contract on one page: what the runtime calls, what an operator may use, where its rows go.

An operator runs in the mailbox of its task: one thread, no locks. The base class forwards watermarks, statuses and
markers, so an operator cannot forget to. Source: engine contract, section 2.
"""

from __future__ import annotations

import enum
import random
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from flowsql_core.batch import ChangelogBatch, WatermarkTrack
from flowsql_core.clock import Clock
from flowsql_core.element import ACTIVE, MAX_WATERMARK, MIN_WATERMARK, LatencyMarker, Watermark, WatermarkStatus
from flowsql_core.graph.lineage import Lineage
from flowsql_core.graph.specs import OperatorSpec
from flowsql_core.record import record
from flowsql_runtime.metrics.told import AtWork, Backlog, asked
from flowsql_runtime.task.memory import UNLIMITED, OperatorMemory
from flowsql_runtime.task.services import JobServices, SplitProgress
from flowsql_runtime.time.time_slice import TimeSlice

if TYPE_CHECKING:
    from flowsql_runtime.metrics.registry import OperatorMetrics
    from flowsql_runtime.state.backend import KeyedSnapshot, KeyedStateBackend, OperatorStateBackend
    from flowsql_runtime.state.names import StateNames
    from flowsql_runtime.state.native import NativeSource
    from flowsql_runtime.time.timers import TimerService

S = TypeVar("S", bound=OperatorSpec)
Int64s = npt.NDArray[np.int64]


class Output(Protocol):
    """Where an operator's rows and time go: a chained operator, a record writer, or several of them."""

    def collect(self, batch: ChangelogBatch) -> None:
        """Rows (with the watermark track inside) for the main output."""
        ...

    def collect_side(self, tag: str, batch: ChangelogBatch) -> None:
        """Rows for a side output; dropped when nobody listens."""
        ...

    def emit_watermark(self, watermark: Watermark) -> None:
        """A watermark between batches."""
        ...

    def emit_watermark_status(self, status: WatermarkStatus) -> None:
        """This stream becomes idle or active."""
        ...

    def emit_latency_marker(self, marker: LatencyMarker) -> None:
        """Hand a marker on."""
        ...


@record
class OperatorSnapshot:
    """Everything an operator remembers, in a form that can be dealt out to another parallelism.

    ``keyed``: per state name an Arrow table whose first column ``__key_group`` (int32) says where a row belongs.
    ``frozen``: more of them, made when somebody asks; whoever holds the snapshot calls ``tables`` or ``release``.
    ``native``: of a restored one, keyed state that is in files of a backend.
    ``lists``: split-redistributed operator state; ``union``: handed whole to every subtask; ``broadcast``: same on all.
    ``watermarks_ms``: combined and per-input watermarks; a restore takes the minimum over old subtasks.
    """

    keyed: Mapping[str, Any] = field(default_factory=dict)
    lists: Mapping[str, tuple[bytes, ...]] = field(default_factory=dict)
    union: Mapping[str, tuple[bytes, ...]] = field(default_factory=dict)
    broadcast: Mapping[str, bytes] = field(default_factory=dict)
    watermarks_ms: tuple[int, ...] = ()
    frozen: KeyedSnapshot | None = None
    native: tuple[NativeSource, ...] = ()

    def tables(self) -> dict[str, Any]:
        """All tables of keyed state. Any thread, once."""
        return dict(self.keyed) if self.frozen is None else {**self.keyed, **self.frozen.tables()}

    def release(self) -> None:
        """Nobody wants the snapshot (any more). Any thread, any number of times."""
        if self.frozen is not None:
            self.frozen.release()


@dataclass(slots=True)
class OperatorContext:
    """What the runtime gives to an operator in ``open``.

    ``state``: keyed state primitives of this subtask's key groups (created on first use).
    ``submit``: run a callable in the mailbox; the only way in for other threads.
    ``memory_bytes``: this operator's share of the process budget.
    """

    name: str
    uid: str
    subtask: int
    parallelism: int
    max_parallelism: int
    clock: Clock
    rng: random.Random
    state: KeyedStateBackend
    operator_state: OperatorStateBackend
    timers: TimerService
    metrics: OperatorMetrics
    parameters: Mapping[str, str]
    resources: Mapping[str, Any]
    submit: Callable[[Callable[[], None]], None]
    memory_bytes: int
    spill_directory: str
    #: The vertex whose task this is, and its name.
    vertex_id: int = 0
    task_name: str = ""
    #: How often this subtask was started before.
    attempt: int = 0
    #: Account at the process budget: ``memory.reserve(bytes)`` before large allocations.
    memory: OperatorMemory = field(default_factory=lambda: OperatorMemory(UNLIMITED, "operator"))
    #: What the subtasks of the job share.
    job: JobServices = field(default_factory=JobServices)
    #: Tell the task that this operator needs no more input: it then ends, and what nobody else needs before it.
    stop_input: Callable[[], None] = lambda: None
    #: Wait until a mail comes, so many seconds at most; raises TaskCancelled. The mail itself runs later.
    pause: Callable[[float], None] = time.sleep
    #: Splits of the source at the head of this task.
    progress: SplitProgress = field(default_factory=SplitProgress)
    #: Whether the snapshot that is being taken may leave keyed state in files of its backend; savepoints may not.
    native_snapshots: bool = False
    #: For loops over rows: when to hand on what was made and to let timers fire.
    time_slice: TimeSlice = field(default_factory=TimeSlice)

    def parameter(self, key: str, default: str = "") -> str:
        """One job parameter (flat configuration text)."""
        return self.parameters.get(key, default)

    def tell(self, kind: type, read: Callable[[], object]) -> None:
        """Tell whoever asks why nothing comes; ``read`` gives a ``kind`` (``metrics/told.py``) in the task's thread."""
        self.metrics.told[kind] = partial(asked, self.submit, read)


class Operator(ABC, Generic[S]):
    """Base of all operators. Override only what differs.

    Life: ``__init__(spec)``, ``open(ctx)``, ``initialize_state(snapshot | None)``, then elements, then for each input
    ``end_input``, ``finish`` (may still emit), ``close`` (always, also after a failure; emits nothing).
    """

    #: Number of inputs; 0 for sources. Operators with several inputs set it in ``__init__``.
    number_of_inputs: int = 1

    def __init__(self, spec: S) -> None:
        self.spec = spec

    def setup(self, ctx: OperatorContext, output: Output) -> None:
        """Called once by the task before ``open``."""
        self.ctx = ctx
        self.output = output
        self._input_watermarks = [MIN_WATERMARK] * max(1, self.number_of_inputs)
        self._input_idle = [False] * max(1, self.number_of_inputs)
        self._watermark = MIN_WATERMARK
        self._idle = False
        ctx.tell(AtWork, AtWork)

    def collect_within_offsets(self, batch: ChangelogBatch) -> None:
        """Emit rows that were repeated or read from state: in parts where a column has too many bytes for one array."""
        for part in batch.within_offsets():
            self.output.collect(part)

    @property
    def current_watermark(self) -> int:
        """The combined input watermark after the last processed element, epoch ms."""
        return self._watermark

    # -- life cycle

    def open(self, ctx: OperatorContext) -> None:
        """Acquire what is needed; state primitives are created here."""

    def state_names(self, arriving: Sequence[Lineage]) -> StateNames | None:
        """What the keyed state means, given the inputs' columns; asked after ``open``. None: nobody compares it."""
        del arriving
        return None

    def initialize_state(self, snapshot: OperatorSnapshot | None) -> None:
        """Take over restored state. Keyed state and operator state in ``ctx`` are already filled."""

    @abstractmethod
    def process_batch(self, input_index: int, batch: ChangelogBatch) -> None:
        """Rows of one input, with the watermarks between them in ``batch.track``.

        An operator that emits one output row set per input batch passes the track on (``advance_track``).
        """

    def expect(self, input_index: int, batches: Sequence[ChangelogBatch]) -> None:
        """Batches of one input that wait and come next: an operator may tell its indexes of their keys.

        Called where state is partly outside memory (``KeyedStateBackend.rows_ahead``). Nothing else may change.
        """

    def end_input(self, input_index: int) -> None:
        """One input has no more elements. The final MAX watermark arrived before, if event time is in use."""

    def finish(self) -> None:
        """All inputs ended: emit what is held back."""

    def close(self) -> None:
        """Release everything."""

    # -- time

    def process_watermark(self, input_index: int, watermark: Watermark) -> None:
        """Merge inputs by minimum; when the minimum rises, tell the operator and forward it."""
        track = self.advance_track(
            input_index, WatermarkTrack(np.zeros(1, np.int32), np.array([watermark.timestamp_ms]))
        )
        if track is not None:
            self.on_watermark(track.last_ms)
            self.output.emit_watermark(Watermark(track.last_ms))

    def on_watermark(self, watermark_ms: int) -> None:
        """The combined watermark rose between batches: what waited for it in state (``Timers``) is due."""

    def process_watermark_status(self, input_index: int, status: WatermarkStatus) -> None:
        """An idle input does not hold the minimum back; all idle: forward idleness."""
        self._input_idle[input_index] = not status.active
        idle = all(self._input_idle)
        if idle != self._idle:
            self._idle = idle
            self.output.emit_watermark_status(status if idle else ACTIVE)
        if not idle:
            self._raise_combined(self._combined())

    def _raise_combined(self, combined: int) -> None:
        if combined > self._watermark:
            self._watermark = combined
            self.on_watermark(combined)
            self.output.emit_watermark(Watermark(combined))

    def _combined(self, without: int | None = None) -> int:
        levels = [
            level
            for index, level in enumerate(self._input_watermarks)
            if not self._input_idle[index] and index != without
        ]
        return min(levels) if levels else MAX_WATERMARK

    def advance_track(self, input_index: int, track: WatermarkTrack | None) -> WatermarkTrack | None:
        """The combined watermarks that a batch of this input brings, for ``output.collect``; updates the current one.

        Offsets stay those of the batch. Call it once per batch, after the batch's own rows were judged against the
        watermark before it, or use ``batch.watermark_per_row(self.current_watermark)`` with the returned track.
        """
        if track is None or not len(track):
            return None
        self._input_watermarks[input_index] = max(self._input_watermarks[input_index], track.last_ms)
        combined = track.capped(self._combined(without=input_index), self._watermark)
        if combined is not None:
            self._watermark = combined.last_ms
        return combined

    def process_latency_marker(self, input_index: int, marker: LatencyMarker) -> None:
        """Markers overtake nothing and are handed on."""
        self.output.emit_latency_marker(marker)

    def on_processing_timers(self, times_ms: Int64s, slots: Int64s) -> None:
        """Alarms that the clock reached, in time order."""

    # -- fault tolerance

    def prepare_snapshot_pre_barrier(self, checkpoint_id: int) -> None:
        """Emit what must not be in the snapshot (mini-batch buffers) before the barrier goes on."""

    def snapshot_state(self, checkpoint_id: int) -> OperatorSnapshot:
        """A consistent copy of everything remembered. Override to add operator state; call ``super()``."""
        return OperatorSnapshot(
            frozen=self.ctx.state.snapshot_async(self.ctx.native_snapshots),
            lists=self.ctx.operator_state.lists(),
            union=self.ctx.operator_state.unions(),
            broadcast=self.ctx.operator_state.broadcasts(),
            watermarks_ms=self.watermarks_ms,
        )

    @property
    def watermarks_ms(self) -> tuple[int, ...]:
        """The combined watermark and those of the inputs, for a snapshot."""
        return (self._watermark, *self._input_watermarks)

    def restore_watermarks(self, watermarks_ms: tuple[int, ...]) -> None:
        """Called by the task on restore with the minimum over the old subtasks."""
        if watermarks_ms:
            self._watermark = watermarks_ms[0]
            self._input_watermarks = list(watermarks_ms[1:])

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        """The checkpoint is durable everywhere: sinks commit."""

    def notify_checkpoint_aborted(self, checkpoint_id: int) -> None:
        """The checkpoint will never complete."""


class SourceStatus(enum.Enum):
    """What ``emit_next`` answers."""

    MORE = "more"
    NOTHING_NOW = "nothing-now"
    SUSPENDED = "suspended"
    #: Suspended with nothing left: this subtask must not hold back the watermark of what follows.
    DRAINED = "drained"
    END = "end"


class SourceOperator(Operator[S]):
    """Head of a vertex without inputs: the mailbox asks it for rows when it has nothing else to do."""

    number_of_inputs = 0

    def setup(self, ctx: OperatorContext, output: Output) -> None:
        """Called once by the task before ``open``."""
        super().setup(ctx, output)
        ctx.tell(Backlog, lambda: Backlog(self.caught_up()))

    def caught_up(self) -> bool:
        """Whether all that was there when the job started was emitted; a source that ends by itself need not tell."""
        return False

    @abstractmethod
    def emit_next(self) -> SourceStatus:
        """Emit at most one batch through ``self.output`` and say what comes next. Never blocks."""

    @abstractmethod
    def wake_when_available(self, wake: Callable[[], None]) -> None:
        """After ``NOTHING_NOW``: call ``wake`` (any thread) once when there may be rows."""

    def process_batch(self, input_index: int, batch: ChangelogBatch) -> None:
        """Sources have no input."""
        raise AssertionError("a source has no input")

    def stop_at(self, rows: int) -> None:
        """Whole-graph cut: report ``SUSPENDED`` once exactly ``rows`` rows in all have left this subtask."""
        raise AssertionError(f"{type(self).__name__} cannot be cut")
