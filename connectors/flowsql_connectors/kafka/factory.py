"""Factories of ``kafka`` and ``upsert-kafka`` tables: options of connector, formats and client library together."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from flowsql_connectors.kafka.options import (
    BOUNDED_MODE,
    BOUNDED_OFFSETS,
    BOUNDED_TIMESTAMP,
    FLUSH_INTERVAL_MS,
    FLUSH_ROWS,
    GROUP_ID,
    GUARANTEE,
    KAFKA,
    KEY_FIELDS,
    PARTITIONER,
    STARTUP_MODE,
    STARTUP_OFFSETS,
    STARTUP_TIMESTAMP,
    TOPIC,
    TOPIC_PATTERN,
    TRANSACTION_PREFIX,
    UPSERT_KAFKA,
    with_properties,
)
from flowsql_connectors.kafka.properties import given_properties, reset_policy
from flowsql_connectors.kafka.record_format import RecordFormat, format_options, record_format
from flowsql_connectors.options import ConnectorOption, OptionSet, OptionValues
from flowsql_connectors.spi.sink import SinkFactory, TableSink
from flowsql_connectors.spi.source import SourceFactory, TableSource
from flowsql_core.errors import BindError
from flowsql_core.graph.specs import ScanSpec, SinkSpec, TableSpec
from flowsql_core.types.logical import LogicalType

#: By mode: the option that it needs.
_STARTUP: Final[dict[str, ConnectorOption[Any]]] = {
    "timestamp": STARTUP_TIMESTAMP,
    "specific-offsets": STARTUP_OFFSETS,
    "group-offsets": GROUP_ID,
}
_BOUNDED: Final[dict[str, ConnectorOption[Any]]] = {
    "timestamp": BOUNDED_TIMESTAMP,
    "specific-offsets": BOUNDED_OFFSETS,
    "group-offsets": GROUP_ID,
}


def kafka_options(table: TableSpec) -> OptionSet:
    """Those of ``kafka``, of the table's formats, and its properties."""
    return with_properties(KAFKA, table).merged(format_options(table))


def upsert_options(table: TableSpec) -> OptionSet:
    """Those of ``upsert-kafka``, of the table's formats, and its properties."""
    return with_properties(UPSERT_KAFKA, table).merged(format_options(table))


class KafkaSourceFactory(SourceFactory):
    """Makes scans of topics."""

    identifier = "kafka"

    def options(self, table: TableSpec) -> OptionSet:
        """The connector's options, those of the table's formats, and its properties."""
        return kafka_options(table)

    def create_source(self, scan: ScanSpec, configuration: Mapping[str, str]) -> TableSource:
        """A scan; brokers are asked when it is enumerated."""
        from flowsql_connectors.kafka.source import TopicSource

        values = self.options(scan.table).check(scan.table)
        topics = topics_of(values)
        check_boundary(values, topics, STARTUP_MODE, _STARTUP)
        if values.get(STARTUP_MODE) == "group-offsets":
            reset_policy(given_properties(scan.table))
        check_boundary(values, topics, BOUNDED_MODE, _BOUNDED)
        records = kafka_records(values, scan.table)
        records.check(configuration)
        return TopicSource(scan, values, records, topics, upserts=False)

    def with_referenced(self, table: TableSpec, referenced: TableSpec) -> TableSpec:
        """The table with the topic or folder of its dead-letter table as an option instead of that table's name."""
        from flowsql_connectors.kafka.bad_records import with_letter_table

        return with_letter_table(table, referenced)


class UpsertKafkaSourceFactory(SourceFactory):
    """Makes scans of topics that hold the newest rows of keys."""

    identifier = "upsert-kafka"

    def options(self, table: TableSpec) -> OptionSet:
        """The connector's options, those of the table's formats, and its properties."""
        return upsert_options(table)

    def create_source(self, scan: ScanSpec, configuration: Mapping[str, str]) -> TableSource:
        """A scan from the first record on."""
        from flowsql_connectors.kafka.source import TopicSource

        values = self.options(scan.table).check(scan.table)
        topics = topics_of(values)
        check_boundary(values, topics, BOUNDED_MODE, _BOUNDED)
        records = upsert_records(values, scan.table)
        records.check(configuration)
        return TopicSource(scan, values, records, topics, upserts=True)

    def with_referenced(self, table: TableSpec, referenced: TableSpec) -> TableSpec:
        """The table with the topic or folder of its dead-letter table as an option instead of that table's name."""
        from flowsql_connectors.kafka.bad_records import with_letter_table

        return with_letter_table(table, referenced)


class KafkaSinkFactory(SinkFactory):
    """Makes sinks into topics."""

    identifier = "kafka"

    def options(self, table: TableSpec) -> OptionSet:
        """The connector's options, those of the table's formats, and its properties."""
        return kafka_options(table)

    def writable_metadata(self, table: TableSpec) -> Mapping[str, LogicalType]:
        """Headers and timestamp of records, and the topic where there are several."""
        return _writable(table)

    def create_sink(self, sink: SinkSpec, configuration: Mapping[str, str]) -> TableSink:
        """A sink; brokers are asked when it writes."""
        from flowsql_connectors.kafka.sink import TopicSink

        values = self.options(sink.table).check(sink.table)
        records = kafka_records(values, sink.table)
        if values.get(PARTITIONER) == "round-robin" and values.has(KEY_FIELDS):
            raise BindError(
                "invalid-option-value",
                "Currently 'round-robin' partitioner only works when option 'key.fields' is not specified.",
            )
        _check_guarantee(values)
        records.check(configuration)
        return TopicSink(sink, values, records, sink_topics(values, sink), upserts=False)


class UpsertKafkaSinkFactory(SinkFactory):
    """Makes sinks into topics that hold the newest rows of keys."""

    identifier = "upsert-kafka"

    def options(self, table: TableSpec) -> OptionSet:
        """The connector's options, those of the table's formats, and its properties."""
        return upsert_options(table)

    def writable_metadata(self, table: TableSpec) -> Mapping[str, LogicalType]:
        """Headers and timestamp of records, and the topic where there are several."""
        return _writable(table)

    def create_sink(self, sink: SinkSpec, configuration: Mapping[str, str]) -> TableSink:
        """A sink; brokers are asked when it writes."""
        from flowsql_connectors.kafka.sink import TopicSink

        values = self.options(sink.table).check(sink.table)
        records = upsert_records(values, sink.table)
        if (values.get(FLUSH_ROWS) > 0) != (values.get(FLUSH_INTERVAL_MS) > 0):
            raise BindError(
                "invalid-option-value",
                f"'{FLUSH_ROWS.key}' and '{FLUSH_INTERVAL_MS.key}' must be set to be greater than zero together to "
                "enable sink buffer flushing.",
            )
        _check_guarantee(values)
        records.check(configuration)
        return TopicSink(sink, values, records, sink_topics(values, sink), upserts=True)


def _writable(table: TableSpec) -> Mapping[str, LogicalType]:
    from flowsql_connectors.kafka.encode import WRITABLE

    named = table.option(TOPIC.key)
    if named is None or len(TOPIC.read(named) or ()) != 1:
        return WRITABLE
    return {key: type_ for key, type_ in WRITABLE.items() if key != "topic"}


def kafka_records(values: OptionValues, table: TableSpec) -> RecordFormat:
    """The formats of a ``kafka`` table.

    Raises:
        BindError: it has a primary key that its records say nothing of, or keys that are changes.
    """
    records = record_format(values, table, keyed=False)
    if records.key_format is not None and not records.key_format.changelog_mode.insert_only:
        raise BindError(
            "invalid-option-value",
            f"A key format should only deal with INSERT-only records. But {records.key_format.identifier} has a "
            "changelog mode of its own.",
        )
    if table.primary_key and records.value_format.changelog_mode.insert_only:
        raise BindError(
            "primary-key",
            f"The Kafka table '{table.name}' with '{records.value_format.identifier}' format doesn't support defining "
            "PRIMARY KEY constraint on the table, because it can't guarantee the semantic of primary key.",
            hint="'connector' = 'upsert-kafka' keeps the newest row of each key",
        )
    return records


def upsert_records(values: OptionValues, table: TableSpec) -> RecordFormat:
    """The formats of an ``upsert-kafka`` table.

    Raises:
        BindError: it has no primary key, or a format tells changes by itself.
    """
    if not table.primary_key:
        raise BindError(
            "primary-key",
            "'upsert-kafka' tables require to define a PRIMARY KEY constraint. The PRIMARY KEY specifies which columns "
            "should be read from or write to the Kafka message key. The PRIMARY KEY also defines records in the "
            "'upsert-kafka' table should update or delete on which keys.",
            hint="declare PRIMARY KEY (...) NOT ENFORCED",
        )
    records = record_format(values, table, keyed=True)
    for part, made in (("key", records.key_format), ("value", records.value_format)):
        if made is not None and not made.changelog_mode.insert_only:
            raise BindError(
                "invalid-option-value",
                f"'upsert-kafka' connector doesn't support '{made.identifier}' as {part} format, because "
                f"'{made.identifier}' is not in insert-only mode.",
            )
    return records


def topics_of(values: OptionValues) -> tuple[str, ...] | re.Pattern[str]:
    """The topics of a table.

    Raises:
        BindError: none, or named in two ways.
    """
    names, pattern = values.get(TOPIC), values.get(TOPIC_PATTERN)
    if names is not None and pattern is not None:
        raise BindError("invalid-option-value", "Option 'topic' and 'topic-pattern' shouldn't be set together.")
    if names is not None:
        return names
    if pattern is not None:
        return pattern
    raise BindError("missing-option", "Either 'topic' or 'topic-pattern' must be set.")


def sink_topics(values: OptionValues, sink: SinkSpec) -> tuple[str, ...] | re.Pattern[str]:
    """The topics that rows are written to.

    Raises:
        BindError: rows do not tell which of several.
    """
    topics = topics_of(values)
    if (isinstance(topics, re.Pattern) or len(topics) > 1) and "topic" not in sink.metadata:
        given = TOPIC_PATTERN if isinstance(topics, re.Pattern) else TOPIC
        raise BindError(
            "invalid-option-value",
            f"'{given.key}' names several topics, and rows do not tell which of them they go to.",
            hint="declare a column STRING METADATA FROM 'topic', or name one topic",
        )
    return topics


def _check_guarantee(values: OptionValues) -> None:
    if values.get(GUARANTEE) == "exactly-once" and not values.get(TRANSACTION_PREFIX):
        raise BindError(
            "missing-option",
            f"{TRANSACTION_PREFIX.key} must be specified when using DeliveryGuarantee.EXACTLY_ONCE.",
        )


def check_boundary(
    values: OptionValues,
    topics: tuple[str, ...] | re.Pattern[str],
    mode: ConnectorOption[str],
    needs: Mapping[str, ConnectorOption[Any]],
) -> None:
    """Refuse modes without what they need."""
    chosen = values.get(mode)
    word = mode.key.split(".")[1]
    needed = needs.get(chosen)
    if needed is not None and not values.has(needed):
        default = "" if values.has(mode) else " That mode is the default: '" + mode.key + "' names others."
        raise BindError("missing-option", f"'{needed.key}' is required in '{chosen}' {word} mode but missing.{default}")
    if chosen == "specific-offsets" and (isinstance(topics, re.Pattern) or len(topics) != 1):
        raise BindError(
            "invalid-option-value", "Currently Kafka source only supports specific offset for single topic."
        )
