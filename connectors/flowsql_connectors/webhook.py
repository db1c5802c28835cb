"""``webhook``: a table that others post rows to. It listens on a port while a job reads it.

A request is answered with 2xx once its rows are kept: by a checkpoint, or where the job has none by the job's memory.
What cannot be kept now is refused with 429 or 503, and what is no row with 400: the sender knows, and may send again.
"""

from __future__ import annotations

import hmac
import json
import logging
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final
from urllib.parse import parse_qs

from flowsql_connectors.messages.connections import BoundedHandler, BoundedServer
from flowsql_connectors.messages.feed import Arrived, FeedContext, MessageFeed
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
from flowsql_connectors.messages.request_body import ENCODINGS, BodyError, decoded, read_body
from flowsql_connectors.messages.source import MessageSourceFactory
from flowsql_connectors.options import (
    ConnectorOption,
    OptionSet,
    OptionValues,
    optional,
    parse_choice,
    parse_positive,
)
from flowsql_core.config import parse_duration_ms, parse_memory_bytes
from flowsql_core.graph.specs import ScanSpec, TableSpec
from flowsql_core.types.logical import STRING, LogicalType, MapType, TimestampLtzType

logger = logging.getLogger(__name__)


AUTHENTICATION = ConnectorOption(
    "authentication",
    parse_choice("token", "hmac-sha256", "none"),
    "token",
    "Whether senders show 'token', or sign what they send with it, or anybody may send.",
)
AUTHENTICATION_HEADER: ConnectorOption[str | None] = ConnectorOption(
    "authentication.header",
    optional(str),
    None,
    "The header of token (Authorization: Bearer ...) or signature (X-Hub-Signature-256: sha256=...).",
)
RECORDS: ConnectorOption[str | None] = ConnectorOption(
    "records",
    optional(parse_choice("body", "lines")),
    None,
    "Whether a request is one message or each of its lines; by default lines of csv and of newline-delimited JSON.",
)
ACKNOWLEDGE: ConnectorOption[str | None] = ConnectorOption(
    "acknowledge",
    optional(parse_choice("checkpoint", "received")),
    None,
    "When a request is answered: once a checkpoint holds it (where there are any), or once the job has it.",
)
ACKNOWLEDGE_MS = ConnectorOption(
    "acknowledge.timeout", parse_duration_ms, 60_000, "A request that no checkpoint holds by then is answered with 503."
)
MOST_BYTES = ConnectorOption("request.max-size", parse_memory_bytes, 1 << 20, "Larger requests are answered with 413.")
MOST_WAITING = ConnectorOption(
    "queue.max-messages", parse_positive, 10_000, "When so many messages wait, requests are answered with 429."
)
_HEADERS: Final = {"token": "Authorization", "hmac-sha256": "X-Hub-Signature-256", "none": ""}
_LINE_TYPES: Final = ("application/x-ndjson", "application/jsonl", "application/jsonlines", "application/x-jsonlines")
#: What a sender is told to wait, seconds.
_RETRY_S: Final = 1


class WebhookSourceFactory(MessageSourceFactory):
    """Makes scans."""

    identifier = "webhook"
    own_options = OptionSet(
        required=(PORT,),
        optional=(
            HOST, PATH, AUTHENTICATION, TOKEN, AUTHENTICATION_HEADER, RECORDS, ACKNOWLEDGE, ACKNOWLEDGE_MS, MOST_BYTES,
            MOST_WAITING, MOST_CONNECTIONS, REQUEST_MS, CERTIFICATE, KEY,
        ),
    )  # fmt: skip
    metadata: ClassVar[Mapping[str, LogicalType]] = {
        "received-at": TimestampLtzType(precision=3, nullable=False),
        "remote": STRING.as_nullable(False),
        "headers": MapType(key=STRING, value=STRING, nullable=False),
        "query": MapType(key=STRING, value=STRING, nullable=False),
    }

    def check(self, table: TableSpec, values: OptionValues, scan: ScanSpec) -> None:
        """Refuse options that do not fit together.

        Raises:
            BindError: there is no token, or one without use; a certificate without its key.
        """
        check_secret(values, values.get(AUTHENTICATION) == "none", "Senders", "send")
        check_certificate(values)

    def origin(self, values: OptionValues) -> str:
        """The path."""
        return values.get(PATH)

    def guarantee(self, values: OptionValues, checkpointed: bool) -> str | None:
        """By when requests are answered."""
        if _waits(values, checkpointed):
            return "at least once: a request is answered when a checkpoint holds it"
        return "at most once: a request is answered before a checkpoint holds it"

    def feed(self, table: TableSpec, values: OptionValues, context: FeedContext) -> MessageFeed:
        """A server."""
        return _WebhookFeed(table, values, context)


def _waits(values: OptionValues, checkpointed: bool) -> bool:
    """Whether requests wait for checkpoints."""
    return (values.get(ACKNOWLEDGE) or ("checkpoint" if checkpointed else "received")) == "checkpoint"


@dataclass(slots=True, eq=False)
class _Request:
    """What a sender sent; ``last``: number of its last message once the job has it, counted from 1."""

    messages: Sequence[bytes]
    remote: str
    headers: dict[str, str]
    query: dict[str, str]
    received_ms: int
    last: int | None = field(default=None)


class _WebhookFeed(MessageFeed):
    def __init__(self, table: TableSpec, values: OptionValues, context: FeedContext) -> None:
        self.values = values
        self.context = context
        self.waits = _waits(values, context.checkpointed)
        self.token = (values.get(TOKEN) or "").encode()
        self.header = values.get(AUTHENTICATION_HEADER) or _HEADERS[values.get(AUTHENTICATION)]
        self.lines = values.get(RECORDS) or ("lines" if table.option("format") == "csv" else None)
        self.name = table.name
        self._table = table
        self._changed = threading.Condition()
        self._queue: deque[_Request] = deque()
        #: Messages that are not kept yet, that the job has, and that a checkpoint holds.
        self._waiting = 0
        self._given = 0
        self._kept = 0
        self._closed = False
        self._server: BoundedServer | None = None

    def open(self, position: Any) -> None:
        """Listen, and say where.

        Raises:
            ConnectorError: the port is taken, or the certificate cannot be read.
        """
        feed = self

        class Handler(_Handler):
            webhook = feed

        self._server, address = listen(self._table, self.values, Handler)
        logger.warning("Table '%s' takes POST requests at %s", self._table.name, address)

    def receive(self, wait_s: float) -> Arrived | None:
        """The messages of all requests that have come."""
        with self._changed:
            if not self._queue:
                self._changed.wait(wait_s)
            taken = list(self._queue)
            self._queue.clear()
            for request in taken:
                self._given += len(request.messages)
                request.last = self._given
            if not self.waits:
                self._waiting -= sum(len(request.messages) for request in taken)
            self._changed.notify_all()
        if not taken:
            return None
        each = [request for request in taken for _ in request.messages]
        return Arrived(
            [message for request in taken for message in request.messages],
            {
                "received-at": [request.received_ms for request in each],
                "remote": [request.remote for request in each],
                "headers": [list(request.headers.items()) for request in each],
                "query": [list(request.query.items()) for request in each],
            },
        )

    def kept(self, count: int) -> None:
        """Answer the requests that a checkpoint holds."""
        with self._changed:
            if self.waits:
                self._waiting -= count - self._kept
            self._kept = count
            self._changed.notify_all()

    def place(self, number: int) -> str:
        """The message's number since the job began to listen."""
        return f"the webhook at {self.values.get(PATH)}, message {number + 1}"

    def close(self) -> None:
        """Listen no more. Requests that wait are answered with 503."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    # -- the side of the threads of requests

    def take(self, request: _Request) -> tuple[int, str]:
        """Keep the messages of a request. Returns the answer's status, and what is said."""
        with self._changed:
            if self._closed:
                return 503, "the job ends"
            if self._waiting + len(request.messages) > self.values.get(MOST_WAITING):
                return 429, "too many messages wait"
            self._waiting += len(request.messages)
            self._queue.append(request)
            self._changed.notify_all()
            if not self.waits:
                return 202, ""
            deadline = time.monotonic() + self.values.get(ACKNOWLEDGE_MS) / 1000
            while request.last is None or request.last > self._kept:
                left = deadline - time.monotonic()
                if self._closed:
                    return 503, "the job ended before a checkpoint held the request"
                if left <= 0:
                    if request.last is None:
                        self._queue.remove(request)
                        self._waiting -= len(request.messages)
                    return 503, "no checkpoint held the request in time"
                self._changed.wait(left)
        return 200, ""


class _Handler(BoundedHandler):
    """A connection of a sender."""

    webhook: ClassVar[_WebhookFeed]

    def do_POST(self) -> None:  # noqa: N802
        """Rows."""
        try:
            self._answer(*self._taken())
        except BodyError as error:
            late = self.is_late()
            self._answer(408 if late else error.status, "the request took too long" if late else error.said)
        except OSError:
            raise
        except Exception:  # no sender ends a job, and none waits for an answer that never comes
            logger.exception("Table '%s' could not take a request", self.webhook.name)
            self.close_connection = True
            self._answer(500, "the request could not be taken: the log of the job says why")

    def do_GET(self) -> None:  # noqa: N802
        """Nothing is given out here."""
        self.close_connection = True
        self._answer(405, "rows are sent by POST")

    do_HEAD = do_PUT = do_DELETE = do_PATCH = do_OPTIONS = do_GET  # noqa: N815

    def _taken(self) -> tuple[int, str]:
        """Status and words of the answer.

        Raises:
            BodyError: the body is not whole, too large, or not encoded as it says.
        """
        feed = self.webhook
        closes = self.close_connection
        # What is not read would be taken for the next request.
        self.close_connection = True
        path, asked = self.target()
        if path != feed.values.get(PATH):
            return 404, "no table is here"
        if feed.values.get(AUTHENTICATION) == "token" and not self._shows_token():
            return 401, "the token is missing or wrong"
        most = feed.values.get(MOST_BYTES)
        body = read_body(self.rfile, self.headers, most)
        if feed.values.get(AUTHENTICATION) == "hmac-sha256" and not self._signs(body):
            return 401, "the signature is missing or wrong"
        if not self.prove():
            return 408, "the request took too long"
        self.close_connection = closes
        messages = self._messages(decoded(body, self.headers, most))
        if not messages:
            return 400, "there is no row"
        fault = feed.context.fault(messages)
        if fault is not None:
            return 400, fault
        headers = {name: value for name, value in self.headers.items() if name.lower() != feed.header.lower()}
        query = {name: values[-1] for name, values in parse_qs(asked, keep_blank_values=True).items()}
        remote = str(self.client_address[0])
        return feed.take(_Request(messages, remote, headers, query, feed.context.clock.now_ms()))

    def _shows_token(self) -> bool:
        shown = self.headers.get(self.webhook.header, "")
        return shows_token(shown.encode("latin-1"), self.webhook.token)

    def _signs(self, body: bytes) -> bool:
        shown = self.headers.get(self.webhook.header, "").removeprefix("sha256=")
        return hmac.compare_digest(
            shown.encode("latin-1"), hmac.digest(self.webhook.token, body, "sha256").hex().encode()
        )

    def _messages(self, body: bytes) -> list[bytes]:
        kind = self.headers.get("Content-Type", "").partition(";")[0].strip().lower()
        lines = self.webhook.lines
        if lines == "lines" or (lines is None and kind in _LINE_TYPES):
            return [line.removesuffix(b"\r") for line in body.split(b"\n") if line.strip()]
        return [body] if body else []

    def _answer(self, status: int, said: str) -> None:
        headers = {"Content-Type": "application/json"} if said else {}
        if status in (429, 503):
            headers["Retry-After"] = str(_RETRY_S)
        if status == 401:
            headers["WWW-Authenticate"] = "Bearer"
        if status == 405:
            headers["Allow"] = "POST"
        if status == 415:
            headers["Accept-Encoding"] = ENCODINGS
        self.answer(status, json.dumps({"error": said}).encode() if said else b"", headers)
