"""WITH options of ``postgres-cdc`` tables, as Flink CDC's connector has them."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final, NoReturn

from flowsql_connectors.cdc.options import (
    APPEND_ONLY,
    BACKFILL_SKIP,
    CHUNK_COLUMN,
    CHUNK_ROWS,
    CLOSE_IDLE,
    CONNECT_RETRIES,
    CONNECT_TIMEOUT_MS,
    DATABASE,
    FETCH_ROWS,
    HEARTBEAT_MS,
    HOSTNAME,
    INCREMENTAL,
    INITIAL,
    LAST_CHUNK_FIRST,
    LEAST_FACTOR,
    META_GROUP,
    MOST_FACTOR,
    NEW_TABLES,
    PASSWORD,
    POOL_SIZE,
    SNAPSHOT,
    TABLE,
    USERNAME,
)
from flowsql_connectors.options import (
    ConnectorOption,
    OptionSet,
    optional,
    parse_boolean,
    parse_choice,
    parse_natural,
    parse_positive,
)
from flowsql_core.graph.specs import TableSpec

LATEST: Final = "latest-offset"
COMMITTED: Final = "committed-offset"
DEBEZIUM: Final = "debezium."
OVERRIDES: Final = "debezium.snapshot.select.statement.overrides"

_PLUGINS: Final = ("decoderbufs", "wal2json", "wal2json_rds", "wal2json_streaming", "wal2json_rds_streaming")


def _plugin(text: str) -> str:
    if text != "pgoutput":
        known = (
            f"FlowSQL does not read what the plug-in '{text}' writes" if text in _PLUGINS else f"no plug-in '{text}'"
        )
        raise ValueError(f"{known}; expected pgoutput, which every PostgreSQL from version 10 on has")
    return text


def _slot(text: str) -> str:
    if not re.fullmatch("[a-z0-9_]{1,63}", text):
        raise ValueError("expected up to 63 lower-case letters, digits and '_', as PostgreSQL names slots")
    return text


def _pattern(text: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except re.error as error:
        raise ValueError(f"expected a name or a regular expression: {error}") from None


PORT = ConnectorOption("port", parse_positive, 5432, "The server's port.")
SCHEMA = ConnectorOption(
    "schema-name", _pattern, re.compile("public"), "The schema, or a regular expression of whole names."
)
TABLES = ConnectorOption(TABLE.key, _pattern, re.compile(""), TABLE.doc)
SLOT = ConnectorOption("slot.name", _slot, "", "The replication slot, which belongs to this table alone.")
PLUGIN = ConnectorOption("decoding.plugin.name", _plugin, "pgoutput", "What decodes the log on the server: pgoutput.")
CHANGELOG_MODE = ConnectorOption(
    "changelog-mode", parse_choice("all", "upsert"), "all",
    "all: updates have old and new rows, which needs REPLICA IDENTITY FULL; upsert: new rows by their key.",
)  # fmt: skip
STARTUP_MODE = ConnectorOption(
    "scan.startup.mode", parse_choice(INITIAL, LATEST, COMMITTED, SNAPSHOT), INITIAL,
    "initial: the rows, then what changes; latest-offset, committed-offset: what changes from now on, from where the "
    "slot stands; snapshot: the rows alone.",
)  # fmt: skip
CONFIRM_DELAY = ConnectorOption(
    "scan.lsn-commit.checkpoints-num-delay", parse_natural, 3,
    "So many checkpoints later the slot is told that what is before one may be dropped.",
)  # fmt: skip
PARTITIONED = ConnectorOption(
    "scan.include-partitioned-tables.enabled", parse_boolean, False,
    "Whether partitioned tables are read as such; the publication must be made with publish_via_partition_root.",
)  # fmt: skip
ID_WITH_DATABASE = ConnectorOption(
    "table-id.include-database", parse_boolean, False, "How Flink's pipelines name tables; those of SQL do not."
)
WALL_CLOCK = ConnectorOption(
    "scan.pre-epoch-timestamp.wall-clock-conversion.enabled", parse_boolean, True,
    "Keeps timestamps before 1970 as the database has them; FlowSQL always does.",
)  # fmt: skip

DROP_SLOT = ConnectorOption(
    "debezium.slot.drop.on.stop", parse_boolean, False, "Whether the slot is dropped when the job is stopped."
)
PUBLICATION = ConnectorOption("debezium.publication.name", str, "dbz_publication", "The publication.")
AUTOCREATE = ConnectorOption(
    "debezium.publication.autocreate.mode", parse_choice("all_tables", "filtered", "disabled"), "all_tables",
    "Where there is no such publication: one of all tables, one of these tables, or none, which is an error.",
)  # fmt: skip
SKIPPED: ConnectorOption[frozenset[str]] = ConnectorOption(
    "debezium.skipped.operations",
    lambda text: _operations(text),
    frozenset("t"),
    "Changes that are left out: some of c (INSERT), u (UPDATE), d (DELETE), t (TRUNCATE) with ',' between; or none.",
)
PLACEHOLDER = ConnectorOption(
    "debezium.unavailable.value.placeholder", str, "__debezium_unavailable_value",
    "What stands for a long value that an UPDATE left as it was, where REPLICA IDENTITY keeps it out of the log.",
)  # fmt: skip
SNAPSHOT_MODE = ConnectorOption(
    "debezium.snapshot.mode", parse_choice("initial", "never"), "initial",
    "never: as 'scan.startup.mode' = 'committed-offset'.",
)  # fmt: skip


def _operations(text: str) -> frozenset[str]:
    found = frozenset(part.strip() for part in text.split(","))
    if not found <= frozenset("cudt") and found != {"none"}:
        raise ValueError("expected none, or some of c, u, d and t with ',' between")
    return found - {"none"}


def _tls(key: str) -> ConnectorOption[str | None]:
    return ConnectorOption(f"debezium.database.{key}", optional(str), None, f"libpq's {key}.")


#: Of libpq by name.
TLS: Final = {key: _tls(key) for key in ("sslmode", "sslrootcert", "sslcert", "sslkey")}

_KNOWN: Final = OptionSet(
    required=(HOSTNAME, USERNAME, PASSWORD, DATABASE, SCHEMA, TABLES, SLOT),
    optional=(
        PORT, PLUGIN, CHANGELOG_MODE, STARTUP_MODE, INCREMENTAL, CHUNK_ROWS, CHUNK_COLUMN, LEAST_FACTOR, MOST_FACTOR,
        META_GROUP, FETCH_ROWS, CONNECT_TIMEOUT_MS, CONNECT_RETRIES, POOL_SIZE, HEARTBEAT_MS, CLOSE_IDLE, BACKFILL_SKIP,
        NEW_TABLES, CONFIRM_DELAY, LAST_CHUNK_FIRST, APPEND_ONLY, PARTITIONED, ID_WITH_DATABASE, WALL_CLOCK,
    ),
)  # fmt: skip
_MEANT: Final[tuple[ConnectorOption[Any], ...]] = (
    DROP_SLOT, PUBLICATION, AUTOCREATE, SKIPPED, PLACEHOLDER, SNAPSHOT_MODE, *TLS.values()
)  # fmt: skip
_OF_DEBEZIUM: Final[dict[str, ConnectorOption[Any]]] = {option.key: option for option in _MEANT}


def postgres_options(table: TableSpec) -> OptionSet:
    """The options that a table may have: those above, and of ``debezium.*`` those that mean something here."""
    given = [key for key, _ in table.options if key.startswith(DEBEZIUM)]
    return OptionSet(_KNOWN.required, (*_KNOWN.optional, *(_of_debezium(key) for key in given)))


def _of_debezium(key: str) -> ConnectorOption[Any]:
    if key in _OF_DEBEZIUM:
        return _OF_DEBEZIUM[key]
    if key == OVERRIDES or key.startswith(OVERRIDES + "."):
        return ConnectorOption(key, str, "", "The query that gives the rows of a table's snapshot.")
    return ConnectorOption(key, _refused(key), None, "FlowSQL reads the log itself, without Debezium.")


def _refused(key: str) -> Callable[[str], NoReturn]:
    def refuse(text: str) -> NoReturn:
        known = ", ".join(sorted([*_OF_DEBEZIUM, OVERRIDES + ".*"]))
        raise ValueError(f"Option '{key}' means nothing here, where no Debezium runs; of debezium.* there are {known}.")

    return refuse


def overrides_of(table: TableSpec) -> dict[str, str]:
    """Queries of snapshots by ``schema.table``."""
    return {
        key.removeprefix(OVERRIDES + "."): query
        for key, query in table.filled_options().items()
        if key.startswith(OVERRIDES + ".")
    }
