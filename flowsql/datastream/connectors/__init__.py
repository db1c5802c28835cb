"""Sources and sinks of DataStreams under PyFlink's names. Names load when first used."""

from __future__ import annotations

from flowsql.datastream.connectors.base import DeliveryGuarantee, Sink, Source
from flowsql.lazy import lazy_names

_PACKAGE = "flowsql.datastream.connectors"
_HOMES = {
    name: f"{_PACKAGE}.{module}"
    for module, names in {
        "dynamic_kafka": "DynamicKafkaSource DynamicKafkaSourceBuilder KafkaMetadataService "
        "KafkaRecordDeserializationSchema KafkaStreamSetSubscriber KafkaStreamSubscriber "
        "SingleClusterTopicMetadataService StreamPatternSubscriber",
        "file_system": "BucketAssigner FileEnumeratorProvider FileSink FileSource FileSourceBuilder "
        "FileSplitAssignerProvider OutputFileConfig RollingPolicy StreamFormat StreamingFileSink",
        "jdbc": "JdbcConnectionOptions JdbcExecutionOptions JdbcSink",
        "kafka": "FlinkKafkaConsumer FlinkKafkaProducer KafkaSource Semantic",
        "number_seq": "NumberSequenceSource",
        "pulsar": "PulsarSource PulsarSourceBuilder StartCursor StopCursor",
        "rabbitmq": "RMQConnectionConfig RMQSink RMQSource",
    }.items()
    for name in names.split()
}

__all__ = ["DeliveryGuarantee", "Sink", "Source"]

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
