"""WITH options of ``redis`` tables."""

from __future__ import annotations

import enum
from typing import Final

from flowsql_connectors.bad_row_options import BAD_ROW_OPTIONS
from flowsql_connectors.formats.registry import format_factory
from flowsql_connectors.lookup.options import (
    CACHE,
    CACHE_MISSING_KEY,
    EXPIRE_AFTER_ACCESS,
    EXPIRE_AFTER_WRITE,
    MAX_ROWS,
)
from flowsql_connectors.messages.backoff import RECONNECT_OPTIONS
from flowsql_connectors.messages.sink import FLUSH_OPTIONS
from flowsql_connectors.options import (
    SINK_PARALLELISM,
    ConnectorOption,
    OptionSet,
    OptionValues,
    optional,
    parse_choice,
    parse_natural,
    parse_positive,
)
from flowsql_connectors.watermark_options import WATERMARK_OPTIONS
from flowsql_core.config import parse_duration_ms, parse_enum
from flowsql_core.errors import BindError
from flowsql_core.graph.specs import TableSpec


class Structure(enum.Enum):
    """What of the server holds the rows."""

    #: A hash a row: a field a column.
    HASH = "hash"
    #: A string a row.
    STRING = "string"
    #: An element of a list a row: a key has many.
    LIST = "list"
    #: An entry of a stream a row.
    STREAM = "stream"


def _url(text: str) -> str:
    if not text.startswith(("redis://", "rediss://", "unix://")):
        raise ValueError("expected redis://host:6379/0, with TLS rediss://host:6379/0, or unix:///path/of/socket")
    return text


def _id(text: str) -> str:
    time, _, number = text.strip().partition("-")
    if not (time.isdigit() and (number or "0").isdigit()):
        raise ValueError("expected the id of an entry as 1700000000000-0")
    return text.strip()


URL = ConnectorOption("url", _url, "", "The server and its database, as redis://host:6379/0.")
USER: ConnectorOption[str | None] = ConnectorOption("username", optional(str), None, "Who asks.")
PASSWORD: ConnectorOption[str | None] = ConnectorOption("password", optional(str), None, "The password.")
TIMEOUT_MS = ConnectorOption(
    "connection.timeout", parse_duration_ms, 10_000, "How long to wait for a connection, and for each answer."
)
STRUCTURE = ConnectorOption(
    "structure", parse_enum(Structure), Structure.HASH, "What holds the rows: hash, string, list, or stream."
)
KEY: ConnectorOption[str | None] = ConnectorOption(
    "key",
    optional(str),
    None,
    "The key, with columns in braces: user:{id}; by default the primary key, with ':' between.",
)
FORMAT: ConnectorOption[str | None] = ConnectorOption(
    "format",
    optional(str),
    None,
    "How strings and elements hold the columns that are not in the key; none: one column.",
)
TTL_MS: ConnectorOption[int | None] = ConnectorOption(
    "sink.ttl", optional(parse_duration_ms), None, "How long a key lives after it was written."
)
MAX_LENGTH: ConnectorOption[int | None] = ConnectorOption(
    "sink.max-length", optional(parse_positive), None, "Of lists and streams: older elements are removed above it."
)
LOOKUP_CACHE = ConnectorOption(
    CACHE.key, parse_choice("NONE", "PARTIAL"), "NONE",
    "What lookup joins keep: nothing, or the rows of keys that were asked for.",
)  # fmt: skip
LOOKUP_RETRIES = ConnectorOption(
    "lookup.max-retries", parse_natural, 3, "How often a lookup that failed is tried again."
)
STARTUP = ConnectorOption(
    "scan.startup.mode", parse_choice("earliest", "latest", "specific-id"), "earliest",
    "Where a stream is read from: its first entry, what comes from now on, or behind an entry.",
)  # fmt: skip
STARTUP_ID: ConnectorOption[str | None] = ConnectorOption(
    "scan.startup.specific-id", optional(_id), None, "The id of the entry behind which to begin."
)
BOUNDED = ConnectorOption(
    "scan.bounded.mode", parse_choice("unbounded", "latest"), "unbounded",
    "Whether a stream is read for ever, or to the entry that is its last one when the job starts.",
)  # fmt: skip

_REQUIRED: Final = (URL,)
_OPTIONAL: Final = (
    USER, PASSWORD, TIMEOUT_MS, STRUCTURE, KEY, FORMAT, TTL_MS, MAX_LENGTH, *FLUSH_OPTIONS, SINK_PARALLELISM,
    LOOKUP_CACHE, EXPIRE_AFTER_ACCESS, EXPIRE_AFTER_WRITE, CACHE_MISSING_KEY, MAX_ROWS, LOOKUP_RETRIES,
    STARTUP, STARTUP_ID, BOUNDED, *RECONNECT_OPTIONS, *WATERMARK_OPTIONS, *BAD_ROW_OPTIONS,
)  # fmt: skip
_STREAMS_ALONE: Final = (STARTUP, STARTUP_ID, BOUNDED, *RECONNECT_OPTIONS, *BAD_ROW_OPTIONS)


def options_of(table: TableSpec) -> OptionSet:
    """The options of a table, with those of its format."""
    made = OptionSet(_REQUIRED, _OPTIONAL)
    name = table.option(FORMAT.key)
    return made if name is None else made.merged(format_factory(name).options())


def checked(table: TableSpec) -> OptionValues:
    """The options of a table.

    Raises:
        BindError: one is unknown or unreadable, or has no effect on the table's structure.
    """
    values = options_of(table).check(table)
    structure = values.get(STRUCTURE)
    without_effect = []
    if structure is not Structure.STREAM:
        without_effect += [option.key for option in _STREAMS_ALONE if values.has(option)]
    if structure in (Structure.HASH, Structure.STRING) and values.has(MAX_LENGTH):
        without_effect.append(MAX_LENGTH.key)
    if structure in (Structure.HASH, Structure.STREAM) and values.has(FORMAT):
        without_effect.append(FORMAT.key)
    if without_effect:
        raise BindError(
            "invalid-option-value",
            f"'{without_effect[0]}' has no effect with '{STRUCTURE.key}' = '{structure.value}'.",
            hint=f"leave it out of the WITH clause of {table.name}, or set '{STRUCTURE.key}'",
        )
    if (values.get(STARTUP) == "specific-id") != values.has(STARTUP_ID):
        raise BindError(
            "invalid-option-value",
            f"'{STARTUP.key}' = 'specific-id' and '{STARTUP_ID.key}' go together.",
            hint=f"give both, or neither, in the WITH clause of {table.name}",
        )
    if values.has(PASSWORD) and not values.get(PASSWORD):
        raise BindError("invalid-option-value", f"'{PASSWORD.key}' is empty.", hint="leave it out")
    return values
