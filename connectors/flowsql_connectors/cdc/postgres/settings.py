"""What the options of a ``postgres-cdc`` table come to."""

from __future__ import annotations

import re
from collections.abc import Mapping

from flowsql_connectors.cdc.options import (
    CHUNK_COLUMN,
    CONNECT_TIMEOUT_MS,
    DATABASE,
    HEARTBEAT_MS,
    HOSTNAME,
    PASSWORD,
    SNAPSHOT,
    USERNAME,
    CdcSettings,
    cdc_settings,
)
from flowsql_connectors.cdc.postgres.connection import Server
from flowsql_connectors.cdc.postgres.decode import Rules
from flowsql_connectors.cdc.postgres.options import (
    AUTOCREATE,
    CHANGELOG_MODE,
    COMMITTED,
    CONFIRM_DELAY,
    DROP_SLOT,
    PARTITIONED,
    PLACEHOLDER,
    PORT,
    PUBLICATION,
    SCHEMA,
    SKIPPED,
    SLOT,
    SNAPSHOT_MODE,
    STARTUP_MODE,
    TABLES,
    TLS,
    overrides_of,
    postgres_options,
)
from flowsql_core.errors import BindError
from flowsql_core.graph.specs import TableSpec
from flowsql_core.record import record


@record
class PostgresSettings:
    """``schema``, ``table``: patterns of whole names. ``autocreate``: what publication is made where there is none.
    ``overrides``: queries of snapshots by ``schema.table``."""

    server: Server
    schema: re.Pattern[str]
    table: re.Pattern[str]
    slot: str
    publication: str
    autocreate: str
    drop_slot: bool
    partitioned: bool
    chunk_column: str | None
    heartbeat_ms: int
    rules: Rules
    overrides: Mapping[str, str]
    scan: CdcSettings

    @property
    def reads_log(self) -> bool:
        """Whether more than the snapshot is read."""
        return self.scan.startup_mode != SNAPSHOT


def postgres_settings(table: TableSpec) -> PostgresSettings:
    """The settings of a table.

    Raises:
        BindError: an option is missing, unknown or unreadable, or some contradict each other.
    """
    values = postgres_options(table).check(table)
    upserts = values.get(CHANGELOG_MODE) == "upsert"
    if upserts and not table.primary_key:
        raise BindError(
            "missing-primary-key",
            "Primary key must be present when upsert mode is selected.",
            hint=f"declare PRIMARY KEY (...) NOT ENFORCED in {table.name}, or leave 'changelog-mode' = 'upsert' out",
        )
    mode = values.get(STARTUP_MODE)
    if values.get(SNAPSHOT_MODE) == "never":
        if values.has(STARTUP_MODE) and mode != COMMITTED:
            raise BindError(
                "invalid-option-value",
                f"'{SNAPSHOT_MODE.key}' = 'never' contradicts '{STARTUP_MODE.key}' = '{mode}'.",
                hint=f"leave '{SNAPSHOT_MODE.key}' out",
            )
        mode = COMMITTED
    tls = {key: values.get(option) for key, option in TLS.items()}
    server = Server(
        values.get(HOSTNAME),
        values.get(PORT),
        values.get(DATABASE),
        values.get(USERNAME),
        values.get(PASSWORD),
        values.get(CONNECT_TIMEOUT_MS),
        {key: text for key, text in tls.items() if text is not None},
    )
    return PostgresSettings(
        server,
        values.get(SCHEMA),
        values.get(TABLES),
        values.get(SLOT),
        values.get(PUBLICATION),
        values.get(AUTOCREATE),
        values.get(DROP_SLOT),
        values.get(PARTITIONED),
        values.get(CHUNK_COLUMN),
        values.get(HEARTBEAT_MS),
        Rules(upserts, values.get(SKIPPED), values.get(PLACEHOLDER)),
        overrides_of(table),
        cdc_settings(values, mode, upserts=upserts, confirm_delay=values.get(CONFIRM_DELAY)),
    )
