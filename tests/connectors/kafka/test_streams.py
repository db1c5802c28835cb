"""``KafkaSource`` and ``KafkaSink`` of DataStreams."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any, cast

import pytest

from flowsql.common import Duration, Row, SimpleStringSchema, Types, WatermarkStrategy
from flowsql.common.serialization import (
    ByteArraySchema,
    DeserializationSchema,
    RowFieldExtractorSchema,
    SerializationSchema,
)
from flowsql.datastream import RuntimeExecutionMode, StreamExecutionEnvironment
from flowsql.datastream.connectors import DeliveryGuarantee
from flowsql.datastream.connectors.kafka import (
    KafkaOffsetResetStrategy,
    KafkaOffsetsInitializer,
    KafkaRecordSerializationSchema,
    KafkaSink,
    KafkaSinkBuilder,
    KafkaSource,
    KafkaSourceBuilder,
    KafkaTopicPartition,
    KafkaTopicSelector,
)
from flowsql.datastream.connectors.number_seq import NumberSequenceSource
from flowsql.datastream.formats.csv import CsvRowDeserializationSchema, CsvRowSerializationSchema
from flowsql.datastream.formats.json import JsonRowDeserializationSchema, JsonRowSerializationSchema
from flowsql.datastream.functions import ProcessFunction
from flowsql_core.errors import FlowSqlError, NotSupportedYetError
from tests.connectors.kafka.broker import MockBroker, real_broker

ORDER = Types.ROW_NAMED(["id", "item"], [Types.INT(), Types.STRING()])
JSON = JsonRowDeserializationSchema.builder().type_info(ORDER)
NO_TIMES = WatermarkStrategy.no_watermarks()


class Letters(DeserializationSchema, SerializationSchema):
    """A schema of a program's own."""

    def deserialize(self, message: bytes) -> Any:
        return list(message.decode())

    def serialize(self, value: Any) -> bytes:
        return "".join(value).encode()


def source(broker: MockBroker, topic: str, schema: DeserializationSchema | None = None) -> KafkaSourceBuilder:
    """What is in the topic now."""
    return (
        KafkaSource.builder()
        .set_bootstrap_servers(broker.address)
        .set_topics(topic)
        .set_bounded(KafkaOffsetsInitializer.latest())
        .set_value_only_deserializer(schema or SimpleStringSchema())
    )


def environment(parallelism: int = 1) -> StreamExecutionEnvironment:
    made = StreamExecutionEnvironment.get_execution_environment()
    made.set_parallelism(parallelism)
    return made


def read(made: KafkaSourceBuilder, parallelism: int = 1) -> list[Any]:
    return list(environment(parallelism).from_source(made.build(), NO_TIMES, "k").execute_and_collect())


@pytest.mark.parametrize(
    ("schema", "written", "wanted"),
    [
        (SimpleStringSchema(), ["a", None, "ü"], ["a", None, "ü"]),
        (SimpleStringSchema("ISO-8859-1"), [b"\xfc"], ["ü"]),
        (ByteArraySchema(), [b"\x00\xff"], [[0, -1]]),
        (Letters(), ["abc"], [["a", "b", "c"]]),
        (JSON.build(), [{"item": "pen", "id": 7}, {"id": 8}], [Row(id=7, item="pen"), Row(id=8, item=None)]),
        (
            CsvRowDeserializationSchema.Builder(ORDER).set_field_delimiter("|").set_null_literal("-").build(),
            ["7|pen", "8|-"],
            [Row(id=7, item="pen"), Row(id=8, item=None)],
        ),
        (
            JsonRowDeserializationSchema.builder().type_info(ORDER).ignore_parse_errors().build(),
            ["{", {"id": 1, "item": "x"}],
            [Row(id=1, item="x")],
        ),
    ],
    ids=["texts", "charset", "bytes", "own", "json", "csv", "ignored"],
)
def test_values_are_read(
    broker: MockBroker, schema: DeserializationSchema, written: list[Any], wanted: list[Any]
) -> None:
    topic = broker.topic()
    broker.write(topic, *written)
    found = read(source(broker, topic, schema))
    assert found == wanted


@pytest.mark.parametrize(
    ("begins", "wanted"),
    [
        (lambda topic: KafkaOffsetsInitializer.earliest(), ["0", "1", "2"]),
        (lambda topic: KafkaOffsetsInitializer.latest(), []),
        (lambda topic: KafkaOffsetsInitializer.offsets({KafkaTopicPartition(topic, 0): 1}), ["1", "2"]),
        (lambda topic: KafkaOffsetsInitializer.committed_offsets(KafkaOffsetResetStrategy.EARLIEST), ["0", "1", "2"]),
        (lambda topic: KafkaOffsetsInitializer.committed_offsets(), None),
    ],
    ids=["earliest", "latest", "offsets", "committed", "nothing committed"],
)
def test_where_reading_begins(
    broker: MockBroker, begins: Callable[[str], KafkaOffsetsInitializer], wanted: list[str] | None
) -> None:
    topic = broker.topic()
    for number in range(3):
        broker.write(topic, str(number), timestamp=number * 1_000 + 1)
    made = source(broker, topic).set_group_id(f"g-{topic}").set_starting_offsets(begins(topic))
    if wanted is None:
        with pytest.raises(FlowSqlError, match="no reset policy"):
            read(made)
    else:
        assert read(made) == wanted


@pytest.mark.servers
def test_exactly_once_from_a_moment_on(kafka_server: dict[str, str]) -> None:
    """What librdkafka's mock does not know."""
    broker = real_broker(kafka_server["KAFKA"])
    one, other = broker.made_topic("one"), broker.made_topic("other")
    for number in range(3):
        broker.write(one, str(number), timestamp=number * 1_000 + 1)
    made = source(broker, one).set_starting_offsets(KafkaOffsetsInitializer.timestamp(1_000)).build()
    records = KafkaRecordSerializationSchema(other, None, SimpleStringSchema().written_form())
    writer = (
        KafkaSink.builder()
        .set_bootstrap_servers(broker.address)
        .set_record_serializer(records)
        .set_delivery_guarantee(DeliveryGuarantee.EXACTLY_ONCE)
        .set_transactional_id_prefix(other)
        .build()
    )
    env = environment()
    env.from_source(made, NO_TIMES, "k").sink_to(writer)
    env.execute()
    # Without a key any partition may get a record.
    assert sorted(message.value() for message in broker.read(other)) == [b"1", b"2"]


class Times(ProcessFunction):
    """Each value with its timestamp and the watermark."""

    def process_element(self, value: Any, ctx: ProcessFunction.Context) -> Any:
        yield value, ctx.timestamp(), ctx.timer_service().current_watermark()


def test_records_bring_their_timestamps_and_partitions_their_watermarks(broker: MockBroker) -> None:
    topic = broker.topic()
    for partition, moment in ((0, 1_000), (0, 9_000), (1, 500)):
        broker.write(topic, f"{partition}", partition=partition, timestamp=moment)
    env = environment()
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(0))
    found = list(env.from_source(source(broker, topic).build(), strategy, "k").process(Times()).execute_and_collect())
    assert sorted((value, time) for value, time, _ in found) == [("0", 1_000), ("0", 9_000), ("1", 500)]
    # The watermark of the other partition holds it back: nothing is late.
    assert all(watermark < 1_000 for _, _, watermark in found)


def test_several_readers_and_operators_of_one_source(broker: MockBroker) -> None:
    topic = broker.topic()
    for partition in range(4):
        broker.write(topic, str(partition), partition=partition)
    env = environment(2)
    stream = env.from_source(source(broker, topic).build(), NO_TIMES, "k").set_parallelism(1)
    assert sorted(stream.execute_and_collect()) == ["0", "1", "2", "3"]
    env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    assert sorted(env.from_source(source(broker, topic).build(), NO_TIMES, "k").execute_and_collect()) == list("0123")


def sink(
    broker: MockBroker, topic: str, value: SerializationSchema, key: SerializationSchema | None = None
) -> KafkaSink:
    records = KafkaRecordSerializationSchema.builder().set_topic(topic).set_value_serialization_schema(value)
    if key is not None:
        records = records.set_key_serialization_schema(key)
    return (
        KafkaSink.builder()
        .set_bootstrap_servers(broker.address)
        .set_record_serializer(records.build())
        .set_delivery_guarantee(DeliveryGuarantee.AT_LEAST_ONCE)
        .build()
    )


PAIR = Types.ROW([Types.PRIMITIVE_ARRAY(Types.BYTE()), Types.PRIMITIVE_ARRAY(Types.BYTE())])


@pytest.mark.parametrize(
    ("value", "key", "rows", "type_", "wanted"),
    [
        (SimpleStringSchema(), None, ["a", "b"], Types.STRING(), [(None, b"a"), (None, b"b")]),
        (Letters(), None, [["x", "y"]], None, [(None, b"xy")]),
        (
            JsonRowSerializationSchema.builder().with_type_info(ORDER).build(),
            CsvRowSerializationSchema.Builder(ORDER).build(),
            [Row(1, "pen")],
            ORDER,
            [(b"1,pen", {"id": 1, "item": "pen"})],
        ),
        (RowFieldExtractorSchema(1), RowFieldExtractorSchema(0), [Row(b"k", b"v")], PAIR, [(b"k", b"v")]),
    ],
    ids=["texts", "own", "json with a key", "fields"],
)
def test_values_are_written(
    broker: MockBroker,
    value: SerializationSchema,
    key: SerializationSchema | None,
    rows: list[Any],
    type_: Any,
    wanted: list[Any],
) -> None:
    topic = broker.topic()
    env = environment()
    env.from_collection(rows, type_).sink_to(sink(broker, topic, value, key))
    env.execute()
    # Without a key any partition may get a record.
    found = sorted(((message.key(), message.value()) for message in broker.read(topic)), key=lambda one: one[1])
    assert [
        (k, json.loads(v) if isinstance(w, dict) else v) for (k, v), (_, w) in zip(found, wanted, strict=True)
    ] == wanted


class ByLength(KafkaTopicSelector):
    """Topics that end with the length of a value."""

    def __init__(self, start: str) -> None:
        self._start = start

    def apply(self, data: Any) -> str:
        return f"{self._start}{len(data)}"


def choosing(
    broker: MockBroker, selector: KafkaTopicSelector | Callable[[Any], str], value: SerializationSchema | None = None
) -> KafkaSinkBuilder:
    records = (
        KafkaRecordSerializationSchema.builder()
        .set_topic_selector(selector)
        .set_value_serialization_schema(value or SimpleStringSchema())
        .build()
    )
    return KafkaSink.builder().set_bootstrap_servers(broker.address).set_record_serializer(records)


@pytest.mark.parametrize("by_function", [False, True])
def test_values_choose_topics(broker: MockBroker, by_function: bool) -> None:
    start = broker.topic("sizes-")
    selector = ByLength(start)
    env = environment()
    made = choosing(broker, selector.apply if by_function else selector)
    made = made.set_delivery_guarantee(DeliveryGuarantee.AT_LEAST_ONCE)
    env.from_collection(["a", "bc", "d"], Types.STRING()).sink_to(made.build())
    env.execute()
    assert sorted(message.value() for message in broker.read(f"{start}1")) == [b"a", b"d"]
    assert [message.value() for message in broker.read(f"{start}2")] == [b"bc"]


def test_rows_choose_topics_by_names_of_fields(broker: MockBroker) -> None:
    start = broker.topic("items-")
    schema = JsonRowSerializationSchema.builder().with_type_info(ORDER).build()
    made = choosing(broker, lambda row: start + row["item"], schema)
    env = environment()
    env.from_collection([(1, "pen"), (2, "ink")], ORDER).sink_to(made.build())
    env.execute()
    for item, id_ in (("pen", 1), ("ink", 2)):
        (message,) = broker.read(start + item)
        assert json.loads(message.value()) == {"id": id_, "item": item}


@pytest.mark.parametrize(("given", "told"), [(None, "gives None for 'a'"), (b"t", "gives b't' for 'a'")])
def test_a_topic_is_a_text(broker: MockBroker, given: Any, told: str) -> None:
    env = environment()
    env.from_collection(["a"], Types.STRING()).sink_to(choosing(broker, lambda value: given).build())
    with pytest.raises(FlowSqlError, match=told):
        env.execute()


@pytest.mark.servers
def test_values_choose_topics_exactly_once(kafka_server: dict[str, str]) -> None:
    """Into two topics in the transactions of several checkpoints, and again without the rows that are there."""
    broker = real_broker(kafka_server["KAFKA"])
    topics = [broker.made_topic("chosen") for _ in range(2)]
    env = environment(2)
    env.enable_checkpointing(50)
    made = choosing(broker, lambda value: topics[int(value) % 2])
    made = made.set_delivery_guarantee(DeliveryGuarantee.EXACTLY_ONCE).set_transactional_id_prefix(topics[0])
    failed: list[str] = []

    def once(value: str) -> str:
        if value == "700" and not failed:
            failed.append(value)
            raise RuntimeError("a failure to recover from")
        time.sleep(0.001)
        return value

    numbers = NumberSequenceSource(0, 999)
    stream = env.from_source(numbers, NO_TIMES, "n", Types.LONG()).map(str, Types.STRING())
    stream.map(once, Types.STRING()).sink_to(made.build())
    env.execute()
    assert failed
    for place, topic in enumerate(topics):
        found = sorted(int(message.value()) for message in broker.read(topic))
        assert found == list(range(place, 1000, 2))


def test_timestamps_travel_from_topic_to_topic(broker: MockBroker) -> None:
    one, other = broker.topic(), broker.topic()
    broker.write(one, "a", timestamp=12_345)
    env = environment()
    env.from_source(source(broker, one).build(), NO_TIMES, "k").sink_to(sink(broker, other, SimpleStringSchema()))
    env.execute()
    assert [message.timestamp()[1] for message in broker.read(other)] == [12_345]


@pytest.mark.parametrize(
    ("build", "error", "told"),
    [
        (lambda: KafkaSource.builder().build(), TypeError, r"set_bootstrap_servers\(...\) is missing"),
        (lambda: KafkaSource.builder().set_bootstrap_servers("x").build(), TypeError, "set_topics"),
        (lambda: KafkaSource.builder().set_value_only_deserializer(str), TypeError, "not a DeserializationSchema"),
        (lambda: KafkaSource.builder().set_starting_offsets("earliest"), TypeError, "KafkaOffsetsInitializer"),
        (lambda: KafkaSink.builder().set_bootstrap_servers("x").build(), TypeError, "set_record_serializer"),
        (lambda: KafkaRecordSerializationSchema.builder().set_topic("t").build(), TypeError, "set_value_serialization"),
        (lambda: KafkaRecordSerializationSchema.builder().build(), TypeError, r"set_topic_selector\(...\) is missing"),
        (
            lambda: KafkaRecordSerializationSchema.builder().set_topic_selector(cast("Any", "t")),
            TypeError,
            "topic_selector must be KafkaTopicSelector or a callable",
        ),
        (
            lambda: KafkaRecordSerializationSchema.builder().set_topic("t").set_topic_selector(str),
            TypeError,
            "already set",
        ),
        (lambda: JsonRowSerializationSchema.builder().with_type_info(Types.INT()), TypeError, "no type of rows"),
        (
            lambda: KafkaOffsetsInitializer.offsets({KafkaTopicPartition("a", 0): 0, KafkaTopicPartition("b", 0): 0}),
            NotSupportedYetError,
            "several topics",
        ),
        (
            lambda: (
                KafkaSink.builder()
                .set_bootstrap_servers("x")
                .set_record_serializer(KafkaRecordSerializationSchema("t", None, SimpleStringSchema().written_form()))
                .set_delivery_guarantee(DeliveryGuarantee.EXACTLY_ONCE)
                .build()
            ),
            TypeError,
            "transactionalIdPrefix",
        ),
    ],
    ids=[
        "no servers",
        "no topics",
        "no schema",
        "no offsets",
        "no records",
        "no value",
        "no topic",
        "no selector",
        "two topics",
        "no rows",
        "topics",
        "prefix",
    ],
)
def test_what_is_missing_is_said(build: Callable[[], Any], error: type[Exception], told: str) -> None:
    with pytest.raises(error, match=told):
        build()
