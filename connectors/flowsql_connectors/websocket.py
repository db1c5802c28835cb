"""``websocket``: the messages that a server sends, and rows sent to one, a message each."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
import time
from collections.abc import Mapping
from typing import Any, ClassVar

from flowsql_connectors.messages.client import imported
from flowsql_connectors.messages.feed import Arrived, FeedContext, MessageFeed
from flowsql_connectors.messages.outlet import MessageOutlet, Outgoing
from flowsql_connectors.messages.sink import SINK_OPTIONS, MessageSinkFactory
from flowsql_connectors.messages.source import SOURCE_OPTIONS, MessageSourceFactory
from flowsql_connectors.messages.web import (
    LOGIN_OPTIONS,
    check_login,
    headers_of,
    shown,
    tls_context,
    with_headers,
)
from flowsql_connectors.options import ConnectorOption, OptionSet, OptionValues, optional, parse_choice
from flowsql_connectors.spi.sink import WriterContext
from flowsql_core.config import parse_duration_ms, parse_memory_bytes
from flowsql_core.errors import ConnectorError
from flowsql_core.graph.specs import ScanSpec, SinkSpec, TableSpec
from flowsql_core.types.logical import BOOLEAN, LogicalType, TimestampLtzType


def _url(text: str) -> str:
    if not text.startswith(("ws://", "wss://")):
        raise ValueError("expected an address that begins with ws:// or wss://")
    return text


URL = ConnectorOption("url", _url, "", "The server, ws://host:port/path or wss://...")
SUBSCRIBE: ConnectorOption[str | None] = ConnectorOption(
    "subscribe.message", optional(str), None, "Sent each time that a connection is made."
)
CONNECT_MS = ConnectorOption(
    "connection.timeout", parse_duration_ms, 10_000, "How long to wait until the server takes the connection."
)
PING_MS = ConnectorOption("ping.interval", parse_duration_ms, 20_000, "How often to ask whether it lives; 0: never.")
PONG_MS = ConnectorOption("ping.timeout", parse_duration_ms, 20_000, "How long to wait for the answer to a ping.")
MOST_BYTES = ConnectorOption("message.max-size", parse_memory_bytes, 16 << 20, "Larger messages end the connection.")
MESSAGE_TYPE = ConnectorOption("sink.message-type", parse_choice("text", "binary"), "text", "As what rows are sent.")
_OPTIONS = OptionSet(
    required=(URL,),
    optional=(*LOGIN_OPTIONS, SUBSCRIBE, CONNECT_MS, PING_MS, PONG_MS, MOST_BYTES, MESSAGE_TYPE),
)
#: Answers to the handshake behind which another try may help.
_PASSING = frozenset({408, 425, 429, 500, 502, 503, 504})


class WebsocketSourceFactory(MessageSourceFactory):
    """Makes scans."""

    identifier = "websocket"
    own_options = _OPTIONS.merged(SINK_OPTIONS)
    metadata: ClassVar[Mapping[str, LogicalType]] = {
        "received-at": TimestampLtzType(precision=3, nullable=False),
        "binary": BOOLEAN.as_nullable(False),
    }

    def options(self, table: TableSpec) -> OptionSet:
        """The connector's, the format's, and the headers that the table names."""
        return with_headers(super().options(table), table)

    def check(self, table: TableSpec, values: OptionValues, scan: ScanSpec) -> None:
        """Refuse options that do not fit together."""
        check_login(values)

    def feed(self, table: TableSpec, values: OptionValues, context: FeedContext) -> MessageFeed:
        """A connection."""
        return _WebsocketFeed(_Connection(table, values), values, context)

    def origin(self, values: OptionValues) -> str:
        """The server."""
        return shown(values.get(URL))

    def guarantee(self, values: OptionValues, checkpointed: bool) -> str | None:
        """A connection has no memory."""
        return "at most once: a websocket gives nothing twice"


class WebsocketSinkFactory(MessageSinkFactory):
    """Makes sinks."""

    identifier = "websocket"
    own_options = _OPTIONS.merged(SOURCE_OPTIONS)

    def options(self, table: TableSpec) -> OptionSet:
        """The connector's, the format's, and the headers that the table names."""
        return with_headers(super().options(table), table)

    def check(self, sink: SinkSpec, values: OptionValues) -> None:
        """Refuse options that do not fit together."""
        check_login(values)

    def outlet(self, sink: SinkSpec, values: OptionValues, context: WriterContext) -> MessageOutlet:
        """A connection."""
        return _WebsocketOutlet(_Connection(sink.table, values), values)


class _Connection:
    """Makes connections, and turns what goes wrong into sentences."""

    def __init__(self, table: TableSpec, values: OptionValues) -> None:
        self._client = imported("websockets.sync.client", "websocket", "websocket")
        self._errors = imported("websockets.exceptions", "websocket", "websocket")
        self._url = values.get(URL)
        self._values = values
        self._headers = headers_of(table, values)
        self.name = shown(self._url)
        self.socket: Any = None

    def open(self) -> None:
        """Connect, and say the message of ``subscribe.message``.

        Raises:
            ConnectorError: the server cannot be reached, or refuses.
        """
        values = self._values
        more = {"ssl": tls_context(values)} if self._url.startswith("wss:") else {}
        try:
            self.socket = self._client.connect(
                self._url,
                additional_headers=self._headers,
                open_timeout=values.get(CONNECT_MS) / 1000,
                ping_interval=None,
                close_timeout=1,
                max_size=values.get(MOST_BYTES),
                **more,
            )
        except self._errors.InvalidStatus as error:
            status = error.response.status_code
            said = " ".join((error.response.body or b"")[:800].decode("utf-8", "replace").split())[:200]
            code = "login-refused" if status in (401, 403) else "http-status"
            text = f"{self.name} refused the connection with {status}" + (f": {said}" if said else ".")
            raise ConnectorError(code, text, retryable=status in _PASSING) from error
        except socket.gaierror as error:
            raise ConnectorError("unknown-host", f"The host of {self.name} is not known.", hint="mend 'url'") from error
        except ssl.SSLCertVerificationError as error:
            raise ConnectorError("tls", f"{self.name} is not trusted: {error.verify_message}.") from error
        except (OSError, EOFError, self._errors.WebSocketException) as error:
            why = (isinstance(error, OSError) and error.strerror) or str(error) or type(error).__name__
            text = f"{self.name} takes no connection: {why.rstrip('.')}."
            raise ConnectorError("connection-failed", text, retryable=True) from error
        if (message := values.get(SUBSCRIBE)) is not None:
            self.send(message)

    def send(self, message: str | bytes) -> None:
        """Send a message.

        Raises:
            ConnectorError: the connection ended.
        """
        try:
            self.socket.send(message)
        except (OSError, self._errors.ConnectionClosed) as error:
            raise self.ended(error) from error

    def ping(self) -> threading.Event:
        """Set once the server has answered, or the connection ended.

        Raises:
            ConnectorError: the connection ended.
        """
        try:
            answered: threading.Event = self.socket.ping(ack_on_close=True)
        except (OSError, self._errors.ConnectionClosed) as error:
            raise self.ended(error) from error
        return answered

    def confirmed(self) -> None:
        """Wait until the server has read what was sent: it answers a ping behind it.

        Raises:
            ConnectorError: it does not, or the connection ended.
        """
        wait_s = self._values.get(PONG_MS) / 1000
        answered = self.ping().wait(wait_s)
        if self.socket.close_code is not None:
            text = f"The connection to {self.name} ended before it was sure that all was read."
            raise ConnectorError("connection-lost", text, retryable=True)
        if not answered:
            text = f"{self.name} did not answer a ping for {wait_s:g} s."
            raise ConnectorError("connection-lost", text, retryable=True)

    def received(self, wait_s: float) -> str | bytes | None:
        """The next message; None: there came none.

        Raises:
            ConnectorError: the connection ended.
        """
        try:
            found: str | bytes = self.socket.recv(timeout=wait_s)
        except TimeoutError:
            return None
        except (OSError, self._errors.ConnectionClosed) as error:
            raise self.ended(error) from error
        return found

    def ended(self, error: Exception) -> ConnectorError:
        """The sentence of an end."""
        received, sent = getattr(error, "rcvd", None), getattr(error, "sent", None)
        code = getattr(sent, "code", None)
        if code == 1009:
            text = f"{self.name} sent a message of more than {self._values.get(MOST_BYTES)} bytes."
            return ConnectorError("message-size", text, hint=f"raise '{MOST_BYTES.key}'")
        why = str(received or error) or "the connection was cut"
        return ConnectorError("connection-lost", f"The connection to {self.name} ended: {why}.", retryable=True)

    def close(self) -> None:
        """Let the server go."""
        if self.socket is not None:
            with contextlib.suppress(Exception):
                self.socket.close()
            self.socket = None


class _WebsocketFeed(MessageFeed):
    def __init__(self, connection: _Connection, values: OptionValues, context: FeedContext) -> None:
        self._connection = connection
        self._context = context
        self._ping_s = values.get(PING_MS) / 1000
        self._pong_s = values.get(PONG_MS) / 1000
        self._pinged: tuple[float, threading.Event] | None = None
        self._next_ping = 0.0

    def open(self, position: Any) -> None:
        """Connect and subscribe."""
        self._connection.open()
        self._pinged = None
        self._next_ping = time.monotonic() + self._ping_s

    def receive(self, wait_s: float) -> Arrived | None:
        """The next message."""
        message = self._connection.received(wait_s)
        if message is None:
            self._ping()
            return None
        value = message.encode() if isinstance(message, str) else message
        now_ms = self._context.clock.now_ms()
        return Arrived([value], {"received-at": [now_ms], "binary": [not isinstance(message, str)]})

    def _ping(self) -> None:
        """Where nothing comes, ask whether the server lives."""
        now = time.monotonic()
        if self._pinged is not None:
            since, answered = self._pinged
            if answered.is_set():
                self._pinged = None
            elif now - since > self._pong_s:
                text = f"{self._connection.name} did not answer a ping for {self._pong_s:g} s."
                raise ConnectorError("connection-lost", text, retryable=True)
        elif self._ping_s and now >= self._next_ping:
            self._pinged = (now, self._connection.ping())
            self._next_ping = now + self._ping_s

    def keep_alive(self) -> None:
        """What is not read cannot be an answer to a ping: the wait for one begins anew."""
        self._pinged = None
        self._next_ping = time.monotonic() + self._ping_s

    def place(self, number: int) -> str:
        """The message's number since the job began to read."""
        return f"{self._connection.name}, message {number + 1}"

    def close(self) -> None:
        """Let the server go."""
        self._connection.close()


class _WebsocketOutlet(MessageOutlet):
    def __init__(self, connection: _Connection, values: OptionValues) -> None:
        self._connection = connection
        self._is_text = values.get(MESSAGE_TYPE) == "text"

    def open(self) -> None:
        """Connect; servers that want it are told the message of ``subscribe.message``."""
        self._connection.open()

    def send(self, rows: Outgoing) -> None:
        """A message a row. Once the server has answered a ping behind them, it has read all of them."""
        assert rows.values is not None
        for value in rows.values.to_pylist():
            if value is not None:
                self._connection.send(value.decode() if self._is_text else value)
        self._connection.confirmed()

    def close(self) -> None:
        """Let the server go."""
        self._connection.close()
