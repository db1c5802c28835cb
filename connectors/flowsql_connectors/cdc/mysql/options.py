"""WITH options of ``mysql-cdc`` tables, as Flink CDC's connector has them."""

from __future__ import annotations

import re
from typing import Any, Final

from flowsql_compute.eval.time.calendar import zone_of
from flowsql_connectors.cdc import options as shared
from flowsql_connectors.cdc.mysql.columns.column_types import AS_BASE64, AS_BYTES, AS_HEX
from flowsql_connectors.options import (
    ConnectorOption,
    OptionSet,
    OptionValues,
    optional,
    parse_boolean,
    parse_choice,
    parse_natural,
)
from flowsql_connectors.watermark_options import WATERMARK_OPTIONS
from flowsql_core.config import parse_duration_ms
from flowsql_core.errors import BindError
from flowsql_core.graph.specs import TableSpec

DEBEZIUM: Final = "debezium."
JDBC: Final = "jdbc.properties."
_PORTS: Final = 65_535


def _port(text: str) -> int:
    number = parse_natural(text)
    if not 0 < number <= _PORTS:
        raise ValueError(f"expected a port from 1 to {_PORTS}")
    return number


def _server_ids(text: str) -> tuple[int, int]:
    found = re.fullmatch(r"\s*(\d+)\s*(?:-\s*(\d+)\s*)?", text)
    if found is None:
        raise ValueError(
            f"The value of option 'server-id' is invalid: '{text}'; expected a number or a range like 5400-5408"
        )
    first = int(found[1])
    last = int(found[2] or first)
    if not 0 < first <= last < 1 << 32:
        raise ValueError(f"The value of option 'server-id' is invalid: '{text}'; expected numbers from 1 to 4294967295")
    return first, last


def _expression(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise ValueError(f"expected a regular expression: {error}") from error
    return text


def _zone(text: str) -> str:
    try:
        zone_of(text)
    except BindError as error:
        raise ValueError(error.message) from error
    return text


PORT = ConnectorOption("port", _port, 3306, "The server's port.")
DATABASE = ConnectorOption(
    "database-name", _expression, "", "The database, or a regular expression that the whole names of databases match."
)
TABLE = ConnectorOption(
    "table-name", _expression, "", "The table, or a regular expression that the whole names of tables match."
)
SERVER_ID: ConnectorOption[tuple[int, int] | None] = ConnectorOption(
    "server-id", optional(_server_ids), None,
    "The number, or a range of them, under which the log is read; no other reader or replica may have it.",
)  # fmt: skip
MODE = ConnectorOption(
    "scan.startup.mode",
    parse_choice("initial", "earliest-offset", "latest-offset", "specific-offset", "timestamp", "snapshot"),
    "initial",
    "What a job reads that is not restored: the rows and then changes, changes from somewhere on, the rows alone.",
)
START_FILE: ConnectorOption[str | None] = ConnectorOption(
    "scan.startup.specific-offset.file", optional(str), None, "The file of the log where 'specific-offset' begins."
)
START_PLACE: ConnectorOption[int | None] = ConnectorOption(
    "scan.startup.specific-offset.pos", optional(parse_natural), None, "The place in that file."
)
START_GTIDS: ConnectorOption[str | None] = ConnectorOption(
    "scan.startup.specific-offset.gtid-set", optional(str), None, "Transactions before which 'specific-offset' begins."
)
SKIP_EVENTS = ConnectorOption(
    "scan.startup.specific-offset.skip-events", parse_natural, 0, "So many events there are left out."
)
SKIP_ROWS = ConnectorOption(
    "scan.startup.specific-offset.skip-rows", parse_natural, 0, "So many rows of the next event are left out."
)
START_MS: ConnectorOption[int | None] = ConnectorOption(
    "scan.startup.timestamp-millis", optional(parse_natural), None, "Where 'timestamp' begins, milliseconds since 1970."
)
ZONE: ConnectorOption[str | None] = ConnectorOption(
    "server-time-zone", optional(_zone), None,
    "The zone in which columns of type TIMESTAMP are shown; that of this machine where nothing is said.",
)  # fmt: skip
HEARTBEAT_MS = ConnectorOption(
    "heartbeat.interval", parse_duration_ms, 30_000,
    "How often the server tells that nothing happened, and how far the log is; 0: never.",
)  # fmt: skip
ONLINE_CHANGES = ConnectorOption(
    "scan.parse.online.schema.changes.enabled", parse_boolean, False,
    "Flink CDC's way to follow gh-ost and pt-osc; FlowSQL reads names of columns out of the log.",
)  # fmt: skip
LEGACY_JSON = ConnectorOption(
    "use.legacy.json.format", parse_boolean, True, "Whether documents of type JSON have no blanks between their values."
)
BINARY_AS = ConnectorOption(
    "debezium.binary.handling.mode", parse_choice("none", AS_BYTES, AS_BASE64, AS_HEX), "none",
    "How bytes are read: as they are, or as texts in columns of type STRING.",
)  # fmt: skip
STREAM_ROWS = ConnectorOption(
    "debezium.min.row.count.to.stream.result", parse_natural, 1000,
    "From how many rows on Debezium takes rows of a snapshot as they come; FlowSQL always does.",
)  # fmt: skip
USE_SSL = ConnectorOption("jdbc.properties.useSSL", parse_boolean, False, "Whether connections are encrypted.")
SSL_MODE = ConnectorOption(
    "jdbc.properties.sslMode", parse_choice("DISABLED", "REQUIRED"), "DISABLED", "Whether connections are encrypted."
)
_OLD_NAMES: Final = {
    "split-key.even-distribution.factor.lower-bound": shared.LEAST_FACTOR,
    "split-key.even-distribution.factor.upper-bound": shared.MOST_FACTOR,
}

MYSQL_OPTIONS: Final = OptionSet(
    required=(shared.HOSTNAME, shared.USERNAME, shared.PASSWORD, DATABASE, TABLE),
    optional=(
        PORT, SERVER_ID, MODE, START_FILE, START_PLACE, START_GTIDS, SKIP_EVENTS, SKIP_ROWS, START_MS, ZONE,
        HEARTBEAT_MS,
        ONLINE_CHANGES, LEGACY_JSON, BINARY_AS, STREAM_ROWS, USE_SSL, SSL_MODE, shared.INCREMENTAL, shared.CHUNK_ROWS,
        shared.CHUNK_COLUMN, shared.BACKFILL_SKIP, shared.LAST_CHUNK_FIRST, shared.FETCH_ROWS, shared.LEAST_FACTOR,
        shared.MOST_FACTOR, shared.META_GROUP, shared.CONNECT_TIMEOUT_MS, shared.CONNECT_RETRIES, shared.POOL_SIZE,
        shared.CLOSE_IDLE, shared.NEW_TABLES, shared.APPEND_ONLY, *WATERMARK_OPTIONS,
    ),
)  # fmt: skip


def mysql_options(table: TableSpec) -> OptionSet:
    """The options, and those of a table that are refused with a sentence of their own."""
    known = set(MYSQL_OPTIONS.keys())
    given = [key for key, _ in table.options if key.startswith((DEBEZIUM, JDBC)) and key not in known]
    old = [ConnectorOption(key, new.parse, new.default, new.doc) for key, new in _OLD_NAMES.items()]
    return MYSQL_OPTIONS.merged(
        OptionSet(optional=(*old, *(ConnectorOption(key, _refused(key), None, _instead(key)) for key in given)))
    )


def _refused(key: str) -> Any:
    def parse(text: str) -> None:
        raise ValueError(f"'{key}' is of no use here: {_instead(key)}")

    return parse


def _instead(key: str) -> str:
    """What to do instead of an option that is handed to what Flink CDC is made of."""
    if key.startswith(JDBC):
        return "FlowSQL connects without Java's driver; of its properties it knows useSSL and sslMode."
    return {
        "debezium.snapshot.mode": "'scan.startup.mode' says what is read first.",
        "debezium.decimal.handling.mode": "the declared types of columns decide.",
        "debezium.time.precision.mode": "the declared types of columns decide.",
        "debezium.bigint.unsigned.handling.mode": "the declared types of columns decide.",
        "debezium.database.ssl.mode": "'jdbc.properties.sslMode' = 'REQUIRED' encrypts connections.",
        "debezium.heartbeat.interval.ms": "'heartbeat.interval' is the option.",
        "debezium.connect.timeout.ms": "'connect.timeout' is the option.",
        "debezium.database.server.id": "'server-id' is the option.",
        "debezium.snapshot.fetch.size": "'scan.snapshot.fetch.size' is the option.",
    }.get(
        key, "FlowSQL reads the log itself and not through Debezium; of its properties it knows binary.handling.mode."
    )


def checked(table: TableSpec) -> OptionValues:
    """The options of a table.

    Raises:
        BindError: one is missing, unknown or unreadable, or does not go with another one.
    """
    values = mysql_options(table).check(table)
    mode = values.get(MODE)
    if mode == "timestamp" and not values.has(START_MS):
        raise _missing("scan.startup.timestamp-millis", mode)
    is_placed = values.has(START_GTIDS) or (values.has(START_FILE) and values.has(START_PLACE))
    if mode == "specific-offset" and not is_placed:
        raise BindError(
            "missing-option",
            f"Unable to find a valid binlog offset. Either {START_GTIDS.key}, or {START_FILE.key} and "
            f"{START_PLACE.key} are required.",
        )
    for option, right in ((START_MS, "timestamp"), *((one, "specific-offset") for one in _OFFSET)):
        if values.has(option) and mode != right:
            raise BindError(
                "invalid-option-value",
                f"'{option.key}' is of no use with '{MODE.key}' = '{mode}': it belongs to '{right}'.",
            )
    if values.get(shared.CONNECT_TIMEOUT_MS) < _LEAST_TIMEOUT_MS:
        raise BindError("invalid-option-value", "The value of option 'connect.timeout' cannot be less than 250 ms.")
    return values


_OFFSET: Final = (START_FILE, START_PLACE, START_GTIDS, SKIP_EVENTS, SKIP_ROWS)
_LEAST_TIMEOUT_MS: Final = 250


def _missing(key: str, mode: str) -> BindError:
    return BindError("missing-option", f"'{key}' is required in '{mode}' startup mode but missing.")
