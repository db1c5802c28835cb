"""Tables of a server that a scan reads, and what their columns are."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from flowsql_connectors.cdc.log import CapturedTable, ChunkKey
from flowsql_connectors.cdc.mysql.columns.column_types import base_name, is_unsigned, natural_types, suits
from flowsql_connectors.cdc.mysql.server import Server
from flowsql_core.errors import ConnectorError, did_you_mean
from flowsql_core.record import record
from flowsql_core.types import logical as t

_SYSTEM: Final = "'information_schema', 'mysql', 'performance_schema', 'sys'"
_TABLES: Final = (
    "SELECT table_schema, table_name FROM information_schema.tables "
    f"WHERE table_type IN ('BASE TABLE', 'SYSTEM VERSIONED') AND table_schema NOT IN ({_SYSTEM})"
)
_COLUMNS: Final = """
SELECT c.column_name, c.column_type, k.ordinal_position, c.character_set_name, c.collation_name
FROM information_schema.columns c LEFT JOIN information_schema.key_column_usage k
  ON k.table_schema = c.table_schema AND k.table_name = c.table_name AND k.column_name = c.column_name
  AND k.constraint_name = 'PRIMARY'
WHERE c.table_schema = %s AND c.table_name = %s ORDER BY c.ordinal_position
"""
#: Integers whose values are all of 64 bits with a sign.
_INTEGERS: Final = frozenset({"tinyint", "smallint", "mediumint", "int", "bigint"})
#: Types whose order the server can tell of any two values that it is given as texts.
_ORDERED: Final = frozenset({"char", "varchar", "bigint", "decimal", "date", "datetime"})


@record
class TableColumn:
    """A column as the server has it now. ``key``: place in the primary key, from 1; 0 outside of it."""

    name: str
    spelled: str
    key: int = 0
    charset: str | None = None
    collation: str | None = None


@record
class Table:
    """A table as the server has it now."""

    database: str
    name: str
    columns: tuple[TableColumn, ...]

    @property
    def id(self) -> str:
        """Its whole name."""
        return f"{self.database}.{self.name}"

    def column(self, name: str) -> TableColumn | None:
        """A column by name."""
        return next((column for column in self.columns if column.name == name), None)

    @property
    def primary_key(self) -> tuple[TableColumn, ...]:
        """The columns of the primary key, in its order."""
        return tuple(sorted((column for column in self.columns if column.key), key=lambda column: column.key))


@record
class TablePattern:
    """Which tables a scan reads: expressions that the whole names of database and table match."""

    database: str
    table: str

    def matches(self, database: str, table: str) -> bool:
        """Whether a table is one of them; letters' case counts not, as in Flink CDC."""
        whole = re.fullmatch(f"(?:{self.database})\\.(?:{self.table})", f"{database}.{table}", re.IGNORECASE)
        return whole is not None


def find_tables(server: Server, pattern: TablePattern) -> tuple[Table, ...]:
    """The tables that a pattern matches, sorted.

    Raises:
        ConnectorError: there is none.
    """
    names = sorted((row[0], row[1]) for row in server.database.query(_TABLES))
    found = tuple(find_table(server, *name) for name in names if pattern.matches(*name))
    if not found:
        raise ConnectorError(
            "no-such-table",
            f"No table at {server.shown} that user '{server.login.user}' may read matches 'database-name' = "
            f"'{pattern.database}' and 'table-name' = '{pattern.table}'.",
            hint=did_you_mean(f"{pattern.database}.{pattern.table}", [".".join(name) for name in names]),
        )
    return found


def find_table(server: Server, database: str, table: str) -> Table:
    """A table as it is now; without columns where there is none."""
    columns = tuple(
        TableColumn(name, spelled, int(key or 0), charset, collation)
        for name, spelled, key, charset, collation in server.database.query(_COLUMNS, (database, table))
    )
    return Table(database, table, columns)


def check_columns(table: Table, declared: Sequence[t.Column], binary_as: str) -> None:
    """Refuse a table that cannot be read as declared.

    Raises:
        ConnectorError: a column is missing, or its type does not fit.
    """
    for column in declared:
        there = table.column(column.name)
        if there is None:
            raise ConnectorError(
                "no-such-column",
                f"Table '{table.id}' of the database has no column '{column.name}'.",
                hint=did_you_mean(column.name, [one.name for one in table.columns]),
            )
        if not suits(there.spelled, column.type, binary_as):
            natural = natural_types(there.spelled, binary_as)
            raise ConnectorError(
                "column-type",
                f"Column '{column.name}' of table '{table.id}' is {there.spelled} in the database, which "
                + (f"does not fit {column.type.as_nullable()}." if natural else "cannot be read out of its log."),
                hint=f"declare it as {natural[0].as_nullable()}" if natural else "leave the column out of the table",
            )


def captured(table: Table, chunk_column: str | None, chunks: bool) -> CapturedTable:
    """The table as the source of changes knows it.

    Args:
        chunks: whether it is cut into them.

    Raises:
        ConnectorError: no column cuts it into chunks.
    """
    keys = table.primary_key
    if chunk_column is None:
        column = keys[0] if keys else None
    else:
        column = table.column(chunk_column)
        if column is None:
            raise ConnectorError(
                "no-such-column",
                f"'scan.incremental.snapshot.chunk.key-column': table '{table.id}' has no column '{chunk_column}'.",
                hint=did_you_mean(chunk_column, [one.name for one in table.columns]),
            )
    key = None if column is None or not chunks else _chunk_key(column)
    return CapturedTable(table.id, {"database_name": table.database, "table_name": table.name}, key)


def _chunk_key(column: TableColumn) -> ChunkKey | None:
    name = base_name(column.spelled)
    if name in _INTEGERS and not (name == "bigint" and is_unsigned(column.spelled)):
        return ChunkKey(column.name, True)
    return ChunkKey(column.name, False) if name in _ORDERED else None
