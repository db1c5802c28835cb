"""``mqtt``: messages of topics of an MQTT broker, and rows that are published there.

With QoS 1, a client id and checkpoints, the broker is told that a message has arrived once a complete checkpoint holds
it; what it was not told of it delivers again. The client library (paho-mqtt) acknowledges messages of QoS 2 itself.
"""

from __future__ import annotations

import contextlib
import secrets
import time
from collections import deque
from collections.abc import Callable, Mapping
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
    parse_boolean,
    parse_choice,
    parse_positive,
)
from flowsql_connectors.spi.sink import WriterContext
from flowsql_core.config import parse_duration_ms
from flowsql_core.errors import BindError, ConnectorError
from flowsql_core.graph.specs import ScanSpec, SinkSpec, TableSpec
from flowsql_core.types.logical import BOOLEAN, INT, STRING, LogicalType

_PORTS: Final = {"mqtt": 1883, "mqtts": 8883, "ws": 80, "wss": 443}


def _url(text: str) -> str:
    parts = urlsplit(text)
    if parts.scheme not in _PORTS or not parts.hostname:
        raise ValueError("expected mqtt://host:1883, with TLS mqtts://host:8883; over websockets ws:// or wss://")
    return text


def _qos(text: str) -> int:
    if text.strip() not in ("0", "1", "2"):
        raise ValueError("expected 0, 1 or 2")
    return int(text)


def _seconds(text: str) -> int:
    return parse_duration_ms(text) // 1000


URL = ConnectorOption("url", _url, "", "The broker, as mqtt://host:1883 or mqtts://host:8883.")
TOPIC: ConnectorOption[str | None] = ConnectorOption(
    "topic", optional(str), None, "Filters with ';' between them (a/+/b;c/#) to read, one topic to write."
)
QOS = ConnectorOption("qos", _qos, 1, "0: at most once, 1: at least once, 2: exactly once between client and broker.")
CLIENT_ID: ConnectorOption[str | None] = ConnectorOption(
    "client-id", optional(str), None, "Names the session that the broker keeps for a source; without it none is kept."
)
EXPIRY_S = ConnectorOption(
    "session-expiry", _seconds, 86_400, "How long the broker keeps the session of a client that is away; MQTT 5."
)
USER: ConnectorOption[str | None] = ConnectorOption("username", optional(str), None, "Who asks.")
PASSWORD: ConnectorOption[str | None] = ConnectorOption("password", optional(str), None, "The password of 'username'.")
VERSION = ConnectorOption("protocol-version", parse_choice("5", "3.1.1"), "5", "Of MQTT.")
TIMEOUT_MS = ConnectorOption(
    "connection.timeout", parse_duration_ms, 10_000, "How long to wait for a connection, and for each answer."
)
KEEP_ALIVE_S = ConnectorOption("keep-alive", _seconds, 60, "A connection that is silent for so long is looked after.")
WINDOW = ConnectorOption(
    "max-in-flight", parse_positive, 65_535, "Messages that the broker sends before they are acknowledged; MQTT 5."
)
RETAIN = ConnectorOption("sink.retain", parse_boolean, False, "Whether the broker keeps the last message of a topic.")
CA_FILE: ConnectorOption[str | None] = ConnectorOption(
    "ssl.ca-file", optional(str), None, "Whom to trust; by default the authorities of the machine."
)
CERTIFICATE: ConnectorOption[str | None] = ConnectorOption(
    "ssl.certificate-file", optional(str), None, "The certificate to show."
)
KEY_FILE: ConnectorOption[str | None] = ConnectorOption("ssl.key-file", optional(str), None, "Its key.")

_COMMON: Final = OptionSet(
    required=(URL,),
    optional=(
        TOPIC, QOS, CLIENT_ID, EXPIRY_S, USER, PASSWORD, VERSION, TIMEOUT_MS, KEEP_ALIVE_S, WINDOW, RETAIN, CA_FILE,
        CERTIFICATE, KEY_FILE,
    ),
)  # fmt: skip
#: Messages that are handed out at once.
_AT_ONCE: Final = 2_000
#: Refusals behind which another try may help.
_PASSING: Final = (
    "Server unavailable",
    "Server busy",
    "Quota exceeded",
    "Use another server",
    "Connection rate exceeded",
)


def _check(values: OptionValues) -> None:
    secure = urlsplit(values.get(URL)).scheme in ("mqtts", "wss")
    for option in (CA_FILE, CERTIFICATE, KEY_FILE):
        if values.has(option) and not secure:
            raise BindError("invalid-option-value", f"'{option.key}' has no effect without TLS.", hint="mqtts://")
    if values.has(PASSWORD) and not values.has(USER):
        raise BindError("missing-option", f"'{PASSWORD.key}' is given without '{USER.key}'.")


class MqttSourceFactory(MessageSourceFactory):
    """Makes scans of topics."""

    identifier = "mqtt"
    own_options = _COMMON.merged(SINK_OPTIONS)
    metadata: ClassVar[Mapping[str, LogicalType]] = {"topic": STRING, "qos": INT, "retained": BOOLEAN}

    def check(self, table: TableSpec, values: OptionValues, scan: ScanSpec) -> None:
        """There are topics, and options that fit together."""
        _check(values)
        if not _filters(values):
            raise BindError("missing-option", f"'{TOPIC.key}' says what table {table.name} reads.", hint=TOPIC.doc)

    def feed(self, table: TableSpec, values: OptionValues, context: FeedContext) -> MessageFeed:
        """A session with the broker."""
        return MqttFeed(values, context)

    def origin(self, values: OptionValues) -> str:
        """The broker, and the filters."""
        return f"{shown(values.get(URL))} {values.get(TOPIC)}"

    def guarantee(self, values: OptionValues, checkpointed: bool) -> str | None:
        """What the broker is told when."""
        if values.get(QOS) == 1 and values.has(CLIENT_ID) and checkpointed:
            return "at least once: what no complete checkpoint holds is delivered again"
        missing = [
            text
            for text, there in (
                ("'qos' = '1'", values.get(QOS) == 1),
                (f"'{CLIENT_ID.key}'", values.has(CLIENT_ID)),
                ("checkpoints", checkpointed),
            )
            if not there
        ]
        return f"at most once: at least once takes {', '.join(missing)}"


class MqttSinkFactory(MessageSinkFactory):
    """Makes sinks that publish."""

    identifier = "mqtt"
    own_options = _COMMON.merged(SOURCE_OPTIONS)
    metadata: ClassVar[Mapping[str, LogicalType]] = {"topic": STRING}

    def check(self, sink: SinkSpec, values: OptionValues) -> None:
        """Each row has a topic."""
        _check(values)
        topic = values.get(TOPIC)
        if topic is None and "topic" not in sink.metadata:
            hint = "or a column 'topic STRING METADATA'"
            raise BindError("missing-option", f"'{TOPIC.key}' says where table {sink.table.name} publishes.", hint=hint)
        if topic is not None and any(mark in topic for mark in "+#;"):
            raise BindError(
                "invalid-option-value", f"'{TOPIC.key}' = '{topic}' is a filter, and rows are published to one topic."
            )

    def outlet(self, sink: SinkSpec, values: OptionValues, context: WriterContext) -> MessageOutlet:
        """A session with the broker."""
        return MqttOutlet(values)


def _filters(values: OptionValues) -> list[str]:
    return [each.strip() for each in (values.get(TOPIC) or "").split(";") if each.strip()]


class _Connection:
    """One connection, whose packets are read and written when :meth:`turn` is called: there is no other thread."""

    def __init__(self, values: OptionValues, client_id: str, keeps_session: bool, manual: bool) -> None:
        self._paho = imported("paho.mqtt.client", "mqtt", "mqtt")
        self._values = values
        self._client_id = client_id
        self._keeps_session = keeps_session
        self._manual = manual
        self._address = urlsplit(values.get(URL))
        self._timeout_s = values.get(TIMEOUT_MS) / 1000
        self.client: Any = None
        self.session_present = False
        self._answer: Any = None
        self._lost = ""

    @property
    def where(self) -> str:
        """The broker, for messages."""
        return f"The MQTT broker at {self._address.hostname}:{self._port}"

    @property
    def _port(self) -> int:
        return self._address.port or _PORTS[self._address.scheme]

    def open(self, on_message: Callable[[Any], None] | None = None) -> None:
        """Connect and log in.

        Raises:
            ConnectorError: the broker is not there, or refuses.
        """
        values, paho = self._values, self._paho
        five = values.get(VERSION) == "5"
        websocket = self._address.scheme in ("ws", "wss")
        more = {} if five else {"clean_session": not self._keeps_session}
        client = self.client = paho.Client(
            paho.CallbackAPIVersion.VERSION2,
            client_id=self._client_id,
            protocol=paho.MQTTv5 if five else paho.MQTTv311,
            transport="websockets" if websocket else "tcp",
            manual_ack=self._manual,
            **more,
        )
        client.connect_timeout = self._timeout_s
        if websocket:
            client.ws_set_options(path=self._address.path or "/mqtt")
        user = values.get(USER)
        if user is not None:
            client.username_pw_set(user, values.get(PASSWORD))
        if self._address.scheme in ("mqtts", "wss"):
            client.tls_set(values.get(CA_FILE), values.get(CERTIFICATE), values.get(KEY_FILE))
        self._answer, self._lost = None, ""
        client.on_connect = lambda _c, _u, flags, code, _p: self._connected(flags, code)
        client.on_subscribe = lambda _c, _u, _m, codes, _p: self._answered(codes)
        client.on_disconnect = lambda _c, _u, _f, code, _p: self._disconnected(code)
        if on_message is not None:
            client.on_message = lambda _c, _u, message: on_message(message)
        try:
            self._begin(client, five)
        except (OSError, ValueError, self._paho.WebsocketConnectionError) as error:
            said = getattr(error, "strerror", None) or str(error) or type(error).__name__
            raise ConnectorError(
                "mqtt-unreachable", f"{self.where} does not answer: {said.rstrip('.')}.", retryable=True
            ) from None
        self._await("to the login")
        code = self._answer
        if code.is_failure:
            refused = str(code)
            raise ConnectorError(
                "mqtt-refused",
                f"{self.where} refused the login: {refused}.",
                hint=f"'{USER.key}', '{PASSWORD.key}' and '{CLIENT_ID.key}' of the WITH clause",
                retryable=refused in _PASSING,
            )

    def _begin(self, client: Any, five: bool) -> None:
        more: dict[str, Any] = {}
        if five:
            packets = imported("paho.mqtt.packettypes", "mqtt", "mqtt").PacketTypes
            properties = imported("paho.mqtt.properties", "mqtt", "mqtt").Properties(packets.CONNECT)
            properties.ReceiveMaximum = min(self._values.get(WINDOW), 65_535)
            properties.SessionExpiryInterval = self._values.get(EXPIRY_S) if self._keeps_session else 0
            more = {"clean_start": not self._keeps_session, "properties": properties}
        client.connect(self._address.hostname, self._port, max(1, self._values.get(KEEP_ALIVE_S)), **more)

    def subscribe(self, filters: list[str], qos: int) -> None:
        """Ask for topics.

        Raises:
            ConnectorError: the broker refuses one.
        """
        self._answer = None
        self.client.subscribe([(each, qos) for each in filters])
        self._await("to a subscription")
        for name, code in zip(filters, self._answer, strict=True):
            if code.is_failure:
                raise ConnectorError("mqtt-refused", f"{self.where} refused the topics '{name}': {code}.")

    def _await(self, what: str) -> None:
        end = time.monotonic() + self._timeout_s
        while self._answer is None:
            try:
                self.turn(0.05)
            except ConnectorError:
                # Behind a refused login the connection ends; the refusal tells more.
                if self._answer is None:
                    raise
            if time.monotonic() > end:
                raise ConnectorError(
                    "mqtt-timeout", f"{self.where} gave no answer {what} in {self._timeout_s:g} s.", retryable=True
                )

    def turn(self, wait_s: float) -> None:
        """Read and write packets; waits for some no longer than so.

        Raises:
            ConnectorError: the connection is lost.
        """
        status = self.client.loop(wait_s)
        if status or self._lost:
            said = self._lost or self._paho.error_string(status)
            raise ConnectorError("mqtt-lost", f"{self.where} ended the connection: {said.rstrip('.')}.", retryable=True)

    def _connected(self, flags: Any, code: Any) -> None:
        self.session_present = bool(flags.session_present)
        self._answer = code

    def _answered(self, codes: Any) -> None:
        self._answer = codes

    def _disconnected(self, code: Any) -> None:
        self._lost = str(code)

    def close(self) -> None:
        """Say good-bye."""
        client, self.client = self.client, None
        if client is not None:
            client.on_message = client.on_disconnect = None
            with contextlib.suppress(Exception):
                client.disconnect()
                client.loop(0.0)


class MqttFeed(MessageFeed):
    """Messages of some topics. One thread."""

    def __init__(self, values: OptionValues, context: FeedContext) -> None:
        self._values = values
        self._metadata = context.metadata
        client_id = values.get(CLIENT_ID)
        self._acknowledges = values.get(QOS) == 1 and client_id is not None and context.checkpointed
        self._connection = _Connection(
            values, client_id or f"flowsql-{secrets.token_hex(6)}", client_id is not None, self._acknowledges
        )
        self._inbox: deque[Any] = deque()
        self._given = 0
        #: Messages that were given and not acknowledged: how many were given with it, by packet identifier.
        self._pending: dict[int, int] = {}
        self._topic = ""

    def open(self, position: Any) -> None:
        """Connect and subscribe; what the broker sends again although it was given before is left out."""
        self._inbox.clear()
        self._connection.open(self._inbox.append)
        if not self._connection.session_present:
            self._pending.clear()
        self._connection.subscribe(_filters(self._values), self._values.get(QOS))

    def receive(self, wait_s: float) -> Arrived | None:
        """All messages that are there."""
        end = time.monotonic() + wait_s
        while not self._inbox:
            left = end - time.monotonic()
            self._connection.turn(max(0.0, left))
            if not self._inbox and left <= 0:
                return None
        while len(self._inbox) < _AT_ONCE:
            before = len(self._inbox)
            self._connection.turn(0.0)
            if len(self._inbox) == before:
                break
        messages = [message for message in self._taken() if self._is_new(message)]
        if not messages:
            return None
        for message in messages:
            self._given += 1
            if self._acknowledges and message.qos == 1:
                self._pending[message.mid] = self._given
        self._topic = messages[-1].topic
        metadata: dict[str, list[Any]] = {}
        for key in self._metadata:
            metadata[key] = [_TOLD[key](message) for message in messages]
        return Arrived([bytes(message.payload) for message in messages], metadata)

    def _taken(self) -> list[Any]:
        messages = list(self._inbox)
        self._inbox.clear()
        return messages

    def _is_new(self, message: Any) -> bool:
        return not (message.dup and message.qos == 1 and message.mid in self._pending)

    def kept(self, count: int) -> None:
        """Acknowledge them."""
        # In the order in which they were given: dictionaries keep it.
        for mid in [mid for mid, number in self._pending.items() if number <= count]:
            del self._pending[mid]
            self._connection.client.ack(mid, 1)
        self._connection.turn(0.0)

    def keep_alive(self) -> None:
        """Answer pings."""
        self._connection.turn(0.0)

    def place(self, number: int) -> str:
        """The topic of the last messages."""
        return f"a message of MQTT topic '{self._topic}'"

    def close(self) -> None:
        """End the connection; the broker keeps the session."""
        self._connection.close()


_TOLD: Final[dict[str, Callable[[Any], Any]]] = {
    "topic": lambda message: message.topic,
    "qos": lambda message: message.qos,
    "retained": lambda message: bool(message.retain),
}


class MqttOutlet(MessageOutlet):
    """Publishes the rows of one subtask."""

    def __init__(self, values: OptionValues) -> None:
        self._values = values
        self._timeout_s = values.get(TIMEOUT_MS) / 1000
        # Writers side by side are clients of their own: a broker has one connection for each client id.
        self._connection = _Connection(values, f"flowsql-{secrets.token_hex(6)}", False, False)
        self._waiting: set[int] = set()
        self._early: set[int] = set()
        self._refused = ""

    def open(self) -> None:
        """Connect."""
        self._waiting.clear()
        self._early.clear()
        self._refused = ""
        self._connection.open()
        self._connection.client.on_publish = lambda _c, _u, mid, code, _p: self._published(mid, code)

    def _published(self, mid: int, code: Any) -> None:
        if code is not None and code.is_failure:
            self._refused = self._refused or str(code)
        if mid in self._waiting:
            self._waiting.remove(mid)
        else:
            # Sent before ``publish`` told its number.
            self._early.add(mid)

    def send(self, rows: Outgoing) -> None:
        """Publish all of them, and wait until the broker has them."""
        assert rows.values is not None
        topic = self._values.get(TOPIC)
        column = rows.metadata.get("topic")
        topics = [None] * rows.num_rows if column is None else column.to_pylist()
        qos, retain = self._values.get(QOS), self._values.get(RETAIN)
        client = self._connection.client
        for value, own in zip(rows.values.to_pylist(), topics, strict=True):
            to = own or topic
            if to is None:
                raise ConnectorError("mqtt-topic", f"A row's topic is NULL, and '{TOPIC.key}' names none.")
            try:
                info = client.publish(to, value or b"", qos, retain)
            except ValueError as error:
                raise ConnectorError("mqtt-topic", f"'{to}' is no topic to publish to: {error}.") from None
            if info.mid in self._early:
                self._early.remove(info.mid)
            else:
                self._waiting.add(info.mid)
        end = time.monotonic() + self._timeout_s
        while self._waiting:
            before = len(self._waiting)
            self._connection.turn(0.05)
            if len(self._waiting) < before:
                end = time.monotonic() + self._timeout_s
            elif time.monotonic() > end:
                raise ConnectorError(
                    "mqtt-timeout",
                    f"{self._connection.where} confirmed no message for {self._timeout_s:g} s.",
                    retryable=True,
                )
        if self._refused:
            raise ConnectorError("mqtt-refused", f"{self._connection.where} refused a message: {self._refused}.")

    def close(self) -> None:
        """End the connection."""
        self._connection.close()
