"""Calls of asynchronous functions: coroutines for several rows side by side, their results in the order of the rows."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Final

import pyarrow as pa

from flowsql_core.errors import InternalError
from flowsql_runtime.python.evaluate import RAISED, RowEvaluator
from flowsql_runtime.python.event_loop import EventLoop
from flowsql_runtime.python.failure import UserFailure, UserFailureError, call_text, describe_failure
from flowsql_runtime.python.frames import Frame, FrameKind
from flowsql_runtime.python.program import PythonProgram

_TIMEOUT_KEY: Final = "table.exec.async-scalar.timeout"


class RowsInFlight:
    """Rows of one batch: ``lists``, their arguments by column; ``results``, once ``done`` was called."""

    __slots__ = ("_open", "begun", "done", "failure", "lists", "results", "rows")

    def __init__(self, lists: list[list[Any]], rows: int, done: Callable[[], None]) -> None:
        self.lists = lists
        self.rows = rows
        #: Called in the event loop's thread when all results are there, or one call has failed.
        self.done = done
        self.results: list[Any] = [None] * rows
        self.failure: UserFailureError | None = None
        self.begun = 0
        self._open = rows

    @property
    def over(self) -> bool:
        """Whether there is nothing to wait for."""
        return self._open == 0 or self.failure is not None

    def answered(self, row: int, result: Any) -> None:
        """The result of a row."""
        self.results[row] = result
        self._open -= 1
        if self._open == 0 and self.failure is None:
            self.done()

    def failed(self, failure: UserFailureError) -> None:
        """The call of a row has failed for good: the first one counts."""
        if self.failure is None:
            self.failure = failure
            self.done()


class AsyncEvaluator(RowEvaluator):
    """One coroutine function over the rows of all batches that have begun, so many rows at once as options allow.

    A call that fails is made again after a while; a row's calls and the pauses between them must end in time. Rows
    begin in their order. Everything but the coroutines runs in the caller's thread.
    """

    def __init__(self, program: PythonProgram, functions: Sequence[Any]) -> None:
        super().__init__(program, functions)
        if len(program.steps) != 1:
            raise InternalError(f"one operator with {len(program.steps)} asynchronous calls")
        self._step = program.steps[0]
        self._call = self.calls[self._step.function]
        self._options = program.asynchronous
        self._waiting: deque[RowsInFlight] = deque()
        self._slots = 0
        self._loop: EventLoop | None = None

    def begin(self, columns: Sequence[pa.Array], n: int, done: Callable[[], None]) -> RowsInFlight:
        """Take rows in; they are called for once rows before them have made room."""
        if self._loop is None:
            self._loop = EventLoop("flowsql-async-calls")
        rows = RowsInFlight(self.values_of(columns), n, done)
        if n:
            self._loop.start(self._take_in(rows))
        else:
            done()
        return rows

    def finished(self, rows: RowsInFlight) -> list[pa.Array]:
        """The output columns of rows that are over; raises UserFailureError."""
        if rows.failure is not None:
            raise rows.failure
        column = self.written(0, [rows.results], rows.lists)
        return [column for _ in self.program.outputs]

    def run(self, columns: Sequence[pa.Array], n: int) -> list[pa.Array]:
        """The output columns of ``n`` rows, once all are there."""
        done = threading.Event()
        rows = self.begin(columns, n, done.set)
        done.wait()
        return self.finished(rows)

    def close(self) -> None:
        """End what still runs, close the functions."""
        loop, self._loop = self._loop, None
        if loop is not None:
            loop.stop()
        super().close()

    # In the event loop

    async def _take_in(self, rows: RowsInFlight) -> None:
        self._waiting.append(rows)
        loop = self._loop
        for _ in range(min(rows.rows, self._options.concurrency - self._slots)):
            if loop is not None:
                self._slots += 1
                loop.start(self._work())

    async def _work(self) -> None:
        """One of the calls that go on at once: row after row, while any waits."""
        try:
            while self._waiting:
                rows = self._waiting[0]
                row = rows.begun
                rows.begun += 1
                if rows.begun >= rows.rows or rows.failure is not None:
                    self._waiting.popleft()
                if rows.failure is None:
                    await self._answer(rows, row)
        finally:
            self._slots -= 1

    async def _answer(self, rows: RowsInFlight, row: int) -> None:
        values = self.row(self._step, rows.lists, [], row)
        limit = asyncio.timeout(self._options.timeout_ms / 1000)
        try:
            async with limit:
                result = await self._called_until_it_answers(values)
        except BaseException as error:  # what a function does is the job's failure, SystemExit too
            task = asyncio.current_task()
            if isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling():
                raise
            rows.failed(self._failure(error, values, row, late=limit.expired()))
        else:
            rows.answered(row, result)

    async def _called_until_it_answers(self, values: list[Any]) -> Any:
        retries = self._options.retries
        while True:
            try:
                made = self._call(*values)
                return await made if inspect.isawaitable(made) else made
            except Exception:
                if retries == 0:
                    raise
            retries -= 1
            await asyncio.sleep(self._options.retry_delay_ms / 1000)

    def _failure(self, error: BaseException, values: list[Any], row: int, *, late: bool) -> UserFailureError:
        where = call_text(self.name_of(self._step), self._call, values)
        if late:
            text = (
                f"Async function call has timed out: no answer within {self._options.timeout_ms} ms "
                f"({_TIMEOUT_KEY})\nin {where}"
            )
        else:
            text = describe_failure(error, where)
        failure = UserFailureError(UserFailure(RAISED, text, row, 0))
        failure.__cause__ = error
        return failure


class AsyncCalls:
    """An evaluator as a task sees a worker: batches go in, answers come in the order of the batches.

    Methods are called by the task; ``wake`` is called by the event loop's thread when there is an answer.
    """

    def __init__(self, evaluator: AsyncEvaluator, wake: Callable[[], None]) -> None:
        self._evaluator = evaluator
        self._wake = wake
        self._sent: deque[RowsInFlight] = deque()
        self._end: Frame | None = None

    def send_batch(self, columns: Sequence[pa.Array], n: int) -> None:
        """Begin the calls of a batch; returns at once."""
        self._sent.append(self._evaluator.begin(columns, n, self._wake))

    def send_end(self) -> None:
        """No more batches: the functions are closed; raises UserFailureError."""
        self._evaluator.close()
        self._end = Frame(FrameKind.CLOSED)

    def take_answer(self) -> Frame | None:
        """The next answer if there is one; raises UserFailureError, where a worker's answer would be FAILED."""
        if not self._sent:
            end, self._end = self._end, None
            return end
        rows = self._sent[0]
        if not rows.over:
            return None
        columns = self._evaluator.finished(rows)
        self._sent.popleft()
        return Frame(FrameKind.RESULT, rows.rows, body=columns)

    def columns_of(self, frame: Frame) -> list[pa.Array]:
        """The result columns of an answer."""
        columns: list[pa.Array] = frame.body
        return columns

    def close(self, ended: bool) -> None:
        """Close the functions of a job that failed or was cancelled, whatever they say. ``ended``: that was done."""
        if not ended:
            with contextlib.suppress(UserFailureError):
                self._evaluator.close()
