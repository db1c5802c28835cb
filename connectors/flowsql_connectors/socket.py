"""``socket``: lines, or messages that another byte ends, from a TCP server.

The table of Flink's documentation ("User-defined Sources & Sinks", full stack example), with its options; any format.
"""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Mapping
from typing import Any, ClassVar, Final

import numpy as np
import pyarrow as pa

from flowsql_connectors.messages.feed import Arrived, FeedContext, MessageFeed
from flowsql_connectors.messages.source import MessageSourceFactory
from flowsql_connectors.options import ConnectorOption, OptionSet, OptionValues, parse_positive
from flowsql_connectors.spi.counters import ROWS_SKIPPED
from flowsql_core.arrow import compute as pc
from flowsql_core.config import parse_duration_ms
from flowsql_core.errors import ConnectorError
from flowsql_core.graph.specs import TableSpec
from flowsql_core.types.logical import STRING, LogicalType, TimestampLtzType


def _port(text: str) -> int:
    number = parse_positive(text)
    if number > 65_535:
        raise ValueError("expected a port, from 1 to 65535")
    return number


def _byte(text: str) -> int:
    number = int(text)
    if not -128 <= number <= 255:
        raise ValueError("expected a byte, from 0 to 255")
    return number % 256


HOSTNAME = ConnectorOption("hostname", str, "", "The server's name or address.")
PORT = ConnectorOption("port", _port, 0, "The server's port.")
DELIMITER = ConnectorOption("byte-delimiter", _byte, 10, "The number of the byte that ends a message; 10: a line feed.")
TIMEOUT_MS = ConnectorOption(
    "connection.timeout", parse_duration_ms, 10_000, "How long to wait until the server takes the connection."
)

_CHUNK: Final = 1 << 20


class SocketSourceFactory(MessageSourceFactory):
    """Makes scans of sockets."""

    identifier = "socket"
    own_options = OptionSet(required=(HOSTNAME, PORT), optional=(DELIMITER, TIMEOUT_MS))
    metadata: ClassVar[Mapping[str, LogicalType]] = {
        "received-at": TimestampLtzType(precision=3, nullable=False),
        "peer": STRING.as_nullable(False),
    }

    def feed(self, table: TableSpec, values: OptionValues, context: FeedContext) -> MessageFeed:
        """A connection."""
        return _SocketFeed(values, context)

    def origin(self, values: OptionValues) -> str:
        """The server."""
        return f"{values.get(HOSTNAME)}:{values.get(PORT)}"

    def guarantee(self, values: OptionValues, checkpointed: bool) -> str | None:
        """A socket has no memory."""
        return "at most once: a socket gives nothing twice"


class _SocketFeed(MessageFeed):
    def __init__(self, values: OptionValues, context: FeedContext) -> None:
        self._address = (values.get(HOSTNAME), values.get(PORT))
        self._name = f"socket {self._address[0]}:{self._address[1]}"
        self._delimiter = bytes([values.get(DELIMITER)])
        self._timeout_s = values.get(TIMEOUT_MS) / 1000
        self._context = context
        self._socket: socket.socket | None = None
        #: The beginning of a message whose end has not come.
        self._begun = bytearray()
        self._peer = ""

    def open(self, position: Any) -> None:
        """Connect.

        Raises:
            ConnectorError: nobody listens there.
        """
        try:
            self._socket = socket.create_connection(self._address, self._timeout_s)
            self._peer = "{}:{}".format(*self._socket.getpeername()[:2])
        except socket.gaierror as error:
            text = f"The host '{self._address[0]}' is not known: {error.strerror}."
            raise ConnectorError("unknown-host", text, hint="'hostname' names the server") from error
        except OSError as error:
            text = f"{self._name} takes no connection: {error.strerror or error}."
            raise ConnectorError("connection-failed", text, retryable=True) from error

    def receive(self, wait_s: float) -> Arrived | None:
        """All messages that end in the bytes that are there.

        Raises:
            ConnectorError: the server ended the connection.
        """
        assert self._socket is not None
        self._socket.settimeout(wait_s)
        try:
            data = self._socket.recv(_CHUNK)
        except (TimeoutError, BlockingIOError):
            return None
        except OSError as error:
            raise self._ended(error.strerror or str(error)) from error
        if not data:
            raise self._ended("the server closed it")
        if self._delimiter not in data:
            self._begun += data
            return None
        data = bytes(self._begun) + data
        ends = np.flatnonzero(np.frombuffer(data, np.uint8) == self._delimiter[0]) + 1
        self._begun = bytearray(data[int(ends[-1]) :])
        offsets = np.concatenate([[0], ends]).astype(np.int32)
        ended = pa.BinaryArray.from_buffers(pa.binary(), len(ends), [None, pa.py_buffer(offsets), pa.py_buffer(data)])
        told = {"received-at": self._context.clock.now_ms(), "peer": self._peer}
        metadata = {key: [told[key]] * len(ends) for key in self._context.metadata}
        return Arrived(pc.binary_slice(ended, 0, -1), metadata)

    def _ended(self, why: str) -> ConnectorError:
        return ConnectorError("connection-lost", f"The connection to {self._name} ended: {why}.", retryable=True)

    def place(self, number: int) -> str:
        """The message's number since the job began to read."""
        return f"{self._name}, message {number + 1}"

    def close(self) -> None:
        """Let the server go. A message whose end did not come is none, as in Flink."""
        if self._begun:
            self._begun = bytearray()
            self._context.lose(ROWS_SKIPPED, 1, lambda: f"{self._name}, a message without an end")
        if self._socket is not None:
            with contextlib.suppress(OSError):
                self._socket.close()
            self._socket = None
