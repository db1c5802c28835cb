"""What is known of kinds of databases, by the names of their dialects; of others nothing is taken for granted."""

from __future__ import annotations

from typing import Final

#: The tables are in a file.
FILES: Final = frozenset({"sqlite", "duckdb"})
#: A column may hold values of any type.
ANY_TYPE: Final = frozenset({"sqlite"})
#: Texts can be compared by their characters, and by which collation; others have collations that may ignore case.
BINARY_COLLATIONS: Final = {"postgresql": "C", "sqlite": "BINARY"}
#: Dates and timestamps are compared as FlowSQL does.
MOMENTS: Final = frozenset({"postgresql", "mysql", "mariadb", "duckdb"})
#: Rows come in the order in which a table stores them; of others in that of the primary key.
STORED_ORDER: Final = frozenset({"postgresql", "mysql", "mariadb", "sqlite", "duckdb"})
#: Whose tables catalogs name with their schema, as Flink's does, those of all schemas but the system's.
NAMED_WITH_SCHEMA: Final = frozenset({"postgresql"})
#: What a connection begins with: scans that begin anew find rows in the same order, moments are in the zone of the
#: session, in MySQL in UTC.
FIRST: Final = {
    "postgresql": (
        "SET synchronize_seqscans = off", "SET max_parallel_workers_per_gather = 0", "SET TimeZone = '{posix_zone}'"
    ),
    "duckdb": ("SET TimeZone = '{zone}'",),
    "mysql": ("SET time_zone = '+00:00'",),
    "mariadb": ("SET time_zone = '+00:00'",),
}  # fmt: skip
#: Whose INSERT replaces by key, and in the words of which of SQLAlchemy's own dialects.
UPSERTS: Final = {
    "postgresql": "postgresql",
    "cockroachdb": "postgresql",
    "duckdb": "postgresql",
    "sqlite": "sqlite",
    "mysql": "mysql",
    "mariadb": "mysql",
}
#: Packages that bring dialects that SQLAlchemy itself lacks. Source: SQLAlchemy, "External Dialects".
DIALECT_PACKAGES: Final = {
    "bigquery": "sqlalchemy-bigquery",
    "clickhouse": "clickhouse-sqlalchemy",
    "clickhousedb": "clickhouse-connect",
    "cockroachdb": "sqlalchemy-cockroachdb",
    "crate": "sqlalchemy-cratedb",
    "databricks": "databricks-sqlalchemy",
    "db2": "ibm-db-sa",
    "duckdb": "duckdb-engine",
    "exa": "sqlalchemy-exasol",
    "firebird": "sqlalchemy-firebird",
    "hana": "sqlalchemy-hana",
    "ibm_db_sa": "ibm-db-sa",
    "redshift": "sqlalchemy-redshift",
    "snowflake": "snowflake-sqlalchemy",
    "teradatasql": "teradatasqlalchemy",
    "trino": "trino[sqlalchemy]",
}
#: Packages of drivers whose module has another name.
DRIVER_PACKAGES: Final = {"MySQLdb": "mysqlclient", "psycopg2": "psycopg2-binary", "psycopg": "psycopg[binary]"}
