"""Asynchronous I/O: a coroutine for each element, several at once."""

from __future__ import annotations

import heapq
import pickle
from collections import deque
from collections.abc import Iterable
from functools import partial
from typing import Any, Final

import numpy as np

from flowsql_core.batch import ChangelogBatch
from flowsql_core.element import MIN_WATERMARK, LatencyMarker, Watermark, WatermarkStatus
from flowsql_core.errors import ExecutionError, FlowSqlError
from flowsql_core.graph.stream_specs import AsyncFunctionSpec
from flowsql_core.interpreter.object_bytes import object_bytes
from flowsql_core.record import record
from flowsql_core.stream.async_functions import AsyncRetryStrategy
from flowsql_runtime.operators.base import Int64s, OperatorContext, OperatorSnapshot
from flowsql_runtime.python.event_loop import EventLoop
from flowsql_runtime.stream.async_io.queue import ElementQueue, Entry, OrderedQueue, UnorderedQueue
from flowsql_runtime.stream.base import ObjectOperator, Rows, UserFunction
from flowsql_runtime.stream.context import StreamRuntimeContext
from flowsql_runtime.stream.copies import user_copy
from flowsql_runtime.stream.failure import USER_ERRORS

_INVOKE: Final = "async_invoke"
#: The list of elements in flight in snapshots.
_IN_FLIGHT: Final = "in flight"
#: A task that waits for results looks up so often.
_LOOK_UP_S: Final = 0.1
_ALARM_SLOT: Final = np.zeros(1, np.int64)


@record
class _Answer:
    """What one call came to; one of ``results`` and ``error`` counts."""

    entry: Entry
    attempt: int
    results: Any = None
    error: BaseException | None = None


class AsyncWaitOperator(ObjectOperator[AsyncFunctionSpec]):
    """Flink's AsyncWaitOperator: calls go on side by side in an event loop of the subtask's own.

    In     objects; keys are not used. While ``spec.capacity`` elements are in flight no further one is taken.
    Out    the results of each element with its timestamp, in the order of the elements, or as they come between two
           watermarks.
    State  elements in flight, those included whose results did not leave yet: a restored job calls the function again.

    Everything but the coroutines runs in the task's thread, timeouts and retries as timers of the clock.
    """

    def open(self, ctx: OperatorContext) -> None:
        """Open the function, start the event loop."""
        super().open(ctx)
        self._queue: ElementQueue = OrderedQueue() if self.spec.ordered else UnorderedQueue()
        self._answers: deque[_Answer] = deque()
        #: Timeouts and retries: (when, number, entry, attempt to begin; 0: it takes too long).
        self._alarms: list[tuple[int, int, Entry, int]] = []
        self._alarm_number = 0
        self._armed_ms: int | None = None
        #: The last watermark that left.
        self._passed_ms = MIN_WATERMARK
        self._strategy: AsyncRetryStrategy[Any] | None = None
        if self.spec.retry is not None:
            self._strategy = user_copy(ctx.resources[self.spec.retry])
        self._function = UserFunction(ctx, self.spec.function)
        self._loop: EventLoop | None = None
        self._function.open(StreamRuntimeContext(ctx))
        self._loop = EventLoop("flowsql-async-io")

    def close(self) -> None:
        """End the event loop with all that still runs in it, close the function."""
        loop, self._loop = self._loop, None
        if loop is not None:
            loop.stop()
        self._function.close()

    # -- elements

    def process_rows(self, input_index: int, rows: Rows) -> None:
        """Begin a call for each element; what is there meanwhile leaves."""
        values, _, _, times = rows
        over = self.over
        for value, time in zip(values, times, strict=True):
            while self._queue.size >= self.spec.capacity:
                self._wait()
            self._begin(Entry(value, time))
            if self._answers:
                self._take_answers()
            if over:
                self.breathe()

    def advance_time(self, watermark_ms: int) -> None:
        """A watermark waits for the elements before it."""
        self._queue.add_mark(partial(self._pass_watermark, watermark_ms))

    def process_batch(self, input_index: int, batch: ChangelogBatch) -> None:
        """Elements, and watermarks between them that wait for their turn."""
        track = self.advance_track(input_index, batch.track)
        rows = self._rows(input_index, batch)
        start = 0
        self._begin_piece()
        if track is not None:
            for offset, level_ms in zip(track.offsets.tolist(), track.wm_ms.tolist(), strict=True):
                self._process_part(input_index, rows, start, offset)
                start = offset
                self.advance_time(level_ms)
        self._process_part(input_index, rows, start, batch.num_rows)
        self._emit_ready()
        self._end_piece()

    def process_watermark(self, input_index: int, watermark: Watermark) -> None:
        """It leaves behind the elements before it."""
        if watermark.timestamp_ms > self._watermark:
            self._watermark = watermark.timestamp_ms
            self.advance_time(watermark.timestamp_ms)
            self._emit_ready()
            self.emitter.flush()

    def process_watermark_status(self, input_index: int, status: WatermarkStatus) -> None:
        """It leaves behind the elements before it."""
        self._hand_on(partial(self.output.emit_watermark_status, status))

    def process_latency_marker(self, input_index: int, marker: LatencyMarker) -> None:
        """It leaves behind the elements before it."""
        self._hand_on(partial(self.output.emit_latency_marker, marker))

    def finish(self) -> None:
        """Wait for all results."""
        while self._queue.size:
            self._wait()
        self._emit_ready()
        self.emitter.flush()

    def _hand_on(self, emit: Any) -> None:
        def flushed() -> None:
            self.emitter.flush()
            emit()

        self._queue.add_mark(flushed)
        self._emit_ready()
        self.emitter.flush()

    def _pass_watermark(self, level_ms: int) -> None:
        self._passed_ms = self.time.watermark_ms = level_ms
        self.emitter.watermark(level_ms)

    # -- calls

    def _begin(self, entry: Entry) -> None:
        """The first call for an element."""
        if self.spec.timeout_ms > 0:
            entry.deadline_ms = self.ctx.clock.now_ms() + self.spec.timeout_ms
            self._alarm(entry.deadline_ms, entry, 0)
        self._queue.add(entry)
        self._call(entry)

    def _call(self, entry: Entry) -> None:
        assert self._loop is not None
        self._loop.start(self._invoke(entry, entry.attempt))

    async def _invoke(self, entry: Entry, attempt: int) -> None:
        """In the event loop."""
        try:
            results = await self._function.object.async_invoke(entry.value)
            answer = _Answer(entry, attempt, results)
        except USER_ERRORS as error:
            answer = _Answer(entry, attempt, None, error)
        self._answers.append(answer)
        self.ctx.submit(self._deliver)

    def _deliver(self) -> None:
        """A mail: there are answers."""
        try:
            self._take_answers()
            self.emitter.flush()
        except FlowSqlError as error:
            # Mails run outside of any operator: nobody else would say whose failure it is.
            raise error.in_operator(self.ctx.name)  # noqa: B904 - the cause is set where there is one

    def _take_answers(self) -> None:
        while self._answers:
            self._take(self._answers.popleft())
        self._emit_ready()

    def _take(self, answer: _Answer) -> None:
        entry = answer.entry
        if entry.results is not None or answer.attempt != entry.attempt:
            return  # it took too long
        if self._tries_again(answer):
            return
        if answer.error is not None:
            self._function.fail(answer.error, _INVOKE, entry.value)
        self._done(entry, answer.results)

    def _tries_again(self, answer: _Answer) -> bool:
        strategy, entry = self._strategy, answer.entry
        if strategy is None:
            return False
        now_ms = self.ctx.clock.now_ms()
        late = entry.deadline_ms is not None and now_ms > entry.deadline_ms
        try:
            found = strategy.get_retry_predicate()
            asked: Any = found.result_predicate() if answer.error is None else found.exception_predicate()
            about = answer.results if answer.error is None else answer.error
            if late or asked is None or about is None or not asked(about) or not strategy.can_retry(entry.attempt):
                return False
            pause_ms = strategy.get_backoff_time_millis(entry.attempt)
        except USER_ERRORS as error:
            self._function.fail(error, _INVOKE, entry.value)
        entry.attempt += 1
        self._alarm(now_ms + pause_ms, entry, entry.attempt)
        return True

    def _done(self, entry: Entry, results: Any) -> None:
        if not isinstance(results, Iterable):
            wrong = "cannot be none" if results is None else "should be of list type"
            error = RuntimeError(
                f"The result of AsyncFunction {wrong}, please check the methods 'async_invoke' and 'timeout' of class "
                f"'{type(self._function.object).__name__}'."
            )
            self._function.fail(error, _INVOKE, entry.value)
        entry.results = results
        self._queue.done(entry)

    def _emit_ready(self) -> None:
        for item in self._queue.take():
            if isinstance(item, Entry):
                try:
                    self.emitter.emit(item.results, item.time)
                except USER_ERRORS as error:
                    self._function.fail(error, _INVOKE, item.value)
            else:
                item()

    def _wait(self) -> None:
        """In the middle of a batch, or at its end: until something happens; a cancelled task leaves here."""
        if not self._answers:
            self.emitter.flush()
            seconds = _LOOK_UP_S
            if self._alarms:
                seconds = min(seconds, max(0.0, (self._alarms[0][0] - self.ctx.clock.now_ms()) / 1000))
            self.ctx.pause(seconds)
        self._take_answers()
        self.breathe()

    # -- the clock

    def _alarm(self, due_ms: int, entry: Entry, attempt: int) -> None:
        self._alarm_number += 1
        heapq.heappush(self._alarms, (due_ms, self._alarm_number, entry, attempt))
        if self._armed_ms is None or due_ms < self._armed_ms:
            self._arm()

    def _arm(self) -> None:
        while self._alarms and self._alarms[0][2].results is not None:
            heapq.heappop(self._alarms)
        self._armed_ms = self._alarms[0][0] if self._alarms else None
        if self._armed_ms is not None:
            self.ctx.timers.register_processing_timers(np.array([self._armed_ms], np.int64), _ALARM_SLOT)

    def on_processing_timers(self, times_ms: Int64s, slots: Int64s) -> None:
        """Elements that take too long, calls that are tried again."""
        now_ms = self.ctx.clock.now_ms()
        self._armed_ms = None
        while self._alarms and self._alarms[0][0] <= now_ms:
            _, _, entry, attempt = heapq.heappop(self._alarms)
            if entry.results is not None:
                continue
            if attempt:
                self._call(entry)
            else:
                self._time_out(entry)
        self._arm()
        self._emit_ready()
        self.emitter.flush()

    def _time_out(self, entry: Entry) -> None:
        entry.attempt += 1  # whatever a call still brings is ignored
        try:
            results = self._function.object.timeout(entry.value)
        except USER_ERRORS as error:
            self._function.fail(error, "timeout", entry.value)
        self._done(entry, results)

    # -- fault tolerance

    def initialize_state(self, snapshot: OperatorSnapshot | None) -> None:
        """Call the function again for what was in flight."""
        self._passed_ms = self.current_watermark
        for item in () if snapshot is None else snapshot.lists.get(_IN_FLIGHT, ()):
            value, time = pickle.loads(item)
            self._begin(Entry(value, time))

    def snapshot_state(self, checkpoint_id: int) -> OperatorSnapshot:
        """Elements in flight. The watermark is the one that left: those behind elements in flight come again."""
        found = tuple(self._pickled(entry) for entry in self._queue.entries())
        return OperatorSnapshot(lists={_IN_FLIGHT: found}, watermarks_ms=(self._passed_ms, self._passed_ms))

    def _pickled(self, entry: Entry) -> bytes:
        try:
            return object_bytes((entry.value, entry.time))
        except Exception as error:  # pickle raises many kinds
            raise ExecutionError(
                "state-not-serializable",
                f"an element in flight cannot be saved: {type(error).__name__}: {error}",
                hint="hand plain values to asynchronous functions",
            ) from error
