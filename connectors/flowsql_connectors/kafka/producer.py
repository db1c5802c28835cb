"""Writing records with a producer of the client library: which partition each goes to, and what failed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import confluent_kafka as ck
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flowsql_connectors.kafka.client import Cluster
from flowsql_connectors.kafka.encode import Records
from flowsql_connectors.kafka.native_producer import RefusedRecordError, topics_of
from flowsql_connectors.kafka.questions import Questions
from flowsql_connectors.spi.counters import BYTES_SENT
from flowsql_connectors.spi.sink import WriterContext
from flowsql_core.errors import ConnectorError

#: How long one call waits for answers, seconds.
_WAIT_S = 1.0
#: How long to wait for room in the client's buffer, which it does not tell of, seconds.
_ROOM_S = 0.002
#: The library's own choice of a partition.
_ANY = -1


class RecordProducer:
    """Writes the records of one subtask, or of one INSERT.

    Args:
        topic: of records that name none; None: each names one.
        partitioner: of ``sink.partitioner``.
        subtask: for the partitioner ``fixed``.
        more: further properties of the client.
    """

    def __init__(
        self,
        cluster: Cluster,
        topic: str | None,
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
        self._questions: Questions | None = None
        self.client = cluster.producer(self._give_up, more)

    def write(
        self,
        records: Records,
        context: WriterContext | None = None,
        subtask: int | None = None,
        turn: int | None = None,
    ) -> None:
        """Hand records to the client, which sends them by and by.

        Args:
            subtask: whose they are, where it is not this producer's.
            turn: number of the first of the records that may go anywhere, which take partitions in turn: with the same
                number they go to the same partitions again. None: this producer's own, or the library draws.

        Raises:
            ConnectorError: records that were handed over before were not delivered.
        """
        self.check()
        owner = self._subtask if subtask is None else subtask
        try:
            self.client.send(records, self._topic, self._partitions(records, owner, turn), self._make_room)
        except RefusedRecordError as refused:
            raise self._refusal(refused.topic, refused.error) from refused
        if context is not None:
            context.count(BYTES_SENT, records.values.nbytes)
        self._turn += records.count
        self.client.poll(0)

    def _make_room(self) -> None:
        """The client's buffer is full: it sends while it is polled."""
        self.client.poll(_ROOM_S)
        self._cluster.check()
        self.check()

    def serve(self) -> None:
        """Let the client tell what happened."""
        self.client.poll(0)

    def flush(self) -> None:
        """Wait until the brokers have everything.

        Raises:
            ConnectorError: they do not take it, within ``properties.delivery.timeout.ms``.
        """
        while self.client.flush(_WAIT_S):
            self._cluster.check()
            self.check()
        self.check()

    def check(self) -> None:
        """Raise what was not delivered."""
        if self._failure is not None:
            raise self._refusal(*self._failure)

    def _refusal(self, topic: str, error: Any) -> ConnectorError:
        if error.code() in (
            ck.KafkaError.UNKNOWN_TOPIC_OR_PART,
            ck.KafkaError._UNKNOWN_TOPIC,
            ck.KafkaError.TOPIC_AUTHORIZATION_FAILED,
        ):
            return self._cluster.no_topic(topic, error)
        if error.code() == ck.KafkaError._MSG_TIMED_OUT:
            self._asked().check_topic(topic)
        return self._cluster.failure(f"did not take a record for topic '{topic}'", error)

    def close(self) -> None:
        """Forget what was not sent yet. The client ends here: one that lived on could still take the transactions."""
        self.client.close()

    def _asked(self) -> Questions:
        if self._questions is None:
            self._questions = self._cluster.questions_of_writers()
        return self._questions

    def _partitions(self, records: Records, owner: int, turn: int | None) -> npt.NDArray[np.int64]:
        match self._partitioner:
            case "fixed":
                return owner % self._sizes_of(records)
            case "round-robin":
                return self._in_turn(records, self._turn if turn is None else turn)
        if turn is None or not self._cluster.partitioner.endswith("random"):
            return np.array([_ANY], np.int64)
        # The library would draw partitions: for all records, or for those without a key.
        if records.keys is None or self._cluster.partitioner == "random":
            return self._in_turn(records, turn)
        if not records.keys.null_count:
            return np.array([_ANY], np.int64)
        return np.where(np.asarray(records.keys.is_null()), self._in_turn(records, turn), _ANY)

    def _in_turn(self, records: Records, first: int) -> npt.NDArray[np.int64]:
        partitions: npt.NDArray[np.int64] = (first + np.arange(records.count)) % self._sizes_of(records)
        return partitions

    def _sizes_of(self, records: Records) -> npt.NDArray[np.int64]:
        """How many partitions the topic of each record has."""
        names, places = topics_of(records, self._topic)
        sizes = np.array([self._size(name) for name in names], np.int64)
        found: npt.NDArray[np.int64] = sizes[places]
        return found

    def _size(self, topic: str) -> int:
        if topic not in self._sizes:
            found = self._asked().partitions((topic,))
            self._sizes[topic] = len(found[topic])
        return self._sizes[topic]

    def _give_up(self, topic: str, error: Any) -> None:
        if self._failure is None:
            self._failure = topic, error


def joined(parts: list[Records]) -> Records:
    """The records of all parts, of which there is at least one."""
    if len(parts) == 1:
        return parts[0]
    table = pa.Table.from_batches([part.as_batch() for part in parts]).combine_chunks()
    return Records.of_batch(table.to_batches()[0])
