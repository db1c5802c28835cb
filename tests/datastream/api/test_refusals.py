"""Every name of PyFlink's packages can be imported; what cannot run yet is refused in one sentence where it is used."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import pytest

from flowsql.common import Types
from flowsql.configuration import OptionWarning
from flowsql.datastream import HashMapStateBackend, StreamExecutionEnvironment
from flowsql_core.errors import NotSupportedYetError

#: Names that programs import, as the documentation of PyFlink lists them.
NAMES = {
    "common": "CompletableFuture ConfigOption ConfigOptions Configuration ExecutionConfig InputDependencyConstraint "
    "JobClient JobExecutionResult JobID JobStatus RestartStrategies RestartStrategyConfiguration SerializationSchema "
    "DeserializationSchema SimpleStringSchema ByteArraySchema Encoder TypeSerializer Duration Instant Time Types "
    "TypeInformation Row RowKind WatermarkStrategy AssignerWithPeriodicWatermarksWrapper",
    "common.watermark_strategy": "TimestampAssigner WatermarkStrategy",
    "common.io": "InputFormat",
    "datastream": "StreamExecutionEnvironment DataStream KeyedStream WindowedStream ConnectedStreams BroadcastStream "
    "BroadcastConnectedStream AsyncDataStream DataStreamSink MapFunction CoMapFunction FlatMapFunction "
    "CoFlatMapFunction ReduceFunction FilterFunction ProcessFunction KeyedProcessFunction CoProcessFunction "
    "KeyedCoProcessFunction WindowFunction ProcessWindowFunction AggregateFunction BroadcastProcessFunction "
    "KeyedBroadcastProcessFunction AsyncFunction RuntimeContext TimerService CheckpointingMode CheckpointConfig "
    "ExternalizedCheckpointRetention StateBackend HashMapStateBackend EmbeddedRocksDBStateBackend CustomStateBackend "
    "PredefinedOptions CheckpointStorage JobManagerCheckpointStorage FileSystemCheckpointStorage "
    "CustomCheckpointStorage RuntimeExecutionMode Window TimeWindow CountWindow GlobalWindow WindowAssigner "
    "MergingWindowAssigner TriggerResult Trigger TimeDomain KeySelector Partitioner SourceFunction SinkFunction "
    "SlotSharingGroup MemorySize OutputTag AsyncRetryPredicate AsyncRetryStrategy",
    "datastream.functions": "RuntimeContext MapFunction CoMapFunction FlatMapFunction CoFlatMapFunction ReduceFunction "
    "AggregateFunction KeySelector FilterFunction Partitioner SourceFunction SinkFunction ProcessFunction "
    "CoProcessFunction KeyedProcessFunction KeyedCoProcessFunction TimerService WindowFunction AllWindowFunction "
    "ProcessWindowFunction ProcessAllWindowFunction BaseBroadcastProcessFunction BroadcastProcessFunction "
    "KeyedBroadcastProcessFunction AsyncFunction AsyncFunctionDescriptor AsyncRetryPredicate AsyncRetryStrategy",
    "datastream.state": "ValueStateDescriptor ValueState ListStateDescriptor ListState MapStateDescriptor MapState "
    "ReducingStateDescriptor ReducingState AggregatingStateDescriptor AggregatingState ReadOnlyBroadcastState "
    "BroadcastState StateTtlConfig OperatorStateStore",
    "datastream.window": "Window TimeWindow CountWindow GlobalWindow WindowAssigner TumblingProcessingTimeWindows "
    "TumblingEventTimeWindows SlidingProcessingTimeWindows SlidingEventTimeWindows ProcessingTimeSessionWindows "
    "EventTimeSessionWindows DynamicProcessingTimeSessionWindows DynamicEventTimeSessionWindows GlobalWindows "
    "MergingWindowAssigner CountTumblingWindowAssigner CountSlidingWindowAssigner TriggerResult Trigger "
    "EventTimeTrigger ProcessingTimeTrigger ContinuousEventTimeTrigger ContinuousProcessingTimeTrigger NeverTrigger "
    "PurgingTrigger CountTrigger TimeWindowSerializer CountWindowSerializer GlobalWindowSerializer "
    "SessionWindowTimeGapExtractor",
    "datastream.checkpoint_config": "CheckpointConfig",
    "datastream.checkpoint_storage": "CheckpointStorage JobManagerCheckpointStorage FileSystemCheckpointStorage",
    "datastream.state_backend": "StateBackend HashMapStateBackend EmbeddedRocksDBStateBackend PredefinedOptions",
    "datastream.connectors": "Sink Source DeliveryGuarantee NumberSequenceSource JdbcSink JdbcConnectionOptions "
    "JdbcExecutionOptions KafkaSource FlinkKafkaConsumer FileSink FileSource StreamFormat RollingPolicy PulsarSource "
    "RMQSource OutputFileConfig",
    "datastream.connectors.file_system": "FileCompactor FileCompactStrategy OutputFileConfig FileSource FileSink "
    "FileSourceBuilder StreamingFileSink StreamFormat BulkFormat FileEnumeratorProvider FileSplitAssignerProvider "
    "RollingPolicy BucketAssigner",
    "datastream.connectors.kafka": "FlinkKafkaConsumer FlinkKafkaProducer KafkaSource KafkaSourceBuilder KafkaSink "
    "KafkaSinkBuilder KafkaTopicPartition KafkaOffsetsInitializer KafkaOffsetResetStrategy "
    "KafkaRecordSerializationSchema",
    "datastream.connectors.jdbc": "JdbcSink JdbcConnectionOptions JdbcExecutionOptions",
    "datastream.connectors.number_seq": "NumberSequenceSource",
    "datastream.connectors.hybrid_source": "HybridSource HybridSourceBuilder",
    "datastream.connectors.elasticsearch": "Elasticsearch7SinkBuilder ElasticsearchEmitter ElasticsearchSink",
    "datastream.connectors.pulsar": "PulsarSource PulsarSink StartCursor",
    "datastream.connectors.rabbitmq": "RMQConnectionConfig RMQSource RMQSink",
    "datastream.connectors.kinesis": "FlinkKinesisConsumer KinesisStreamsSink",
    "datastream.connectors.cassandra": "CassandraSink",
    "datastream.connectors.dynamic_kafka": "DynamicKafkaSource",
    "datastream.async_retry_strategies": "NoRetryStrategy FixedDelayRetryStrategy ExponentialBackoffDelayRetryStrategy",
    "datastream.formats.csv": "CsvSchema CsvReaderFormat CsvBulkWriters CsvRowDeserializationSchema",
    "datastream.formats.json": "JsonRowDeserializationSchema JsonRowSerializationSchema",
    "datastream.formats.avro": "AvroSchema AvroInputFormat AvroBulkWriters AvroRowDeserializationSchema",
    "datastream.formats.parquet": "AvroParquetReaders ParquetColumnarRowInputFormat ParquetBulkWriters",
    "datastream.formats.orc": "OrcBulkWriters",
}


@pytest.mark.parametrize("module", NAMES)
def test_every_name_can_be_imported(module: str) -> None:
    found = importlib.import_module(f"flowsql.{module}")
    for name in NAMES[module].split():
        assert isinstance(getattr(found, name), type), name
    with pytest.raises(AttributeError):
        found.nosuch  # noqa: B018


def imported(module: str, name: str) -> Any:
    return getattr(importlib.import_module(f"flowsql.datastream.{module}"), name)


def environment() -> StreamExecutionEnvironment:
    return StreamExecutionEnvironment.get_execution_environment()


@pytest.mark.parametrize(
    ("use", "named"),
    [
        (lambda: imported("checkpoint_storage", "CustomCheckpointStorage")(None), "checkpoint storages of Java"),
        (
            lambda: (
                environment()
                .get_checkpoint_config()
                .set_checkpoint_storage(imported("checkpoint_storage", "JobManagerCheckpointStorage")("file:///tmp"))
            ),
            "metadata of checkpoints",
        ),
        (lambda: imported("state_backend", "CustomStateBackend")(), "state backends"),
        (lambda: imported("state_backend", "EmbeddedRocksDBStateBackend")().set_options("a.B"), "a.B of Java"),
        (lambda: imported("connectors.kafka", "FlinkKafkaConsumer")("t", None, {}), "older Kafka connector"),
        (lambda: imported("connectors.kafka", "KafkaSource").builder().set_partitions(set()), "single partitions"),
        (lambda: imported("connectors.rabbitmq", "RMQSource")(None), "RabbitMQ"),
        (lambda: imported("connectors.elasticsearch", "Elasticsearch7SinkBuilder")(), "Elasticsearch"),
        (lambda: imported("formats.avro", "AvroRowSerializationSchema")(None, "{}"), "avro format of messages"),
        (lambda: imported("formats.json", "JsonRowDeserializationSchema").builder().json_schema("{}"), "JSON schema"),
        (lambda: imported("functions", "SourceFunction")("org.x.Source"), "source functions of Java"),
    ],
)
def test_what_cannot_run_is_refused_by_name(use: Callable[[], Any], named: str) -> None:
    with pytest.raises(NotSupportedYetError, match=named) as refused:
        use()
    assert len(str(refused.value).splitlines()) == 1


def test_the_state_backend_that_there_is_can_be_named() -> None:
    env = environment()
    assert env.set_state_backend(HashMapStateBackend()) is env
    assert isinstance(env.get_state_backend(), HashMapStateBackend)
    assert env.get_checkpoint_interval() == -1


def test_settings_without_effect_say_so() -> None:
    config = environment().get_config()
    with pytest.warns(OptionWarning, match="'pipeline.force-kryo' has no effect"):
        assert config.enable_force_kryo().is_force_kryo_enabled()
    with pytest.raises(NotSupportedYetError, match=r"'pipeline\.auto-generate-uids' = 'false'"):
        config.disable_auto_generated_uids()
    with pytest.raises(AttributeError, match="no JVM"):
        Types.INT().get_java_type_info()


def test_predicates_of_retries_are_plain_functions() -> None:
    from flowsql.datastream import async_retry_predicates as predicates

    assert predicates.empty_result_predicate([])
    assert not predicates.empty_result_predicate([None])
    assert predicates.has_exception_predicate(ValueError())
    assert not predicates.has_exception_predicate(None)
    assert predicates.exception_type_predicate(KeyError(), LookupError)
