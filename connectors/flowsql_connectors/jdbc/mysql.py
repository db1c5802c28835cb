"""MySQL and MariaDB through PyMySQL. Values come as texts, whole columns of which Arrow parses."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any, Final

import pyarrow as pa
import pymysql
import pymysql.converters
import pymysql.cursors

from flowsql_connectors.jdbc.arrays import arrived, client_values, columns_of, positions
from flowsql_connectors.jdbc.database import Changes, Database, Login, Target
from flowsql_connectors.jdbc.literals import sql_moment
from flowsql_connectors.jdbc.native import NativeColumn
from flowsql_connectors.jdbc.prepared import TwoPhaseDatabase
from flowsql_connectors.jdbc.sql import SqlDialect
from flowsql_connectors.jdbc.xa import LONGEST_PREFIX, Xid, check_version, names_of
from flowsql_core.errors import ConnectorError
from flowsql_core.types import logical as t

_BATCH_ROWS: Final = 16_384
#: Keys of one statement.
_KEYS: Final = 256
_COLUMNS: Final = """
SELECT c.table_name, c.column_name, c.column_type, c.is_nullable, k.ordinal_position
FROM information_schema.columns c LEFT JOIN information_schema.key_column_usage k
  ON k.table_schema = c.table_schema AND k.table_name = c.table_name AND k.column_name = c.column_name
  AND k.constraint_name = 'PRIMARY'
WHERE {where} ORDER BY c.table_name, c.ordinal_position
"""
_DATABASES: Final = (
    "SELECT schema_name FROM information_schema.schemata WHERE schema_name NOT IN "
    "('information_schema', 'mysql', 'performance_schema', 'sys') ORDER BY 1"
)
_FIXED: Final[dict[str, t.LogicalType]] = {
    "tinyint": t.TINYINT,
    "tinyint unsigned": t.SMALLINT,
    "smallint": t.SMALLINT,
    "smallint unsigned": t.INT,
    "mediumint": t.INT,
    "mediumint unsigned": t.INT,
    "int": t.INT,
    "int unsigned": t.BIGINT,
    "bigint": t.BIGINT,
    "bigint unsigned": t.DecimalType(precision=20, scale=0),
    "float": t.FLOAT,
    "double": t.DOUBLE,
    "date": t.DATE,
    "tinytext": t.STRING,
    "text": t.STRING,
    "mediumtext": t.STRING,
    "longtext": t.STRING,
    "json": t.STRING,
    "enum": t.STRING,
    "set": t.STRING,
    "binary": t.BYTES,
    "varbinary": t.BYTES,
    "tinyblob": t.BYTES,
    "blob": t.BYTES,
    "mediumblob": t.BYTES,
    "longblob": t.BYTES,
}
#: There is no such XA transaction, or another connection still has it.
_NO_SUCH_XID: Final = 1397
#: Lost or refused connections, locks, deadlocks, a server that is about to end.
_PASSING: Final = frozenset({1040, 1053, 1205, 1213, 1613, 1614, 2002, 2003, 2006, 2013})


class MySqlDialect(SqlDialect):
    """SQL that MySQL and MariaDB share."""

    two_phase = True
    prefix_bytes = LONGEST_PREFIX

    def connect(self, login: Login, auto_commit: bool = True) -> Database:
        """A connection in UTC."""
        return MySqlDatabase(self, client(login, auto_commit), login.address.shown)

    def quote(self, name: str) -> str:
        """In backticks."""
        return "`" + name.replace("`", "``") + "`"

    def expression(self, native: NativeColumn, type_: t.LogicalType, table: str = "") -> str:
        """The column, rounded where it is a DECIMAL; of FLOAT all digits."""
        column = table + self.quote(native.name)
        match type_:
            case t.DecimalType(precision=precision, scale=scale):
                own = native.type
                if isinstance(own, t.DecimalType) and (own.precision, own.scale) == (precision, scale):
                    return column
                rounded = f"ROUND({column}, {scale})"
                return f"CASE WHEN ABS({rounded}) < 1{'0' * (precision - scale)} THEN {rounded} END"
            case t.ApproximateType() if isinstance(native.type, t.FloatType):
                return f"{column} * 1e0"
            case t.BooleanType():
                return f"{column} + 0"
        return column

    def compared(self, column: str, operator: str, literal: Any, type_: t.LogicalType) -> str | None:
        """Numbers and moments; texts have collations there."""
        match type_:
            case t.IntegerType() | t.DecimalType():
                return f"{column} {operator} {literal}"
            case t.DoubleType() if literal - literal == 0:
                return f"{column} {operator} {literal!r}"
            case t.DateType() | t.TimestampType():
                moment = sql_moment(literal, type_)
                kind = "DATE" if isinstance(type_, t.DateType) else "TIMESTAMP"
                return None if moment is None else f"{column} {operator} {kind} '{moment}'"
        return None

    def number(self, value: int, type_: t.LogicalType) -> str:
        """Numbers as they are, moments as texts."""
        if isinstance(type_, t.DateType):
            return f"DATE '{sql_moment(value, type_)}'"
        if isinstance(type_, t.TimestampType):
            return f"TIMESTAMP '{sql_moment(value * 1000, type_)}'"
        return str(value)


def client(login: Login, auto_commit: bool = True) -> Any:
    """A connection of PyMySQL in UTC, whose values are texts."""
    address = login.address
    seconds = max(1, login.timeout_ms // 1000)
    secure = address.parameters.get("useSSL", "").lower() == "true" or address.parameters.get(
        "sslMode", ""
    ).upper() in ("REQUIRED", "TRUST")
    with said(f"No connection to {address.shown}"):
        return pymysql.connect(
            host=address.host, port=address.port, user=login.user, password=login.password or "",
            database=address.database or None, charset="utf8mb4", connect_timeout=seconds, autocommit=auto_commit,
            conv=pymysql.converters.encoders, init_command="SET time_zone = '+00:00'",
            ssl={} if secure else None,
        )  # fmt: skip


class MySqlDatabase(TwoPhaseDatabase):
    """A connection of PyMySQL, which is ``connection``."""

    def __init__(self, dialect: MySqlDialect, connection: Any, shown: str) -> None:
        self._dialect = dialect
        #: Whether an XA transaction is open.
        self._in_xa = False
        self.connection = connection
        self.shown = shown

    def query(self, text: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """All rows of a small answer, their values as texts."""
        with said(self.shown), closing(self.connection.cursor()) as cursor:
            cursor.execute(text, parameters or None)
            return list(cursor.fetchall())

    def find_columns(self, table: str) -> dict[str, NativeColumn]:
        """From the information schema."""
        schema, _, name = table.rpartition(".")
        where = "c.table_name = %s AND c.table_schema = " + ("%s" if schema else "DATABASE()")
        found = self._described(where, (name, schema) if schema else (name,))
        return next(iter(found.values()), {})

    def tables(self) -> dict[str, dict[str, NativeColumn]]:
        """Tables and views of the database."""
        return self._described("c.table_schema = DATABASE()", ())

    def _described(self, where: str, parameters: Sequence[Any]) -> dict[str, dict[str, NativeColumn]]:
        tables: dict[str, dict[str, NativeColumn]] = {}
        for table, name, spelled, nullable, key in self.query(_COLUMNS.format(where=where), parameters):
            column = NativeColumn(name, spelled, logical_type(spelled), nullable == "YES", int(key or 0))
            tables.setdefault(table, {})[name] = column
        return tables

    def databases(self) -> list[str]:
        """Those that the user sees."""
        return [name for (name,) in self.query(_DATABASES)]

    def table_bytes(self, table: str) -> int | None:
        """As the information schema estimates it."""
        schema, _, name = table.rpartition(".")
        where = "table_name = %s AND table_schema = " + ("%s" if schema else "DATABASE()")
        rows = self.query(
            f"SELECT data_length FROM information_schema.tables WHERE {where}", (name, schema) if schema else (name,)
        )
        return int(rows[0][0]) if rows and rows[0][0] is not None else None

    def read(self, query: str, columns: t.Schema, batch_rows: int) -> Iterator[Sequence[Any]]:
        """A batch at a time, as the server sends them."""
        with said(self.shown), closing(self.connection.cursor(pymysql.cursors.SSCursor)) as cursor:
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
        """A query a key, many of them in one statement, so that the server compares as it does with constants."""
        source = self._dialect.table(table)
        asked = [client_values(array) for array in values]
        wanted = ", ".join(
            self._dialect.read(there, column.type) for there, column in zip(native, columns, strict=True)
        )
        names = [self._dialect.quote(native[key].name).replace("%", "%%") for key in keys]
        met = " AND ".join(f"{name} = %s" for name in names)
        one = f"SELECT %s AS n, {wanted.replace('%', '%%')} FROM {source.replace('%', '%%')} WHERE {met}"
        found: list[Any] = []
        for start in range(0, len(values[0]), _KEYS):
            part = [column[start : start + _KEYS] for column in asked]
            count = len(part[0])
            parameters = [value for row in zip(range(start, start + count), *part, strict=True) for value in row]
            found += self.query(" UNION ALL ".join([one] * count), parameters)
        by_column = columns_of(found, len(columns) + 1)
        numbers = positions(pa.array(by_column[0], pa.string()).cast(pa.int32()))
        order = numbers.argsort(kind="stable")
        rows = pa.array(order)
        return numbers[order], [array.take(rows) for array in _arrays(by_column[1:], columns)]

    def write(self, target: Target, changes: Changes) -> None:
        """INSERT statements of many rows in one transaction."""
        table, names = self._names(target)
        statement = _insert(table, names)
        if target.keys:
            # A column of the key stands for itself where there is no other.
            others = [name for at, name in enumerate(names) if at not in target.keys] or [names[target.keys[0]]]
            statement += " ON DUPLICATE KEY UPDATE " + ", ".join(f"{name} = VALUES({name})" for name in others)
        met = " AND ".join(f"{names[key]} = %s" for key in target.keys)
        with said(f"Table '{target.table}' at {self.shown}"), closing(self.connection.cursor()) as cursor:
            self.connection.begin()
            try:
                if changes.delete_count:
                    gone = zip(*map(client_values, changes.deleted), strict=True)
                    cursor.executemany(f"DELETE FROM {table} WHERE {met}", list(gone))
                if changes.row_count:
                    cursor.executemany(statement, list(zip(*map(client_values, changes.rows), strict=True)))
                self.connection.commit()
            except BaseException:
                if self.connection.open:
                    self.connection.rollback()
                raise

    def _names(self, target: Target) -> tuple[str, list[str]]:
        """Table and columns as they stand in a statement with parameters."""
        names = [self._dialect.quote(column.name).replace("%", "%%") for column in target.native]
        return self._dialect.table(target.table).replace("%", "%%"), names

    def check_two_phase(self, table: str) -> None:
        """The server keeps prepared transactions, tells of them, and the table's engine takes part in them."""
        check_version(self.query("SELECT VERSION()")[0][0], self.shown)
        self.prepared("")
        schema, _, name = table.rpartition(".")
        where = "t.table_name = %s AND t.table_schema = " + ("%s" if schema else "DATABASE()")
        found = self.query(
            "SELECT COALESCE(t.engine, t.table_type), e.xa FROM information_schema.tables t "
            f"LEFT JOIN information_schema.engines e ON e.engine = t.engine WHERE {where}",
            (name, schema) if schema else (name,),
        )
        if found and found[0][1] != "YES":
            raise ConnectorError(
                "database",
                f"Table '{table}' at {self.shown} is of the engine {found[0][0]}, which prepares no transactions: "
                "'sink.delivery-guarantee' = 'exactly-once' needs one of InnoDB.",
            )

    def append(self, target: Target, changes: Changes, name: str) -> None:
        """INSERT statements of many rows within XA START."""
        with said(f"Table '{target.table}' at {self.shown}"):
            if not self.connection.open:
                self.connection.connect()
            with closing(self.connection.cursor()) as cursor:
                if not self._in_xa:
                    # What was asked before may have begun a transaction, in which no other one begins.
                    self.connection.rollback()
                    cursor.execute(f"XA START {Xid.of(name, self._name()).sql}")
                    self._in_xa = True
                rows = zip(*map(client_values, changes.rows), strict=True)
                cursor.executemany(_insert(*self._names(target)), list(rows))

    def prepare(self, name: str) -> None:
        """XA PREPARE. The connection ends, as it has the transaction to itself as long as it is there."""
        xid = Xid.of(name, self._name()).sql
        with said(self.shown), closing(self.connection.cursor()) as cursor:
            cursor.execute(f"XA END {xid}")
            cursor.execute(f"XA PREPARE {xid}")
        self._in_xa = False
        self.close()

    def prepared(self, prefix: str) -> list[str]:
        """Of this database, out of those of the server."""
        # Names that others gave may be any bytes.
        usual, self.connection.encoding = self.connection.encoding, "latin1"
        try:
            rows = self.query("XA RECOVER")
        finally:
            self.connection.encoding = usual
        return [name for name in names_of(rows, self._name()) if name.startswith(prefix)]

    def finish(self, name: str, commit: bool) -> None:
        """XA COMMIT or XA ROLLBACK, as soon as the connection that prepared has ended."""
        end = time.monotonic() + self.connection.connect_timeout
        statement = f"XA {'COMMIT' if commit else 'ROLLBACK'} {Xid.of(name, self._name()).sql}"
        while name in self.prepared(name):
            try:
                with closing(self.connection.cursor()) as cursor:
                    cursor.execute(statement)
                return
            except pymysql.MySQLError as error:
                if error.args[0] != _NO_SUCH_XID or time.monotonic() > end:
                    with said(f"Transaction '{name}' at {self.shown}"):
                        raise
            time.sleep(0.02)

    def _name(self) -> str:
        name = self.connection.db or ""
        return name.decode() if isinstance(name, bytes) else str(name)

    def close(self) -> None:
        """Whatever state the connection is in."""
        if self.connection.open:
            self.connection.close()


def _arrays(values: Sequence[list[Any]], columns: t.Schema) -> list[Any]:
    """Texts as the server sends them, in the types of columns."""
    return arrived([_array(own, column.type) for own, column in zip(values, columns, strict=True)], columns)


def _array(values: list[Any], type_: t.LogicalType) -> Any:
    if isinstance(type_, t.BinaryStringType):
        return pa.array(values, pa.binary())
    # Computed texts may come as bytes.
    return pa.array(values, pa.binary()).cast(pa.string())


def logical_type(spelled: str) -> t.LogicalType | None:
    """The SQL type of a MySQL one, as Flink's catalog maps them; None where there is none."""
    if spelled == "tinyint(1)" or spelled == "bit(1)":
        return t.BOOLEAN
    found = re.fullmatch(r"(\w+)(?:\(([^)]*)\))?((?: unsigned| zerofill)*)", spelled)
    if found is None:
        return t.STRING if spelled.startswith(("enum(", "set(")) else None
    name, arguments, more = found.groups()
    unsigned = " unsigned" if "unsigned" in more else ""
    digits = [int(part) for part in (arguments or "").split(",") if part.isdigit()]
    match name:
        case "decimal":
            precision, scale = (*digits, 10, 0)[:2] if len(digits) == 2 else (10, 0)
            return t.DecimalType(precision=precision, scale=scale) if precision <= t.MAX_PRECISION else None
        case "char":
            return t.CharType(length=digits[0])
        case "varchar":
            return t.VarCharType(length=digits[0]) if digits[0] else t.STRING
        case "time":
            return t.TimeType(precision=digits[0] if digits else 0)
        case "datetime" | "timestamp":
            return t.TimestampType(precision=digits[0] if digits else 0)
        case "float" | "double":
            return _FIXED[name]
    return _FIXED.get(name + unsigned)


def _insert(table: str, names: Sequence[str]) -> str:
    return f"INSERT INTO {table} ({', '.join(names)}) VALUES ({', '.join(['%s'] * len(names))})"


@contextmanager
def said(what: str) -> Iterator[None]:
    """What the server or the client refuse, in one sentence."""
    try:
        yield
    except pymysql.MySQLError as error:
        code, reason = (*error.args, "")[:2] if len(error.args) > 1 else (0, str(error))
        passing = code in _PASSING or isinstance(error, pymysql.InterfaceError)
        raise ConnectorError("database", f"{what}: {str(reason).rstrip('.')}.", retryable=passing) from error
