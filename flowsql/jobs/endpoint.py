"""The control endpoint of a process: a unix-domain socket that takes requests of the same user.

Transport alone: what is asked of jobs stands in ``handlers.py``, how it is said in ``control_protocol.py``.
"""

from __future__ import annotations

import atexit
import contextlib
import logging
import os
import secrets
import select
import socket
import struct
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from flowsql.jobs.control_folder import SUFFIX, made_control_folder
from flowsql.jobs.control_protocol import LONGEST_LINE_BYTES, decode_request, encode_answer, encode_error
from flowsql.jobs.remote import sweep
from flowsql_core.errors import ExecutionError, FlowSqlError, InternalError

logger = logging.getLogger(__name__)

#: A client that says nothing for so long is let go.
REQUEST_S = 10.0
#: What the end of the process waits for answers that are under way.
LAST_ANSWERS_S = 5.0
#: A client that takes nothing is looked after so often.
LOOK_AFTER_MS = 200

_Handle = Callable[[str, Mapping[str, Any]], Mapping[str, Any]]
_Follow = Callable[[str, Mapping[str, Any]], Iterator[Mapping[str, Any]] | None]


class ControlEndpoint:
    """Answers requests until it is closed, each in a thread of its own: a savepoint may take minutes.

    The end of the process closes it, and waits a little for answers under way: who stops the last job of a process
    shall hear of it.

    Args:
        handle: method and arguments to the answer; its FlowSqlErrors go to the client.
        follow: method and arguments to the answers of a request that has many; None for those that have one. The
            iterator is closed when the client is gone.

    Raises:
        ExecutionError: the folder of sockets is not this user's alone.
        OSError: the socket cannot be made.
    """

    def __init__(self, handle: _Handle, follow: _Follow = lambda method, arguments: None) -> None:
        self._handle = handle
        self._follow = follow
        self._closing = False
        self._process = os.getpid()
        folder = made_control_folder()
        sweep()
        self.path = folder / f"{self._process}-{secrets.token_hex(4)}{SUFFIX}"
        self._under_way = 0
        self._changed = threading.Condition()
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            _bind(self._socket, self.path)
            self._socket.listen()
        except OSError:
            self._socket.close()
            raise
        atexit.register(self.close)
        threading.Thread(target=self._accept, name="control-endpoint", daemon=True).start()

    def close(self) -> None:
        """Take no more requests; the socket's file goes. Without effect in a fork of the process."""
        if os.getpid() != self._process:
            return
        atexit.unregister(self.close)
        self._closing = True
        with contextlib.suppress(OSError):
            self.path.unlink()
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        with self._changed:
            self._changed.wait_for(lambda: not self._under_way, LAST_ANSWERS_S)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._socket.accept()
            except OSError:
                return  # closed
            with self._changed:
                self._under_way += 1
            threading.Thread(target=self._serve, args=(client,), name="control-request", daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        try:
            with client, contextlib.suppress(OSError):
                if _same_user(client):
                    client.settimeout(REQUEST_S)
                    self._reply(client, _read_line(client))
        finally:
            with self._changed:
                self._under_way -= 1
                self._changed.notify_all()

    def _reply(self, client: socket.socket, line: bytes) -> None:
        try:
            method, arguments = decode_request(line)
            answers = self._follow(method, arguments)
            if answers is None:
                last = encode_answer(self._handle(method, arguments))
            else:
                self._stream(client, answers)
                return
        except FlowSqlError as error:
            last = encode_error(error)
        except Exception as error:  # the client must hear of everything
            logger.exception("a control request failed")
            last = encode_error(InternalError(f"{type(error).__name__}: {error}"))
        client.setblocking(True)
        client.settimeout(REQUEST_S)
        client.sendall(last)

    def _stream(self, client: socket.socket, answers: Iterator[Mapping[str, Any]]) -> None:
        """Send answers for as long as the client wants them; at the end of the process one more, maybe the last."""
        client.setblocking(False)
        is_ending = False
        try:
            for answer in answers:
                if _is_gone(client) or not self._send(client, encode_answer(answer)) or is_ending:
                    return
                is_ending = self._closing
        finally:
            close = getattr(answers, "close", None)
            if close is not None:
                close()

    def _send(self, client: socket.socket, data: bytes) -> bool:
        """Whether all of it went: a client that takes nothing must not keep the process from ending."""
        left = memoryview(data)
        poll = select.poll()
        poll.register(client, select.POLLOUT)
        while left:
            if not poll.poll(LOOK_AFTER_MS):
                if self._closing or _is_gone(client):
                    return False
                continue
            try:
                left = left[client.send(left) :]
            except BlockingIOError:
                continue
            except OSError:
                return False
        return True


def _is_gone(client: socket.socket) -> bool:
    """Whether the other end closed a connection (that does not block)."""
    try:
        return not client.recv(1, socket.MSG_PEEK)
    except BlockingIOError:
        return False
    except OSError:
        return True


def _read_line(client: socket.socket) -> bytes:
    found = bytearray()
    while not found.endswith(b"\n"):
        part = client.recv(65_536)
        if not part or len(found) > LONGEST_LINE_BYTES:
            break
        found += part
    return bytes(found)


def _same_user(client: socket.socket) -> bool:
    """The folder keeps others out; where the system tells who is at the other end, that counts too."""
    option = getattr(socket, "SO_PEERCRED", None)
    if option is None:
        return True
    _, user, _ = struct.unpack("3i", client.getsockopt(socket.SOL_SOCKET, option, struct.calcsize("3i")))
    return bool(user == os.getuid())


def _bind(server: socket.socket, path: Path) -> None:
    try:
        server.bind(str(path))
    except OSError as error:
        if len(os.fsencode(path)) > 100:
            raise ExecutionError(
                "control-folder",
                f"'{path.parent}' is too long a path for a socket ({len(os.fsencode(path))} bytes).",
                hint="name a shorter one in $FLOWSQL_RUNTIME_DIR",
            ) from error
        raise
