"""Columns handed on beside the results of a user's Python functions, computed here or in a worker process."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from flowsql_core.batch import ChangelogBatch, late_columns
from flowsql_core.element import LatencyMarker, Watermark, WatermarkStatus
from flowsql_core.errors import ExecutionError, FailedRow, FlowSqlError, InternalError
from flowsql_core.graph.python_specs import PythonCalcSpec
from flowsql_core.record import record
from flowsql_core.udf import FunctionKind
from flowsql_runtime.operators.base import Operator, OperatorContext, Output
from flowsql_runtime.operators.evaluation import eval_context
from flowsql_runtime.operators.failure import trace_row
from flowsql_runtime.operators.pace import begin_slices
from flowsql_runtime.python.by_value import dumps
from flowsql_runtime.python.evaluate import Evaluator
from flowsql_runtime.python.evaluators import make_evaluator
from flowsql_runtime.python.failure import UserFailure, UserFailureError
from flowsql_runtime.python.frames import Frame, FrameKind, WorkerStart
from flowsql_runtime.python.functions import function_context, load_function
from flowsql_runtime.python.options import (
    ARCHIVES,
    ARROW_BATCH_SIZE,
    EXECUTION_MODE,
    ExecutionMode,
    async_options,
    job_parameters,
)
from flowsql_runtime.python.program import Layout, PythonProgram, make_layout
from flowsql_runtime.python.worker_process import WorkerProcess
from flowsql_runtime.stream.copies import user_copy

if TYPE_CHECKING:
    from flowsql_runtime.python.async_calls import AsyncCalls

#: Batches that a worker may hold or have on the way; of asynchronous functions as many as calls may go on at once.
IN_FLIGHT: Final = 4
#: The most rows that go through row-wise functions at once.
MOST_ROWS: Final = 65_536
#: A task that waits for its worker looks up so often.
_LOOK_UP_S: Final = 0.1


class PythonCalcOperator(Operator[PythonCalcSpec]):
    """Hand columns on, call functions over others.

    In     any changelog.
    Out    the projections; kinds, row times, watermarks and statuses stay with, and between, their rows.
    State  none; what a worker process holds, and asynchronous calls that go on, are waited for before a snapshot.
    Late   not judged.
    """

    def setup(self, ctx: OperatorContext, output: Output) -> None:
        """Everything that leaves goes through one queue, so that nothing overtakes rows that a worker holds."""
        self._in_order = _InOrder(output)
        super().setup(ctx, self._in_order)
        self._evaluator: Evaluator | None = None
        self._worker: WorkerProcess | AsyncCalls | None = None
        self._most_in_flight = IN_FLIGHT
        self._ended = False

    def open(self, ctx: OperatorContext) -> None:
        """Find the functions and open them, here or in a worker."""
        size = ARROW_BATCH_SIZE.read(ctx.parameter(ARROW_BATCH_SIZE.key, str(ARROW_BATCH_SIZE.default)))
        self._pace = begin_slices(ctx, MOST_ROWS)
        asynchronous = async_options(ctx.parameters)
        self._layout: Layout = make_layout(self.spec, eval_context(ctx).zone, size, asynchronous)
        program = self._layout.program
        # Others are called with as many rows as were asked for.
        self._by_row = program.kind in (FunctionKind.GENERAL, FunctionKind.ASYNC)
        # A piece of fewer rows would leave calls unmade that may go on at once.
        self._least_rows = asynchronous.concurrency if program.kind is FunctionKind.ASYNC else 1
        # Each call has an object of its own in each subtask, as in PyFlink, which ships one with each call.
        functions = [user_copy(load_function(function, ctx.resources).function) for function in program.functions]
        parameters = job_parameters(dict(ctx.parameters))
        if self._in_process(ctx, program):
            archives = ARCHIVES.read(ctx.parameter(ARCHIVES.key, ""))
            self._worker = WorkerProcess(_start(program, functions, parameters, ctx), self._wake, archives)
            return
        self._evaluator = make_evaluator(program, functions)
        context = function_context(ctx)
        self._guarded(lambda evaluator: evaluator.open(context))
        if program.kind is FunctionKind.ASYNC:
            from flowsql_runtime.python.async_calls import AsyncCalls, AsyncEvaluator

            assert isinstance(self._evaluator, AsyncEvaluator)
            self._worker, self._evaluator = AsyncCalls(self._evaluator, self._wake), None
            self._most_in_flight = max(IN_FLIGHT, asynchronous.concurrency)

    @staticmethod
    def _in_process(ctx: OperatorContext, program: PythonProgram) -> bool:
        unpacked = bool(ctx.parameter(ARCHIVES.key, ""))
        match EXECUTION_MODE.read(ctx.parameter(EXECUTION_MODE.key, EXECUTION_MODE.default.value)):
            case ExecutionMode.THREAD:
                if unpacked:
                    raise ExecutionError(
                        "python-archives-thread",
                        f"'{ARCHIVES.key}' needs worker processes: files appear in the working directory of these.",
                        hint=f"leave '{EXECUTION_MODE.key}' = 'thread' out",
                    )
                return False
            case ExecutionMode.PROCESS:
                return True
            case ExecutionMode.AUTO:
                return unpacked or (ctx.parallelism > 1 and program.kind is FunctionKind.GENERAL)

    # Rows

    def process_batch(self, input_index: int, batch: ChangelogBatch) -> None:
        """What comes in goes out: now, or once the worker answered; in pieces, while the functions are slow."""
        track = self.advance_track(input_index, batch.track)
        if track is not batch.track:
            batch = batch.with_track(track)
        first = 0
        while first < batch.num_rows or not batch.num_rows:
            rows = max(self._pace.rows, self._least_rows) if self._by_row else batch.num_rows
            last = min(first + rows, batch.num_rows)
            piece = batch.slice(first, last)
            try:
                self._process(piece, first)
            except ExecutionError as error:
                row = error.row
                if row is not None and row.batch is piece:
                    row.batch, row.position = batch, first + row.position
                raise
            if last == batch.num_rows:
                return
            first = last
            self._let_time_pass()

    def _process(self, piece: ChangelogBatch, first: int) -> None:
        columns = [piece.columns[index] for index in self._layout.arguments]
        began_ms = self._pace.begin()
        if self._worker is None:
            try:
                made = self._guarded(lambda evaluator: evaluator.run(columns, piece.num_rows))
            except ExecutionError as error:
                trace_row(error, piece)
                if error.row is not None:
                    error.row.row += first
                raise
            self._emit(piece, made)
            self._pace.done(piece.num_rows, began_ms)
            return
        self._delivered()
        while self._in_order.waiting >= self._most_in_flight:
            self._wait()
            self._let_time_pass()
        self._worker.send_batch(columns, piece.num_rows)
        self._in_order.expect(_Sent(piece, first, began_ms))

    def _let_time_pass(self) -> None:
        """Between two pieces, where a slice is over."""
        if self.ctx.time_slice.over:
            self.ctx.time_slice.next()

    def _emit(self, batch: ChangelogBatch, made: Sequence[Any]) -> None:
        computed = iter(made)
        places = [next(computed) if place is None else place for place in self._layout.forwarded]
        done = 0
        for given in batch.with_columns(late_columns(batch.columns, places)).within_offsets():
            try:
                self._in_order.target.collect(given)
            except ExecutionError as error:
                row = error.row
                if row is not None and row.batch is given:
                    row.batch, row.position = batch, done + row.position
                raise
            done += given.num_rows

    def _guarded(self, call: Callable[[Evaluator], Any]) -> Any:
        assert self._evaluator is not None
        try:
            return call(self._evaluator)
        except UserFailureError as error:
            raise self._error(error.failure) from error.__cause__

    def _error(self, failure: UserFailure) -> ExecutionError:
        span = None if failure.step is None else self._layout.spans[failure.step]
        error = ExecutionError(failure.code, failure.message, span)
        if failure.row is not None:
            # The report shows the function's arguments; the columns would repeat them.
            error.row = FailedRow(failure.row, {})
        return error

    # The worker

    def _wake(self) -> None:
        """Any thread: there is an answer."""
        self.ctx.submit(self._deliver)

    def _deliver(self) -> None:
        """A mail: hand on what the worker has answered."""
        self._delivered()

    def _delivered(self) -> bool:
        """Hand on what the worker has answered, in order; whether there was anything."""
        worker, some = self._worker, False
        while worker is not None and not self._ended:
            try:
                frame = worker.take_answer()
            except UserFailureError as error:
                raise self._failed(error.failure) from error.__cause__
            if frame is None:
                break
            self._take(worker, frame)
            some = True
        return some

    def _failed(self, failure: UserFailure) -> FlowSqlError:
        """The error of the job for what a worker could not answer."""
        error = self._error(failure)
        expected = self._in_order.expected()
        if expected is not None:
            trace_row(error, expected.piece)
        if error.row is not None:
            # The operators before this one have gone on: nobody follows the row to its source any more.
            error.row.came_row = self._in_order.answered_rows + error.row.row
            error.row.row += 0 if expected is None else expected.first
        # Mails run outside of any operator: nobody else would say whose failure it is.
        return error.in_operator(self.ctx.name)

    def _take(self, worker: WorkerProcess | AsyncCalls, frame: Frame) -> None:
        match frame.kind:
            case FrameKind.FAILED:
                raise self._failed(frame.note)
            case FrameKind.OPENED:
                self._add_metrics(frame.note)
            case FrameKind.RESULT:
                self._add_metrics(frame.note)
                sent = self._in_order.arrived()
                self._emit(sent.piece, worker.columns_of(frame))
                self._pace.done(sent.piece.num_rows, sent.sent_ms)
                self._in_order.release()
            case FrameKind.CLOSED:
                self._add_metrics(frame.note)
                self._ended = True
            case _:
                raise InternalError(f"a worker sends no {frame.kind.name}")

    def _add_metrics(self, note: tuple[dict[str, int], dict[str, int | float]] | None) -> None:
        if note is None:
            return
        counts, gauges = note
        for name, by in counts.items():
            self.ctx.metrics.count(name, by)
        for name, value in gauges.items():
            self.ctx.metrics.gauge(name, partial(_known, value))

    def _wait(self) -> None:
        """Until the worker answered something; a cancelled task leaves here."""
        if not self._delivered():
            self.ctx.pause(_LOOK_UP_S)

    def _drain(self) -> None:
        while self._in_order.waiting:
            self._wait()

    # Life

    def prepare_snapshot_pre_barrier(self, checkpoint_id: int) -> None:
        """Rows that a worker holds belong before the barrier."""
        self._drain()

    def finish(self) -> None:
        """Everything that came in goes out; then the functions are closed, and say whether that went well."""
        self._drain()
        if self._worker is not None:
            try:
                self._worker.send_end()
            except UserFailureError as error:
                raise self._error(error.failure) from error.__cause__
            while not self._ended:
                self._wait()
        else:
            self._guarded(lambda evaluator: evaluator.close())

    def close(self) -> None:
        """Close the functions, end the worker."""
        worker, self._worker = self._worker, None
        if worker is not None:
            worker.close(self._ended)
        if self._evaluator is not None:
            self._guarded(lambda evaluator: evaluator.close())


def _known(value: int | float) -> int | float:
    """A gauge that a worker read."""
    return value


def _start(
    program: PythonProgram, functions: Sequence[Any], parameters: dict[str, str], ctx: OperatorContext
) -> WorkerStart:
    """What the worker begins with; functions of the program's own file travel by value."""
    try:
        pickled = dumps(list(functions))
    except Exception as error:  # a user's object
        names = ", ".join(function.name for function in program.functions)
        raise ExecutionError(
            "python-function-not-sent",
            f"The Python function {names} cannot be sent to its process: {type(error).__name__}: {error}",
            hint="make what it holds in open(), or SET 'python.execution-mode' = 'thread'",
        ) from error
    place = (ctx.task_name, ctx.subtask, ctx.parallelism, ctx.max_parallelism, ctx.attempt)
    return WorkerStart(program, pickled, parameters, *place)


@record
class _Sent:
    """Rows that a worker holds: a piece of a batch from row ``first`` on, and when it was sent."""

    piece: ChangelogBatch
    first: int
    sent_ms: int


@record
class _Held:
    """Something between two batches that waits for the one before it."""

    hand_on: Callable[[], None]


class _InOrder:
    """The operator's output: what comes while a worker holds rows waits behind them."""

    def __init__(self, target: Output) -> None:
        self.target = target
        self._queue: deque[_Sent | _Held] = deque()
        #: Batches that the worker has not answered yet.
        self.waiting = 0
        #: Rows of the batches that it has answered.
        self.answered_rows = 0

    def expect(self, sent: _Sent) -> None:
        """The worker was given the arguments of a piece."""
        self._queue.append(sent)
        self.waiting += 1

    def expected(self) -> _Sent | None:
        """What the worker answers next."""
        first = self._queue[0] if self._queue else None
        return first if isinstance(first, _Sent) else None

    def arrived(self) -> _Sent:
        """What an answer belongs to."""
        first = self._queue.popleft()
        assert isinstance(first, _Sent)
        self.waiting -= 1
        self.answered_rows += first.piece.num_rows
        return first

    def release(self) -> None:
        """Hand on what waited for the last batch only."""
        while self._queue:
            first = self._queue[0]
            if isinstance(first, _Sent):
                return
            self._queue.popleft()
            first.hand_on()

    def _now_or_later(self, hand_on: Callable[[], None]) -> None:
        if self._queue:
            self._queue.append(_Held(hand_on))
        else:
            hand_on()

    def collect(self, batch: ChangelogBatch) -> None:
        """Rows, in order."""
        self._now_or_later(lambda: self.target.collect(batch))

    def collect_side(self, tag: str, batch: ChangelogBatch) -> None:
        """Rows of a side output, in order."""
        self._now_or_later(lambda: self.target.collect_side(tag, batch))

    def emit_watermark(self, watermark: Watermark) -> None:
        """A watermark, in order."""
        self._now_or_later(lambda: self.target.emit_watermark(watermark))

    def emit_watermark_status(self, status: WatermarkStatus) -> None:
        """Idleness, in order."""
        self._now_or_later(lambda: self.target.emit_watermark_status(status))

    def emit_latency_marker(self, marker: LatencyMarker) -> None:
        """A marker, in order."""
        self._now_or_later(lambda: self.target.emit_latency_marker(marker))
