"""Clients of a Kafka cluster: made from a table's properties, and what they say when something is wrong.

librdkafka's defaults give way to those of Kafka's Java clients where the two differ in what a reader or writer sees.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Set
from typing import Any, Final, TypeVar

from flowsql_connectors.kafka.properties import API_TIMEOUT, client_properties, number_of
from flowsql_core.errors import BindError, ConnectorError

try:
    import confluent_kafka as ck
    from confluent_kafka import admin as ck_admin
except ImportError as missing:
    raise ConnectorError(
        "connector-not-installed",
        f"Connector 'kafka' needs the Python module '{missing.name}', which is not installed.",
        hint="pip install 'flowsql[kafka]'",
    ) from missing

from flowsql_connectors.kafka.native import RecordConsumer
from flowsql_connectors.kafka.native_producer import NativeProducer
from flowsql_connectors.kafka.questions import Questions, is_missing

T = TypeVar("T")

#: Which group id a consumer has that commits nothing: librdkafka demands one.
_NO_GROUP: Final = "flowsql"
#: How long one question waits before it is seen whether the cluster refuses to talk at all, seconds.
_SLICE_S: Final = 2.0
_DEFAULTS: Final[dict[str, str | int | float | bool]] = {
    # What goes wrong comes as errors; the library's own lines on standard error would be doubles.
    "log_level": 2,
    "allow.auto.create.topics": False,
}
_READS: Final[dict[str, str | int | float | bool]] = {
    "isolation.level": "read_uncommitted",
    "enable.auto.commit": False,
    "enable.partition.eof": True,
    "auto.offset.reset": "error",
    # Partitions are assigned by hand: nobody waits for this consumer to ask.
    "max.poll.interval.ms": 86_400_000,
    # The library's second of rest, once enough records wait, is far longer than they last.
    "fetch.queue.backoff.ms": 5,
    # A request that names only partitions at their end holds up those that come back from such a rest.
    "fetch.wait.max.ms": 100,
}
_WRITES: Final[dict[str, str | int | float | bool]] = {
    "partitioner": "murmur2_random",
    "delivery.report.only.error": True,
    "allow.auto.create.topics": True,
    "linger.ms": 5,
}
_ASKS: Final[dict[str, str | int | float | bool]] = {
    # Half of it passes before a new client connects for a question that no broker is named in (librdkafka's default:
    # 50 of 100 ms); later attempts wait longer each.
    "reconnect.backoff.ms": 20,
}
#: Properties of one kind of client, which the other kind would complain of.
_ONLY_CONSUMERS: Final = {
    "group.id", "group.instance.id", "isolation.level", "enable.auto.commit", "auto.commit.interval.ms",
    "session.timeout.ms", "heartbeat.interval.ms", "max.poll.interval.ms", "fetch.min.bytes", "fetch.max.bytes",
    "fetch.wait.max.ms", "max.partition.fetch.bytes", "check.crcs", "queued.min.messages",
    "queued.max.messages.kbytes", "fetch.error.backoff.ms", "fetch.queue.backoff.ms", "enable.partition.eof",
}  # fmt: skip
_ONLY_PRODUCERS: Final = {
    "acks", "retries", "linger.ms", "batch.size", "compression.type", "enable.idempotence", "delivery.timeout.ms",
    "transaction.timeout.ms", "queue.buffering.max.kbytes", "queue.buffering.max.messages", "partitioner",
    "max.in.flight.requests.per.connection", "request.timeout.ms", "compression.level", "batch.num.messages",
}  # fmt: skip
#: How long a complaint about connections is taken for the reason of what fails; clients that go on trying repeat it.
_RECENT_S: Final = 30.0
#: Codes behind which waiting does not help.
_HOPELESS: Final = {
    ck.KafkaError._AUTHENTICATION,
    ck.KafkaError._RESOLVE,
    ck.KafkaError._SSL,
    ck.KafkaError.SASL_AUTHENTICATION_FAILED,
    ck.KafkaError.CLUSTER_AUTHORIZATION_FAILED,
    ck.KafkaError._FATAL,
}
#: Codes that say of themselves no more than that nobody answered.
_SILENCE: Final = {
    ck.KafkaError._TRANSPORT,
    ck.KafkaError._TIMED_OUT,
    ck.KafkaError._MSG_TIMED_OUT,
    ck.KafkaError._ALL_BROKERS_DOWN,
}
#: In complaints about connections that were not made; others were made, and the broker ended them.
_UNREACHED: Final = "in state CONNECT"
#: Codes of rights that are missing: what must be granted.
_RIGHTS: Final = {
    ck.KafkaError.TOPIC_AUTHORIZATION_FAILED: "DESCRIBE and READ of topics that are read, WRITE of those written",
    ck.KafkaError.GROUP_AUTHORIZATION_FAILED: "READ of the group 'properties.group.id'; of writers with "
    "'exactly-once' of the group named '<sink.transactional-id-prefix>-committed'",
    ck.KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "DESCRIBE and WRITE of the transactional id "
    "'sink.transactional-id-prefix'",
    ck.KafkaError.CLUSTER_AUTHORIZATION_FAILED: "the right on the cluster that it names",
}


class Cluster:
    """The cluster of one table. Makes clients; they keep what the brokers complained of last."""

    def __init__(self, given: Mapping[str, str]) -> None:
        self._properties = client_properties(given)
        self._given = given
        self.servers = given["bootstrap.servers"]
        self.timeout_s = number_of(given, API_TIMEOUT, 60_000) / 1000
        self._complaint: Any = None
        self._outage = False
        #: What was said of connections last, and when; '' where a broker closed them without a word.
        self._silence: tuple[float, str] | None = None
        #: Whether a consumer said that a topic or partition is not there.
        self._missing = False

    @property
    def group(self) -> str | None:
        """``properties.group.id``."""
        return self._given.get("group.id")

    @property
    def isolation(self) -> Any:
        """Up to where a topic is read: for questions about its end."""
        committed = self._given.get("isolation.level") == "read_committed"
        return ck.IsolationLevel.READ_COMMITTED if committed else ck.IsolationLevel.READ_UNCOMMITTED

    @property
    def partitioner(self) -> str:
        """``partitioner`` of writers: how the client library chooses partitions."""
        return str(self._properties.get("partitioner", _WRITES["partitioner"]))

    def consumer(self, more: Mapping[str, object] | None = None) -> Any:
        """A consumer without partitions, for questions."""
        return self._client(ck.Consumer, self._reads(), _ONLY_PRODUCERS, more or {})

    def record_consumer(self, most: int, wanted: Set[str]) -> RecordConsumer:
        """A consumer without partitions, for records; see :class:`RecordConsumer`."""
        return self._client(lambda config: RecordConsumer(config, most, wanted), self._reads(), _ONLY_PRODUCERS, {})

    def _reads(self) -> dict[str, str | int | float | bool]:
        reset = self._given.get("auto.offset.reset", "none")
        return {**_READS, "group.id": _NO_GROUP, "auto.offset.reset": "error" if reset == "none" else reset}

    def producer(
        self, undelivered: Callable[[str, Any], None], more: Mapping[str, object] | None = None
    ) -> NativeProducer:
        """A producer of records; see :class:`NativeProducer`."""
        return self._client(lambda config: NativeProducer(config, undelivered), _WRITES, _ONLY_CONSUMERS, more or {})

    def questions_of_writers(self) -> Questions:
        """Questions to the cluster; asking for a topic makes it where brokers make topics by themselves."""
        return Questions(self, self._client(ck.Producer, {**_WRITES, **_ASKS}, _ONLY_CONSUMERS, {}))

    def questions(self) -> Questions:
        """Questions to the cluster, with a client of their own."""
        return Questions(self, self._client(ck_admin.AdminClient, _ASKS, _ONLY_CONSUMERS | _ONLY_PRODUCERS, {}))

    def _client(
        self,
        make: Callable[[dict[str, Any]], T],
        defaults: Mapping[str, object],
        foreign: set[str],
        more: Mapping[str, object],
    ) -> T:
        properties = {name: value for name, value in self._properties.items() if name not in foreign}
        config: dict[str, Any] = {**_DEFAULTS, **defaults, **properties, **more, "error_cb": self._complain}
        try:
            return make(config)
        except ck.KafkaException as error:
            # Names and values of properties: librdkafka's sentence says which one; values of secrets are not in it.
            raise BindError(
                "kafka-property", f"Kafka's client refuses its properties: {error.args[0].str()}"
            ) from error

    def _complain(self, error: Any) -> None:
        if error.code() in _HOPELESS:
            self._complaint = error
        elif is_missing(error):
            self._missing = True
        elif error.code() in (ck.KafkaError._ALL_BROKERS_DOWN, ck.KafkaError._TRANSPORT):
            self._outage = True
            # That all brokers are down follows each connection that fails, also one that nothing else is said of.
            told = error.str() if error.code() == ck.KafkaError._TRANSPORT else self._reason() or ""
            self._silence = time.monotonic(), told

    def _reason(self) -> str | None:
        """Why nobody answers; None: it is not known that a connection failed."""
        if self._silence is None or time.monotonic() - self._silence[0] > _RECENT_S:
            return None
        return self._silence[1]

    def take_outage(self) -> bool:
        """Whether brokers were lost since this was asked last."""
        outage, self._outage = self._outage, False
        return outage

    def check(self) -> None:
        """Raise what the brokers complained of, where waiting does not help."""
        if self._complaint is not None:
            raise self.failure("cannot be used", self._complaint)

    def ask(
        self,
        what: str,
        question: Callable[[float], T],
        poll: Callable[[float], object],
        timeout_s: float | None = None,
    ) -> T:
        """An answer of the cluster.

        Args:
            what: the question, for the message.
            question: asks, and waits so many seconds.
            poll: serves the client's callbacks.
            timeout_s: at most so long; None: ``properties.default.api.timeout.ms``.
        """
        deadline = time.monotonic() + (self.timeout_s if timeout_s is None else timeout_s)
        while True:
            left = deadline - time.monotonic()
            try:
                return question(max(0.1, min(_SLICE_S, left)))
            except ck.KafkaException as error:
                said = poll(0)
                self.check()
                found = error.args[0]
                # A consumer that may not use its group says so here, and its question goes unanswered.
                if isinstance(said, ck.Message) and said.error() is not None and said.error().code() in _RIGHTS:
                    raise self.failure(f"does not answer: {what}", said.error()) from error
                if left <= _SLICE_S or not passes(found):
                    raise self.failure(f"did not answer: {what}", found) from error

    def failure(self, what: str, error: Any) -> ConnectorError:
        """The sentence of an error."""
        if error.code() in _RIGHTS:
            return ConnectorError(
                "kafka-rights",
                f"Kafka at '{self.servers}' {what}: {error.str()}",
                hint=f"whoever logs in needs {_RIGHTS[error.code()]}",
            )
        match error.code():
            case ck.KafkaError._RESOLVE:
                return ConnectorError("kafka-host", f"Kafka at '{self.servers}' cannot be found: {error.str()}")
            case ck.KafkaError._AUTHENTICATION | ck.KafkaError.SASL_AUTHENTICATION_FAILED:
                return ConnectorError(
                    "kafka-login",
                    f"Kafka at '{self.servers}' refused the login: {error.str()}",
                    hint="'properties.sasl.mechanism', 'properties.sasl.jaas.config' or 'properties.sasl.username' and "
                    "'properties.sasl.password' say who logs in",
                )
            case ck.KafkaError._SSL:
                return ConnectorError(
                    "kafka-tls",
                    f"Kafka at '{self.servers}' cannot be trusted: {error.str()}",
                    hint="'properties.ssl.ca.location' names a PEM file with the authority that signed the brokers' "
                    "certificates",
                )
            case ck.KafkaError._FENCED | ck.KafkaError._FATAL:
                return ConnectorError(
                    "kafka-fenced",
                    f"Kafka at '{self.servers}' takes no more records of this job: {error.str()}",
                    hint="of two jobs with one 'sink.transactional-id-prefix' the one that started last goes on",
                )
        text, hint = f"Kafka at '{self.servers}' {what}: {error.str()}", None
        reason = self._reason() if error.code() in _SILENCE else None
        if reason:
            text += f" ({reason})"
        if reason is not None and _UNREACHED not in reason:
            spoken = self._given.get("security.protocol", "PLAINTEXT")
            hint = f"the broker hangs up: is 'properties.security.protocol' = '{spoken}' what that port speaks?"
        return ConnectorError("kafka", text, hint=hint)

    def check_read(self, topics: Iterable[str]) -> None:
        """Raise that a topic which is read was deleted, where a consumer has said something of the kind."""
        if not self._missing:
            return
        asked = self.questions()
        self._missing = not all(asked.check_topic(name) for name in topics)

    def no_topic(self, name: str, error: Any) -> ConnectorError:
        """The sentence of a topic that cannot be read or written."""
        if is_missing(error):
            return ConnectorError(
                "kafka-topic",
                f"Topic '{name}' does not exist: This server does not host this topic-partition. ('{self.servers}')",
                hint="create it, or mend 'topic'",
            )
        if error.code() in _RIGHTS:
            return self.failure(f"does not let this job use topic '{name}'", error)
        return ConnectorError("kafka-topic", f"Topic '{name}' cannot be used: {error.str()} ('{self.servers}')")


def passes(error: Any) -> bool:
    """Whether an error may be another one, or none, a moment later."""
    return bool(
        error.retriable()
        or error.code()
        in (
            ck.KafkaError._TRANSPORT,
            ck.KafkaError._TIMED_OUT,
            ck.KafkaError._ALL_BROKERS_DOWN,
            ck.KafkaError._WAIT_COORD,
            ck.KafkaError.LEADER_NOT_AVAILABLE,
            ck.KafkaError.COORDINATOR_NOT_AVAILABLE,
            ck.KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
            ck.KafkaError.NOT_COORDINATOR,
            ck.KafkaError.NOT_LEADER_FOR_PARTITION,
        )
    )
