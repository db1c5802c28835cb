"""WITH options of ``postgres-cdc``: which are known, what is said of those that cannot be."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from flowsql_connectors import registry
from flowsql_connectors.cdc.postgres.connection import refused
from flowsql_core.errors import BindError
from flowsql_core.graph.specs import ScanSpec, TableSpec
from flowsql_core.row import ALL_CHANGES, INSERT_ONLY
from tests.connectors.tables import table_of

NEEDED = {
    "connector": "postgres-cdc", "hostname": "h", "username": "u", "password": "S3cret", "database-name": "d",
    "schema-name": "s", "table-name": "t", "slot.name": "slot",
}  # fmt: skip

#: Values that are read, none of which needs a server.
KNOWN = {
    "port": "5433",
    "decoding.plugin.name": "pgoutput",
    "changelog-mode": "ALL",
    "scan.startup.mode": "latest-offset",
    "scan.incremental.snapshot.enabled": "false",
    "scan.incremental.snapshot.chunk.size": "100",
    "scan.incremental.snapshot.chunk.key-column": "a",
    "scan.incremental.snapshot.backfill.skip": "true",
    "scan.incremental.snapshot.unbounded-chunk-first.enabled": "false",
    "scan.incremental.close-idle-reader.enabled": "true",
    "scan.snapshot.fetch.size": "10",
    "scan.newly-added-table.enabled": "true",
    "scan.lsn-commit.checkpoints-num-delay": "0",
    "scan.include-partitioned-tables.enabled": "true",
    "scan.read-changelog-as-append-only.enabled": "false",
    "scan.pre-epoch-timestamp.wall-clock-conversion.enabled": "true",
    "chunk-key.even-distribution.factor.lower-bound": "0.1d",
    "chunk-key.even-distribution.factor.upper-bound": "10.0",
    "chunk-meta.group.size": "100",
    "table-id.include-database": "true",
    "connect.timeout": "5 s",
    "connect.max-retries": "0",
    "connection.pool.size": "2",
    "heartbeat.interval.ms": "1 min",
    "debezium.slot.drop.on.stop": "true",
    "debezium.publication.name": "p",
    "debezium.publication.autocreate.mode": "filtered",
    "debezium.skipped.operations": "t,d",
    "debezium.unavailable.value.placeholder": "?",
    "debezium.snapshot.mode": "initial",
    "debezium.database.sslmode": "require",
    "debezium.snapshot.select.statement.overrides": "s.t",
    "debezium.snapshot.select.statement.overrides.s.t": "SELECT 1",
}

REFUSED = {
    "decoding.plugin.name": {
        "decoderbufs": "does not read what the plug-in 'decoderbufs' writes; expected pgoutput",
        "other": "no plug-in 'other'",
    },
    "slot.name": {"My-Slot": "lower-case letters"},
    "table-name": {"t[": "regular expression"},
    "changelog-mode": {"append": "Supported values are [all, upsert]"},
    "scan.startup.mode": {"timestamp": "Supported values are [initial, latest-offset, committed-offset, snapshot]"},
    "scan.incremental.snapshot.chunk.size": {"0": "above zero", "1": "above 1"},
    "chunk-key.even-distribution.factor.lower-bound": {"2": "from 0 to 1"},
    "chunk-key.even-distribution.factor.upper-bound": {"0.5": "from 1"},
    "debezium.skipped.operations": {"x": "expected none, or some of c, u, d and t"},
    "debezium.snapshot.mode": {"always": "Supported values are [initial, never]"},
    "debezium.decimal.handling.mode": {"string": "means nothing here, where no Debezium runs"},
    "scan.startup.timestamp-millis": {"1": "Unsupported options"},
}


def spec(options: dict[str, str], key: tuple[str, ...] = ()) -> ScanSpec:
    table: TableSpec = replace(table_of("a INT NOT NULL", {**NEEDED, **options}), primary_key=key)
    return ScanSpec(table, (0,), table.columns)


@pytest.mark.parametrize("key", KNOWN)
def test_options_that_are_read(key: str) -> None:
    assert registry.create_source(spec({key: KNOWN[key]}), {}).changelog_mode == ALL_CHANGES


@pytest.mark.parametrize(
    ("key", "text", "said"), [(key, text, said) for key, texts in REFUSED.items() for text, said in texts.items()]
)
def test_options_that_are_refused(key: str, text: str, said: str) -> None:
    with pytest.raises(BindError, match=re.escape(said)) as raised:
        registry.create_source(spec({key: text}), {})
    assert key in str(raised.value)
    assert "S3cret" not in str(raised.value)


@pytest.mark.parametrize("key", sorted(NEEDED.keys() - {"connector"}))
def test_options_that_are_missing(key: str) -> None:
    scan = spec({})
    table = replace(scan.table, options=tuple(one for one in scan.table.options if one[0] != key))
    with pytest.raises(BindError, match=f"Missing required options are:\n\n{re.escape(key)}"):
        registry.create_source(replace(scan, table=table), {})


def test_options_that_contradict_each_other() -> None:
    with pytest.raises(BindError, match="Primary key must be present when upsert mode is selected"):
        registry.create_source(spec({"changelog-mode": "upsert"}), {})
    with pytest.raises(BindError, match=r"'debezium.snapshot.mode' = 'never' contradicts"):
        registry.create_source(spec({"debezium.snapshot.mode": "never", "scan.startup.mode": "initial"}), {})


def test_what_the_planner_is_told() -> None:
    upserts = registry.create_source(spec({"changelog-mode": "upsert"}, ("a",)), {})
    assert str(upserts.changelog_mode) == "[I,UA,PD]"
    inserts = registry.create_source(spec({"scan.read-changelog-as-append-only.enabled": "true"}), {})
    assert inserts.changelog_mode == INSERT_ONLY
    assert not inserts.bounded
    snapshot = registry.create_source(spec({"scan.startup.mode": "snapshot"}), {})
    assert snapshot.bounded
    assert snapshot.changelog_mode == INSERT_ONLY
    assert list(inserts.metadata_columns()) == ["table_name", "schema_name", "database_name", "op_ts", "row_kind"]


@pytest.mark.parametrize(
    ("said", "passes"),
    [
        ("the database system is starting up", True),
        ("the database system is not yet accepting connections", True),
        ("the database system is shutting down", True),
        ("the database system is in recovery mode", True),
        ("sorry, too many clients already", True),
        ("the database system is not accepting connections", False),
        ('password authentication failed for user "u"', False),
        ('database "d" does not exist', False),
    ],
)
def test_which_refused_connections_are_tried_again(said: str, passes: bool) -> None:
    """Words of PostgreSQL's postmaster (``ProcessStartupPacket``, "CAC_..."), as libpq hands them on."""
    text = f'connection to server at "127.0.0.1", port 5432 failed: FATAL:  {said}\n'
    assert refused("No connection", text, None, connecting=True).retryable is passes
