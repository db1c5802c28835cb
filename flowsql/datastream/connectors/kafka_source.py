"""``KafkaSource``: the records of topics, read as a ``kafka`` table reads them, with the records' timestamps."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NoReturn, Self

from flowsql.common.public_api import public_api
from flowsql.common.serialization import DeserializationSchema, MessageForm
from flowsql.common.typeinfo import TypeInformation
from flowsql.datastream.bridges.columns import column_values, epoch_ms, objects
from flowsql.datastream.bridges.tables import RowForm, rows_of
from flowsql.datastream.connectors.base import Source
from flowsql.datastream.plan.operators import BatchMap, table_scan
from flowsql.datastream.plan.transformations import SpecMaker
from flowsql_core.batch import ChangelogBatch, RowTimes
from flowsql_core.catalog import ANONYMOUS
from flowsql_core.errors import NotSupportedYetError
from flowsql_core.graph.specs import ScanSpec, TableSpec
from flowsql_core.types.logical import Column, TimestampLtzType

Options = Mapping[str, str]

#: The metadata column of the records' timestamps; no field of a value is called so.
_TIME: Final = Column("$timestamp", TimestampLtzType(precision=3, nullable=False))
_TIME_KEY: Final = "timestamp"
#: A property of Flink's source, milliseconds, that is an option of tables.
_DISCOVERY: Final = "partition.discovery.interval.ms"


@dataclass(frozen=True, slots=True)
class KafkaTopicPartition:
    """A partition of a topic."""

    topic: str
    partition: int


class KafkaOffsetResetStrategy(enum.Enum):
    """Where reading begins in a partition without the offset that was asked for."""

    LATEST = 0
    EARLIEST = 1
    NONE = 2


@public_api
class KafkaOffsetsInitializer:
    """Where reading begins, or ends, in each partition. Made by its static methods.

    ``mode``: as ``scan.startup.mode`` calls it; ``options``: what belongs to it, by the end of an option's name.
    """

    def __init__(
        self, mode: str, options: Options | None = None, reset: KafkaOffsetResetStrategy | None = None
    ) -> None:
        self.mode = mode
        self.options = options or {}
        self.reset = reset

    @staticmethod
    def earliest() -> KafkaOffsetsInitializer:
        """At the first record that is there."""
        return KafkaOffsetsInitializer("earliest-offset")

    @staticmethod
    def latest() -> KafkaOffsetsInitializer:
        """Behind the last record that is there when the job starts."""
        return KafkaOffsetsInitializer("latest-offset")

    @staticmethod
    def timestamp(timestamp: int) -> KafkaOffsetsInitializer:
        """At the first record that is not before a time, epoch milliseconds."""
        return KafkaOffsetsInitializer("timestamp", {"timestamp-millis": str(timestamp)})

    @staticmethod
    def committed_offsets(
        offset_reset_strategy: KafkaOffsetResetStrategy = KafkaOffsetResetStrategy.NONE,
    ) -> KafkaOffsetsInitializer:
        """Where the group stands; a partition in which it has committed nothing by the strategy, NONE fails."""
        return KafkaOffsetsInitializer("group-offsets", reset=offset_reset_strategy)

    @staticmethod
    def offsets(
        offsets: Mapping[KafkaTopicPartition, int],
        offset_reset_strategy: KafkaOffsetResetStrategy = KafkaOffsetResetStrategy.EARLIEST,
    ) -> KafkaOffsetsInitializer:
        """At these offsets; in other partitions at the first record.

        Raises:
            NotSupportedYetError: partitions of several topics, or another strategy.
        """
        if len({partition.topic for partition in offsets}) != 1:
            raise NotSupportedYetError("offsets in several topics", hint="a KafkaSource for each topic, and union")
        if offset_reset_strategy is not KafkaOffsetResetStrategy.EARLIEST:
            raise NotSupportedYetError(
                f"offsets with the strategy {offset_reset_strategy.name}", hint="KafkaOffsetResetStrategy.EARLIEST"
            )
        told = ";".join(f"partition:{one.partition},offset:{offset}" for one, offset in offsets.items())
        return KafkaOffsetsInitializer("specific-offsets", {"specific-offsets": told})


class KafkaSource(Source):
    """The values of records. Made by :meth:`builder`.

    Partitions are splits, each with a watermark of its own. Timestamps are those of the records.
    """

    parallel = True

    def __init__(self, options: Options, form: MessageForm, bounded: bool) -> None:
        self._form = form
        self._table = TableSpec((ANONYMOUS, "", "KafkaSource"), form.columns, tuple(options.items()))
        self.bounded = bounded

    @staticmethod
    def builder() -> KafkaSourceBuilder:
        """Begin a source."""
        return KafkaSourceBuilder()

    def produced_type(self) -> TypeInformation:
        """What the schema makes."""
        return self._form.type

    def spec_maker(self) -> SpecMaker:
        """A scan of the table."""
        columns = self._table.columns
        return table_scan(ScanSpec(self._table, tuple(range(len(columns))), (*columns, _TIME), (_TIME_KEY,)))

    def values_of_columns(self) -> BatchMap:
        """A value of each record."""
        return _values(self._form)


@public_api
class KafkaSourceBuilder:
    """Makes a :class:`KafkaSource`. Servers, topics and a schema are needed."""

    def __init__(self) -> None:
        self._options: dict[str, str] = {}
        self._begins = KafkaOffsetsInitializer.earliest()
        self._ends: KafkaOffsetsInitializer | None = None
        self._bounded = False
        self._form: MessageForm | None = None

    def set_bootstrap_servers(self, bootstrap_servers: str) -> Self:
        """``host:port``, with commas between."""
        return self.set_property("bootstrap.servers", bootstrap_servers)

    def set_group_id(self, group_id: str) -> Self:
        """The group under which positions are committed with checkpoints."""
        return self.set_property("group.id", group_id)

    def set_topics(self, *topics: str) -> Self:
        """Names of topics."""
        return self._set("topic", ";".join(topics))

    def set_topic_pattern(self, topic_pattern: str) -> Self:
        """A regular expression that names of topics match as a whole."""
        return self._set("topic-pattern", topic_pattern)

    def set_partitions(self, partitions: object) -> NoReturn:
        """Refused."""
        raise NotSupportedYetError("sources of single partitions", hint="set_topics reads all partitions")

    def set_starting_offsets(self, starting_offsets_initializer: KafkaOffsetsInitializer) -> Self:
        """Where reading begins; by default at the first record."""
        self._begins = _offsets(starting_offsets_initializer)
        return self

    def set_unbounded(self, stopping_offsets_initializer: KafkaOffsetsInitializer) -> Self:
        """Where reading ends; the source still counts as one without end: batch mode does not take it."""
        self._ends, self._bounded = _offsets(stopping_offsets_initializer), False
        return self

    def set_bounded(self, stopping_offsets_initializer: KafkaOffsetsInitializer) -> Self:
        """Where reading ends."""
        self._ends, self._bounded = _offsets(stopping_offsets_initializer), True
        return self

    def set_value_only_deserializer(self, deserialization_schema: DeserializationSchema) -> Self:
        """How values are read: ``SimpleStringSchema``, rows of json or csv, or a class with ``deserialize``."""
        if not isinstance(deserialization_schema, DeserializationSchema):
            raise TypeError(f"{deserialization_schema!r} is not a DeserializationSchema")
        self._form = deserialization_schema.read_form()
        return self

    def set_client_id_prefix(self, prefix: str) -> Self:
        """How the client names itself to the brokers."""
        return self.set_property("client.id", prefix)

    def set_property(self, key: str, value: str) -> Self:
        """A property of the client or of the source, as tables have them under ``properties.``."""
        if key == _DISCOVERY:
            return self._set("scan.topic-partition-discovery.interval", f"{max(0, int(value))} ms")
        return self._set(f"properties.{key}", value)

    def set_properties(self, props: Mapping[str, str]) -> Self:
        """Several properties."""
        for key, value in props.items():
            self.set_property(key, value)
        return self

    def _set(self, key: str, text: str) -> Self:
        self._options[key] = str(text)
        return self

    def build(self) -> KafkaSource:
        """The source.

        Raises:
            TypeError: something is missing.
        """
        if "properties.bootstrap.servers" not in self._options:
            raise TypeError("set_bootstrap_servers(...) is missing")
        if not self._options.keys() & {"topic", "topic-pattern"}:
            raise TypeError("set_topics(...) or set_topic_pattern(...) is missing")
        if self._form is None:
            raise TypeError("set_value_only_deserializer(...) is missing")
        options = {"connector": "kafka", **self._options, **self._form.table_options("value")}
        for place, at in (("startup", self._begins), ("bounded", self._ends)):
            if at is not None:
                options[f"scan.{place}.mode"] = at.mode
                options.update({f"scan.{place}.{key}": text for key, text in at.options.items()})
        if self._begins.reset not in (None, KafkaOffsetResetStrategy.NONE):
            options["properties.auto.offset.reset"] = self._begins.reset.name.lower()
        return KafkaSource(options, self._form, self._bounded)


def _offsets(given: object) -> KafkaOffsetsInitializer:
    if not isinstance(given, KafkaOffsetsInitializer):
        raise TypeError(f"{given!r} is not a KafkaOffsetsInitializer")
    return given


def _values(form: MessageForm) -> BatchMap:
    """Rows, or the values of the only column: None for a record without a value."""
    if form.is_row:
        return rows_of((*form.columns, _TIME), RowForm(time=_TIME.name))
    (column,) = form.columns

    def convert(batch: ChangelogBatch) -> ChangelogBatch:
        values = column_values(batch.columns[0], column.type)
        if form.convert is not None:
            values = list(map(form.convert, values))
        times = RowTimes(*epoch_ms(batch.columns[1]))
        return ChangelogBatch((objects(values),), batch.num_rows, None, times, batch.track)

    return convert
