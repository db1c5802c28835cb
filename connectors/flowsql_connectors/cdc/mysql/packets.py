"""Bytes of a connection as they come: packets of the log, rows of queries; kernels find their places."""

from __future__ import annotations

import selectors
import ssl
from contextlib import suppress
from typing import Any, Final

import numpy as np

from flowsql_core.errors import ConnectorError

_ROOM: Final = 1 << 18
#: A packet of this size goes on in the next one.
HUGE: Final = 0xFFFFFF


class Packets:
    """A buffer in front of a connection of PyMySQL whose next answer nobody else reads.

    Args:
        shown: the server, for messages.
    """

    def __init__(self, connection: Any, shown: str) -> None:
        self._connection = connection
        self._socket = connection._sock
        self._file = connection._rfile
        self._shown = shown
        self._room = bytearray(_ROOM)
        self._begin = 0
        self._end = 0

    @property
    def data(self) -> Any:
        """What came and was not consumed, uint8 (n,); a view, until more is received."""
        return np.frombuffer(self._room, np.uint8)[self._begin : self._end]

    def consume(self, size: int) -> None:
        """So many bytes are not needed any more."""
        self._begin += size

    def receive(self, timeout_s: float | None, most: int = _ROOM) -> bool:
        """Wait for bytes, and take those that are there.

        Args:
            timeout_s: None: as long as the connection waits.
            most: bytes from which on no more are taken.

        Returns:
            False: none came.

        Raises:
            ConnectorError: the connection is lost.
        """
        try:
            if timeout_s is not None and not self._is_ready(timeout_s):
                return False
            taken = 0
            while True:
                size = self._take()
                if not size and not taken:
                    raise self._lost("it ended the connection")
                if not size:
                    # Why it ends may stand in what came.
                    return True
                taken += size
                if taken >= most or timeout_s is None or not self._is_ready(0):
                    return True
        except (OSError, ValueError) as error:
            raise self._lost(str(error)) from error

    def _is_ready(self, timeout_s: float) -> bool:
        if isinstance(self._socket, ssl.SSLSocket) and self._socket.pending():
            return True
        # Unlike select(), a selector takes sockets of any number.
        with selectors.DefaultSelector() as selector:
            selector.register(self._socket, selectors.EVENT_READ)
            return bool(selector.select(timeout_s))

    def _take(self) -> int:
        waiting = self._end - self._begin
        if len(self._room) - self._end < _ROOM // 2:
            # Views of the room may be in use: it is left to them.
            room = bytearray(max(_ROOM, 2 * waiting))
            room[:waiting] = self._room[self._begin : self._end]
            self._room, self._begin, self._end = room, 0, waiting
        # What PyMySQL had read ahead comes first; readinto1 would wait for more behind it.
        came = self._file.read1(len(self._room) - self._end)
        self._room[self._end : self._end + len(came)] = came
        self._end += len(came)
        return len(came)

    def refusal(self, packet: bytes) -> tuple[int, str]:
        """Number and text of an error that the server sent instead."""
        text = packet[9:] if packet[3:4] == b"#" else packet[3:]
        return int.from_bytes(packet[1:3], "little"), text.decode(errors="replace").rstrip(".")

    def payload(self) -> bytes | None:
        """The content of the next packets where one alone was too small for it; None: not all of it is there."""
        data = bytes(self.data)
        at, parts = 0, []
        while at + 4 <= len(data):
            size = int.from_bytes(data[at : at + 3], "little")
            if at + 4 + size > len(data):
                return None
            parts.append(data[at + 4 : at + 4 + size])
            at += 4 + size
            if size < HUGE:
                self.consume(at)
                return b"".join(parts)
        return None

    def _lost(self, reason: str) -> ConnectorError:
        return ConnectorError(
            "mysql-cdc-connection", f"The connection to {self._shown} is lost: {reason}.", retryable=True
        )

    def close(self) -> None:
        """End the connection, in whatever state it is."""
        with suppress(Exception):
            self._connection._force_close()
