"""WITH options of ``jdbc`` tables, as Flink's connector has them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Final

from flowsql_connectors.jdbc.address import scheme_of
from flowsql_connectors.jdbc.precision import check_precisions
from flowsql_connectors.lookup.options import LOOKUP_OPTIONS, Reload
from flowsql_connectors.lookup.options import cache_of as cache_of_lookups
from flowsql_connectors.options import (
    SINK_PARALLELISM,
    ConnectorOption,
    OptionSet,
    OptionValues,
    optional,
    parse_boolean,
    parse_choice,
    parse_natural,
    parse_positive,
)
from flowsql_connectors.spi.lookup import PartialCache
from flowsql_core.config import parse_duration_ms
from flowsql_core.errors import BindError
from flowsql_core.graph.specs import TableSpec


def _retry_timeout(text: str) -> int:
    milliseconds = parse_duration_ms(text)
    if milliseconds < 1000:
        raise ValueError("The value of 'connection.max-retry-timeout' option must be at least 1 second.")
    return milliseconds


URL = ConnectorOption("url", str, "", "The database: jdbc:postgresql://host:port/name, or a URL of SQLAlchemy.")
TABLE = ConnectorOption(
    "table-name", str, "",
    "The table there; schema.table where it is in no default schema. Of PostgreSQL also a query: (SELECT ...) AS t.",
)  # fmt: skip
DRIVER: ConnectorOption[str | None] = ConnectorOption(
    "driver", optional(str), None, "The class of the driver that fits the address; FlowSQL's own runtime needs none."
)
USER: ConnectorOption[str | None] = ConnectorOption("username", optional(str), None, "Who asks.")
PASSWORD: ConnectorOption[str | None] = ConnectorOption("password", optional(str), None, "The password of 'username'.")
RETRY_TIMEOUT_MS = ConnectorOption(
    "connection.max-retry-timeout", _retry_timeout, 60_000, "How long to wait for a connection, from 1 s on."
)
FETCH = ConnectorOption("scan.fetch-size", parse_natural, 0, "Most rows of a batch; 0: as many as come at once.")
AUTO_COMMIT = ConnectorOption(
    "scan.auto-commit", parse_boolean, True, "Whether each part of a scan is a transaction of its own, or all are one."
)
COLUMN: ConnectorOption[str | None] = ConnectorOption(
    "scan.partition.column", optional(str), None, "A column of numbers, dates or timestamps."
)
NUMBER: ConnectorOption[int | None] = ConnectorOption(
    "scan.partition.num", optional(parse_positive), None, "Parts that are read side by side."
)
LOWER: ConnectorOption[str | None] = ConnectorOption(
    "scan.partition.lower-bound",
    optional(str),
    None,
    "The least value of the first part: rows below it are not read, nor those without a value.",
)
UPPER: ConnectorOption[str | None] = ConnectorOption(
    "scan.partition.upper-bound", optional(str), None,
    "The greatest value of the last part: rows above it are not read.",
)  # fmt: skip
FILTERS = ConnectorOption(
    "filter.handling.policy", parse_choice("always", "never"), "always",
    "Whether the database takes conditions over that it can.",
)  # fmt: skip
COMPATIBLE: ConnectorOption[str | None] = ConnectorOption(
    "compatible-mode", optional(str), None, "Of databases that speak in several tongues; none of these here does."
)
LEGACY_ROWS: ConnectorOption[int | None] = ConnectorOption(
    "lookup.cache.max-rows", optional(parse_natural), None,
    "How many keys the cache holds, in its older spelling; with 'lookup.cache.ttl'.",
)  # fmt: skip
LEGACY_TTL: ConnectorOption[int | None] = ConnectorOption(
    "lookup.cache.ttl", optional(parse_duration_ms), None,
    "A key leaves the cache so long after its rows were read, in its older spelling; with 'lookup.cache.max-rows'.",
)  # fmt: skip
LEGACY_MISSING = ConnectorOption(
    "lookup.cache.caching-missing-key", parse_boolean, True,
    "Whether that cache also knows keys without rows.",
)  # fmt: skip
LOOKUP_RETRIES = ConnectorOption(
    "lookup.max-retries", parse_natural, 3, "How often a lookup that failed is tried again."
)
FLUSH_ROWS = ConnectorOption(
    "sink.buffer-flush.max-rows", parse_natural, 100, "Rows that are written at once at least; 0: no matter how many."
)
FLUSH_MS = ConnectorOption(
    "sink.buffer-flush.interval", parse_duration_ms, 1000, "How long rows wait to be written; 0: until a checkpoint."
)
GUARANTEE = ConnectorOption(
    "sink.delivery-guarantee", parse_choice("at-least-once", "exactly-once"), "at-least-once",
    "Whether rows that are appended may come again behind a failure, or are committed with checkpoints.",
)  # fmt: skip
TRANSACTION_PREFIX: ConnectorOption[str | None] = ConnectorOption(
    "sink.transactional-id-prefix", optional(str), None,
    "Name of the transactions of exactly-once; another one for each job that runs at a time.",
)  # fmt: skip
SINK_RETRIES = ConnectorOption("sink.max-retries", parse_natural, 3, "How often a write that failed is tried again.")

PARTITION: Final = (COLUMN, NUMBER, LOWER, UPPER)
LEGACY: Final = (LEGACY_ROWS, LEGACY_TTL)
JDBC_OPTIONS: Final = OptionSet(
    required=(URL, TABLE),
    optional=(
        DRIVER, USER, PASSWORD, RETRY_TIMEOUT_MS, FETCH, AUTO_COMMIT, *PARTITION,
        *LOOKUP_OPTIONS, LOOKUP_RETRIES, *LEGACY, LEGACY_MISSING, FILTERS, COMPATIBLE,
        FLUSH_ROWS, FLUSH_MS, SINK_RETRIES, SINK_PARALLELISM, GUARANTEE, TRANSACTION_PREFIX,
    ),
)  # fmt: skip


def checked(table: TableSpec) -> OptionValues:
    """The options of a table.

    Raises:
        BindError: one is unknown or unreadable; or some stand alone that belong together.
    """
    values = JDBC_OPTIONS.check(table)
    check_precisions(table.columns, scheme_of(values.get(URL)))
    _together(table, values, PARTITION)
    _together(table, values, LEGACY)
    cache_of(values)
    if values.has(COMPATIBLE):
        raise BindError(
            "invalid-option-value",
            f"Not supported option '{COMPATIBLE.key}' with value: {values.get(COMPATIBLE)}.",
            hint="leave it out",
        )
    if values.has(TRANSACTION_PREFIX) and values.get(GUARANTEE) != "exactly-once":
        raise BindError(
            "invalid-option-value", f"'{TRANSACTION_PREFIX.key}' is for '{GUARANTEE.key}' = 'exactly-once' alone."
        )
    if values.has(PASSWORD) and not values.has(USER):
        raise _incomplete(table, (USER, PASSWORD), USER)
    return values


def cache_of(values: OptionValues) -> PartialCache | Reload | None:
    """What lookups keep, with the older spelling of it; None: nothing.

    Raises:
        BindError: a cache would grow without end, or is never read again.
    """
    found = cache_of_lookups(values)
    rows, ttl = values.get(LEGACY_ROWS), values.get(LEGACY_TTL)
    if found is None and rows and ttl:
        return PartialCache(None, ttl, rows, values.get(LEGACY_MISSING))
    return found


def _together(table: TableSpec, values: OptionValues, options: tuple[ConnectorOption[Any], ...]) -> None:
    missing = [option for option in options if not values.has(option)]
    if missing and len(missing) < len(options):
        raise _incomplete(table, options, missing[0])


def _incomplete(
    table: TableSpec, options: tuple[ConnectorOption[Any], ...], missing: ConnectorOption[Any]
) -> BindError:
    return BindError(
        "missing-option",
        "Either all or none of the following options should be provided:\n"
        + "\n".join(option.key for option in options),
        hint=f"add '{missing.key}' to the WITH clause of {table.name}",
    )


def has_spark_driver(configuration: Mapping[str, str]) -> bool:
    """Whether a session names jars, or a Spark that runs elsewhere, where a driver of the database may be."""
    keys = ("spark.jars", "spark.remote", "spark.driver.extraClassPath", "spark.driver.extra-class-path")
    return any(key.startswith(keys) for key in configuration) or "SPARK_REMOTE" in os.environ
