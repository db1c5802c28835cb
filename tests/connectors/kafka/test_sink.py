"""Sinks into topics: which records rows become, where they go, and what a failure or a repeated commit leaves."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from flowsql_connectors import registry
from flowsql_connectors.spi.sink import Committer, SinkWriter, WriterContext
from flowsql_core.batch import ChangelogBatch
from flowsql_core.clock import SystemClock
from flowsql_core.errors import BindError, ConnectorError, ExecutionError
from flowsql_core.graph.specs import SinkSpec, TableSpec
from flowsql_core.row import DELETE, INSERT, UPDATE_AFTER, UPSERT
from flowsql_core.types.arrow import to_arrow
from flowsql_core.types.logical import Column
from tests.connectors.kafka.broker import PARTITIONS, Broker
from tests.connectors.tables import table_of

_KINDS = {"+I": INSERT, "+U": UPDATE_AFTER, "-D": DELETE}


class Insert:
    """One INSERT of one subtask."""

    def __init__(
        self, table: TableSpec, metadata: tuple[str, ...] = (), subtask: int = 0, parallelism: int = 1
    ) -> None:
        known = registry.sink_factory(dict(table.options)["connector"]).writable_metadata(table)
        self._columns = (*table.columns, *(Column(key, known[key]) for key in metadata))
        sink = registry.create_sink(SinkSpec(table, self._columns, UPSERT, metadata=metadata), {})
        self.submitted: list[Callable[[], None]] = []
        self.writer: SinkWriter = sink.create_writer(
            WriterContext("job", subtask, parallelism, SystemClock(), {}, lambda name, n: None, self.submitted.append)
        )
        self.committer: Committer | None = sink.create_committer()

    def write(self, *rows: Sequence[Any]) -> None:
        """Insertions."""
        self.change(*(("+I", *row) for row in rows))

    def change(self, *changes: Sequence[Any]) -> None:
        """Rows with their kinds before them."""
        columns = tuple(
            pa.array([change[index + 1] for change in changes], to_arrow(column.type))
            for index, column in enumerate(self._columns)
        )
        kinds = np.array([_KINDS[change[0]] for change in changes], np.uint8)
        self.writer.write(ChangelogBatch.of(columns, kinds if kinds.any() else None, num_rows=len(changes)))

    def end(self) -> None:
        """The end of the input, without a failure."""
        self.writer.flush(end_of_input=True)
        committables = self.writer.prepare_commit()
        if self.committer is not None:
            self.committer.commit(committables, end_of_input=True)
        self.writer.close()


def _table(
    broker: Broker, ddl: str, topic: str, options: Mapping[str, str] | None = None, key: tuple[str, ...] = ()
) -> TableSpec:
    given = {"connector": "kafka", "topic": topic, "properties.bootstrap.servers": broker.address, **(options or {})}
    if "value.format" not in given:
        given.setdefault("format", "json")
    return replace(table_of(ddl, given), primary_key=key)


def _upserts(broker: Broker, topic: str, **more: str) -> TableSpec:
    options = {"connector": "upsert-kafka", "key.format": "json", "value.format": "json"}
    options.update((name.replace("__", ".").replace("_", "-"), text) for name, text in more.items())
    return _table(broker, "id INT, n INT", topic, options, key=("id",))


def contents(broker: Broker, topic: str) -> list[tuple[Any, Any]]:
    return [(message.key(), message.value()) for message in broker.read(topic)]


#: Format options, rows, and the values that they become.
VALUES: dict[str, tuple[str, dict[str, str], list[list[Any]], list[bytes | None]]] = {
    "json": ("a INT, b STRING", {}, [[1, "x\ny"], [2, None]], [b'{"a":1,"b":"x\\ny"}', b'{"a":2,"b":null}']),
    "csv": ("a INT, b STRING", {"format": "csv"}, [[1, "x\ny"], [2, None]], [b'1,"x\ny"', b"2,"]),
    "raw": ("a STRING", {"format": "raw"}, [["x"], [None], [""]], [b"x", None, b""]),
    "raw numbers": ("a INT", {"format": "raw"}, [[1], [None]], [b"\0\0\0\x01", None]),
}


@pytest.mark.parametrize(("ddl", "options", "rows", "values"), VALUES.values(), ids=VALUES)
@pytest.mark.parametrize("guarantee", ["none", "at-least-once", "exactly-once"])
def test_rows_become_records(
    broker: Broker,
    ddl: str,
    options: dict[str, str],
    rows: list[list[Any]],
    values: list[bytes],
    guarantee: str,
) -> None:
    topic = broker.topic()
    given = {"sink.delivery-guarantee": guarantee, "sink.partitioner": "fixed", **options}
    if guarantee == "exactly-once":
        given["sink.transactional-id-prefix"] = topic
    insert = Insert(_table(broker, ddl, topic, given))
    insert.write(*rows)
    insert.end()
    assert contents(broker, topic) == [(None, value) for value in values]


def test_changes_become_events(broker: Broker) -> None:
    topic = broker.topic()
    insert = Insert(_table(broker, "a INT", topic, {"format": "debezium-json", "sink.partitioner": "fixed"}))
    insert.change(("+I", 1), ("-D", 1))
    insert.end()
    assert [value for _, value in contents(broker, topic)] == [
        b'{"before":null,"after":{"a":1},"op":"c"}',
        b'{"before":{"a":1},"after":null,"op":"d"}',
    ]


def test_keys_and_metadata(broker: Broker) -> None:
    one, two = broker.topic(), broker.topic()
    options = {
        "key.format": "raw", "key.fields": "k_a", "key.fields-prefix": "k_", "value.format": "json",
        "value.fields-include": "EXCEPT_KEY",
    }  # fmt: skip
    insert = Insert(
        _table(broker, "k_a STRING, b INT", f"{one};{two}", options), metadata=("topic", "timestamp", "headers")
    )
    insert.write(["x", 1, one, 1_767_225_600_000, [("h", b"1")]], ["y", 2, two, 1_767_225_600_001, None])
    insert.end()
    ((first,), (second,)) = broker.read(one), broker.read(two)
    assert (first.key(), first.value()) == (b"x", b'{"b":1}')
    assert (first.timestamp()[1], first.headers()) == (1_767_225_600_000, [("h", b"1")])
    assert (second.key(), second.timestamp()[1], second.headers()) == (b"y", 1_767_225_600_001, None)
    other = Insert(_table(broker, "k_a STRING, b INT", f"{one};{two}", options), metadata=("topic",))
    with pytest.raises(ExecutionError, match=r"Expected topic to be in: .* but was: elsewhere"):
        other.write(["x", 1, "elsewhere"])
    other.writer.close()


def test_a_buffer_that_is_full(broker: Broker) -> None:
    """Records wait for room in their order, with what they hold besides a value."""
    topic = broker.topic()
    options = {
        "key.format": "raw", "key.fields": "k", "value.format": "raw", "value.fields-include": "EXCEPT_KEY",
        "sink.partitioner": "fixed", "properties.queue.buffering.max.messages": "10",
    }  # fmt: skip
    insert = Insert(_table(broker, "k STRING, v STRING", topic, options), metadata=("headers", "timestamp"))
    rows = [[f"k{at}", [f"v{at}", "", None][at % 3], [("h", b"%d" % at), ("e", b"")], 1 + at] for at in range(300)]
    insert.write(*rows)
    insert.end()
    assert [(m.key().decode(), m.value(), m.headers(), m.timestamp()[1]) for m in broker.read(topic)] == [
        (k, None if v is None else v.encode(), headers, moment) for k, v, headers, moment in rows
    ]


@pytest.mark.parametrize(
    ("partitioner", "partitions"),
    [("fixed", [PARTITIONS - 1] * 8), ("round-robin", sorted([*range(PARTITIONS)] * 2))],
)
def test_partitioners(broker: Broker, partitioner: str, partitions: list[int]) -> None:
    topic = broker.topic()
    broker.write(topic)
    table = _table(broker, "a INT", topic, {"sink.partitioner": partitioner})
    insert = Insert(table, subtask=PARTITIONS - 1, parallelism=PARTITIONS)
    insert.write(*([i] for i in range(3)))
    insert.write(*([i] for i in range(3, 8)))
    insert.end()
    assert [message.partition() for message in broker.read(topic)] == partitions


def test_keys_choose_partitions_as_in_java(broker: Broker) -> None:
    """Murmur2 of the key: what Kafka's own clients wrote before stays in the same partition."""
    topic = broker.topic()
    options = {"key.format": "raw", "key.fields": "a", "value.format": "json"}
    insert = Insert(_table(broker, "a STRING", topic, options))
    insert.write(["21"], ["foobar"])
    insert.end()
    # From the tests of Kafka's own Utils.murmur2: 21 -> -973932308, foobar -> -790332482.
    wanted = {b"21": (-973932308 & 0x7FFFFFFF) % PARTITIONS, b"foobar": (-790332482 & 0x7FFFFFFF) % PARTITIONS}
    assert {message.key(): message.partition() for message in broker.read(topic)} == wanted


def test_upserts_and_tombstones(broker: Broker) -> None:
    topic = broker.topic()
    insert = Insert(_upserts(broker, topic))
    insert.change(("+I", 1, 10), ("+U", 1, 11), ("-D", 1, None))
    insert.end()
    assert contents(broker, topic) == [
        (b'{"id":1}', b'{"id":1,"n":10}'),
        (b'{"id":1}', b'{"id":1,"n":11}'),
        (b'{"id":1}', None),
    ]


def test_held_rows_are_the_newest_of_their_keys(broker: Broker) -> None:
    topic = broker.topic()
    held = {"sink__buffer_flush__max_rows": "5", "sink__buffer_flush__interval": "1 h"}
    insert = Insert(_upserts(broker, topic, **held))
    insert.change(("+I", 1, 10), ("+I", 2, 20), ("+U", 1, 11))
    insert.change(("-D", 2, None), ("+U", 1, 12))
    insert.change(("+U", 1, 13))
    insert.end()
    found = contents(broker, topic)
    assert sorted(found, key=repr) == sorted(
        [(b'{"id":1}', b'{"id":1,"n":12}'), (b'{"id":2}', None), (b'{"id":1}', b'{"id":1,"n":13}')], key=repr
    )


def test_held_rows_wait_no_longer_than_the_interval(broker: Broker) -> None:
    topic = broker.topic()
    held = {"sink__buffer_flush__max_rows": "500", "sink__buffer_flush__interval": "10 ms"}
    insert = Insert(_upserts(broker, topic, **held))
    insert.change(("+I", 1, 10))
    for _ in range(1000):
        if insert.submitted:
            break
        time.sleep(0.01)
    (due,) = insert.submitted
    due()
    insert.writer.flush(end_of_input=False)
    assert contents(broker, topic) == [(b'{"id":1}', b'{"id":1,"n":10}')]
    insert.writer.close()


# -- transactions


@pytest.mark.parametrize("exactly_once", [False, True])
def test_rows_name_topics_that_a_pattern_matches(broker: Broker, exactly_once: bool) -> None:
    one, two = broker.topic("p"), broker.topic("p")
    broker.write(one)
    broker.write(two)
    # Real clusters have it; the mock must be told.
    broker.write("__consumer_offsets", b"x")
    more = {"sink.delivery-guarantee": "exactly-once", "sink.transactional-id-prefix": one} if exactly_once else {}
    table = _table(broker, "a INT", "", {"topic-pattern": r"p\d+", **more})
    table = replace(table, options=tuple((key, text) for key, text in table.options if text))
    insert = Insert(table, metadata=("topic",))
    insert.write([1, one], [2, two], [3, one])
    insert.end()
    assert sorted(value for _, value in contents(broker, one)) == [b'{"a":1}', b'{"a":3}']
    assert [value for _, value in contents(broker, two)] == [b'{"a":2}']
    for name in ("other", None):
        other = Insert(table, metadata=("topic",))
        with pytest.raises(ExecutionError, match=rf"Expected topic to match: p\\d\+ but was: {name}"):
            other.write([4, one], [5, name])
        other.writer.close()


def transactional(broker: Broker, topic: str, partitioner: str = "fixed", **more: str) -> TableSpec:
    given = {"sink.delivery-guarantee": "exactly-once", "sink.transactional-id-prefix": topic}
    return _table(broker, "a INT", topic, {**given, "sink.partitioner": partitioner, **more})


def test_rows_without_a_key_take_partitions_in_turn(broker: Broker) -> None:
    """From one on that follows from the committable's id: written again they go where they went before."""
    table = transactional(broker, broker.topic(), "default")
    insert = Insert(table)
    insert.write(*([a] for a in range(4 * PARTITIONS)))
    insert.write(*([a] for a in range(4 * PARTITIONS, 8 * PARTITIONS)))
    prepared = insert.writer.prepare_commit()
    found = []
    for _ in range(2):
        # The mock forgets marks: a second committer writes once more.
        before = len(broker.read(table.option("topic")))
        committer = Insert(table).committer
        assert committer is not None
        committer.commit(prepared, end_of_input=True)
        read = broker.read(table.option("topic"))
        assert len(read) == before + 8 * PARTITIONS
        found.append(Counter((message.value(), message.partition()) for message in read))
    assert set(Counter(partition for _, partition in found[0]).values()) == {8}
    assert {key: 2 * times for key, times in found[0].items()} == found[1]


def test_nothing_is_there_before_the_commit(broker: Broker) -> None:
    topic = broker.topic()
    broker.write(topic)
    insert = Insert(transactional(broker, topic))
    insert.write([1], [2])
    insert.writer.flush(end_of_input=False)
    prepared = insert.writer.prepare_commit()
    insert.write([3])
    assert contents(broker, topic) == []
    assert insert.committer is not None
    insert.committer.commit(prepared, end_of_input=False)
    assert [value for _, value in contents(broker, topic)] == [b'{"a":1}', b'{"a":2}']


@pytest.mark.parametrize(("options", "message"), [
    ({"topic-pattern": "a.*", "topic": ""}, "'topic-pattern' names several topics, and rows do not tell"),
    ({"topic": "a;b"}, "'topic' names several topics"),
    ({"sink.delivery-guarantee": "exactly-once"}, "sink.transactional-id-prefix must be specified"),
    ({"sink.partitioner": "round-robin", "key.format": "raw", "key.fields": "a"}, "Currently 'round-robin'"),
])  # fmt: skip
def test_options_that_do_not_fit(broker: Broker, options: dict[str, str], message: str) -> None:
    table = _table(broker, "a INT", "t", options)
    table = replace(table, options=tuple((key, text) for key, text in table.options if text))
    with pytest.raises(BindError, match=re.escape(message)):
        Insert(table)


def test_upserts_need_a_key_and_plain_formats(broker: Broker) -> None:
    table = _upserts(broker, "t")
    with pytest.raises(BindError, match="'upsert-kafka' tables require to define a PRIMARY KEY constraint"):
        Insert(replace(table, primary_key=()))
    with pytest.raises(BindError, match="doesn't support 'debezium-json' as value format"):
        Insert(_upserts(broker, "t", value__format="debezium-json"))
    with pytest.raises(BindError, match="must be set to be greater than zero together"):
        Insert(_upserts(broker, "t", sink__buffer_flush__max_rows="3"))


def test_a_record_that_is_too_large(broker: Broker) -> None:
    topic = broker.topic()
    insert = Insert(_table(broker, "a STRING", topic, {"properties.max.request.size": "1000"}))
    with pytest.raises(ConnectorError, match=f"did not take a record for topic '{topic}': .*too large"):
        insert.write(["x" * 2000])
    insert.writer.close()
