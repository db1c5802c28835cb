"""``python -m flowsql_runtime.python.worker <socket>``: calls a user's functions for one subtask, and nothing else.

The process ends when its task says so, or when the socket closes: a task that died leaves no worker behind.
"""

from __future__ import annotations

import contextlib
import pickle
import signal
import socket
import sys
from collections.abc import Callable

from flowsql_core.interpreter.without_pandas import keep_pandas_out
from flowsql_core.types.arrow import to_arrow
from flowsql_core.udf import FunctionContext, FunctionKind, MetricGroup
from flowsql_core.udf_source import remember_lines
from flowsql_runtime.python.evaluate import WRONG_RESULT, Evaluator, as_failure
from flowsql_runtime.python.evaluators import make_evaluator
from flowsql_runtime.python.failure import UserFailure, UserFailureError
from flowsql_runtime.python.frames import (
    Frame,
    FrameKind,
    WorkerStart,
    decode_columns,
    encode_columns,
    positional_schema,
    receive_frame,
    send_frame,
)
from flowsql_runtime.python.options import EXECUTION_MODE


class WorkerMetrics:
    """Counters since the last frame, and gauges: the task adds them to its own."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}
        self._gauges: dict[str, Callable[[], int | float]] = {}

    def count(self, name: str, by: int = 1) -> None:
        """Add to a counter."""
        self._counts[name] = self._counts.get(name, 0) + by

    def gauge(self, name: str, read: Callable[[], int | float]) -> None:
        """Register a value."""
        self._gauges[name] = read

    def take(self) -> tuple[dict[str, int], dict[str, int | float]] | None:
        """Counts since the last call and gauges now; None when there are none."""
        if not self._counts and not self._gauges:
            return None
        counts, self._counts = self._counts, {}
        return counts, {name: read() for name, read in self._gauges.items()}


class Worker:
    """The conversation with the task."""

    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel
        self._metrics = WorkerMetrics()
        self._evaluator: Evaluator | None = None

    def run(self) -> None:
        """Until END, a failure, or the end of the socket."""
        try:
            while True:
                frame = receive_frame(self._channel)
                if frame is None:
                    return
                send_frame(self._channel, self._answer(frame))
                if frame.kind is FrameKind.END:
                    return
        except OSError:
            return  # the task has gone
        except BaseException as error:  # also SystemExit: what a function does is the job's failure, not an exit
            send_frame(self._channel, Frame(FrameKind.FAILED, note=as_failure(error)))
        finally:
            # After a failure, or when the task has gone, nobody hears of another one.
            with contextlib.suppress(UserFailureError):
                self._close()

    def _answer(self, frame: Frame) -> Frame:
        match frame.kind:
            case FrameKind.START:
                self._open(frame.note)
                return Frame(FrameKind.OPENED, note=self._metrics.take())
            case FrameKind.BATCH:
                return self._batch(frame)
            case FrameKind.END:
                self._close()
                return Frame(FrameKind.CLOSED, note=self._metrics.take())
        raise AssertionError(f"a task sends no {frame.kind.name}")

    def _open(self, start: WorkerStart) -> None:
        functions = pickle.loads(start.functions)
        program = start.program
        if program.kind is not FunctionKind.PANDAS:
            # Unless the functions' modules brought it along: it takes as long to load as all the rest of a worker.
            keep_pandas_out()
        for function in program.functions:
            if function.source is not None:
                remember_lines(function.source, function.name)
        self._evaluator = make_evaluator(program, functions)
        self._arguments = positional_schema([to_arrow(type_) for type_ in program.columns])
        self._results = positional_schema([to_arrow(program.steps[output].type) for output in program.outputs])
        self._evaluator.open(
            FunctionContext(
                MetricGroup(self._metrics),
                start.parameters,
                start.task_name,
                start.subtask,
                start.parallelism,
                start.max_parallelism,
                start.attempt,
            )
        )

    def _batch(self, frame: Frame) -> Frame:
        assert self._evaluator is not None
        columns = decode_columns(frame.body, self._arguments)
        made = self._evaluator.run(columns, frame.rows)
        if any(column.type != field.type for column, field in zip(made, self._results, strict=True)):
            text = (
                f"The results of the Python functions for {frame.rows:,} rows take more than 2 GiB. "
                f"'{EXECUTION_MODE.key}' = 'thread' hands on results of any size."
            )
            raise UserFailureError(UserFailure(WRONG_RESULT, text))
        return Frame(FrameKind.RESULT, frame.rows, self._metrics.take(), encode_columns(made, self._results))

    def _close(self) -> None:
        evaluator, self._evaluator = self._evaluator, None
        if evaluator is not None:
            evaluator.close()


def main() -> None:
    """The process."""
    # Ctrl-C goes to every process of the terminal: the task decides when its worker ends.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Worker(socket.socket(fileno=int(sys.argv[1]))).run()
    sys.stdout.flush()


if __name__ == "__main__":
    main()
