"""WITH options of ``iceberg`` tables and catalogs, as Flink's connector and pyiceberg have them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from flowsql_connectors.options import (
    COLUMNS_INFERRED,
    SINK_PARALLELISM,
    ConnectorOption,
    OptionSet,
    optional,
    parse_boolean,
    parse_choice,
    parse_positive,
)
from flowsql_connectors.watermark_options import WATERMARK_OPTIONS
from flowsql_core.config import parse_duration_ms
from flowsql_core.errors import BindError
from flowsql_core.graph.specs import TableSpec
from flowsql_core.secrets.references import has_placeholder


def _catalog_kind(text: str) -> str:
    known = ("sql", "rest", "hive", "glue", "dynamodb", "bigquery")
    if text.lower() not in known:
        reason = {
            "hadoop": "a catalog without a server: 'sql' with a uri sqlite:///... is one",
            "jdbc": "Iceberg's catalog in a database: 'sql' with a uri of SQLAlchemy",
        }.get(text.lower(), f"one of {', '.join(known)}")
        raise ValueError(f"FlowSQL has no Iceberg catalogs of the type '{text}'; {reason}")
    return text.lower()


CATALOG_TYPE = ConnectorOption("catalog-type", _catalog_kind, "", "What keeps the tables: sql, rest, hive, glue, ...")
URI: ConnectorOption[str | None] = ConnectorOption(
    "uri", optional(str), None, "Of the catalog: a URL of SQLAlchemy, of a REST server, thrift://..."
)
WAREHOUSE: ConnectorOption[str | None] = ConnectorOption(
    "warehouse", optional(str), None, "Where tables are made, file:///... or s3://...; for REST, a name."
)
CATALOG_NAME = ConnectorOption("catalog-name", str, "", "Name of the catalog; sql keeps tables under it.")
DATABASE: ConnectorOption[str | None] = ConnectorOption(
    "catalog-database", optional(str), None, "Namespace of the table; by default the database of the declaration."
)
TABLE: ConnectorOption[str | None] = ConnectorOption(
    "catalog-table", optional(str), None, "Table there; by default the name of the declaration."
)
DEFAULT_DATABASE = ConnectorOption("default-database", str, "default", "The database that USE CATALOG makes current.")

#: Keys that pyiceberg reads: where the catalog is, who asks, how files are reached.
_CLIENT_KEYS: Final = (
    "init_catalog_tables", "echo", "pool_pre_ping",
    "credential", "token", "scope", "resource", "audience", "oauth2-server-uri", "prefix", "auth",
    "rest.sigv4-enabled", "rest.signing-region", "rest.signing-name", "ssl",
    "hive.hive2-compatible", "hive.kerberos-authentication", "ugi",
    "glue.id", "glue.skip-archive", "glue.endpoint", "glue.profile-name", "glue.region", "glue.access-key-id",
    "glue.secret-access-key", "glue.session-token", "glue.max-retries", "glue.retry-mode",
    "dynamodb.table-name", "dynamodb.profile-name", "dynamodb.region", "dynamodb.access-key-id",
    "dynamodb.secret-access-key", "dynamodb.session-token",
    "gcp.bigquery.project-id", "gcp.bigquery.location", "gcp.bigquery.credential-file",
    "client.region", "client.access-key-id", "client.secret-access-key", "client.session-token", "client.role-arn",
    "client.profile-name", "io-impl", "py-io-impl",
    "s3.endpoint", "s3.access-key-id", "s3.secret-access-key", "s3.session-token", "s3.region", "s3.resolve-region",
    "s3.proxy-uri", "s3.connect-timeout", "s3.request-timeout", "s3.role-arn", "s3.role-session-name",
    "s3.force-virtual-addressing", "s3.retry-strategy-impl", "s3.anonymous", "s3.profile-name", "s3.signer",
    "s3.signer.uri", "s3.signer.endpoint", "s3.server-side-encryption", "s3.sse-kms-key-id",
    "hdfs.host", "hdfs.port", "hdfs.user", "hdfs.kerberos_ticket",
    "adls.connection-string", "adls.credential", "adls.account-name", "adls.account-key", "adls.sas-token",
    "adls.tenant-id", "adls.client-id", "adls.client-secret", "adls.account-host", "adls.token",
    "gcs.oauth2.token", "gcs.oauth2.token-expires-at", "gcs.project-id", "gcs.access", "gcs.service.host",
    "gcs.default-bucket-location",
)  # fmt: skip
CLIENT: Final = tuple(ConnectorOption(key, str, "", "Of pyiceberg.") for key in _CLIENT_KEYS)

#: What a table keeps for its writers; ALTER TABLE ... SET changes it.
PROPERTY_PREFIXES: Final = ("write.", "commit.", "history.", "read.", "format-version", "gc.", "schema.")
#: What a commit says of itself, behind the prefix.
SNAPSHOT_PROPERTY: Final = "snapshot-property."

STREAMING = ConnectorOption("streaming", parse_boolean, False, "Read on as snapshots are added, for ever.")
MONITOR_INTERVAL_MS = ConnectorOption(
    "monitor-interval", parse_duration_ms, 60_000, "Streaming: how often to look for new snapshots."
)
STRATEGIES: Final = (
    "INCREMENTAL_FROM_LATEST_SNAPSHOT",
    "INCREMENTAL_FROM_LATEST_SNAPSHOT_EXCLUSIVE",
    "INCREMENTAL_FROM_EARLIEST_SNAPSHOT",
    "INCREMENTAL_FROM_SNAPSHOT_ID",
    "INCREMENTAL_FROM_SNAPSHOT_TIMESTAMP",
    "TABLE_SCAN_THEN_INCREMENTAL",
)
STRATEGY = ConnectorOption(
    "starting-strategy", parse_choice(*STRATEGIES), STRATEGIES[0], "Streaming: what comes first."
)
SNAPSHOT: ConnectorOption[int | None] = ConnectorOption("snapshot-id", optional(int), None, "Read this snapshot.")
AS_OF_MS: ConnectorOption[int | None] = ConnectorOption(
    "as-of-timestamp", optional(int), None, "Read what there was at this time, in milliseconds of the epoch."
)
BRANCH: ConnectorOption[str | None] = ConnectorOption("branch", optional(str), None, "Read or write this branch.")
TAG: ConnectorOption[str | None] = ConnectorOption("tag", optional(str), None, "Read this tag.")
START_SNAPSHOT: ConnectorOption[int | None] = ConnectorOption(
    "start-snapshot-id", optional(int), None, "Read what was appended behind this snapshot; streaming: from it on."
)
START_MS: ConnectorOption[int | None] = ConnectorOption(
    "start-snapshot-timestamp", optional(int), None, "Streaming: from the first snapshot at or behind this time on, ms."
)
START_TAG: ConnectorOption[str | None] = ConnectorOption(
    "start-tag", optional(str), None, "Read what was appended behind this tag."
)
END_SNAPSHOT: ConnectorOption[int | None] = ConnectorOption(
    "end-snapshot-id", optional(int), None, "Read appended rows up to this snapshot, with it."
)
END_TAG: ConnectorOption[str | None] = ConnectorOption(
    "end-tag", optional(str), None, "Read appended rows up to this tag, with it."
)
CASE_SENSITIVE = ConnectorOption(
    "case-sensitive", parse_boolean, False, "Whether declared columns must have the case of letters of the table's."
)
PLANNED_SNAPSHOTS = ConnectorOption(
    "max-planning-snapshot-count", parse_positive, 2**31 - 1, "Streaming: most snapshots that are taken up at once."
)
LIMIT = ConnectorOption("limit", int, -1, "Most rows that each reader reads; below 0: all.")

WRITE_FORMAT: ConnectorOption[str | None] = ConnectorOption(
    "write-format", optional(str), None, "Format of new data files: parquet."
)
TARGET_BYTES: ConnectorOption[int | None] = ConnectorOption(
    "target-file-size-bytes", optional(parse_positive), None, "Size at which a data file is closed."
)
UPSERT = ConnectorOption("upsert-enabled", parse_boolean, False, "Replace rows by key; not with pyiceberg.")
OVERWRITE = ConnectorOption("overwrite-enabled", parse_boolean, False, "INSERT INTO as INSERT OVERWRITE; batch mode.")
DISTRIBUTION: ConnectorOption[str | None] = ConnectorOption(
    "distribution-mode", optional(parse_choice("none", "hash", "range")), None,
    "hash: all rows of a partition go to one writer.",
)  # fmt: skip
CODEC: ConnectorOption[str | None] = ConnectorOption(
    "compression-codec", optional(str), None, "Codec of new data files: zstd, gzip, snappy, ..."
)
LEVEL: ConnectorOption[int | None] = ConnectorOption("compression-level", optional(int), None, "Level of the codec.")
WRITE_PARALLELISM: ConnectorOption[int | None] = ConnectorOption(
    "write-parallelism", optional(parse_positive), None, "Subtasks of the sink; by default those of its input."
)

READS: Final = (
    STREAMING, MONITOR_INTERVAL_MS, STRATEGY, SNAPSHOT, AS_OF_MS, BRANCH, TAG, START_SNAPSHOT, START_MS, START_TAG,
    END_SNAPSHOT, END_TAG, CASE_SENSITIVE, PLANNED_SNAPSHOTS, LIMIT,
)  # fmt: skip
WRITES: Final = (
    WRITE_FORMAT, TARGET_BYTES, UPSERT, OVERWRITE, DISTRIBUTION, CODEC, LEVEL, WRITE_PARALLELISM, SINK_PARALLELISM,
)  # fmt: skip
CONNECTION: Final = (CATALOG_NAME, CATALOG_TYPE, URI, WAREHOUSE, *CLIENT)
CATALOG_OPTIONS: Final = OptionSet(required=(CATALOG_TYPE,), optional=(URI, WAREHOUSE, DEFAULT_DATABASE, *CLIENT))
_TABLE_OPTIONS: Final = OptionSet(
    required=(CATALOG_NAME, CATALOG_TYPE),
    optional=(URI, WAREHOUSE, DATABASE, TABLE, *CLIENT, *READS, *WRITES, COLUMNS_INFERRED, *WATERMARK_OPTIONS),
)


def table_options(table: TableSpec) -> OptionSet:
    """The options of a table, and whatever properties of Iceberg's it carries."""
    given = [key for key, _ in table.options if is_property(key) or key.startswith(SNAPSHOT_PROPERTY)]
    return _TABLE_OPTIONS.merged(
        OptionSet(optional=tuple(ConnectorOption(key, str, "", "Of the table.") for key in given))
    )


def is_property(key: str) -> bool:
    """Whether an option is kept by the table itself."""
    return key.startswith(PROPERTY_PREFIXES)


def check_uri(declared: Mapping[str, str]) -> None:
    """Refuse a password that stands in an address, which plans and definitions would show.

    Args:
        declared: options as they are written, with their placeholders.
    """
    uri = declared.get(URI.key, "")
    login = uri.partition("://")[2].rpartition("@")[0].rpartition("/")[2]
    password = login.partition(":")[2]
    if password and not has_placeholder(password) and not has_placeholder(login):
        scheme, _, rest = uri.partition("://")
        raise BindError(
            "secret-in-uri",
            f"'{URI.key}' = '{scheme}://***@{rest.rpartition('@')[2]}' holds a password, which definitions would show.",
            hint="write ${env:NAME} or ${file:PATH} in its place",
        )
