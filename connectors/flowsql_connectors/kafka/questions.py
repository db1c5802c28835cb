"""What a cluster is asked while nothing is read or written: which partitions there are, and their offsets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import confluent_kafka as ck
from confluent_kafka import admin as ck_admin

if TYPE_CHECKING:
    from flowsql_connectors.kafka.client import Cluster

Partition = tuple[str, int]
Offsets = dict[Partition, int]

#: How long a question waits that may go unanswered, seconds.
_SHORT_S: Final = 2.0
#: Codes of a topic that does not exist, as brokers and the library say it.
_NOT_THERE: Final = {
    ck.KafkaError.UNKNOWN_TOPIC_OR_PART,
    ck.KafkaError._UNKNOWN_TOPIC,
    ck.KafkaError._UNKNOWN_PARTITION,
}


class Questions:
    """Questions to a cluster, by one client: a new one waits for its connection first.

    All methods raise a ConnectorError where the cluster does not answer within ``properties.default.api.timeout.ms``.

    Args:
        client: of the Python client, one that has ``list_topics``.
    """

    def __init__(self, cluster: Cluster, client: Any) -> None:
        self._cluster = cluster
        self._client = client
        self._knows_partitions = False

    def partitions(self, topics: Sequence[str] | None) -> dict[str, list[int]]:
        """Partitions by topic; ``topics`` None: of all topics that are not Kafka's own.

        Raises:
            ConnectorError: a topic is not there.
        """
        ask, client = self._cluster.ask, self._client
        self._knows_partitions = True
        if topics is None:
            listed = ask("which topics there are", lambda s: client.list_topics(timeout=s), client.poll).topics
            return {name: sorted(topic.partitions) for name, topic in listed.items() if topic.error is None}
        found: dict[str, list[int]] = {}
        for name in topics:
            topic = ask(
                f"which partitions '{name}' has",
                lambda s, name=name: client.list_topics(name, timeout=s),  # type: ignore[misc]
                client.poll,
            ).topics[name]
            if topic.error is not None:
                raise self._cluster.no_topic(name, topic.error)
            found[name] = sorted(topic.partitions)
        return found

    def check_topic(self, name: str) -> bool:
        """Raise that a topic does not exist; False: nobody answers."""
        try:
            topic = self._client.list_topics(name, timeout=_SHORT_S).topics[name]
        except ck.KafkaException:
            return False
        if topic.error is not None and is_missing(topic.error):
            raise self._cluster.no_topic(name, topic.error)
        return True

    def earliest(self, partitions: Iterable[Partition]) -> Offsets:
        """The first offsets."""
        return self._offsets(ck_admin.OffsetSpec.earliest(), partitions)

    def latest(self, partitions: Iterable[Partition]) -> Offsets:
        """The offsets behind the last records."""
        return self._offsets(ck_admin.OffsetSpec.latest(), partitions)

    def at(self, timestamp_ms: int, partitions: Sequence[Partition]) -> Offsets:
        """The offsets of the first records at or behind a moment; behind the last record where there is none."""
        found = self._offsets(ck_admin.OffsetSpec.for_timestamp(timestamp_ms), partitions)
        ends = self.latest([key for key, offset in found.items() if offset < 0])
        return {**found, **ends}

    def _offsets(self, spec: Any, partitions: Iterable[Partition]) -> Offsets:
        """An offset of each partition; -1 where no record is at or behind a timestamp."""
        asked = {ck.TopicPartition(topic, partition): spec for topic, partition in partitions}
        if not asked:
            return {}
        if not self._knows_partitions:
            # A client that is asked for offsets first may wait three seconds (librdkafka 2.16, one client in 25).
            self.partitions(sorted({partition.topic for partition in asked}))

        def question(seconds: float) -> Offsets:
            futures = self._client.list_offsets(asked, isolation_level=self._cluster.isolation, request_timeout=seconds)
            return {(tp.topic, tp.partition): future.result().offset for tp, future in futures.items()}

        return self._cluster.ask("offsets of partitions", question, self._client.poll)


def is_missing(error: Any) -> bool:
    """Whether an error says that a topic or partition does not exist."""
    return error.code() in _NOT_THERE


def committed(cluster: Cluster, partitions: Iterable[Partition]) -> Mapping[Partition, int | None]:
    """What the table's group has committed; None: nothing."""
    asked = [ck.TopicPartition(topic, partition) for topic, partition in partitions]
    if not asked:
        return {}
    consumer = cluster.consumer()
    try:
        told = cluster.ask(
            f"offsets of group '{cluster.group}'", lambda s: consumer.committed(asked, timeout=s), consumer.poll
        )
    finally:
        consumer.close()
    return {(tp.topic, tp.partition): tp.offset if tp.offset >= 0 else None for tp in told}
