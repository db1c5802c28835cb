"""How each change format writes an event: its fields, its words for what happened, what it tells beside the rows.

Source: Flink's ``DebeziumJsonDeserializationSchema`` and its like, which read and refuse the same.
"""

from __future__ import annotations

import datetime
import enum
from collections.abc import Callable, Mapping
from typing import Any, Final

import pyarrow as pa

from flowsql_compute.eval.text.render import over_distinct
from flowsql_core.arrow import compute as pc
from flowsql_core.record import record
from flowsql_core.types.logical import (
    BIGINT,
    INT,
    STRING,
    ArrayType,
    LogicalType,
    MapType,
    TimestampLtzType,
)

_LTZ_3: Final = TimestampLtzType(precision=3)
_LTZ_6: Final = TimestampLtzType(precision=6)
_TEXTS: Final = ArrayType(element=STRING)
#: What Debezium's and Ogg's databases are asked for; Flink's hint.
REPLICA_IDENTITY: Final = (
    'The "{field}" field of {op} message is null, if you are using {name} Postgres Connector, please check the '
    "Postgres table has been set REPLICA IDENTITY to FULL level."
)


class Action(enum.IntEnum):
    """What an event does to a table, and which of its rows tell it."""

    #: Not an event: its word is unknown or missing.
    BAD = 0
    INSERT = 1
    UPDATE = 2
    #: Of the row before.
    DELETE = 3
    #: Of the row that stands where other events have the new one.
    DELETE_NEW = 4
    #: No change of rows.
    SKIP = 5


def _same(array: Any) -> Any:
    return array


def _from_epoch_ms(array: Any) -> Any:
    return array.cast(pa.timestamp("ms", "UTC"))


def _from_epoch_s(array: Any) -> Any:
    return array.cast(pa.timestamp("s", "UTC")).cast(pa.timestamp("ms", "UTC"))


def _entry(key: str) -> Callable[[Any], Any]:
    return lambda array: pc.map_lookup(array, key, "first")


def _where(texts: Any, pattern: str) -> Any:
    return pc.if_else(pc.match_substring_regex(texts, pattern), texts, pa.scalar(None, pa.string()))


def _epoch_ms(texts: Any) -> Any:
    return _from_epoch_ms(_where(texts, "^[+-]?[0-9]{1,18}$").cast(pa.int64()))


def _time_of(separator: str) -> Callable[[Any], Any]:
    pattern = f"^[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}{separator}[0-9]{{2}}:[0-9]{{2}}:[0-9]{{2}}[.][0-9]{{6}}$"

    def parsed(texts: Any) -> Any:
        # Flink keeps milliseconds of them, although its type has six digits.
        return exact(texts).cast(pa.timestamp("ms", "UTC"), safe=False).cast(pa.timestamp("us", "UTC"))

    def exact(texts: Any) -> Any:
        plain = _where(texts, pattern)
        try:
            return plain.cast(pa.timestamp("us")).cast(pa.timestamp("us", "UTC"))
        except pa.ArrowInvalid:
            # Some day is not in the calendar; its text becomes one that is not read.
            return over_distinct(plain, _in_calendar).cast(pa.timestamp("us", "UTC"))

    return parsed


def _in_calendar(text: str) -> str | None:
    try:
        datetime.datetime.fromisoformat(text)
    except ValueError:
        return None
    return f"{text}Z"


@record
class MetadataField:
    """A metadata column: its type, the JSON field it is made of, that field's type, and how.

    ``parsed``: texts to values; a text that becomes NULL is wrong. ``outside``: the field stands beside a payload, not
    in it; without payloads all stand in one object.
    """

    type: LogicalType
    field: str
    read: LogicalType
    made: Callable[[Any], Any] = _same
    parsed: Callable[[Any], Any] | None = None
    outside: bool = False


@record
class ChangeStyle:
    """One change format.

    ``before``, ``after``, ``op``: names of an event's fields. ``actions``: by the word in ``op``. ``listed``: rows come
    in arrays, several to an event. ``partial``: the row before holds only fields that were changed. ``written``: the
    words for rows that come and rows that go. ``has_database``: events of several tables may be told apart.
    """

    identifier: str
    name: str
    before: str
    after: str
    op: str
    actions: Mapping[str, Action]
    written: tuple[str, str]
    metadata: Mapping[str, MetadataField]
    listed: bool = False
    partial: bool = False
    has_schema: bool = False
    has_database: bool = False

    def unknown(self, word: str | None) -> str:
        """What is said of a line with an unknown word in ``op``."""
        if word is None:
            return f'The field "{self.op}" is missing or NULL'
        known = ", ".join(self.actions)
        return f'Unknown "{self.op}" value "{word}"; expected one of {known}'


_SOURCE: Final = MapType(key=STRING, value=STRING)

DEBEZIUM: Final = ChangeStyle(
    identifier="debezium-json",
    name="Debezium",
    before="before",
    after="after",
    op="op",
    actions={"c": Action.INSERT, "r": Action.INSERT, "u": Action.UPDATE, "d": Action.DELETE},
    written=("c", "d"),
    metadata={
        "schema": MetadataField(STRING, "schema", STRING, outside=True),
        "ingestion-timestamp": MetadataField(_LTZ_3, "ts_ms", BIGINT, _from_epoch_ms),
        "source.timestamp": MetadataField(_LTZ_3, "source", _SOURCE, _entry("ts_ms"), _epoch_ms),
        "source.database": MetadataField(STRING, "source", _SOURCE, _entry("db")),
        "source.schema": MetadataField(STRING, "source", _SOURCE, _entry("schema")),
        "source.table": MetadataField(STRING, "source", _SOURCE, _entry("table")),
        "source.properties": MetadataField(_SOURCE, "source", _SOURCE),
    },
    has_schema=True,
)
CANAL: Final = ChangeStyle(
    identifier="canal-json",
    name="Canal",
    before="old",
    after="data",
    op="type",
    actions={
        "INSERT": Action.INSERT,
        "UPDATE": Action.UPDATE,
        "DELETE": Action.DELETE_NEW,
        # Its data is null: a change of the table, not of rows.
        "CREATE": Action.SKIP,
    },
    written=("INSERT", "DELETE"),
    metadata={
        "database": MetadataField(STRING, "database", STRING),
        "table": MetadataField(STRING, "table", STRING),
        "sql-type": MetadataField(MapType(key=STRING, value=INT), "sqlType", MapType(key=STRING, value=INT)),
        "pk-names": MetadataField(_TEXTS, "pkNames", _TEXTS),
        "ingestion-timestamp": MetadataField(_LTZ_3, "ts", BIGINT, _from_epoch_ms),
        "event-timestamp": MetadataField(_LTZ_3, "es", BIGINT, _from_epoch_ms),
    },
    listed=True,
    partial=True,
    has_database=True,
)
MAXWELL: Final = ChangeStyle(
    identifier="maxwell-json",
    name="Maxwell",
    before="old",
    after="data",
    op="type",
    actions={"insert": Action.INSERT, "update": Action.UPDATE, "delete": Action.DELETE_NEW},
    written=("insert", "delete"),
    metadata={
        "database": MetadataField(STRING, "database", STRING),
        "table": MetadataField(STRING, "table", STRING),
        "primary-key-columns": MetadataField(_TEXTS, "primary_key_columns", _TEXTS),
        "ingestion-timestamp": MetadataField(_LTZ_3, "ts", BIGINT, _from_epoch_s),
    },
    partial=True,
)
OGG: Final = ChangeStyle(
    identifier="ogg-json",
    name="Ogg",
    before="before",
    after="after",
    op="op_type",
    actions={"I": Action.INSERT, "U": Action.UPDATE, "D": Action.DELETE},
    written=("I", "D"),
    metadata={
        "table": MetadataField(STRING, "table", STRING),
        "primary-keys": MetadataField(_TEXTS, "primary_keys", _TEXTS),
        "ingestion-timestamp": MetadataField(_LTZ_6, "current_ts", STRING, parsed=_time_of("T")),
        "event-timestamp": MetadataField(_LTZ_6, "op_ts", STRING, parsed=_time_of(" ")),
    },
)
