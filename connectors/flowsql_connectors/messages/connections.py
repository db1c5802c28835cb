"""An HTTP server that strangers cannot exhaust: bounded connections, a time limit per request, descriptors in reserve.

A connection is *unproven* until its request was read whole and its sender may send. When there is no room for a new
connection, the oldest unproven one is closed for it; when all of them are proven, the new one is answered with 503.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import resource
import socket
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final
from urllib.parse import urlsplit

logger = logging.getLogger(__name__)

#: Seconds between two looks for requests that take too long.
_LOOK_S: Final = 0.2
_NO_ROOM: Final = (
    b"HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nRetry-After: 1\r\nContent-Length: 0\r\n\r\n"
)


def descriptors_in_reserve(limit: int) -> int:
    """Return how many of a process's file descriptors connections must leave to the job.

    >>> descriptors_in_reserve(1024), descriptors_in_reserve(64)
    (256, 16)
    """
    return min(limit // 4, 256)


@dataclass(slots=True, eq=False)
class _Connection:
    """``deadline``: by when its request must be here, seconds of the monotonic clock; None once it is proven."""

    deadline: float | None
    late: bool = False


class BoundedServer(ThreadingHTTPServer):
    """Serves each connection in a thread of its own, at most ``most`` at once.

    Args:
        most: how many connections may be open; never more than a quarter of the process's descriptors.
        patience_s: seconds that a connection may take until its request is whole, the next request's wait included.
    """

    daemon_threads = True
    request_queue_size = 128

    def __init__(
        self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler], most: int, patience_s: float
    ) -> None:
        self._limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        if self._limit == resource.RLIM_INFINITY:
            self._limit = 1 << 30
        self._most = max(1, min(most, self._limit // 4))
        self._patience_s = patience_s
        self._lock = threading.Lock()
        #: By the sockets' ids, the oldest first.
        self._open: dict[int, tuple[socket.socket, _Connection]] = {}
        self._looked = 0.0
        super().__init__(address, handler)

    # -- the thread that accepts

    def get_request(self) -> tuple[socket.socket, Any]:
        """Accept a connection; where the process has no descriptor left, close an unproven one for the next try."""
        try:
            return super().get_request()
        except OSError as error:
            if error.errno in (errno.EMFILE, errno.ENFILE):
                self._close_oldest()
                time.sleep(0.01)
            raise

    def verify_request(self, request: Any, client_address: Any) -> bool:
        """Return whether there is room for a new connection, after making some."""
        short = request.fileno() >= self._limit - descriptors_in_reserve(self._limit)
        with self._lock:
            full = len(self._open) >= self._most
        if (short or full) and not self._close_oldest():
            logger.debug("no room for a connection of %s", client_address)
            self._refuse(request)
            return False
        with self._lock:
            self._open[id(request)] = (request, _Connection(time.monotonic() + self._patience_s))
        return True

    def service_actions(self) -> None:
        """End requests that take too long."""
        now = time.monotonic()
        if now - self._looked < _LOOK_S:
            return
        self._looked = now
        with self._lock:
            for request, connection in self._open.values():
                if connection.deadline is not None and connection.deadline <= now and not connection.late:
                    connection.late = True
                    # Whoever reads gets the end, and can still answer.
                    _shut(request, socket.SHUT_RD)

    def shutdown_request(self, request: Any) -> None:
        """Close a connection."""
        with self._lock:
            self._open.pop(id(request), None)
        super().shutdown_request(request)

    def server_close(self) -> None:
        """Listen no more, and close connections without a whole request."""
        super().server_close()
        while self._close_oldest():
            pass

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A sender went away, or speaks something else."""
        logger.debug("a request of %s broke off", client_address, exc_info=True)

    def _close_oldest(self) -> bool:
        with self._lock:
            found = next((key for key, (_, one) in self._open.items() if one.deadline is not None), None)
            if found is None:
                return False
            request, connection = self._open.pop(found)
            connection.late = True
            # Its thread closes it.
            _shut(request, socket.SHUT_RDWR)
            return True

    @staticmethod
    def _refuse(request: Any) -> None:
        with contextlib.suppress(OSError, ValueError):
            request.setblocking(False)
            if type(request) is socket.socket:
                request.send(_NO_ROOM)

    # -- the threads of connections

    def expect(self, request: Any) -> None:
        """A connection waits for its next request."""
        with self._lock:
            if (found := self._open.pop(id(request), None)) is not None:
                found[1].deadline = time.monotonic() + self._patience_s
                self._open[id(request)] = found

    def prove(self, request: Any) -> bool:
        """A request is whole, and its sender may send: its time is its own. Return False where it came too late."""
        with self._lock:
            found = self._open.get(id(request))
            if found is None or found[1].late:
                return False
            found[1].deadline = None
            return True

    def is_late(self, request: Any) -> bool:
        """Return whether the time of a request ended before it was whole."""
        with self._lock:
            found = self._open.get(id(request))
            return found is None or found[1].late


def _shut(request: socket.socket, how: int) -> None:
    """Wake whoever reads from or writes to a socket; TLS sockets too, whose own method belongs to their thread."""
    with contextlib.suppress(OSError):
        socket.socket.shutdown(request, how)


class BoundedHandler(BaseHTTPRequestHandler):
    """A connection of a :class:`BoundedServer`. Subclasses call :meth:`prove` once a request may take its time."""

    protocol_version = "HTTP/1.1"
    timeout = 30
    server: BoundedServer

    def handle_one_request(self) -> None:
        """Read a request within its time, and answer it."""
        self.server.expect(self.request)
        super().handle_one_request()

    def prove(self) -> bool:
        """The request is whole, and its sender may send. Return False where it came too late."""
        return self.server.prove(self.request)

    def is_late(self) -> bool:
        """Return whether the time of this request ended before it was whole."""
        return self.server.is_late(self.request)

    def target(self) -> tuple[str, str]:
        """Return path and query of the request's address; an address that is none has an empty path."""
        try:
            parts = urlsplit(self.path)
        except ValueError:
            return "", ""
        return parts.path, parts.query

    def answer(self, status: int, content: bytes, headers: Mapping[str, str]) -> None:
        """Send a whole answer."""
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def version_string(self) -> str:
        """Who answers, without versions."""
        return "FlowSQL"

    def log_message(self, format: str, *args: Any) -> None:
        """Requests are not logged: their addresses may hold secrets."""
