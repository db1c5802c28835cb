"""``nats``: messages of JetStream, and rows that are published there.

A checkpoint holds the sequence number of the last message in the stream, so that each message counts once. A durable
consumer, where the table names one, is told of messages once a complete checkpoint holds them: others see how far the
job is, and one that is started anew goes on there.
"""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import secrets
import ssl
import time
from collections import deque
from collections.abc import Coroutine, Mapping
from typing import Any, ClassVar, Final
from urllib.parse import urlsplit

from flowsql_connectors.messages.client import imported
from flowsql_connectors.messages.feed import Arrived, FeedContext, MessageFeed
from flowsql_connectors.messages.outlet import MessageOutlet, Outgoing
from flowsql_connectors.messages.sink import SINK_OPTIONS, MessageSinkFactory
from flowsql_connectors.messages.source import SOURCE_OPTIONS, MessageSourceFactory
from flowsql_connectors.messages.web import shown
from flowsql_connectors.options import (
    ConnectorOption,
    OptionSet,
    OptionValues,
    optional,
    parse_choice,
    parse_natural,
    parse_positive,
)
from flowsql_connectors.spi.sink import WriterContext
from flowsql_core.config import parse_duration_ms
from flowsql_core.errors import BindError, ConnectorError
from flowsql_core.graph.specs import ScanSpec, SinkSpec, TableSpec
from flowsql_core.types.logical import BIGINT, STRING, LogicalType, MapType, TimestampLtzType


def _servers(text: str) -> tuple[str, ...]:
    found = tuple(part.strip() for part in text.split(",") if part.strip())
    for each in found:
        parts = urlsplit(each)
        if parts.scheme not in ("nats", "tls", "ws", "wss") or not parts.hostname:
            raise ValueError("expected nats://host:4222, with TLS tls://host:4222, with ',' between several")
    if not found:
        raise ValueError("expected nats://host:4222")
    return found


URL: ConnectorOption[tuple[str, ...]] = ConnectorOption("url", _servers, (), "The servers: nats://host:4222,...")
SUBJECT: ConnectorOption[str | None] = ConnectorOption(
    "subject", optional(str), None, "What is read of a stream (a.*.b, a.>), with ';' between several; one to write."
)
STREAM: ConnectorOption[str | None] = ConnectorOption(
    "stream", optional(str), None, "The stream; by default the one that has the subject."
)
CONSUMER: ConnectorOption[str | None] = ConnectorOption(
    "consumer", optional(str), None, "A durable consumer that is told of messages which complete checkpoints hold."
)
ACK_WAIT_MS = ConnectorOption(
    "ack-wait", parse_duration_ms, 600_000, "After so long the server delivers again what it was not told of."
)
WINDOW = ConnectorOption(
    "max-ack-pending", parse_positive, 100_000, "Messages that the server delivers before it is told of them."
)
STARTUP = ConnectorOption(
    "scan.startup.mode", parse_choice("earliest", "latest", "timestamp", "specific-sequence"), "earliest",
    "Where reading begins, without a position and without a durable consumer that is there.",
)  # fmt: skip
STARTUP_MS: ConnectorOption[int | None] = ConnectorOption(
    "scan.startup.timestamp-millis", optional(parse_natural), None, "The time of the first message, since 1970."
)
STARTUP_SEQUENCE: ConnectorOption[int | None] = ConnectorOption(
    "scan.startup.specific-sequence", optional(parse_positive), None, "The number of the first message in the stream."
)
BOUNDED = ConnectorOption(
    "scan.bounded.mode", parse_choice("unbounded", "latest"), "unbounded",
    "Whether messages are read for ever, or to the one that is the last when reading begins.",
)  # fmt: skip
USER: ConnectorOption[str | None] = ConnectorOption("username", optional(str), None, "Who asks.")
PASSWORD: ConnectorOption[str | None] = ConnectorOption("password", optional(str), None, "The password of 'username'.")
TOKEN: ConnectorOption[str | None] = ConnectorOption("token", optional(str), None, "A token instead of a user.")
CREDENTIALS: ConnectorOption[str | None] = ConnectorOption(
    "credentials-file", optional(str), None, "A file of credentials (.creds) instead of a user."
)
CA_FILE: ConnectorOption[str | None] = ConnectorOption(
    "ssl.ca-file", optional(str), None, "Whom to trust; by default the authorities of the machine."
)
TIMEOUT_MS = ConnectorOption(
    "connection.timeout", parse_duration_ms, 10_000, "How long to wait for a connection, and for each answer."
)

_COMMON: Final = OptionSet(
    required=(URL,),
    optional=(
        SUBJECT, STREAM, CONSUMER, ACK_WAIT_MS, WINDOW, STARTUP, STARTUP_MS, STARTUP_SEQUENCE, BOUNDED, USER, PASSWORD,
        TOKEN, CREDENTIALS, CA_FILE, TIMEOUT_MS,
    ),
)  # fmt: skip
_METADATA: Final[dict[str, LogicalType]] = {
    "subject": STRING,
    "sequence": BIGINT,
    "timestamp": TimestampLtzType(precision=3),
    "headers": MapType(key=STRING, value=STRING),
}
#: Messages of one request, and rows whose confirmations are awaited together.
_AT_ONCE: Final = 1_000


def _check(values: OptionValues) -> None:
    if values.has(PASSWORD) != values.has(USER):
        raise BindError("missing-option", f"'{USER.key}' and '{PASSWORD.key}' go together.")
    if values.has(CA_FILE) and not any(each.startswith(("tls", "wss")) for each in values.get(URL)):
        raise BindError("invalid-option-value", f"'{CA_FILE.key}' has no effect without TLS.", hint="tls://host:4222")


class NatsSourceFactory(MessageSourceFactory):
    """Makes scans of streams."""

    identifier = "nats"
    own_options = _COMMON.merged(SINK_OPTIONS)
    metadata: ClassVar[Mapping[str, LogicalType]] = _METADATA

    def check(self, table: TableSpec, values: OptionValues, scan: ScanSpec) -> None:
        """There is something to read, and options that fit together."""
        _check(values)
        if not _subjects(values) and not values.has(STREAM):
            raise BindError("missing-option", f"'{SUBJECT.key}' or '{STREAM.key}' says what {table.name} reads.")
        mode = values.get(STARTUP)
        for option, own in ((STARTUP_MS, "timestamp"), (STARTUP_SEQUENCE, "specific-sequence")):
            if values.has(option) != (mode == own):
                raise BindError("missing-option", f"'{STARTUP.key}' = '{own}' and '{option.key}' go together.")
        for limit in (ACK_WAIT_MS, WINDOW):
            if values.has(limit) and not values.has(CONSUMER):
                raise BindError("invalid-option-value", f"'{limit.key}' has no effect without '{CONSUMER.key}'.")

    def bounded(self, values: OptionValues) -> bool:
        """``scan.bounded.mode``."""
        return values.get(BOUNDED) == "latest"

    def feed(self, table: TableSpec, values: OptionValues, context: FeedContext) -> MessageFeed:
        """A connection with a consumer."""
        return NatsFeed(values, context)

    def origin(self, values: OptionValues) -> str:
        """The servers, and what is read there."""
        servers = ",".join(shown(each) for each in values.get(URL))
        return " ".join(text for text in (servers, values.get(STREAM), values.get(SUBJECT)) if text)

    def guarantee(self, values: OptionValues, checkpointed: bool) -> str | None:
        """Positions in checkpoints."""
        if checkpointed:
            return None
        return "at most once: without checkpoints the server is told of messages when they are read"


class NatsSinkFactory(MessageSinkFactory):
    """Makes sinks that publish into streams."""

    identifier = "nats"
    own_options = _COMMON.merged(SOURCE_OPTIONS)
    metadata: ClassVar[Mapping[str, LogicalType]] = {key: _METADATA[key] for key in ("subject", "headers")}

    def check(self, sink: SinkSpec, values: OptionValues) -> None:
        """Each row has a subject."""
        _check(values)
        subjects = _subjects(values)
        if not subjects and "subject" not in sink.metadata:
            hint = "or a column 'subject STRING METADATA'"
            raise BindError(
                "missing-option", f"'{SUBJECT.key}' says where table {sink.table.name} publishes.", hint=hint
            )
        if len(subjects) > 1 or any(mark in part for each in subjects for part in each.split(".") for mark in "*>"):
            raise BindError(
                "invalid-option-value",
                f"'{SUBJECT.key}' = '{values.get(SUBJECT)}' is a filter, and rows are published to one subject.",
            )

    def outlet(self, sink: SinkSpec, values: OptionValues, context: WriterContext) -> MessageOutlet:
        """A connection."""
        return NatsOutlet(values)


def _subjects(values: OptionValues) -> list[str]:
    return [each.strip() for each in (values.get(SUBJECT) or "").split(";") if each.strip()]


class _Connection:
    """A connection, whose loop runs while something is asked of it."""

    def __init__(self, values: OptionValues) -> None:
        self._nats = imported("nats", "nats", "nats")
        self.api = imported("nats.js.api", "nats", "nats")
        self.errors = imported("nats.errors", "nats", "nats")
        self.js_errors = imported("nats.js.errors", "nats", "nats")
        self._values = values
        self.timeout_s = values.get(TIMEOUT_MS) / 1000
        self._loop: asyncio.AbstractEventLoop | None = None
        self._client: Any = None
        self._said: list[str] = []
        self.stream: Any = None

    @property
    def where(self) -> str:
        """The servers, for messages."""
        hosts = (urlsplit(each) for each in self._values.get(URL))
        return "NATS at " + ", ".join(f"{each.hostname}:{each.port or 4222}" for each in hosts)

    def open(self) -> None:
        """Connect and log in.

        Raises:
            ConnectorError: no server is there, or it refuses.
        """
        self._loop = asyncio.new_event_loop()
        self._said = []
        values = self._values
        given = {
            "user": values.get(USER),
            "password": values.get(PASSWORD),
            "token": values.get(TOKEN),
            "user_credentials": values.get(CREDENTIALS),
        }
        more: dict[str, Any] = {key: value for key, value in given.items() if value is not None}
        servers: tuple[str, ...] = values.get(URL)
        if any(each.startswith(("tls", "wss")) for each in servers):
            more["tls"] = ssl.create_default_context(cafile=values.get(CA_FILE))

        async def heard(error: Exception) -> None:
            self._said.append(str(error) or type(error).__name__)

        self._client = self.run(
            self._nats.connect(
                list(servers),
                # Connections that end are made again by the reader and the writer.
                allow_reconnect=False,
                max_reconnect_attempts=1,
                reconnect_time_wait=0.05,
                connect_timeout=max(1, round(self.timeout_s)),
                error_cb=heard,
                **more,
            )
        )
        self.stream = self._client.jetstream(timeout=self.timeout_s)

    def run(self, asked: Coroutine[Any, Any, Any]) -> Any:
        """The answer to a question.

        Raises:
            ConnectorError: there is none.
            TimeoutError: nothing came.
        """
        assert self._loop is not None
        try:
            return self._loop.run_until_complete(asked)
        except TimeoutError:
            if self._client is None or self._client.is_closed:
                raise self.lost() from None
            raise
        except (self.js_errors.NoStreamResponseError, self.errors.NoRespondersError):
            raise ConnectorError(
                "nats-stream", f"{self.where} has no stream that takes these messages, or no JetStream."
            ) from None
        except self.js_errors.NotFoundError as error:
            raise ConnectorError("nats-stream", f"{self.where} says: {error.description or 'not found'}.") from None
        except self.js_errors.APIError as error:
            code = error.code or 0
            raise ConnectorError(
                "nats-error", f"{self.where} says: {error.description or error}.", retryable=code in (408, 503)
            ) from None
        except (self.errors.Error, OSError, ValueError) as error:
            raise self._failed(error) from None

    def _failed(self, error: BaseException) -> ConnectorError:
        texts = [*self._said, str(error) or type(error).__name__]
        refused = next((text for text in texts if "authoriz" in text.lower() or "permissions" in text.lower()), None)
        if refused is not None:
            said = refused.removeprefix("nats: ").strip("'")
            hint = f"'{USER.key}', '{PASSWORD.key}', '{TOKEN.key}' or '{CREDENTIALS.key}' of the WITH clause"
            return ConnectorError("nats-refused", f"{self.where} refused: {said}.", hint=hint)
        return self.lost(texts[0])

    def lost(self, said: str = "the connection ended") -> ConnectorError:
        """The sentence of a connection that is no more."""
        text = (self._said or [said])[0].removeprefix("nats: ").rstrip(".")
        return ConnectorError("nats-unreachable", f"{self.where} does not answer: {text}.", retryable=True)

    def alive(self) -> None:
        """Look after the connection.

        Raises:
            ConnectorError: it is lost.
        """
        self.run(asyncio.sleep(0))
        if self._client.is_closed:
            raise self.lost()

    def close(self) -> None:
        """Let go of it."""
        loop, self._loop = self._loop, None
        client, self._client = self._client, None
        if loop is None:
            return
        with contextlib.suppress(Exception):
            if client is not None:
                loop.run_until_complete(client.close())
        with contextlib.suppress(Exception):
            left = asyncio.all_tasks(loop)
            for task in left:
                task.cancel()
            loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
        loop.close()


class NatsFeed(MessageFeed):
    """Messages of a stream. A position is the sequence number of a message in the stream."""

    replays = True

    def __init__(self, values: OptionValues, context: FeedContext) -> None:
        self._values = values
        self._metadata = context.metadata
        self._checkpointed = context.checkpointed
        self._durable = values.get(CONSUMER)
        self._connection = _Connection(values)
        self._subscription: Any = None
        self._behind = 0
        #: The last message that is wanted; None: there is no end.
        self._end: int | None = None
        self._given = 0
        #: Messages that were given and that the consumer is not told of: number of each among those given, and number
        #: in the stream; and what the server delivered of each last.
        self._open: deque[tuple[int, int]] = deque()
        self._delivered: dict[int, Any] = {}
        self._full = False
        self._names: list[str] = []

    def open(self, position: Any) -> None:
        """A consumer behind a position, or where the options or the durable consumer say."""
        connection, values = self._connection, self._values
        connection.open()
        stream = values.get(STREAM)
        subjects = _subjects(values)
        if stream is None:
            stream = connection.run(self._stream_of(subjects[0]))
        assert stream is not None
        if values.get(BOUNDED) == "latest" and self._end is None:
            self._end = connection.run(connection.stream.stream_info(stream)).state.last_seq
        self._behind = int(position or 0)
        if self._durable is None:
            made = connection.run(self._new_consumer(stream, subjects, None, position))
        else:
            made = self._durable_consumer(stream, subjects, position)
        self._subscription = connection.run(self._bind(stream, made))
        self._full = False

    async def _stream_of(self, subject: str) -> str:
        try:
            found: str = await self._connection.stream.find_stream_name_by_subject(subject)
        except self._connection.js_errors.NotFoundError:
            raise ConnectorError(
                "nats-stream", f"{self._connection.where} has no stream with the subject '{subject}'."
            ) from None
        return found

    def _durable_consumer(self, stream: str, subjects: list[str], position: Any) -> str:
        """The consumer that the table names; one that would begin elsewhere, or that waits until it may deliver again
        what nobody has any more, is made anew."""
        connection, name = self._connection, self._durable
        assert name is not None
        manager = connection.stream
        connection.run(manager.stream_info(stream))
        known = connection.run(self._known_consumer(stream, name))
        if known is None:
            self._open.clear()
            self._delivered.clear()
            made: str = connection.run(self._new_consumer(stream, subjects, name, position))
            return made
        first = known.ack_floor.stream_seq + 1
        if position is not None:
            first = min(self._open[0][1] if self._open else position + 1, position + 1)
        if known.num_ack_pending or known.delivered.stream_seq + 1 != first:
            connection.run(manager.delete_consumer(stream, name))
            policy = connection.api.DeliverPolicy.BY_START_SEQUENCE
            config = known.config.evolve(deliver_policy=policy, opt_start_seq=first, opt_start_time=None)
            connection.run(manager.add_consumer(stream, config))
        return name

    async def _known_consumer(self, stream: str, name: str) -> Any:
        try:
            return await self._connection.stream.consumer_info(stream, name)
        except self._connection.js_errors.NotFoundError:
            return None

    async def _new_consumer(self, stream: str, subjects: list[str], durable: str | None, position: Any) -> str:
        connection, values = self._connection, self._values
        config = self._beginning(position)
        if len(subjects) == 1:
            config["filter_subject"] = subjects[0]
        elif subjects:
            config["filter_subjects"] = subjects
        if durable is None:
            config |= {"ack_policy": connection.api.AckPolicy.NONE, "inactive_threshold": 300.0, "mem_storage": True}
        else:
            config |= {
                "durable_name": durable,
                "ack_policy": connection.api.AckPolicy.EXPLICIT,
                "ack_wait": values.get(ACK_WAIT_MS) / 1000,
                "max_ack_pending": values.get(WINDOW),
            }
        made = await connection.stream.add_consumer(stream, connection.api.ConsumerConfig(**config))
        name: str = made.name
        return name

    def _beginning(self, position: Any) -> dict[str, Any]:
        """Where a new consumer begins."""
        values, policies = self._values, self._connection.api.DeliverPolicy
        if position is not None:
            return {"deliver_policy": policies.BY_START_SEQUENCE, "opt_start_seq": int(position) + 1}
        match values.get(STARTUP):
            case "latest":
                return {"deliver_policy": policies.NEW}
            case "specific-sequence":
                first = values.get(STARTUP_SEQUENCE)
                return {"deliver_policy": policies.BY_START_SEQUENCE, "opt_start_seq": first}
            case "timestamp":
                moment = datetime.datetime.fromtimestamp((values.get(STARTUP_MS) or 0) / 1000, datetime.UTC)
                return {"deliver_policy": policies.BY_START_TIME, "opt_start_time": moment}
        return {"deliver_policy": policies.ALL}

    async def _bind(self, stream: str, consumer: str) -> Any:
        return await self._connection.stream.pull_subscribe_bind(consumer=consumer, stream=stream)

    def receive(self, wait_s: float) -> Arrived | None:
        """The next messages."""
        if self._end is not None and self._behind >= self._end:
            return Arrived((), positions=(), ends=True)
        if not wait_s and not self._full:
            return None
        try:
            found = self._connection.run(self._subscription.fetch(_AT_ONCE, timeout=max(wait_s, 0.02)))
        except TimeoutError:
            found = []
        self._connection.alive()
        self._full = len(found) >= _AT_ONCE
        told = [(message, message.metadata) for message in found]
        news = [pair for pair in told if self._is_new(*pair)]
        if self._end is not None:
            news = [pair for pair in news if pair[1].sequence.stream <= self._end]
            if not news and self._nothing_left(told):
                return Arrived((), positions=(), ends=True)
        if not news:
            return None
        for message, about in news:
            self._given += 1
            self._behind = about.sequence.stream
            if self._durable is not None:
                self._open.append((self._given, about.sequence.stream))
                self._delivered[about.sequence.stream] = message
        if self._durable is not None and not self._checkpointed:
            self.kept(self._given)
        self._names = [message.subject for message, _ in news[-1:]]
        positions = [about.sequence.stream for _, about in news]
        metadata = {key: [_told(key, *pair) for pair in news] for key in self._metadata}
        return Arrived([message.data for message, _ in news], metadata, positions)

    def _is_new(self, message: Any, about: Any) -> bool:
        """Not what the server delivers again: that is acknowledged by what came last."""
        number = about.sequence.stream
        if number > self._behind:
            return True
        if self._durable is not None:
            if number in self._delivered:
                self._delivered[number] = message
            else:
                self._connection.run(message.ack())
        return False

    def _nothing_left(self, told: list[Any]) -> bool:
        """Whether all of the subjects up to the end was read: a stream may end with other subjects."""
        if told:
            return any(about.sequence.stream >= (self._end or 0) for _, about in told)
        left: int = self._connection.run(self._subscription.consumer_info()).num_pending
        return left == 0

    def kept(self, count: int) -> None:
        """Tell the durable consumer of them."""
        done = []
        while self._open and self._open[0][0] <= count:
            done.append(self._delivered.pop(self._open.popleft()[1]))

        async def acknowledge() -> None:
            for message in done:
                await message.ack()

        if done:
            self._connection.run(acknowledge())

    def keep_alive(self) -> None:
        """Answer pings."""
        self._connection.alive()

    def place(self, number: int) -> str:
        """The subject of the last messages, and where they are in the stream."""
        subject = f" of subject '{self._names[0]}'" if self._names else ""
        return f"a message{subject} up to number {self._behind} of its stream"

    def close(self) -> None:
        """End the connection; a durable consumer stays."""
        self._subscription = None
        self._connection.close()


def _told(key: str, message: Any, about: Any) -> Any:
    match key:
        case "subject":
            return message.subject
        case "sequence":
            return about.sequence.stream
        case "timestamp":
            return round(about.timestamp.timestamp() * 1000)
    return None if not message.headers else list(message.headers.items())


class NatsOutlet(MessageOutlet):
    """Publishes the rows of one subtask."""

    def __init__(self, values: OptionValues) -> None:
        self._values = values
        self._connection = _Connection(values)
        self._writer = secrets.token_hex(8)
        self._count = 0
        #: The rows that are being sent, and the number of the first: sent again they have the same numbers.
        self._sending: Outgoing | None = None

    def open(self) -> None:
        """Connect."""
        self._connection.open()

    def send(self, rows: Outgoing) -> None:
        """Publish all of them, and wait until the stream has them: those that it has already it leaves out."""
        assert rows.values is not None
        if self._sending is not rows:
            self._sending = rows
            self._count += rows.num_rows
        first = self._count - rows.num_rows
        subject = next(iter(_subjects(self._values)), None)
        own, headers = rows.metadata.get("subject"), rows.metadata.get("headers")
        subjects = [None] * rows.num_rows if own is None else own.to_pylist()
        of_rows = [None] * rows.num_rows if headers is None else headers.to_pylist()
        messages = []
        for at, value in enumerate(rows.values.to_pylist()):
            to = subjects[at] or subject
            if to is None:
                raise ConnectorError("nats-subject", f"A row's subject is NULL, and '{SUBJECT.key}' names none.")
            told = {**dict(of_rows[at] or ()), "Nats-Msg-Id": f"{self._writer}-{first + at}"}
            messages.append((to, value or b"", told))
        started = time.monotonic()
        try:
            for start in range(0, len(messages), _AT_ONCE):
                self._connection.run(self._published(messages[start : start + _AT_ONCE]))
        except TimeoutError:
            waited = time.monotonic() - started
            raise ConnectorError(
                "nats-timeout",
                f"{self._connection.where} did not confirm a message for {waited:.0f} s.",
                retryable=True,
            ) from None
        self._sending = None

    async def _published(self, messages: list[tuple[str, bytes, dict[str, str]]]) -> None:
        publish = self._connection.stream.publish
        await asyncio.gather(
            *(
                publish(subject, value, timeout=self._connection.timeout_s, headers=headers)
                for subject, value, headers in messages
            )
        )

    def close(self) -> None:
        """End the connection."""
        self._connection.close()
