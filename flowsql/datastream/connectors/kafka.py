"""The Kafka connector of DataStreams, under PyFlink's names; the older ``FlinkKafka...`` are refused where used."""

from __future__ import annotations

from typing import Any, Final

from flowsql.common.refused import refused_name
from flowsql.datastream.connectors.kafka_sink import KafkaRecordSerializationSchema as KafkaRecordSerializationSchema
from flowsql.datastream.connectors.kafka_sink import (
    KafkaRecordSerializationSchemaBuilder as KafkaRecordSerializationSchemaBuilder,
)
from flowsql.datastream.connectors.kafka_sink import KafkaSink as KafkaSink
from flowsql.datastream.connectors.kafka_sink import KafkaSinkBuilder as KafkaSinkBuilder
from flowsql.datastream.connectors.kafka_sink import KafkaTopicSelector as KafkaTopicSelector
from flowsql.datastream.connectors.kafka_source import KafkaOffsetResetStrategy as KafkaOffsetResetStrategy
from flowsql.datastream.connectors.kafka_source import KafkaOffsetsInitializer as KafkaOffsetsInitializer
from flowsql.datastream.connectors.kafka_source import KafkaSource as KafkaSource
from flowsql.datastream.connectors.kafka_source import KafkaSourceBuilder as KafkaSourceBuilder
from flowsql.datastream.connectors.kafka_source import KafkaTopicPartition as KafkaTopicPartition

#: What Flink took away, and what only refused calls need.
_NAMES: Final = frozenset(
    {
        "FlinkKafkaConsumer",
        "FlinkKafkaConsumerBase",
        "FlinkKafkaProducer",
        "FlinkKafkaProducerBase",
        "Semantic",
    }
)

__all__ = sorted(
    {
        *_NAMES,
        "KafkaOffsetResetStrategy",
        "KafkaOffsetsInitializer",
        "KafkaRecordSerializationSchema",
        "KafkaRecordSerializationSchemaBuilder",
        "KafkaSink",
        "KafkaSinkBuilder",
        "KafkaSource",
        "KafkaSourceBuilder",
        "KafkaTopicPartition",
        "KafkaTopicSelector",
    }
)


def __getattr__(name: str) -> Any:
    return refused_name(__name__, name, _NAMES, "the older Kafka connector of DataStreams", "KafkaSource and KafkaSink")
