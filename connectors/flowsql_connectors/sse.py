"""``sse``: a table whose rows browsers and ``curl`` follow as server-sent events, while a job writes them.

Source: WHATWG HTML, section 9.2, "Server-sent events".
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from typing import ClassVar, Final
from urllib.parse import parse_qs

from flowsql_connectors.messages.backoff import Backoff
from flowsql_connectors.messages.connections import BoundedHandler, BoundedServer
from flowsql_connectors.messages.listening import (
    CERTIFICATE,
    HOST,
    KEY,
    MOST_CONNECTIONS,
    PATH,
    PORT,
    REQUEST_MS,
    TOKEN,
    check_certificate,
    check_secret,
    listen,
    shows_token,
)
from flowsql_connectors.messages.outlet import MessageOutlet, Outgoing
from flowsql_connectors.messages.sink import FLUSH_MS, FLUSH_ROWS, Flushing, MessageSinkFactory
from flowsql_connectors.options import (
    ConnectorOption,
    OptionSet,
    OptionValues,
    optional,
    parse_choice,
    parse_positive,
)
from flowsql_connectors.spi.sink import WriterContext
from flowsql_core.config import parse_duration_ms
from flowsql_core.graph.specs import SinkSpec, TableSpec
from flowsql_core.row import DELETE, INSERT, UPDATE_AFTER, UPDATE_BEFORE

logger = logging.getLogger(__name__)

AUTHENTICATION = ConnectorOption(
    "authentication", parse_choice("token", "none"), "token", "Whether readers show 'token', or anybody may read."
)
BUFFER = ConnectorOption(
    "buffer.max-rows", parse_positive, 10_000, "Rows that are kept for readers that are slow or come back."
)
START = ConnectorOption(
    "start",
    parse_choice("latest", "earliest"),
    "latest",
    "Whether a new reader gets what comes from now on, or all rows that are kept as well.",
)
KEEP_ALIVE_MS = ConnectorOption(
    "keep-alive.interval", parse_duration_ms, 15_000, "How often a reader hears something where no row comes."
)
ORIGIN: ConnectorOption[str | None] = ConnectorOption(
    "allow-origin", optional(str), None, "Pages of which origin a browser lets read (Access-Control-Allow-Origin)."
)
#: Names of events by kind of change.
EVENTS: Final = {
    INSERT: b"insert",
    UPDATE_BEFORE: b"update-before",
    UPDATE_AFTER: b"update-after",
    DELETE: b"delete",
}
#: How long the end of a job waits for readers that have not got all rows, seconds.
_PATIENCE_S: Final = 5.0


class EventSinkFactory(MessageSinkFactory):
    """Makes sinks."""

    identifier = "sse"
    own_options = OptionSet(
        required=(PORT,),
        optional=(
            HOST, PATH, AUTHENTICATION, TOKEN, BUFFER, START, KEEP_ALIVE_MS, ORIGIN, MOST_CONNECTIONS, REQUEST_MS,
            CERTIFICATE, KEY,
        ),
    )  # fmt: skip
    flush_options = (FLUSH_ROWS, FLUSH_MS)
    changes = True
    alone = True
    listens = True

    def check(self, sink: SinkSpec, values: OptionValues) -> None:
        """Refuse options that do not fit together.

        Raises:
            BindError: there is no token, or one without use; a certificate without its key.
        """
        check_secret(values, values.get(AUTHENTICATION) == "none", "Readers", "read")
        check_certificate(values)

    def flushing(self, values: OptionValues) -> Flushing:
        """Nothing is sent again: readers that went away come back for it."""
        return Flushing(values.get(FLUSH_ROWS), values.get(FLUSH_MS), Backoff(attempts=0))

    def outlet(self, sink: SinkSpec, values: OptionValues, context: WriterContext) -> MessageOutlet:
        """A server."""
        return _Events(sink.table, values)


class _Events(MessageOutlet):
    """The newest events, and the server whose threads hand them to readers."""

    def __init__(self, table: TableSpec, values: OptionValues) -> None:
        self.values = values
        self.token = (values.get(TOKEN) or "").encode()
        self._table = table
        self._changed = threading.Condition()
        self._kept: deque[bytes] = deque(maxlen=values.get(BUFFER))
        #: Before the numbers of events: a job that starts again has other ones.
        self._run = b"%x" % time.time_ns()
        #: Number of the next event, from 1.
        self._next = 1
        self._readers = 0
        self._ended = False
        self._server: BoundedServer | None = None

    def open(self) -> None:
        """Listen, and say where.

        Raises:
            ConnectorError: the port is taken, or the certificate cannot be read.
        """
        events = self

        class Handler(_Handler):
            source = events

        self._server, address = listen(self._table, self.values, Handler)
        logger.warning("Table '%s' can be followed at %s", self._table.name, address)

    def send(self, rows: Outgoing) -> None:
        """Keep the events for readers; none is waited for."""
        assert rows.values is not None
        kinds = [INSERT] * rows.num_rows if rows.kinds is None else rows.kinds.tolist()
        with self._changed:
            for kind, value in zip(kinds, rows.values.to_pylist(), strict=True):
                data = b"\ndata: ".join((value or b"null").split(b"\n"))
                event = (self._run, self._next, EVENTS[kind], data)
                self._kept.append(b"id: %s.%d\nevent: %s\ndata: %s\n\n" % event)
                self._next += 1
            self._changed.notify_all()

    def close(self) -> None:
        """Let readers get what is kept, and listen no more."""
        with self._changed:
            self._ended = True
            self._changed.notify_all()
            self._changed.wait_for(lambda: not self._readers, _PATIENCE_S)
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    # -- the side of the threads of readers

    def enter(self, last: str) -> int:
        """A reader begins; the number of its first event.

        Args:
            last: id of the event that it got last; empty: it is new.
        """
        run, _, number = last.partition(".")
        with self._changed:
            self._readers += 1
            if run.encode() == self._run and number.isdigit():
                return int(number) + 1
            # A reader of a run before this one gets all that is kept: what it missed of that run is gone.
            return self._next if self.values.get(START) == "latest" and not last else self._oldest

    def leave(self) -> None:
        """A reader has gone."""
        with self._changed:
            self._readers -= 1
            self._changed.notify_all()

    def after(self, number: int, wait_s: float) -> tuple[bytes | None, int]:
        """The events from a number on, none where nothing comes in that time, and the number behind them.

        None: events that the reader did not get are not kept any more, or the job is over.
        """
        with self._changed:
            if number >= self._next and not self._ended:
                self._changed.wait(wait_s)
            if number < self._oldest or (number >= self._next and self._ended):
                return None, number
            skipped = number - self._oldest
            return b"".join(list(self._kept)[skipped:]), self._next

    @property
    def _oldest(self) -> int:
        return self._next - len(self._kept)


class _Handler(BoundedHandler):
    """A connection of a reader."""

    source: ClassVar[_Events]

    def do_GET(self) -> None:  # noqa: N802
        """Events, until one side ends."""
        self.close_connection = True
        path, query = self.target()
        values = self.source.values
        if path != values.get(PATH):
            self._refuse(404, "no table is here")
            return
        asked = parse_qs(query)
        if values.get(AUTHENTICATION) == "token" and not self._may_read(asked):
            self._refuse(401, "the token is missing or wrong")
            return
        if not self.prove():
            return
        # Whoever has seen the head of the answer gets every event from then on.
        number = self.source.enter(self.headers.get("Last-Event-ID", ""))
        try:
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Cache-Control", "no-store")
            self._end_head()
            self._follow(number, values.get(KEEP_ALIVE_MS) / 1000)
        except OSError:
            logger.debug("a reader went away", exc_info=True)
        finally:
            self.source.leave()

    def _follow(self, number: int, keep_alive_s: float) -> None:
        while True:
            began = time.monotonic()
            events, number = self.source.after(number, keep_alive_s)
            if events is None:
                return
            if events or time.monotonic() - began >= keep_alive_s:
                self.wfile.write(events or b": still here\n\n")
                self.wfile.flush()

    def _may_read(self, asked: dict[str, list[str]]) -> bool:
        """By a header, or, as browsers send none of their own, by a parameter of the address."""
        shown = self.headers.get("Authorization", "").encode("latin-1") or asked.get("token", [""])[-1].encode()
        return shows_token(shown, self.source.token)

    def _refuse(self, status: int, said: str) -> None:
        content = f"{said}\n".encode()
        self.send_response(status)
        self.send_header("Content-Type", "text/plain")
        self.send_header("Content-Length", str(len(content)))
        if status == 401:
            self.send_header("WWW-Authenticate", "Bearer")
        self._end_head()
        self.wfile.write(content)

    def _end_head(self) -> None:
        if (origin := self.source.values.get(ORIGIN)) is not None:
            self.send_header("Access-Control-Allow-Origin", origin)
        self.send_header("Connection", "close")
        self.end_headers()
