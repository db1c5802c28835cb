"""SQLite through the standard library."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from flowsql_connectors.jdbc.arrays import client_values, columns_of, made, positions
from flowsql_connectors.jdbc.database import Changes, Database, Login, Target
from flowsql_connectors.jdbc.literals import sql_text
from flowsql_connectors.jdbc.native import NativeColumn
from flowsql_connectors.jdbc.sql import SqlDatabase, SqlDialect
from flowsql_core.errors import ConnectorError
from flowsql_core.types import logical as t

_TABLES: Final = (
    "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite!_%' ESCAPE '!' ORDER BY 1"
)
#: Parameters of one statement that every SQLite takes.
_PARAMETERS: Final = 900
_BATCH_ROWS: Final = 16_384
#: Types by what is in their names, in this order; so SQLite finds the affinity of a column.
_AFFINITIES: Final[tuple[tuple[str, t.LogicalType], ...]] = (
    ("BOOL", t.BOOLEAN),
    ("INT", t.BIGINT),
    ("CHAR", t.STRING),
    ("CLOB", t.STRING),
    ("TEXT", t.STRING),
    ("BLOB", t.BYTES),
    ("REAL", t.DOUBLE),
    ("FLOA", t.DOUBLE),
    ("DOUB", t.DOUBLE),
    ("TIMESTAMP", t.TimestampType(precision=6)),
    ("DATETIME", t.TimestampType(precision=6)),
    ("DATE", t.DATE),
    ("TIME", t.TimeType(precision=3)),
)


class SqliteDialect(SqlDialect):
    """SQL of SQLite, whose columns hold values of any type."""

    any_type = True

    def connect(self, login: Login, auto_commit: bool = True) -> Database:
        """Opens the file; one that is missing is not made."""
        path = Path(login.address.database).absolute()
        with _said(f"The database {path} cannot be opened"):
            connection = sqlite3.connect(
                f"{path.as_uri()}?mode=rw", login.timeout_ms / 1000, isolation_level=None, uri=True,
                check_same_thread=False,
            )  # fmt: skip
            connection.execute("SELECT 1 FROM sqlite_master").fetchall()
        return SqliteDatabase(self, connection, auto_commit, str(path))

    def expression(self, native: NativeColumn, type_: t.LogicalType, table: str = "") -> str:
        """The column: its values are judged when they come."""
        return table + self.quote(native.name)

    def read(self, native: NativeColumn, type_: t.LogicalType, table: str = "") -> str:
        """Of DECIMAL a text; what is stored as a float, with the digits of the scale."""
        column = self.expression(native, type_, table)
        if not isinstance(type_, t.DecimalType):
            return column
        rounded = f"printf('%.{type_.scale}f', {column})"
        return f"CASE typeof({column}) WHEN 'real' THEN {rounded} ELSE CAST({column} AS TEXT) END"

    def compared(self, column: str, operator: str, literal: Any, type_: t.LogicalType) -> str | None:
        """Integers, DOUBLE and texts by their bytes: only these have an order of their own there."""
        match type_:
            case t.IntegerType():
                return f"{column} {operator} {literal}"
            case t.DoubleType() if literal - literal == 0:
                return f"{column} {operator} {literal!r}"
            case t.CharacterType() if operator != "LIKE" and "\0" not in literal:
                return f"{column} {operator} {sql_text(literal)} COLLATE BINARY"
        return None

    def number(self, value: int, type_: t.LogicalType) -> str:
        """Numbers as they are, moments as the texts that they are stored as."""
        if isinstance(type_, t.DateType):
            return f"date('1970-01-01', '{value} days')"
        if isinstance(type_, t.TimestampType):
            return f"datetime('1970-01-01', '{value // 1_000_000} seconds')"
        return str(value)


class SqliteDatabase(SqlDatabase):
    """A connection of ``sqlite3``."""

    def __init__(self, dialect: SqliteDialect, connection: sqlite3.Connection, auto_commit: bool, path: str) -> None:
        self._dialect = dialect
        self._connection = connection
        self._auto_commit = auto_commit
        self.shown = path

    def find_columns(self, table: str) -> dict[str, NativeColumn]:
        """From the schema."""
        schema, _, name = table.rpartition(".")
        where = f"{self._dialect.quote(schema)}." if schema else ""
        with _said(f"Table '{table}' in {self.shown}"):
            rows = self._connection.execute(f"PRAGMA {where}table_info({self._dialect.quote(name)})").fetchall()
        return {
            name: NativeColumn(name, declared or "of any type", _logical(declared), not required and not key, key)
            for _, name, declared, required, _, key in rows
        }

    def table_bytes(self, table: str) -> int | None:
        """The whole file."""
        return Path(self.shown).stat().st_size

    def tables(self) -> dict[str, dict[str, NativeColumn]]:
        """Tables and views."""
        with _said(self.shown):
            names = self._connection.execute(_TABLES).fetchall()
        return {name: self.find_columns(name) for (name,) in names}

    def databases(self) -> list[str]:
        """The file alone."""
        return [Path(self.shown).name]

    def read(self, query: str, columns: t.Schema, batch_rows: int) -> Iterator[Sequence[Any]]:
        """A batch at a time."""
        with _said(self.shown), closing(self._connection.cursor()) as cursor:
            if not self._auto_commit and not self._connection.in_transaction:
                cursor.execute("BEGIN")
            cursor.execute(query)
            while rows := cursor.fetchmany(batch_rows or _BATCH_ROWS):
                yield _arrays(columns_of(rows, len(columns)), columns)

    def find(
        self,
        table: str,
        native: Sequence[NativeColumn],
        columns: t.Schema,
        keys: Sequence[int],
        values: Sequence[Any],
    ) -> tuple[Any, Sequence[Any]]:
        """Joins of keys as VALUES with the table, as many keys at once as parameters fit."""
        source = self._dialect.table(table)
        asked = [client_values(array) for array in values]
        wanted = ", ".join(
            self._dialect.read(there, column.type, "t.") for there, column in zip(native, columns, strict=True)
        )
        names = ", ".join(f"k{at}" for at in range(len(keys)))
        met = " AND ".join(f"t.{self._dialect.quote(native[key].name)} = k.k{at}" for at, key in enumerate(keys))
        size = max(1, _PARAMETERS // (len(keys) + 1))
        found: list[Any] = []
        for start in range(0, len(values[0]), size):
            part = [column[start : start + size] for column in asked]
            count = len(part[0])
            listed = ", ".join(["(" + ", ".join("?" * (len(keys) + 1)) + ")"] * count)
            parameters = [value for row in zip(range(start, start + count), *part, strict=True) for value in row]
            # A CROSS JOIN keeps the order of the keys, and asks the table's index for each.
            query = (
                f"WITH k(n, {names}) AS (VALUES {listed}) SELECT k.n, {wanted} FROM k CROSS JOIN {source} AS t "
                f"WHERE {met} ORDER BY k.n"
            )
            with _said(self.shown):
                found += self._connection.execute(query, parameters).fetchall()
        by_column = columns_of(found, len(columns) + 1)
        return positions(by_column[0]), _arrays(by_column[1:], columns)

    def write(self, target: Target, changes: Changes) -> None:
        """Statements for many rows in one transaction."""
        quote = self._dialect.quote
        names = [quote(column.name) for column in target.native]
        table = self._dialect.table(target.table)
        statement = f"INSERT INTO {table} ({', '.join(names)}) VALUES ({', '.join('?' * len(names))})"
        if target.keys:
            updates = ", ".join(f"{name} = excluded.{name}" for at, name in enumerate(names) if at not in target.keys)
            keys = ", ".join(names[at] for at in target.keys)
            statement += f" ON CONFLICT ({keys}) DO " + (f"UPDATE SET {updates}" if updates else "NOTHING")
        met = " AND ".join(f"{names[key]} = ?" for key in target.keys)
        with _said(f"Table '{target.table}' in {self.shown}"):
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                if changes.delete_count:
                    gone = zip(*map(client_values, changes.deleted), strict=True)
                    self._connection.executemany(f"DELETE FROM {table} WHERE {met}", gone)
                if changes.row_count:
                    self._connection.executemany(statement, zip(*map(client_values, changes.rows), strict=True))
                self._connection.execute("COMMIT")
            except BaseException:
                self._connection.execute("ROLLBACK")
                raise

    def close(self) -> None:
        """Release the file."""
        self._connection.close()


def _arrays(values: Sequence[list[Any]], columns: t.Schema) -> list[Any]:
    return made(values, columns, lambda own, column: _array(own, column.type))


def _array(values: list[Any], type_: t.LogicalType) -> Any:
    """Python's values as SQLite has them: integers, floats, texts and bytes."""
    match type_:
        case t.BooleanType():
            return pa.array(values, pa.int64()).cast(pa.bool_())
        case t.IntegerType():
            return pa.array(values, pa.int64())
        case t.ApproximateType():
            return pa.array(values, pa.float64())
        case t.BinaryStringType():
            return pa.array(values, pa.binary())
    if isinstance(type_, t.ArrayType | t.MapType | t.RowType | t.MultisetType):
        raise TypeError("SQLite has no such values")
    return pa.array(values, pa.string())


def _logical(declared: str) -> t.LogicalType | None:
    """The SQL type of a declared one; a column without any holds texts."""
    name = declared.upper()
    if name.startswith(("DECIMAL(", "NUMERIC(")):
        digits = [part.strip() for part in name.partition("(")[2].rstrip(") ").split(",")]
        if all(part.isdigit() for part in digits) and 0 < int(digits[0]) <= t.MAX_PRECISION:
            return t.DecimalType(precision=int(digits[0]), scale=int(digits[1]) if len(digits) > 1 else 0)
    return next((type_ for part, type_ in _AFFINITIES if part in name), t.STRING)


@contextmanager
def _said(what: str) -> Iterator[None]:
    """What SQLite refuses, in one sentence. Locks may go away."""
    try:
        yield
    except sqlite3.Error as error:
        passing = getattr(error, "sqlite_errorname", "").startswith(("SQLITE_BUSY", "SQLITE_LOCKED"))
        raise ConnectorError("database", f"{what}: {error}.", retryable=passing) from error
