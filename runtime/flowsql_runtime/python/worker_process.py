"""The task's end of a worker process: started, fed, listened to and ended here.

Two threads do nothing but wait for the socket: the task's own thread must stay free to hear of a cancellation. They
hand over through queues; the task takes answers in the order of its batches.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections import deque
from collections.abc import Callable, Sequence
from queue import SimpleQueue
from typing import Any, Final

import pyarrow as pa

from flowsql_core.errors import ExecutionError
from flowsql_core.types.arrow import to_arrow
from flowsql_runtime.python.archives import Archive, unpack
from flowsql_runtime.python.frames import (
    BUFFER_BYTES,
    Frame,
    FrameKind,
    WorkerStart,
    decode_columns,
    encode_columns,
    positional_schema,
    receive_frame,
    send_frame,
)

_MODULE: Final = "flowsql_runtime.python.worker"
#: A worker that was told to end gets so long for it.
_END_S: Final = 5.0
#: One that was not told, because its job failed or was cancelled.
_GRACE_S: Final = 0.5


class WorkerProcess:
    """One worker. Methods are called by the task; ``wake`` is called by other threads when there is an answer."""

    def __init__(self, start: WorkerStart, wake: Callable[[], None], archives: Sequence[Archive] = ()) -> None:
        program = start.program
        #: The working directory, where files of archives are; None: that of the program.
        self._directory = tempfile.TemporaryDirectory(prefix="flowsql-archives-") if archives else None
        if self._directory is not None:
            unpack(archives, self._directory.name)
        self._arguments = positional_schema([to_arrow(type_) for type_ in program.columns])
        self._results = positional_schema([to_arrow(program.steps[output].type) for output in program.outputs])
        self._wake = wake
        self._answers: deque[Frame | None] = deque()
        self._outgoing: SimpleQueue[Frame | None] = SimpleQueue()
        self._channel, theirs = socket.socketpair()
        for end in (self._channel, theirs):
            end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, BUFFER_BYTES)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", _MODULE, str(theirs.fileno())],
                env={
                    **os.environ,
                    "PYTHONPATH": os.pathsep.join(os.path.abspath(path) for path in sys.path),
                    # What functions print appears at once.
                    "PYTHONUNBUFFERED": "1",
                },
                stdin=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
                cwd=None if self._directory is None else self._directory.name,
            )
        name = f"python-worker-{self._process.pid}"
        self._threads = [
            threading.Thread(target=work, name=f"{name}-{part}", daemon=True)
            for part, work in (("send", self._send), ("receive", self._receive))
        ]
        for thread in self._threads:
            thread.start()
        self._outgoing.put(Frame(FrameKind.START, note=start))

    @property
    def pid(self) -> int:
        """The process' id."""
        return self._process.pid

    def send_batch(self, columns: Sequence[pa.Array], n: int) -> None:
        """Hand argument columns over; returns at once."""
        self._outgoing.put(Frame(FrameKind.BATCH, n, body=encode_columns(columns, self._arguments)))

    def send_end(self) -> None:
        """No more batches: functions are closed, then CLOSED is answered."""
        self._outgoing.put(Frame(FrameKind.END))

    def take_answer(self) -> Frame | None:
        """The next answer if there is one.

        Raises:
            ExecutionError: the worker died.
        """
        if not self._answers:
            return None
        frame = self._answers.popleft()
        if frame is None:
            raise self._died()
        return frame

    def columns_of(self, frame: Frame) -> list[pa.Array]:
        """The result columns of an answer."""
        return decode_columns(frame.body, self._results)

    def close(self, ended: bool) -> None:
        """End the process, if need be by force, and everything that belongs to it. ``ended``: it said CLOSED."""
        self._outgoing.put(None)
        if not ended:
            # The worker closes its functions when its socket does, unless one of them keeps it from noticing.
            with contextlib.suppress(OSError):
                self._channel.shutdown(socket.SHUT_RDWR)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_END_S if ended else _GRACE_S)
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        with contextlib.suppress(OSError):
            self._channel.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join()
        self._channel.close()
        if self._directory is not None:
            self._directory.cleanup()

    def _send(self) -> None:
        while True:
            frame = self._outgoing.get()
            if frame is None:
                return
            try:
                send_frame(self._channel, frame)
            except OSError:
                return  # the receiving thread tells of the end

    def _receive(self) -> None:
        try:
            while True:
                frame = receive_frame(self._channel)
                self._answers.append(frame)
                self._wake()
                if frame is None or frame.kind in (FrameKind.CLOSED, FrameKind.FAILED):
                    return
        except OSError:
            self._answers.append(None)
            self._wake()

    def _died(self) -> ExecutionError:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_END_S)
        return ExecutionError(
            "python-worker-died",
            f"The worker process of the Python functions {_ending(self._process.returncode)}.",
            hint="a function crashed or used too much memory; SET 'python.execution-mode' = 'thread' runs it in place",
        )


def _ending(code: int | None) -> str:
    if code is None:
        return "does not answer any more"
    if code >= 0:
        return f"ended with exit code {code}"
    try:
        name: Any = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    return f"was killed by {name}"
