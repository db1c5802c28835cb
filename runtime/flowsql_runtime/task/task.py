"""Life of one subtask: open the chain, run the mailbox loop, end or fail, close."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Protocol, TypeAlias, assert_never

from flowsql_core.batch import ChangelogBatch
from flowsql_core.element import (
    MAX_WATERMARK,
    MIN_WATERMARK,
    CheckpointBarrier,
    EndOfInput,
    LatencyMarker,
    SnapshotKind,
    Watermark,
    WatermarkStatus,
)
from flowsql_runtime.metrics.registry import TaskMetrics
from flowsql_runtime.network.channel import Element, LocalChannel
from flowsql_runtime.network.gate import InputProcessor
from flowsql_runtime.network.in_flight import InFlight
from flowsql_runtime.network.partition import RecordWriter
from flowsql_runtime.operators.base import OperatorSnapshot, SourceOperator, SourceStatus
from flowsql_runtime.task.chain import ChainedOperator, OperatorChain, named_failure
from flowsql_runtime.task.mailbox import Mailbox, TaskCancelled
from flowsql_runtime.task.restore import RestoredTask
from flowsql_runtime.task.stateless import NoKeyedState
from flowsql_runtime.time.processing import ProcessingTime
from flowsql_runtime.time.time_slice import TimeSlice

logger = logging.getLogger(__name__)

#: After so many inputs the state of a task is compared with the memory budget.
ACCOUNT_EVERY = 4


#: A task: vertex id and subtask.
TaskKey: TypeAlias = tuple[int, int]


class TaskCheckpoints(Protocol):
    """Whom a task tells of checkpoints."""

    def task_started(self, task: TaskKey) -> None:
        """All operators are open."""
        ...

    def task_finished(self, task: TaskKey) -> None:
        """The task ended well."""
        ...

    def acknowledge(
        self,
        task: TaskKey,
        barrier: CheckpointBarrier,
        snapshots: Mapping[str, OperatorSnapshot],
        in_flight: InFlight | None = None,
    ) -> None:
        """The barrier passed the task; by operator uid what each remembers, and what the barrier overtook."""
        ...

    def decline(self, task: TaskKey, checkpoint_id: int, error: BaseException) -> None:
        """The task could not take its snapshot."""
        ...


class StreamTask:
    """One subtask of a vertex. ``run`` is called once, in the task's thread (or the caller's, for a lone task).

    The loop takes, in this order: mails, due processing timers, then one element or one source batch, and the last only
    while no receiver is full: back-pressure stops input, not timers.
    """

    def __init__(
        self,
        *,
        vertex_id: int,
        subtask: int,
        parallelism: int,
        name: str,
        chain: OperatorChain,
        mailbox: Mailbox,
        inputs: InputProcessor | None,
        writers: Sequence[RecordWriter],
        processing_time: ProcessingTime,
        metrics: TaskMetrics,
        restored: Callable[[], RestoredTask],
        key_groups: range,
        finished_before: bool = False,
        ends_early: bool = True,
        latency_interval_ms: int = 0,
    ) -> None:
        self.vertex_id = vertex_id
        self.subtask = subtask
        self.name = name
        self._parallelism = parallelism
        self.mailbox = mailbox
        self.metrics = metrics
        self.writers = tuple(writers)
        self._chain = chain
        self._inputs = inputs
        self._processing_time = processing_time
        self._load: Callable[[], RestoredTask] | None = restored
        self._key_groups = key_groups
        self._finished_before = finished_before
        #: Set before the task runs, where somebody takes checkpoints.
        self.checkpoints: TaskCheckpoints | None = None
        #: Whether the task ended well.
        self.over = False
        #: The savepoint behind which this task stops once it is complete; no input is taken meanwhile.
        self._stopping: CheckpointBarrier | None = None
        #: Snapshots behind an unaligned barrier, while it is still noted what the barrier overtakes.
        self._overtaking: tuple[CheckpointBarrier, dict[str, OperatorSnapshot]] | None = None
        if inputs is not None:
            inputs.on_announced(self._announced)
        self._inputs_to_account = ACCOUNT_EVERY
        #: Elements behind the next one whose keys the head was told of.
        self._expected = 0
        contexts = [node.operator.ctx for node in chain.operators]
        self._stateful = tuple(ctx for ctx in contexts if not isinstance(ctx.state, NoKeyedState))
        self._timers = tuple(ctx.timers for ctx in contexts)
        self._running = True
        #: Nobody needs what this task makes: its operators are satisfied, or its receivers are.
        self._unwanted = False
        self._ends_early = ends_early
        self._latency_interval_ms = latency_interval_ms
        self._marker_due_ms: int | None = None
        for node in chain.operators:
            node.operator.ctx.stop_input = partial(self._stop_input, node)
        for position, ctx in enumerate(contexts):
            ctx.time_slice = TimeSlice(processing_time.clock, partial(self._let_time_pass, position))
        for writer in self.writers:
            writer.on_stop(self._look_for_demand)

    def run(self) -> None:
        """Run to the end of input. Raises FlowSqlError, or TaskCancelled; the chain is closed in any case."""
        self.metrics.start()
        self._processing_time.on_jump(self.mailbox.wake)
        failed = True
        try:
            if self._finished_before:
                self._end_at_once()
            else:
                self._open()
                head = self._chain.head.operator
                if isinstance(head, SourceOperator):
                    self._run_source(head)
                else:
                    self._run_inputs()
            failed = False
            self.over = True
            if self.checkpoints is not None:
                self.checkpoints.task_finished(self.key)
        finally:
            for node in self._chain.operators:
                node.operator.ctx.time_slice.stop()
            close_error = self._chain.close()
            for ctx in self._stateful:
                ctx.state.close()
            self.metrics.stop()
            if close_error is not None and not failed:
                raise close_error
            if close_error is not None:
                logger.warning("task=%s subtask=%d: close failed: %s", self.name, self.subtask, close_error)

    @property
    def is_source(self) -> bool:
        """Whether barriers start here."""
        return isinstance(self._chain.head.operator, SourceOperator)

    @property
    def key(self) -> TaskKey:
        """Its name in the job."""
        return self.vertex_id, self.subtask

    @property
    def full_name(self) -> str:
        """Its name in messages, as Flink writes it."""
        return f"{self.name} ({self.subtask + 1}/{self._parallelism})"

    def _end_at_once(self) -> None:
        """The task had ended before the snapshot that the job started from: its receivers hear only of the end."""
        self._load = None
        for node in self._chain.operators:
            node.operator.ctx.job.alignment.over((node.uid, self.subtask))
        for writer in self.writers:
            writer.broadcast(Watermark(MAX_WATERMARK))
            writer.end()

    def _open(self) -> None:
        assert self._load is not None
        # The snapshot is let go of with this method.
        restored, self._load = self._load(), None
        if restored.in_flight is not None and self._inputs is not None:
            self._inputs.put_back(restored.in_flight)
        for node in self._chain.operators:
            snapshot = restored.operators.get(node.uid)
            if snapshot is not None:
                ctx = node.operator.ctx
                ctx.state.restore(snapshot.keyed, self._key_groups, snapshot.native)
                ctx.operator_state.restore(snapshot.lists, snapshot.union, snapshot.broadcast)
                node.operator.restore_watermarks(snapshot.watermarks_ms)
        self._chain.open()
        for node in reversed(self._chain.operators):
            try:
                node.operator.initialize_state(restored.operators.get(node.uid))
            except Exception as error:
                raise named_failure(error, node.name)  # noqa: B904 - the cause is set where there is one
            level_ms = node.operator.current_watermark
            if node.uid in restored.operators and level_ms > MIN_WATERMARK:
                # Receivers behind an exchange start without a watermark: tell them where this operator stands.
                node.output.emit_watermark(Watermark(level_ms))
        for ctx in self._stateful:
            ctx.metrics.state_bytes = ctx.state.nbytes
        if self.checkpoints is not None:
            self.checkpoints.task_started(self.key)

    def _run_source(self, source: SourceOperator[Any]) -> None:
        head = self._chain.head
        if self._latency_interval_ms:
            self._marker_due_ms = self._processing_time.clock.now_ms()
        while self._running:
            self._between_inputs()
            if not self._running:
                return
            if self._unwanted:
                self._end_early()
                return
            if self._stopping is not None:
                self._idle()
                continue
            try:
                status = source.emit_next()
            except Exception as error:
                raise named_failure(error, head.name)  # noqa: B904
            match status:
                case SourceStatus.MORE:
                    continue
                case SourceStatus.NOTHING_NOW:
                    source.wake_when_available(self.mailbox.wake)
                    self._idle()
                case SourceStatus.END:
                    head.output.emit_watermark(Watermark(MAX_WATERMARK))
                    head.end_input(0)
                    self._running = False
                case SourceStatus.SUSPENDED | SourceStatus.DRAINED:
                    if status is SourceStatus.DRAINED:
                        head.output.emit_watermark(Watermark(MAX_WATERMARK))
                    # A cut: every source has its own position, and nobody waits for the others.
                    self._snapshot(CheckpointBarrier(1, self._processing_time.clock.now_ms(), SnapshotKind.SUSPEND))
                    self._running = False
                case _:
                    assert_never(status)

    def _run_inputs(self) -> None:
        inputs = self._inputs
        assert inputs is not None
        while self._running:
            self._between_inputs()
            if not self._running:
                return
            if self._unwanted:
                self._end_early()
                inputs.stop()
                return
            self._look_ahead(inputs)
            arrived = inputs.next()
            if self._overtaking is not None:
                self._acknowledge_recorded()
            if arrived is None:
                self._idle()
                continue
            input_index, elements = arrived
            for element in elements:
                self._dispatch(input_index, element)

    def _look_ahead(self, inputs: InputProcessor) -> None:
        """Where state is partly outside memory: tell the head of the chain what waits."""
        if self._expected:
            self._expected -= 1
            return
        rows = self._chain.head.operator.ctx.state.rows_ahead
        if not rows:
            return
        batches, elements = inputs.waiting(rows)
        self._expected = max(0, elements - 1)
        for input_index, found in batches.items():
            self._chain.head.operator.expect(input_index, found)

    def _stop_input(self, node: ChainedOperator) -> None:
        """An operator of the chain needs no more input."""
        node.stopped = True
        self._look_for_demand()

    def _look_for_demand(self) -> None:
        # A cut must find every source at its position, so there nobody ends before.
        self._unwanted = self._ends_early and not self._chain.head.wants_more()

    def _end_early(self) -> None:
        """End those that are satisfied, which ends what follows them; those before them have nobody to finish for."""
        for node in self._chain.operators:
            if node.stopped and not node.ended:
                node.end_early()
        self._running = False

    def _dispatch(self, input_index: int, element: Element) -> None:
        head = self._chain.head
        try:
            match element:
                case ChangelogBatch():
                    head.metrics.records_in += element.num_rows
                    if element.track is not None:
                        head.metrics.input_watermark_ms = element.track.last_ms
                    head.operator.process_batch(input_index, element)
                case Watermark():
                    head.metrics.input_watermark_ms = element.timestamp_ms
                    head.operator.process_watermark(input_index, element)
                case WatermarkStatus():
                    head.operator.process_watermark_status(input_index, element)
                case LatencyMarker():
                    if head.report_latency is not None:
                        head.report_latency(element)
                    head.operator.process_latency_marker(input_index, element)
                case CheckpointBarrier():
                    self._snapshot(element)
                    # The barrier of a cut: nothing follows it.
                    self._running = self._ends_early
                case EndOfInput():
                    head.end_input(input_index)
                    self._running = not head.ended
                case _:
                    assert_never(element)
        except Exception as error:
            raise named_failure(error, head.name)  # noqa: B904

    def _between_inputs(self) -> None:
        """Mails and timers; returns when there is room at the receivers."""
        if self._stateful:
            for ctx in self._stateful:
                try:
                    ctx.state.settle()
                except Exception as error:
                    raise named_failure(error, ctx.name)  # noqa: B904
            self._inputs_to_account -= 1
            if not self._inputs_to_account:
                self._inputs_to_account = ACCOUNT_EVERY
                self._account()
        while True:
            self.mailbox.run_mails()
            if not self._running:
                return
            self._overtake_if_due()
            self._fire_processing_timers()
            for writer in self.writers:
                if writer.blocked():
                    break
            else:
                return
            self.metrics.back_pressured.begin()
            self.mailbox.sleep(self._seconds_to_timer())
            self.metrics.back_pressured.end()

    def _account(self) -> None:
        """Reserve what the operators' state has grown to; a breach of the budget names the operator."""
        for ctx in self._stateful:
            ctx.metrics.state_bytes = state_bytes = ctx.state.nbytes
            if state_bytes > ctx.memory.held_bytes:
                ctx.memory.resize(state_bytes)

    def _idle(self) -> None:
        if self._stateful and self._inputs_to_account != ACCOUNT_EVERY:
            # Nothing may come for long: whoever looks meanwhile sees what the last inputs left.
            self._inputs_to_account = ACCOUNT_EVERY
            self._account()
        self.metrics.idle.begin()
        self.mailbox.sleep(self._seconds_to_timer())
        self.metrics.idle.end()

    def _next_timer_ms(self) -> int | None:
        if self._stopping is not None:
            return None
        due = self._marker_due_ms
        if self._inputs is not None and self._inputs.due_ms is not None:
            due = self._inputs.due_ms if due is None else min(due, self._inputs.due_ms)
        for timers in self._timers:
            at = timers.next_processing_ms
            if at is not None and (due is None or at < due):
                due = at
        return due

    def _seconds_to_timer(self) -> float | None:
        return self._processing_time.seconds_until(self._next_timer_ms())

    def _fire_processing_timers(self) -> None:
        if self._next_timer_ms() is None or self._stopping is not None:
            return  # what fires behind the last barrier would be in no snapshot
        now_ms = self._processing_time.clock.now_ms()
        for node in self._chain.operators:
            self._fire(node, now_ms)
        if self._marker_due_ms is not None and self._marker_due_ms <= now_ms:
            self._marker_due_ms = now_ms + self._latency_interval_ms
            head = self._chain.head
            head.output.emit_latency_marker(LatencyMarker(now_ms, head.uid, self.subtask))

    def _fire(self, node: ChainedOperator, now_ms: int) -> None:
        at = node.operator.ctx.timers.next_processing_ms
        if at is None or at > now_ms:
            return
        due = node.operator.ctx.timers.pop_processing_timers(now_ms)
        if due is None:
            return
        try:
            node.operator.on_processing_timers(due.times_ms, due.slots)
        except Exception as error:
            raise named_failure(error, node.name)  # noqa: B904

    def _let_time_pass(self, position: int) -> None:
        """In the middle of an operator's batch: its timers, and those of the operators behind it, fire.

        Those before it have handed on rows that it has not seen yet, so that their time stands.
        """
        if self.mailbox.cancelled:
            raise TaskCancelled
        if self._next_timer_ms() is None:
            return
        now_ms = self._processing_time.clock.now_ms()
        for node in self._chain.operators[position:]:
            self._fire(node, now_ms)

    # -- checkpoints

    def trigger_checkpoint(self, barrier: CheckpointBarrier) -> None:
        """Put a barrier into the stream here, at a source (any thread)."""
        self.mailbox.submit(partial(self._trigger, barrier))

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        """The checkpoint is durable everywhere and its results are committed (any thread)."""
        self.mailbox.submit(partial(self._completed, checkpoint_id))

    def notify_checkpoint_aborted(self, checkpoint_id: int) -> None:
        """The checkpoint will never complete (any thread)."""
        self.mailbox.submit(partial(self._aborted, checkpoint_id))

    def _trigger(self, barrier: CheckpointBarrier) -> None:
        if barrier.kind is SnapshotKind.DRAIN:
            self._chain.head.output.emit_watermark(Watermark(MAX_WATERMARK))
        self._snapshot(barrier)

    def _announced(self, channel: LocalChannel, barrier: CheckpointBarrier) -> None:
        assert self._inputs is not None
        self._inputs.announced(barrier)
        self._overtake_if_due()
        if self._overtaking is not None:
            self._acknowledge_recorded()

    def _overtake_if_due(self) -> None:
        """An announced barrier was waited for long enough: snapshot now, and note what it overtakes."""
        inputs = self._inputs
        if inputs is None or inputs.due_ms is None or inputs.due_ms > self._processing_time.clock.now_ms():
            return
        barrier = replace(inputs.overtake(), unaligned_after_ms=0)
        taken = self._take_snapshots(barrier)
        if taken is not None:
            self._overtaking = barrier, taken
            self._acknowledge_recorded()

    def _acknowledge_recorded(self) -> None:
        assert self._overtaking is not None
        assert self._inputs is not None
        found = self._inputs.recorded()
        if found is not None:
            barrier, taken = self._overtaking
            self._overtaking = None
            if self.checkpoints is not None:
                self.checkpoints.acknowledge(self.key, barrier, taken, found)

    def _snapshot(self, barrier: CheckpointBarrier) -> None:
        """Everything before the barrier is processed."""
        taken = self._take_snapshots(barrier)
        if taken is not None and self.checkpoints is not None:
            self.checkpoints.acknowledge(self.key, barrier, taken)

    def _take_snapshots(self, barrier: CheckpointBarrier) -> dict[str, OperatorSnapshot] | None:
        """Snapshot all operators, then hand the barrier on.

        An operator that cannot take its snapshot declines the checkpoint; the task goes on, and None comes back.
        """
        for node in self._chain.operators:
            try:
                node.operator.prepare_snapshot_pre_barrier(barrier.checkpoint_id)
            except Exception as error:
                raise named_failure(error, node.name)  # noqa: B904
        taken: dict[str, OperatorSnapshot] = {}
        for node in self._chain.operators:
            node.operator.ctx.native_snapshots = not barrier.kind.is_savepoint
            try:
                taken[node.uid] = node.operator.snapshot_state(barrier.checkpoint_id)
            except Exception as error:
                failure = named_failure(error, node.name)
                if self.checkpoints is None or barrier.kind.stops:
                    raise failure  # noqa: B904
                logger.warning("task=%s subtask=%d: no snapshot: %s", self.name, self.subtask, failure, exc_info=True)
                for snapshot in taken.values():
                    snapshot.release()
                self.checkpoints.decline(self.key, barrier.checkpoint_id, failure)
                return None
        for writer in self.writers:
            writer.broadcast(barrier)
        if barrier.kind.stops:
            self._stopping = barrier
        return taken

    def _completed(self, checkpoint_id: int) -> None:
        for node in self._chain.operators:
            try:
                node.operator.notify_checkpoint_complete(checkpoint_id)
            except Exception as error:
                raise named_failure(error, node.name)  # noqa: B904
        if self._stopping is not None and self._stopping.checkpoint_id == checkpoint_id:
            self._running = False
            self._stopping = None

    def _aborted(self, checkpoint_id: int) -> None:
        if self._inputs is not None:
            self._inputs.give_up(checkpoint_id)
        if self._overtaking is not None and self._overtaking[0].checkpoint_id <= checkpoint_id:
            for snapshot in self._overtaking[1].values():
                snapshot.release()
            self._overtaking = None
        for node in self._chain.operators:
            try:
                node.operator.notify_checkpoint_aborted(checkpoint_id)
            except Exception as error:
                raise named_failure(error, node.name)  # noqa: B904
        if self._stopping is not None and self._stopping.checkpoint_id == checkpoint_id:
            self._stopping = None
