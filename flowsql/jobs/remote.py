"""The user's other processes on this machine that run jobs, found by their sockets."""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Generator, Iterator, Mapping
from pathlib import Path
from typing import Any

from flowsql.jobs.control_folder import sockets
from flowsql.jobs.control_protocol import decode_answer, encode_request
from flowsql.jobs.job_info import JobInfo
from flowsql_core.errors import ExecutionError
from flowsql_core.record import record

#: Time for what needs no work of a job. A process that is stopped or swapped out takes longer.
QUICK_S = 5.0


@record
class RemoteProcess:
    """A process that offered itself: its id and its socket."""

    id: int
    socket: Path

    def ask(self, method: str, arguments: Mapping[str, Any], timeout_s: float | None = None) -> Mapping[str, Any]:
        """Its answer.

        Args:
            timeout_s: longest wait for the answer; None waits as long as the process lives.

        Raises:
            ExecutionError: what went wrong there; ``process-gone`` and ``process-silent`` when it did not answer.
        """
        with contextlib.closing(self._answers(method, arguments, timeout_s)) as answers:
            return next(answers)

    def follow(self, method: str, arguments: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
        """Its answers to a request that has many, for as long as it gives some. Closing the iterator ends the request.

        Raises:
            ExecutionError: as :meth:`ask`; ``process-gone`` also once it has ended.
        """
        return self._answers(method, arguments, QUICK_S)

    def _answers(
        self, method: str, arguments: Mapping[str, Any], timeout_s: float | None
    ) -> Generator[Mapping[str, Any], None, None]:
        """Answers until the process closes the connection, which then is told as an error."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            try:
                connection.settimeout(QUICK_S)
                connection.connect(str(self.socket))
                connection.sendall(encode_request(method, arguments))
                connection.settimeout(timeout_s)
                received = bytearray()
                while True:
                    part = connection.recv(65_536)
                    if not part:
                        raise ExecutionError("process-gone", f"Process {self.id} ended before it answered.")
                    received += part
                    *lines, rest = received.split(b"\n") if b"\n" in part else (received,)
                    received = bytearray(rest)
                    for line in lines:
                        yield decode_answer(bytes(line))
            except TimeoutError as error:
                raise ExecutionError(
                    "process-silent", f"Process {self.id} does not answer.", hint="it may be stopped or out of memory"
                ) from error
            except (ConnectionError, FileNotFoundError) as error:
                raise ExecutionError("process-gone", f"Process {self.id} ended before it answered.") from error

    def jobs(self) -> list[JobInfo]:
        """What it runs and ran, the newest first."""
        return [JobInfo.from_json(values) for values in self.ask("list", {}, QUICK_S)["jobs"]]


def processes() -> Iterator[RemoteProcess]:
    """Those that offer themselves, this one left out."""
    own = os.getpid()
    return (RemoteProcess(process, path) for process, path in sockets() if process != own)


def sweep() -> None:
    """Remove the sockets of processes that are gone without having closed them."""
    for _, path in sockets():
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(0.0)
            try:
                connection.connect(str(path))
            except ConnectionRefusedError:
                with contextlib.suppress(OSError):
                    path.unlink()
            except OSError:
                continue  # busy, or gone already
