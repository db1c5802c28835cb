"""Scans of topics: which records they read, what becomes of keys, values and metadata, and where they stand."""

from __future__ import annotations

import re
import threading
import time
from typing import Any

import pytest

from flowsql.table import TableEnvironment
from flowsql_connectors import registry
from flowsql_connectors.kafka import library, native
from flowsql_connectors.kafka import reader as kafka_reader
from flowsql_connectors.kafka.enumerator import TopicSplit
from flowsql_connectors.spi.source import ReaderContext, ReadStatus, Split, SplitBatch
from flowsql_core.clock import SystemClock
from flowsql_core.errors import BindError, ConnectorError, ExecutionError, FlowSqlError
from flowsql_core.graph.specs import ScanSpec
from flowsql_core.types.logical import STRING, Column
from tests.connectors.kafka.broker import Broker, sorted_rows
from tests.connectors.tables import drain, poll, reader_of, rows_of, scan, source_of, table_of

#: What a boundary needs, how many records it leaves of five in partition 0 and three in partition 1.
BOUNDARIES = {
    "earliest": ({}, 8),
    "latest": ({"scan.startup.mode": "latest-offset"}, 0),
    "specific": (
        {
            "scan.startup.mode": "specific-offsets",
            "scan.startup.specific-offsets": "partition:0,offset:4",
            "properties.group.id": "new",
        },
        1 + 3,
    ),
    "specific, else of the group": (
        {
            "scan.startup.mode": "specific-offsets",
            "scan.startup.specific-offsets": "partition:0,offset:4",
            "properties.group.id": "g",
        },
        1 + 1,
    ),
    "group": ({"scan.startup.mode": "group-offsets", "properties.group.id": "g"}, 3 + 1),
    "group resets": (
        {
            "scan.startup.mode": "group-offsets",
            "properties.group.id": "new",
            "properties.auto.offset.reset": "earliest",
        },
        8,
    ),
    "to specific": (
        {
            "scan.bounded.mode": "specific-offsets",
            "scan.bounded.specific-offsets": "partition:0,offset:2",
            "properties.group.id": "new",
        },
        2,
    ),
    "to specific, else of the group": (
        {
            "scan.bounded.mode": "specific-offsets",
            "scan.bounded.specific-offsets": "partition:0,offset:2",
            "properties.group.id": "g",
        },
        2 + 2,
    ),
    "two formats": ({"value.format": "raw", "format": "json"}, 8),
    "to group": ({"scan.bounded.mode": "group-offsets", "properties.group.id": "g"}, 2 + 2),
}


@pytest.mark.parametrize(("options", "rows"), BOUNDARIES.values(), ids=BOUNDARIES)
@pytest.mark.parametrize("parallelism", [1, 2])
def test_where_reading_begins_and_ends(broker: Broker, options: dict[str, str], rows: int, parallelism: int) -> None:
    topic = broker.topic()
    broker.write(topic, *({"a": i} for i in range(5)))
    broker.write(topic, *({"a": i} for i in range(5, 8)), partition=1)
    broker.commit("g", topic, {0: 2, 1: 2, 2: 0, 3: 0})
    assert len(scan(broker.table("a INT", topic, options), parallelism)) == rows


#: Format options, messages and the rows of each.
FORMATS: dict[str, tuple[str, dict[str, str], list[tuple[Any, list[list[Any]]]]]] = {
    "json": (
        "a INT, b STRING",
        {},
        [
            ('{"a":1,"b":"x"}', [[1, "x"]]),
            (None, []),
            ('{\n "a": 2,\r\n "b": "y"\n}\n', [[2, "y"]]),
            ('[{"a":3},{"a":4}]', [[3, None], [4, None]]),
            ("", []),
            ('{"a":5}', [[5, None]]),
        ],
    ),
    "json that skips": (
        "a INT, b STRING",
        {"json.ignore-parse-errors": "true"},
        [("{", []), ('{"a":1}', [[1, None]]), ("", []), ("[[1],{}]", []), ('{"a":"x"}', [[None, None]])],
    ),
    "csv": (
        "a INT, b STRING",
        {"format": "csv"},
        [("1,x", [[1, "x"]]), ('2,"y\nz"', [[2, "y\nz"]]), ("3,w\n", [[3, "w"]]), (None, []), ("4,v\r\n", [[4, "v"]])],
    ),
    "csv that skips": (
        "a INT, b STRING",
        {"format": "csv", "csv.ignore-parse-errors": "true"},
        [("1,x,y,z", []), ('2,"y', []), ("3,w", [[3, "w"]]), ("x,v", [[None, "v"]]), ("", []), ("5,u", [[5, "u"]])],
    ),
    "raw": ("a BYTES", {"format": "raw"}, [(b"\x00\n", [["x000a"]]), (None, [[None]]), (b"", [["x"]])]),
    "raw numbers": (
        "a BIGINT",
        {"format": "raw"},
        [((256).to_bytes(8, "big"), [[256]]), (None, [[None]]), ((10).to_bytes(8, "big"), [[10]])],
    ),
    "debezium": (
        "a INT",
        {"format": "debezium-json"},
        [
            ('{"op":"c","before":null,"after":{"a":1}}', [[1]]),
            (None, []),
            ('{"op":"u",\n"before":{"a":1},"after":{"a":2}}', [[1], [2]]),
            ("", []),
            ('{"op":"d","before":{"a":2},"after":null}', [[2]]),
        ],
    ),
}


@pytest.mark.parametrize(("ddl", "options", "messages"), FORMATS.values(), ids=FORMATS)
@pytest.mark.parametrize("max_rows", [65536, 1])
def test_rows_know_their_records(
    broker: Broker,
    ddl: str,
    options: dict[str, str],
    messages: list[tuple[Any, list[list[Any]]]],
    max_rows: int,
) -> None:
    topic = broker.topic()
    broker.write(topic, *(message for message, _ in messages))
    table = broker.table(ddl, topic, options)
    wanted = [[*row, offset] for offset, (_, rows) in enumerate(messages) for row in rows]
    assert scan(table, metadata=("offset",), max_rows=max_rows) == wanted
    assert len(scan(table, select=())) == len(wanted)


@pytest.mark.parametrize("name", ["json", "debezium", "raw"])
def test_a_restored_reader_goes_on_behind_the_last_row(broker: Broker, name: str) -> None:
    ddl, options, messages = FORMATS[name]
    topic = broker.topic()
    broker.write(topic, *(message for message, _ in messages))
    source, schema = source_of(broker.table(ddl, topic, options))
    splits = source.create_enumerator().initial_splits(1)[0]
    everything = [row for _, rows in messages for row in rows]
    for polled in range(1, len(everything)):
        reader = reader_of(source)
        reader.add_splits(splits)
        reader.no_more_splits()
        read: list[list[Any]] = []
        for _ in range(polled):
            batch = poll(reader, 1)
            assert batch is not None
            read += rows_of(batch.batch, schema)
        left = reader.snapshot()
        reader.close()
        # Twice: what a restored reader was given is cut once more.
        again = reader_of(source)
        again.add_splits(left)
        again.no_more_splits()
        batch = poll(again, 1)
        if batch is not None:
            read += rows_of(batch.batch, schema)
        left = again.snapshot()
        again.close()
        assert read + drain(reader_of(source), left, schema) == everything


def test_keys_and_values(broker: Broker) -> None:
    topic = broker.topic()
    broker.write(topic, {"v": 1}, key=b'{"id":1,"r":"n"}')
    broker.write(topic, {"v": 2})
    broker.write(topic, None, key=b'{"id":3}')
    broker.write(topic, [{"v": 4}, {"v": 5}], key=b'[{"id":4},{"id":5}]')
    options = {
        "key.format": "json", "key.fields": "k_id;k_r", "key.fields-prefix": "k_", "value.format": "json",
        "value.fields-include": "EXCEPT_KEY",
    }  # fmt: skip
    table = broker.table("v INT, k_id INT, k_r STRING", topic, options)
    assert scan(table) == [[1, 1, "n"], [4, 4, None], [4, 5, None], [5, 4, None], [5, 5, None]]
    assert scan(table, select=("k_id",), metadata=("offset",)) == [[1, 0], [4, 3], [5, 3], [4, 3], [5, 3]]


def test_raw_values_that_are_not_there_delete(broker: Broker) -> None:
    topic = broker.topic()
    for value in (b"a", b"b", None):
        broker.write(topic, value, key=b"k")
    broker.write(topic, b"c", key=b"l")
    environment = TableEnvironment.create()
    environment.execute_sql(
        "CREATE TABLE t (k STRING PRIMARY KEY NOT ENFORCED, v STRING) WITH ('connector' = 'upsert-kafka', "
        f"'topic' = '{topic}', 'properties.bootstrap.servers' = '{broker.address}', 'key.format' = 'raw', "
        "'value.format' = 'raw', 'value.fields-include' = 'EXCEPT_KEY', 'scan.bounded.mode' = 'latest-offset')"
    )
    with environment.execute_sql("SELECT k, v FROM t").collect() as rows:
        changes = [(str(row.get_row_kind()), *row) for row in rows]
    assert changes == [
        ("+I", "k", "a"), ("-U", "k", "a"), ("+U", "k", "b"), ("-D", "k", "b"), ("+I", "l", "c"),
    ]  # fmt: skip


def test_metadata(broker: Broker) -> None:
    topic = broker.topic()
    broker.write(topic, {"a": 1}, partition=1, timestamp=1_767_225_600_123, headers=[("h", b"1"), ("h", b"2")])
    broker.write(topic, {"a": 2}, partition=1, timestamp=1_767_225_600_124)
    table = broker.table("a INT", topic)
    keys = ("topic", "partition", "offset", "timestamp", "timestamp-type", "headers")
    assert scan(table, metadata=keys) == [
        [1, topic, 1, 0, "2026-01-01 00:00:00.123Z", "CreateTime", [["h", "x32"]]],
        [2, topic, 1, 1, "2026-01-01 00:00:00.124Z", "CreateTime", []],
    ]
    scan_of_no_such = ScanSpec(table, (0,), (*table.columns, Column("size", STRING)), ("size",))
    with pytest.raises(BindError, match="Invalid metadata key 'size'"):
        registry.create_source(scan_of_no_such, {})


def test_more_bytes_than_an_array_holds_come_as_several(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "_MOST_BYTES", 100)
    topic = broker.topic()
    wanted = [[i, "x" * (i % 50)] for i in range(300)]
    broker.write(topic, *({"a": a, "b": b} for a, b in wanted), key=b"key")
    rows = scan(broker.table("a INT, b STRING", topic), metadata=("offset", "leader-epoch"))
    assert [row[:3] for row in rows] == [[*row, offset] for offset, row in enumerate(wanted)]


def test_a_client_without_the_librarys_functions_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    library.library.cache_clear()
    monkeypatch.setitem(library._FUNCTIONS, "rd_kafka_no_such_function", (None, ()))
    try:
        with pytest.raises(ConnectorError, match="librdkafka's functions are not found"):
            library.library()
    finally:
        library.library.cache_clear()


def test_new_partitions_are_read_from_their_start(broker: Broker) -> None:
    first, prefix = broker.topic("found_a"), broker.topic("found_b")
    pattern = f"{first}|{prefix}.*"
    broker.write(first, {"a": 1})
    options = {
        "topic-pattern": pattern, "scan.bounded.mode": "", "scan.startup.mode": "latest-offset",
        "scan.topic-partition-discovery.interval": "1 s",
    }  # fmt: skip
    source, schema = source_of(broker.table("a INT", None, options))
    assert not source.bounded
    enumerator = source.create_enumerator()
    (splits,) = enumerator.initial_splits(1)
    assert {TopicSplit.decode(split).topic for split in splits} == {first}
    assert enumerator.discovery_interval_ms() == 1000
    assert enumerator.discover(1) == []
    broker.write(f"{prefix}_late", {"a": 7})
    found = enumerator.discover(1)
    (dealt,) = enumerator.assign(found, 1)
    assert enumerator.discover(1) == []
    restored = source_of(broker.table("a INT", None, options))[0].create_enumerator()
    restored.restore(enumerator.snapshot())
    assert restored.discover(1) == []
    reader = reader_of(source)
    reader.add_splits(splits)
    reader.add_splits(dealt)
    batch = poll(reader)
    assert batch is not None
    assert rows_of(batch.batch, schema) == [[7]]
    reader.close()


def test_offsets_are_committed_when_a_checkpoint_holds_them(broker: Broker) -> None:
    topic = broker.topic()
    broker.write(topic, *({"a": i} for i in range(5)))
    source, _ = source_of(broker.table("a INT", topic, {"properties.group.id": topic, "scan.bounded.mode": ""}))
    reader = reader_of(source)
    reader.add_splits(source.create_enumerator().initial_splits(1)[0])
    batch = poll(reader, 3)
    assert batch is not None
    assert broker.committed(topic, topic) == {}
    reader.positions_durable(reader.snapshot())
    reader.close()
    assert broker.committed(topic, topic)[0] == batch.batch.num_rows


def test_paused_partitions_wait(broker: Broker) -> None:
    topic = broker.topic()
    broker.write(topic, *({"a": i} for i in range(4)))
    broker.write(topic, *({"a": i} for i in range(10, 14)), partition=1)
    source, schema = source_of(broker.table("a INT", topic))
    reader = reader_of(source)
    reader.add_splits(source.create_enumerator().initial_splits(1)[0])
    reader.no_more_splits()
    assert reader.pause_splits({f"{topic}-0"})
    seen: list[list[Any]] = []
    while len(seen) < 4:
        batch = poll(reader, 3)
        assert batch is not None
        seen += rows_of(batch.batch, schema)
    assert seen == [[10], [11], [12], [13]]
    assert reader.pause_splits(set())
    while (batch := poll(reader, 3)) is not None:
        seen += rows_of(batch.batch, schema)
    assert sorted_rows(seen) == sorted_rows([[i] for i in (*range(4), *range(10, 14))])
    reader.close()


def test_partitions_are_dealt_out_as_flink_does(broker: Broker) -> None:
    enumerator = source_of(broker.table("a INT", "t"))[0].create_enumerator()
    splits: list[Split] = [TopicSplit("orders", partition, 7).encode() for partition in range(4)]
    dealt = enumerator.redistribute(splits, 3)
    # "orders".hashCode() is -1008770331.
    first = ((-1008770331 * 31) & 0x7FFFFFFF) % 3
    of = {split.id: subtask for subtask, share in enumerate(dealt) for split in share}
    assert of == {f"orders-{p}": (first + p) % 3 for p in range(4)}


# -- errors


def test_a_bad_record_is_named(broker: Broker) -> None:
    topic = broker.topic()
    broker.write(topic, *({"a": i} for i in range(100)), partition=2)
    broker.write(topic, '{"a": ', {"a": 1}, partition=2)
    with pytest.raises(ExecutionError, match=rf"in topic '{topic}', partition 2, offset 100: {{\"a\": "):
        scan(broker.table("a INT", topic))
    broker.write(topic, "x,1", partition=3)
    with pytest.raises(ExecutionError, match=f"in topic '{topic}', partition 3, offset 0"):
        scan(
            broker.table(
                "a INT, b INT",
                topic,
                {
                    "format": "csv",
                    "scan.startup.mode": "specific-offsets",
                    "scan.startup.specific-offsets": "partition:2,offset:102",
                    "properties.group.id": "new",
                },
            )
        )


def test_skipped_records_are_counted_with_their_place(broker: Broker) -> None:
    topic = broker.topic()
    broker.write(topic, "1,a", "2", '3,"', "4,d")
    source, schema = source_of(
        broker.table("a INT, b STRING", topic, {"format": "csv", "csv.ignore-parse-errors": "true"})
    )
    lost: list[tuple[str, int, str]] = []
    context = ReaderContext(
        0, 1, 65536, SystemClock(), {}, lambda name, n: None, lose=lambda n, by, where: lost.append((n, by, where()))
    )
    rows = drain(source.create_reader(context), source.create_enumerator().initial_splits(1)[0], schema)
    assert rows == [[1, "a"], [2, None], [4, "d"]]
    assert ("numRecordsInErrors", 1, f"topic '{topic}', partition 0, offset 2") in lost


@pytest.mark.parametrize("bounded", ["unbounded", "latest-offset"])
def test_close_does_not_wait_for_further_records(broker: Broker, bounded: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kafka_reader, "_WAIT_S", 60.0)
    topic = broker.topic()
    broker.write(topic, {"a": 1})
    source, _ = source_of(broker.table("a INT", topic, {"scan.bounded.mode": bounded}))
    reader = reader_of(source)
    reader.add_splits(source.create_enumerator().initial_splits(1)[0])
    reader.no_more_splits()
    assert isinstance(poll(reader), SplitBatch)
    assert reader.poll(10) is (ReadStatus.NOTHING_NOW if bounded == "unbounded" else ReadStatus.END)
    # The end of the partition is told behind its record, and ends the wait before the one that is meant.
    time.sleep(0.3)
    began = time.monotonic()
    reader.close()
    assert time.monotonic() - began < 5
    assert not [thread.name for thread in threading.enumerate() if thread.name == "kafka-0"]


REFUSED = {
    "no topic": ({"topic": ""}, "Either 'topic' or 'topic-pattern' must be set."),
    "two ways": ({"topic-pattern": "a.*"}, "Option 'topic' and 'topic-pattern' shouldn't be set together."),
    "mode": ({"scan.startup.mode": "earliest"}, "Could not parse value 'earliest'"),
    "timestamp": (
        {"scan.startup.mode": "timestamp"},
        "'scan.startup.timestamp-millis' is required in 'timestamp' startup mode but missing.",
    ),
    # Of Kafka's clients some negative numbers are words of their own (-1: the end), which Flink fails at as well.
    "negative timestamp": (
        {"scan.startup.mode": "timestamp", "scan.startup.timestamp-millis": "-1"},
        "Could not parse value '-1' for key 'scan.startup.timestamp-millis'.\nexpected a number that is not negative",
    ),
    "negative end": (
        {"scan.bounded.mode": "timestamp", "scan.bounded.timestamp-millis": "-1000"},
        "Could not parse value '-1000' for key 'scan.bounded.timestamp-millis'.",
    ),
    "group": (
        {"scan.startup.mode": ""},
        "'properties.group.id' is required in 'group-offsets' startup mode but missing.",
    ),
    "offsets": (
        {"scan.bounded.mode": "specific-offsets", "scan.bounded.specific-offsets": "0:1"},
        "Invalid properties 'scan.bounded.specific-offsets' should follow the format",
    ),
    "offset with spaces": (
        {"scan.bounded.mode": "specific-offsets", "scan.bounded.specific-offsets": "partition:0, offset:1"},
        "Invalid properties 'scan.bounded.specific-offsets' should follow the format",
    ),
    "changes as keys": (
        {"key.format": "debezium-json", "key.fields": "a"},
        "A key format should only deal with INSERT-only records",
    ),
    "offset": (
        {"scan.bounded.mode": "specific-offsets", "scan.bounded.specific-offsets": "partition:zero,offset:1"},
        'For input string: "zero"',
    ),
    "no format": ({"format": ""}, "Missing required options are:\n\nformat"),
    "two formats": (
        {"value.format": "json", "format": "json", "value.json.ignore-parse-errors": "true"},
        "Unsupported options found for 'kafka'.",
    ),
    "key format": ({"key.format": "json"}, "requires the declaration of one or more of key fields"),
    "key fields": ({"key.fields": "a"}, "can only be declared if a key format is defined"),
    "key column": ({"key.format": "json", "key.fields": "z"}, "Could not find the field 'z' in the table schema"),
    "prefix": (
        {"key.format": "json", "key.fields": "a", "key.fields-prefix": "a"},
        "A key prefix is not allowed when option 'value.fields-include' is set to 'ALL'.",
    ),
    "prefix without key": (
        {"key.fields-prefix": "a"},
        "A key prefix is not allowed when option 'value.fields-include' is set to 'ALL'.",
    ),
    "unknown": ({"scan.startup.modus": "x"}, "Unsupported options found for 'kafka'."),
    "property": ({"properties.key.deserializer": "x"}, "'properties.key.deserializer' cannot be used"),
    "unknown property": ({"properties.no.such": "x"}, "refuses its properties: No such configuration property"),
}  # fmt: skip


@pytest.mark.parametrize(("options", "message"), REFUSED.values(), ids=REFUSED)
def test_options_that_do_not_fit(broker: Broker, options: dict[str, str], message: str) -> None:
    with pytest.raises(BindError, match=re.escape(message)):
        scan(broker.table("a INT", "t", options))


def test_what_only_files_have_is_refused(broker: Broker) -> None:
    topic = broker.topic()
    broker.write(topic, b"")
    with pytest.raises(BindError, match="Format 'parquet' is for files, not for messages"):
        scan(broker.table("a INT", topic, {"format": "parquet"}))
    with pytest.raises(BindError, match="Messages have no head"):
        scan(broker.table("a INT", topic, {"format": "csv", "csv.header": "true"}))


def test_a_topic_that_is_not_there(broker: Broker) -> None:
    with pytest.raises(ConnectorError, match="Topic 'nowhere' does not exist"):
        scan(broker.table("a INT", "nowhere"))


def test_a_host_that_is_not_there() -> None:
    table = table_of(
        "a INT",
        {
            "connector": "kafka", "properties.bootstrap.servers": "no.such.host.invalid:9092", "topic": "t",
            "scan.startup.mode": "earliest-offset", "format": "json", "properties.default.api.timeout.ms": "15000",
        },
    )  # fmt: skip
    with pytest.raises(ConnectorError, match=r"Kafka at 'no\.such\.host\.invalid:9092' cannot be found"):
        scan(table)


def test_a_group_without_offsets(broker: Broker) -> None:
    topic = broker.topic()
    broker.write(topic, {"a": 1})
    table = broker.table("a INT", topic, {"scan.startup.mode": "group-offsets", "properties.group.id": "empty"})
    with pytest.raises(ConnectorError, match="Undefined offset with no reset policy for partitions"):
        scan(table)


#: Options of a scan whose group has an offset in partition 0 only, and the sentence of the refusal.
WITHOUT_OFFSETS = {
    "no policy": ({"scan.startup.mode": "group-offsets"}, "Undefined offset with no reset policy for partitions"),
    "odd policy": (
        {"scan.startup.mode": "group-offsets", "properties.auto.offset.reset": "sometimes"},
        "auto.offset.reset can not be set to sometimes. Valid values: [latest,earliest,none]",
    ),
    "stop": ({"scan.bounded.mode": "group-offsets"}, "there is no committed offset of this partition for group some"),
    "no group": (
        {
            "scan.startup.mode": "specific-offsets",
            "scan.startup.specific-offsets": "partition:0,offset:0",
            "properties.group.id": "",
        },
        "'specific-offsets' names no offset of partition 1",
    ),
}


@pytest.mark.parametrize(("options", "message"), WITHOUT_OFFSETS.values(), ids=WITHOUT_OFFSETS)
def test_partitions_without_offsets(broker: Broker, options: dict[str, str], message: str) -> None:
    topic = broker.topic()
    broker.write(topic, {"a": 1})
    broker.commit("some", topic, {0: 0})
    with pytest.raises(FlowSqlError, match=re.escape(message)):
        scan(broker.table("a INT", topic, {"properties.group.id": "some", **options}))
