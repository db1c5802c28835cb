"""WITH options that connectors of databases' logs share, as Flink CDC has them, and what the source takes of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from flowsql_connectors.options import (
    ConnectorOption,
    OptionValues,
    optional,
    parse_boolean,
    parse_natural,
    parse_positive,
)
from flowsql_core.config import parse_duration_ms
from flowsql_core.record import record


def _factor(least: float, most: float) -> Callable[[str], float]:
    def parse(text: str) -> float:
        value = float(text.strip().removesuffix("d"))
        if not least <= value <= most:
            raise ValueError(f"expected a number from {least:g} to {most:g}")
        return value

    return parse


def _rows_of_chunk(text: str) -> int:
    rows = parse_positive(text)
    if rows == 1:
        raise ValueError("expected a number above 1")
    return rows


HOSTNAME = ConnectorOption("hostname", str, "", "The server's host.")
USERNAME = ConnectorOption("username", str, "", "Who asks.")
PASSWORD = ConnectorOption("password", str, "", "The password of 'username'.")
DATABASE = ConnectorOption("database-name", str, "", "The database.")
TABLE = ConnectorOption(
    "table-name", str, "", "The table, or a regular expression that the whole names of tables match."
)
INCREMENTAL = ConnectorOption(
    "scan.incremental.snapshot.enabled", parse_boolean, True,
    "Flink CDC's choice between two readers; FlowSQL's one reads chunks, without locks and with checkpoints.",
)  # fmt: skip
CHUNK_ROWS = ConnectorOption(
    "scan.incremental.snapshot.chunk.size", _rows_of_chunk, 8096, "About how many rows a chunk of the snapshot has."
)
CHUNK_COLUMN: ConnectorOption[str | None] = ConnectorOption(
    "scan.incremental.snapshot.chunk.key-column", optional(str), None,
    "The column that cuts the tables into chunks; the first one of the primary key where nothing is said.",
)  # fmt: skip
BACKFILL_SKIP = ConnectorOption(
    "scan.incremental.snapshot.backfill.skip", parse_boolean, False,
    "Whether chunks are left as they were read, and what changed meanwhile comes out of the log.",
)  # fmt: skip
LAST_CHUNK_FIRST = ConnectorOption(
    "scan.incremental.snapshot.unbounded-chunk-first.enabled", parse_boolean, True,
    "Whether the chunk without upper bound, which grows, is read first.",
)  # fmt: skip
FETCH_ROWS = ConnectorOption(
    "scan.snapshot.fetch.size", parse_positive, 1024, "Most rows of the snapshot that a subtask takes at once."
)
LEAST_FACTOR = ConnectorOption(
    "chunk-key.even-distribution.factor.lower-bound", _factor(0, 1), 0.05,
    "Keys are cut by arithmetic where (greatest - least + 1) / rows is not below this.",
)  # fmt: skip
MOST_FACTOR = ConnectorOption(
    "chunk-key.even-distribution.factor.upper-bound", _factor(1, float("inf")), 1000.0,
    "Keys are cut by arithmetic where (greatest - least + 1) / rows is not above this.",
)  # fmt: skip
META_GROUP = ConnectorOption(
    "chunk-meta.group.size", parse_positive, 1000, "Chunks of a message between Flink's processes; FlowSQL sends none."
)
CONNECT_TIMEOUT_MS = ConnectorOption(
    "connect.timeout", parse_duration_ms, 30_000, "How long to wait for a connection, and for a server that went away."
)
CONNECT_RETRIES = ConnectorOption(
    "connect.max-retries", parse_natural, 3, "How often at least a lost connection is made again before the job fails."
)
POOL_SIZE = ConnectorOption("connection.pool.size", parse_positive, 20, "Most chunks that are read side by side.")
HEARTBEAT_MS = ConnectorOption(
    "heartbeat.interval.ms", parse_duration_ms, 30_000, "How often the database is told how far the log was read."
)
CLOSE_IDLE = ConnectorOption(
    "scan.incremental.close-idle-reader.enabled", parse_boolean, False,
    "Whether subtasks without work end; those of FlowSQL always do.",
)  # fmt: skip
NEW_TABLES = ConnectorOption(
    "scan.newly-added-table.enabled", parse_boolean, False,
    "Whether tables that match and were not there at the checkpoint are read, too, when a job goes on.",
)  # fmt: skip
APPEND_ONLY = ConnectorOption(
    "scan.read-changelog-as-append-only.enabled", parse_boolean, False,
    "Whether every change is an inserted row; the metadata column row_kind tells what it was.",
)  # fmt: skip

INITIAL: Final = "initial"
SNAPSHOT: Final = "snapshot"


@record
class CdcSettings:
    """What the source does, whatever the database.

    ``startup_mode``: :data:`INITIAL`, :data:`SNAPSHOT`, or one that :meth:`DatabaseLog.start` knows. ``upserts``:
    updates come without ``-U``, deletes with the key alone. ``confirm_delay``: so many checkpoints later the log is
    told that what is before one may be dropped.
    """

    startup_mode: str
    upserts: bool = False
    append_only: bool = False
    chunk_rows: int = CHUNK_ROWS.default
    last_chunk_first: bool = LAST_CHUNK_FIRST.default
    least_factor: float = LEAST_FACTOR.default
    most_factor: float = MOST_FACTOR.default
    readers: int = POOL_SIZE.default
    timeout_ms: int = CONNECT_TIMEOUT_MS.default
    retries: int = CONNECT_RETRIES.default
    new_tables: bool = NEW_TABLES.default
    fetch_rows: int = FETCH_ROWS.default
    confirm_delay: int = 0


def cdc_settings(
    values: OptionValues, startup_mode: str, *, upserts: bool = False, confirm_delay: int = 0
) -> CdcSettings:
    """The settings that the shared options tell."""
    return CdcSettings(
        startup_mode,
        upserts,
        values.get(APPEND_ONLY),
        values.get(CHUNK_ROWS),
        values.get(LAST_CHUNK_FIRST),
        values.get(LEAST_FACTOR),
        values.get(MOST_FACTOR),
        values.get(POOL_SIZE),
        values.get(CONNECT_TIMEOUT_MS),
        values.get(CONNECT_RETRIES),
        values.get(NEW_TABLES),
        values.get(FETCH_ROWS),
        confirm_delay,
    )
