"""Brokers of tests: librdkafka's own mock inside of the test's process, or a real one.

The mock knows groups and offsets; no logins, and it forgets what offsets a transaction commits.
"""

from __future__ import annotations

import itertools
import json
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

import confluent_kafka as ck
from confluent_kafka import admin as ck_admin

from flowsql_core.graph.specs import TableSpec
from tests.connectors.tables import table_of

_NUMBERS = itertools.count()
#: Partitions of every topic of the mock.
PARTITIONS = 4


class Broker:
    """What tests ask of a broker; topics have :data:`PARTITIONS` partitions."""

    def __init__(self, address: str, producer: Any) -> None:
        self.address = address
        self._producer = producer

    def topic(self, name: str = "t") -> str:
        """The name of a topic that no other test has."""
        return f"{name}{next(_NUMBERS)}"

    def made_topic(self, name: str) -> str:
        """A topic of a real broker, which makes others by itself, with one partition."""
        topic = f"{name}{uuid.uuid4().hex[:8]}"
        admin = ck_admin.AdminClient({"bootstrap.servers": self.address})
        admin.create_topics([ck_admin.NewTopic(topic, PARTITIONS)])[topic].result(30)
        return topic

    def delete_topic(self, name: str) -> None:
        """A topic of a real broker is gone."""
        admin = ck_admin.AdminClient({"bootstrap.servers": self.address})
        admin.delete_topics([name])[name].result(30)

    def write(self, topic: str, *values: Any, partition: int = 0, **more: Any) -> None:
        """Records with these values: bytes, None, texts, or what becomes JSON."""
        for value in values:
            self._producer.produce(topic, as_bytes(value), partition=partition, **more)
        assert self._producer.flush(10) == 0

    def read(self, topic: str, isolation: str = "read_committed") -> list[Any]:
        """All messages of a topic by partition and offset."""
        consumer = ck.Consumer(
            {
                "bootstrap.servers": self.address,
                "group.id": "look",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                # How long a broker keeps an answer back that would be empty: each partition's end is waited for.
                "fetch.wait.max.ms": 20,
                "isolation.level": isolation,
                "log_level": 2,
            }
        )
        partitions = sorted(consumer.list_topics(topic, timeout=10).topics[topic].partitions)
        consumer.assign([ck.TopicPartition(topic, partition, 0) for partition in partitions])
        messages, ended = [], set()
        while len(ended) < len(partitions):
            message = consumer.poll(10)
            assert message is not None, "the broker does not answer"
            if message.error() is None:
                messages.append(message)
            else:
                ended.add(message.partition())
        consumer.close()
        return sorted(messages, key=lambda message: (message.partition(), message.offset()))

    def committed(self, group: str, topic: str) -> dict[int, int]:
        """What a group has committed."""
        consumer = ck.Consumer({"bootstrap.servers": self.address, "group.id": group, "log_level": 2})
        asked = [ck.TopicPartition(topic, partition) for partition in range(PARTITIONS)]
        told = consumer.committed(asked, timeout=10)
        consumer.close()
        return {one.partition: one.offset for one in told if one.offset >= 0}

    def commit(self, group: str, topic: str, offsets: Mapping[int, int]) -> None:
        """Commit for a group."""
        consumer = ck.Consumer({"bootstrap.servers": self.address, "group.id": group, "log_level": 2})
        asked = [ck.TopicPartition(topic, partition, offset) for partition, offset in offsets.items()]
        consumer.commit(offsets=asked, asynchronous=False)
        consumer.close()

    def table(self, ddl: str, topic: str | None, options: Mapping[str, str] | None = None) -> TableSpec:
        """A bounded ``kafka`` table of json from the first record on, unless the options say otherwise."""
        made = {
            "connector": "kafka",
            "properties.bootstrap.servers": self.address,
            "scan.startup.mode": "earliest-offset",
            "scan.bounded.mode": "latest-offset",
        }
        if topic is not None:
            made["topic"] = topic
        given = dict(options or {})
        if "value.format" not in given:
            given.setdefault("format", "json")
        return table_of(ddl, {key: text for key, text in {**made, **given}.items() if text})


class MockBroker(Broker):
    """One broker; topics are there once they are written to."""

    def __init__(self) -> None:
        producer = ck.Producer({"test.mock.num.brokers": 1, "linger.ms": 0, "log_level": 2})
        brokers = producer.list_topics(timeout=10).brokers
        super().__init__(",".join(f"{broker.host}:{broker.port}" for broker in brokers.values()), producer)


def real_broker(address: str) -> Broker:
    return Broker(address, ck.Producer({"bootstrap.servers": address, "linger.ms": 5, "log_level": 2}))


def as_bytes(value: Any) -> bytes | None:
    if value is None or isinstance(value, bytes):
        return value
    return (value if isinstance(value, str) else json.dumps(value)).encode()


def sorted_rows(rows: Sequence[Sequence[Any]]) -> list[list[Any]]:
    return sorted(([*row] for row in rows), key=repr)
