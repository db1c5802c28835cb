"""Options of the ``kafka`` and ``upsert-kafka`` connectors, under Flink's names."""

from __future__ import annotations

import re
from typing import Any, Final

from flowsql_connectors.bad_row_options import DEAD_LETTER_PATH, DEAD_LETTER_TABLE, ON_ERROR
from flowsql_connectors.options import (
    SCAN_PARALLELISM,
    SINK_PARALLELISM,
    ConnectorOption,
    OptionSet,
    optional,
    parse_choice,
    parse_natural,
)
from flowsql_connectors.watermark_options import WATERMARK_OPTIONS
from flowsql_core.config import parse_duration_ms
from flowsql_core.graph.specs import TableSpec

#: Options that go to the client library.
PROPERTIES: Final = "properties."


def _pattern(text: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except re.error as error:
        raise ValueError(f"expected a regular expression: {error}") from error


def _topics(text: str) -> tuple[str, ...]:
    topics = tuple(topic.strip() for topic in text.split(";") if topic.strip())
    if not topics:
        raise ValueError("expected names of topics, separated by ';'")
    return topics


def _offsets(key: str) -> Any:
    """A parser of ``partition:0,offset:42;partition:1,offset:300``."""

    def parse(text: str) -> dict[int, int]:
        offsets: dict[int, int] = {}
        for pair in filter(None, text.split(";")):
            found = re.fullmatch(r"partition:([^,]+),offset:([^,]+)", pair)
            if found is None:
                raise ValueError(
                    f"Invalid properties '{key}' should follow the format "
                    f"'partition:0,offset:42;partition:1,offset:300', but is '{text}'."
                )
            offsets[parse_natural(found[1])] = parse_natural(found[2])
        return offsets

    return parse


TOPIC: ConnectorOption[tuple[str, ...] | None] = ConnectorOption(
    "topic", optional(_topics), None, "Topics, separated by ';'."
)
TOPIC_PATTERN: ConnectorOption[re.Pattern[str] | None] = ConnectorOption(
    "topic-pattern", optional(_pattern), None, "All topics whose name matches as a whole."
)
SERVERS: ConnectorOption[str] = ConnectorOption(
    "properties.bootstrap.servers", str, "", "Brokers as host:port, separated by commas."
)
GROUP_ID: ConnectorOption[str | None] = ConnectorOption(
    "properties.group.id", optional(str), None, "Group under which offsets are committed."
)
FORMAT: ConnectorOption[str | None] = ConnectorOption("format", optional(str), None, "Format of the values.")
VALUE_FORMAT: ConnectorOption[str | None] = ConnectorOption(
    "value.format", optional(str), None, "Format of the values; its options begin with 'value.'."
)
KEY_FORMAT: ConnectorOption[str | None] = ConnectorOption("key.format", optional(str), None, "Format of the keys.")
KEY_FIELDS: ConnectorOption[tuple[str, ...]] = ConnectorOption(
    "key.fields",
    lambda text: tuple(name.strip() for name in text.split(";") if name.strip()),
    (),
    "Columns of the key, separated by ';'.",
)
KEY_PREFIX: ConnectorOption[str] = ConnectorOption(
    "key.fields-prefix", str, "", "What the names of key columns begin with in the table, but not in the key."
)
FIELDS_INCLUDE = ConnectorOption(
    "value.fields-include", parse_choice("ALL", "EXCEPT_KEY"), "ALL", "Whether values hold the columns of the key, too."
)

STARTUP_MODE = ConnectorOption(
    "scan.startup.mode",
    parse_choice("earliest-offset", "latest-offset", "group-offsets", "timestamp", "specific-offsets"),
    "group-offsets",
    "Where a job begins that is not restored.",
)
STARTUP_OFFSETS: ConnectorOption[dict[int, int] | None] = ConnectorOption(
    "scan.startup.specific-offsets", _offsets("scan.startup.specific-offsets"), None, "Offsets by partition."
)
STARTUP_TIMESTAMP: ConnectorOption[int | None] = ConnectorOption(
    "scan.startup.timestamp-millis", optional(parse_natural), None, "Milliseconds since 1970."
)
BOUNDED_MODE = ConnectorOption(
    "scan.bounded.mode",
    parse_choice("unbounded", "latest-offset", "group-offsets", "timestamp", "specific-offsets"),
    "unbounded",
    "Where the input ends.",
)
BOUNDED_OFFSETS: ConnectorOption[dict[int, int] | None] = ConnectorOption(
    "scan.bounded.specific-offsets", _offsets("scan.bounded.specific-offsets"), None, "Offsets by partition."
)
BOUNDED_TIMESTAMP: ConnectorOption[int | None] = ConnectorOption(
    "scan.bounded.timestamp-millis", optional(parse_natural), None, "Milliseconds since 1970."
)
DISCOVERY_MS = ConnectorOption(
    "scan.topic-partition-discovery.interval",
    parse_duration_ms,
    300_000,
    "How often to look for new topics and partitions; 0: never.",
)

DEAD_LETTER_TOPIC: ConnectorOption[str | None] = ConnectorOption(
    "on-error.dead-letter.topic", optional(str), None, "FlowSQL: topic of the records that could not be read."
)


def _partitioner(text: str) -> str:
    """One of Flink's three words, which stand in lower case there."""
    if text not in ("default", "fixed", "round-robin"):
        raise ValueError(
            f"'{text}' would be a Java class in Flink (ClassNotFoundException here). Supported values are [default, "
            "fixed, round-robin]."
        )
    return text


PARTITIONER = ConnectorOption(
    "sink.partitioner",
    _partitioner,
    "default",
    "Which partition a row goes to: by its key as Kafka's own clients do, one for each subtask, or all in turn.",
)
GUARANTEE = ConnectorOption(
    "sink.delivery-guarantee",
    parse_choice("none", "at-least-once", "exactly-once"),
    "at-least-once",
    "What a failure may do to rows that were written.",
)
TRANSACTION_PREFIX: ConnectorOption[str | None] = ConnectorOption(
    "sink.transactional-id-prefix", optional(str), None, "Name of the sink's transactions, which no other sink has."
)
TRANSACTION_NAMING = ConnectorOption(
    "sink.transaction-naming-strategy",
    parse_choice("INCREMENTING", "POOLING"),
    "INCREMENTING",
    "How Flink names transactions; FlowSQL's have one name either way, the prefix.",
)
FLUSH_ROWS: ConnectorOption[int] = ConnectorOption(
    "sink.buffer-flush.max-rows", parse_natural, 0, "Keys' newest rows are held back until there are so many rows."
)
FLUSH_INTERVAL_MS: ConnectorOption[int] = ConnectorOption(
    "sink.buffer-flush.interval", parse_duration_ms, 0, "Rows are held back no longer than this."
)

_SCAN: Final = (
    BOUNDED_MODE,
    BOUNDED_OFFSETS,
    BOUNDED_TIMESTAMP,
    DISCOVERY_MS,
    SCAN_PARALLELISM,
    *WATERMARK_OPTIONS,
    ON_ERROR,
    DEAD_LETTER_PATH,
    DEAD_LETTER_TABLE,
    DEAD_LETTER_TOPIC,
)
_FORMATS: Final = (KEY_FORMAT, KEY_PREFIX, VALUE_FORMAT, FIELDS_INCLUDE)
_TOPICS: Final = (TOPIC, TOPIC_PATTERN)
_SINK: Final = (SINK_PARALLELISM, GUARANTEE, TRANSACTION_PREFIX, TRANSACTION_NAMING)

KAFKA: Final = OptionSet(
    required=(SERVERS,),
    optional=(
        *_TOPICS,
        FORMAT,
        *_FORMATS,
        KEY_FIELDS,
        STARTUP_MODE,
        STARTUP_OFFSETS,
        STARTUP_TIMESTAMP,
        *_SCAN,
        *_SINK,
        PARTITIONER,
    ),
)
UPSERT_KAFKA: Final = OptionSet(
    required=(SERVERS, KEY_FORMAT, VALUE_FORMAT),
    optional=(*_TOPICS, KEY_PREFIX, FIELDS_INCLUDE, GROUP_ID, *_SCAN, *_SINK, FLUSH_ROWS, FLUSH_INTERVAL_MS),
)


def with_properties(options: OptionSet, table: TableSpec) -> OptionSet:
    """The options and whatever the table hands to the client library."""
    known = set(options.keys())
    given = [key for key, _ in table.options if key.startswith(PROPERTIES) and key not in known]
    return options.merged(
        OptionSet(optional=tuple(ConnectorOption(key, str, "", "Of the client library.") for key in given))
    )
