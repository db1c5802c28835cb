"""Writing records with a producer of the client library: which partition each goes to, and what failed."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import confluent_kafka as ck
import numpy as np
import pyarrow as pa

from flowsql_connectors.kafka.client import Cluster
from flowsql_connectors.kafka.encode import Records
from flowsql_connectors.spi.counters import BYTES_SENT
from flowsql_connectors.spi.sink import WriterContext
from flowsql_core.errors import ConnectorError

#: How long one call waits for room or for answers, seconds.
_WAIT_S = 1.0
#: The library's own choice of a partition.
_ANY = -1


class RecordProducer:
    """Writes the records of one subtask, or of one INSERT.

    Args:
        topic: of records that name none.
        partitioner: of ``sink.partitioner``.
        subtask: for the partitioner ``fixed``.
        more: further properties of the client.
    """

    def __init__(
        self,
        cluster: Cluster,
        topic: str,
        partitioner: str,
        subtask: int,
        more: Mapping[str, object] | None = None,
    ) -> None:
        self._cluster = cluster
        self._topic = topic
        self._partitioner = partitioner
        self._subtask = subtask
        self._turn = 0
        self._sizes: dict[str, int] = {}
        self._failure: tuple[str, Any] | None = None
        self.client = cluster.producer({"on_delivery": self._delivered, **(more or {})})

    def write(self, records: Records, context: WriterContext | None = None, subtask: int | None = None) -> None:
        """Hand records to the client, which sends them by and by.

        Args:
            subtask: whose they are, where it is not this producer's.

        Raises:
            ConnectorError: records that were handed over before were not delivered.
        """
        self.check()
        owner = self._subtask if subtask is None else subtask
        for at, message in enumerate(_messages(records)):
            topic: str = message.pop("topic") or self._topic
            self._produce(topic, self._partition(topic, at, owner), message)
        if context is not None:
            context.count(BYTES_SENT, records.values.nbytes)
        self._turn += records.count
        self._served(self.client.poll, 0)

    def serve(self) -> None:
        """Let the client tell what happened."""
        self._served(self.client.poll, 0)

    def flush(self) -> None:
        """Wait until the brokers have everything.

        Raises:
            ConnectorError: they do not take it, within ``properties.delivery.timeout.ms``.
        """
        while self._served(self.client.flush, _WAIT_S):
            self._cluster.check()
            self.check()
        self.check()

    def _served(self, call: Callable[[float], int], seconds: float) -> int:
        """What the client answers. Where it is beyond use its own callbacks break off, with any exception or none."""
        try:
            return call(seconds)
        except (ck.KafkaException, SystemError) as error:
            self._cluster.check()
            raise ConnectorError(
                "kafka-delivery", f"Kafka at '{self._cluster.servers}' takes no more records of this job: {error}"
            ) from error

    def check(self) -> None:
        """Raise what was not delivered."""
        if self._failure is not None:
            topic, error = self._failure
            if error.code() in (
                ck.KafkaError.UNKNOWN_TOPIC_OR_PART,
                ck.KafkaError._UNKNOWN_TOPIC,
                ck.KafkaError.TOPIC_AUTHORIZATION_FAILED,
            ):
                raise self._cluster.no_topic(topic, error)
            if error.code() == ck.KafkaError._MSG_TIMED_OUT:
                self._cluster.check_topic(self.client, topic)
            raise self._cluster.failure(f"did not take a record for topic '{topic}'", error)

    def close(self) -> None:
        """Forget what was not sent yet. The client ends here: one that lived on could still take the transactions."""
        with contextlib.suppress(ck.KafkaException, SystemError):
            self.client.purge()
        # It warns where a transaction cannot be aborted any more: whoever has its id next aborts it.
        with contextlib.suppress(ck.KafkaException, SystemError), warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            self.client.close()

    def _produce(self, topic: str, partition: int, message: dict[str, Any]) -> None:
        while True:
            try:
                self.client.produce(topic, partition=partition, **message)
                return
            except BufferError:
                # Its buffer is full: it sends while it is polled.
                self._served(self.client.poll, _WAIT_S)
                self._cluster.check()
                self.check()
            except ck.KafkaException as error:
                raise self._cluster.failure(f"did not take a record for topic '{topic}'", error.args[0]) from error

    def _partition(self, topic: str, at: int, owner: int) -> int:
        match self._partitioner:
            case "fixed":
                return owner % self._size(topic)
            case "round-robin":
                return (self._turn + at) % self._size(topic)
        return _ANY

    def _size(self, topic: str) -> int:
        if topic not in self._sizes:
            found = self._cluster.partitions(self.client, (topic,))
            self._sizes[topic] = len(found[topic])
        return self._sizes[topic]

    def _delivered(self, error: Any, message: Any) -> None:
        if error is not None and self._failure is None:
            self._failure = message.topic(), error


def _messages(records: Records) -> list[dict[str, Any]]:
    """A message a record, as the client library takes them."""
    count = records.count
    keys = [None] * count if records.keys is None else records.keys.to_pylist()
    topics = [None] * count if records.topics is None else records.topics.to_pylist()
    made = [
        {"topic": topic, "value": value, "key": key}
        for topic, value, key in zip(topics, records.values.to_pylist(), keys, strict=True)
    ]
    if records.timestamps is not None:
        stamped = np.asarray(records.timestamps.fill_null(0))
        for message, timestamp in zip(made, stamped, strict=True):
            message["timestamp"] = int(timestamp)
    if records.headers is not None:
        for message, headers in zip(made, records.headers.to_pylist(), strict=True):
            message["headers"] = headers or []
    return made


def joined(parts: list[Records]) -> Records:
    """The records of all parts, of which there is at least one."""
    if len(parts) == 1:
        return parts[0]
    table = pa.Table.from_batches([part.as_batch() for part in parts]).combine_chunks()
    return Records.of_batch(table.to_batches()[0])
