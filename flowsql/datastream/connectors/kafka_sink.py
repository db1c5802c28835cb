"""``KafkaSink``: values of a stream as records of a topic, written as a ``kafka`` table writes them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Self

import pyarrow as pa

from flowsql.common.public_api import public_api
from flowsql.common.serialization import MessageForm, SerializationSchema
from flowsql.common.typeinfo import TypeInformation
from flowsql.datastream.bridges.columns import column_maker
from flowsql.datastream.bridges.tables import time_column
from flowsql.datastream.connectors.base import (
    DeliveryGuarantee,
    Sink,
    StreamTransformer,
    SupportsPreprocessing,
)
from flowsql.datastream.plan.operators import BatchMap
from flowsql_core.batch import ChangelogBatch
from flowsql_core.catalog import ANONYMOUS
from flowsql_core.graph.specs import SinkSpec, TableSpec
from flowsql_core.graph.stream_specs import VALUE
from flowsql_core.row import INSERT_ONLY
from flowsql_core.types.arrow import to_arrow
from flowsql_core.types.logical import STRING, Column, Schema, TimestampLtzType

#: Before the names of the columns that a key is made of.
_KEY_PREFIX: Final = "key_"
_TIME: Final = Column("timestamp", TimestampLtzType(precision=3))
_TOPIC: Final = Column("topic", STRING)
_GUARANTEES: Final = {
    DeliveryGuarantee.EXACTLY_ONCE: "exactly-once",
    DeliveryGuarantee.AT_LEAST_ONCE: "at-least-once",
    DeliveryGuarantee.NONE: "none",
}


class KafkaTopicSelector(ABC):
    """Says to which topic the record of a value goes."""

    @abstractmethod
    def apply(self, data: Any) -> str:
        """The topic of a value."""


class _ByFunction(KafkaTopicSelector):
    def __init__(self, function: Callable[[Any], str]) -> None:
        self._function = function

    def apply(self, data: Any) -> str:
        return self._function(data)


@dataclass(frozen=True, slots=True)
class KafkaRecordSerializationSchema:
    """What a record is made of. Made by :meth:`builder`."""

    #: None: the selector says it.
    topic: str | None
    key: MessageForm | None
    value: MessageForm
    selector: KafkaTopicSelector | None = None

    @staticmethod
    def builder() -> KafkaRecordSerializationSchemaBuilder:
        """Begin a schema."""
        return KafkaRecordSerializationSchemaBuilder()


@public_api
class KafkaRecordSerializationSchemaBuilder:
    """Makes a :class:`KafkaRecordSerializationSchema`. A topic and the schema of values are needed."""

    def __init__(self) -> None:
        self._topic: str | None = None
        self._selector: KafkaTopicSelector | None = None
        self._key: MessageForm | None = None
        self._value: MessageForm | None = None

    def set_topic(self, topic: str) -> Self:
        """The topic of all records.

        Raises:
            TypeError: it was said before.
        """
        self._check_unset()
        self._topic = topic
        return self

    def set_topic_selector(self, topic_selector: KafkaTopicSelector | Callable[[Any], str]) -> Self:
        """What says the topic of each value: a selector, or a function of the value.

        Raises:
            TypeError: it is neither, or a topic was said before.
        """
        if not isinstance(topic_selector, KafkaTopicSelector):
            if not callable(topic_selector):
                raise TypeError("topic_selector must be KafkaTopicSelector or a callable")
            topic_selector = _ByFunction(topic_selector)
        self._check_unset()
        self._selector = topic_selector
        return self

    def _check_unset(self) -> None:
        if self._topic is not None or self._selector is not None:
            raise TypeError("Topic selector already set.")

    def set_key_serialization_schema(self, key_serialization_schema: SerializationSchema) -> Self:
        """How the key of a value is made; by default records have none."""
        self._key = _form(key_serialization_schema)
        return self

    def set_value_serialization_schema(self, value_serialization_schema: SerializationSchema) -> Self:
        """How values are written."""
        self._value = _form(value_serialization_schema)
        return self

    def build(self) -> KafkaRecordSerializationSchema:
        """The schema.

        Raises:
            TypeError: something is missing.
        """
        if self._topic is None and self._selector is None:
            raise TypeError("set_topic(...) or set_topic_selector(...) is missing")
        if self._value is None:
            raise TypeError("set_value_serialization_schema(...) is missing")
        return KafkaRecordSerializationSchema(self._topic, self._key, self._value, self._selector)


class KafkaSink(Sink, SupportsPreprocessing):
    """Records of a topic, or of those that values choose, with the values' timestamps. Made by :meth:`builder`."""

    def __init__(self, options: Mapping[str, str], records: KafkaRecordSerializationSchema) -> None:
        self._options = options
        self._records = records

    @staticmethod
    def builder() -> KafkaSinkBuilder:
        """Begin a sink."""
        return KafkaSinkBuilder()

    def get_transformer(self) -> StreamTransformer | None:
        """None: the sink itself makes keys and values."""
        return None

    def columns_of_values(self, type_: TypeInformation) -> BatchMap:
        """The columns of the key, those of the value, the timestamp, the topic where values choose it."""
        makers = [_maker(form, columns) for form, columns in self._parts()]
        return _columns(makers, self._records.selector)

    def spec(self) -> SinkSpec:
        """The writing operator."""
        records = self._records
        options = {
            "connector": "kafka",
            **({"topic-pattern": ".*"} if records.topic is None else {"topic": records.topic}),
            **self._options,
            **records.value.table_options("value"),
        }
        if records.key is not None:
            keys = ";".join(_KEY_PREFIX + column.name for column in records.key.columns)
            options |= {
                **records.key.table_options("key"),
                "key.fields": keys,
                "key.fields-prefix": _KEY_PREFIX,
                "value.fields-include": "EXCEPT_KEY",
            }
        columns = tuple(column for _, part in self._parts() for column in part)
        table = TableSpec((ANONYMOUS, "", "KafkaSink"), columns, tuple(options.items()))
        told = (_TIME,) if records.selector is None else (_TIME, _TOPIC)
        return SinkSpec(table, (*columns, *told), INSERT_ONLY, metadata=tuple(column.name for column in told))

    def _parts(self) -> list[tuple[MessageForm, Schema]]:
        """Of key and value the form, and the columns of the table."""
        key, value = self._records.key, self._records.value
        parts = [(value, value.columns)]
        if key is not None:
            parts.insert(0, (key, tuple(Column(_KEY_PREFIX + one.name, one.type) for one in key.columns)))
        return parts


@public_api
class KafkaSinkBuilder:
    """Makes a :class:`KafkaSink`. Servers and a record serializer are needed."""

    def __init__(self) -> None:
        self._options: dict[str, str] = {"sink.delivery-guarantee": _GUARANTEES[DeliveryGuarantee.NONE]}
        self._records: KafkaRecordSerializationSchema | None = None

    def set_bootstrap_servers(self, bootstrap_servers: str) -> Self:
        """``host:port``, with commas between."""
        return self.set_property("bootstrap.servers", bootstrap_servers)

    def set_delivery_guarantee(self, delivery_guarantee: DeliveryGuarantee) -> Self:
        """What the sink promises; by default nothing."""
        return self._set("sink.delivery-guarantee", _GUARANTEES[delivery_guarantee])

    def set_transactional_id_prefix(self, transactional_id_prefix: str) -> Self:
        """Needed for EXACTLY_ONCE; no other sink that runs may have the same."""
        return self._set("sink.transactional-id-prefix", transactional_id_prefix)

    def set_record_serializer(self, record_serializer: KafkaRecordSerializationSchema) -> Self:
        """What records are made of."""
        if not isinstance(record_serializer, KafkaRecordSerializationSchema):
            raise TypeError(f"{record_serializer!r} is not a KafkaRecordSerializationSchema")
        self._records = record_serializer
        return self

    def set_property(self, key: str, value: str) -> Self:
        """A property of the client, as tables have them under ``properties.``."""
        return self._set(f"properties.{key}", value)

    def _set(self, key: str, text: str) -> Self:
        self._options[key] = str(text)
        return self

    def build(self) -> KafkaSink:
        """The sink.

        Raises:
            TypeError: something is missing.
        """
        if "properties.bootstrap.servers" not in self._options:
            raise TypeError("set_bootstrap_servers(...) is missing")
        if self._records is None:
            raise TypeError("set_record_serializer(...) is missing")
        exactly_once = self._options["sink.delivery-guarantee"] == _GUARANTEES[DeliveryGuarantee.EXACTLY_ONCE]
        if exactly_once and "sink.transactional-id-prefix" not in self._options:
            raise TypeError("EXACTLY_ONCE delivery guarantee requires a transactionalIdPrefix to be set to provide "
                            "unique transaction names across multiple KafkaSinks")  # fmt: skip
        return KafkaSink(dict(self._options), self._records)


def _form(given: object) -> MessageForm:
    if not isinstance(given, SerializationSchema):
        raise TypeError(f"{given!r} is not a SerializationSchema")
    return given.written_form()


#: Makes columns of values.
_Maker = Callable[[list[Any]], list[Any]]


def _maker(form: MessageForm, columns: Schema) -> _Maker:
    """Makes the columns of a key or a value.

    Raises (when called):
        TypeError: a value is no row with as many fields.
    """
    makers = [column_maker(column) for column in columns]
    if not form.is_row:
        convert, (make,) = form.convert, makers
        return lambda values: [make(values if convert is None else list(map(convert, values)))]

    def of_rows(values: list[Any]) -> list[Any]:
        wrong = next((value for value in values if not _has_fields(value, len(columns))), None)
        if wrong is not None:
            raise TypeError(f"A value is no row of {len(columns)} fields: {wrong!r}")
        return [make([value[place] for value in values]) for place, make in enumerate(makers)]

    return of_rows


def _has_fields(value: Any, count: int) -> bool:
    return not isinstance(value, str | bytes) and hasattr(value, "__len__") and len(value) == count


def _columns(makers: Sequence[_Maker], selector: KafkaTopicSelector | None) -> BatchMap:
    target = to_arrow(_TIME.type)

    def convert(batch: ChangelogBatch) -> ChangelogBatch:
        values = batch.columns[VALUE].values.tolist()
        made = [column for make in makers for column in make(values)]
        made.append(time_column(batch, target, "UTC"))
        if selector is not None:
            made.append(_topics(selector, values))
        return ChangelogBatch(tuple(made), batch.num_rows, None, None, batch.track)

    return convert


def _topics(selector: KafkaTopicSelector, values: list[Any]) -> Any:
    """The topic of each value.

    Raises:
        TypeError: the selector gives none, or no text.
    """
    topics = [selector.apply(value) for value in values]
    for topic, value in zip(topics, values, strict=True):
        if not isinstance(topic, str):
            raise TypeError(f"The topic selector gives {topic!r} for {value!r}, and a topic is a text")
    return pa.array(topics, pa.string())
