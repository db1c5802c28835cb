"""PostgreSQL through ADBC, whose rows are Arrow batches on the way in (COPY) and out."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Final
from urllib.parse import quote, urlencode

import adbc_driver_manager
import adbc_driver_postgresql.dbapi as adbc
import pyarrow as pa

from flowsql_connectors.jdbc.address import is_query
from flowsql_connectors.jdbc.arrays import arrived, leaving, positions
from flowsql_connectors.jdbc.database import Changes, Database, Login, Target
from flowsql_connectors.jdbc.literals import posix_zone, sql_moment, sql_text
from flowsql_connectors.jdbc.native import NativeColumn
from flowsql_connectors.jdbc.prepared import TwoPhaseDatabase
from flowsql_connectors.jdbc.sql import SqlDialect
from flowsql_core.errors import ConnectorError
from flowsql_core.types import logical as t

#: Base types of domains and element types of arrays.
_ELEMENTS: Final = """
LEFT JOIN pg_type b ON y.typtype = 'd' AND b.oid = y.typbasetype
LEFT JOIN pg_type e ON y.typelem <> 0 AND y.typlen = -1 AND e.oid = y.typelem
"""
_COLUMNS: Final = """
SELECT n.nspname || '.' || c.relname, a.attname, format_type(a.atttypid, a.atttypmod),
       COALESCE(e.typname, b.typname, y.typname),
       (y.typelem <> 0 AND y.typlen = -1), CASE WHEN y.typtype = 'd' THEN y.typtypmod ELSE a.atttypmod END,
       a.attnotnull, COALESCE(array_position(i.indkey::int2[], a.attnum) + 1, 0)
FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace
JOIN pg_type y ON y.oid = a.atttypid {elements}
LEFT JOIN pg_index i ON i.indrelid = a.attrelid AND i.indisprimary
WHERE {which} AND a.attnum > 0 AND NOT a.attisdropped ORDER BY 1, a.attnum
"""
#: Ordinary and partitioned tables: Flink's catalog lists neither views nor foreign tables.
_ALL_TABLES: Final = (
    "c.relkind IN ('r', 'p') AND n.nspname <> 'information_schema' AND n.nspname NOT LIKE 'pg!_%' ESCAPE '!'"
)
_DATABASES: Final = "SELECT datname FROM pg_database WHERE datallowconn AND NOT datistemplate ORDER BY datname"
_FIXED: Final[dict[str, t.LogicalType]] = {
    "bool": t.BOOLEAN,
    "bytea": t.BYTES,
    "int2": t.SMALLINT,
    "int4": t.INT,
    "int8": t.BIGINT,
    "float4": t.FLOAT,
    "float8": t.DOUBLE,
    "text": t.STRING,
    "name": t.STRING,
    "uuid": t.STRING,
    "json": t.STRING,
    "jsonb": t.STRING,
    "date": t.DATE,
}
#: Types that travel as texts because their own form is another one.
_AS_TEXT: Final = ("uuid", "json", "jsonb", "name")
#: What a declared type is in PostgreSQL, where a narrower one is widened.
_WIDENED: Final[dict[type[t.LogicalType], str]] = {
    t.IntType: "int4",
    t.BigIntType: "int8",
    t.DoubleType: "float8",
}
_STAGED: Final = {
    "bool": "bool", "int16": "int2", "int32": "int4", "int64": "int8", "float": "float4", "double": "float8",
    "string": "text", "binary": "bytea", "date32[day]": "date", "time64[us]": "time", "timestamp[us]": "timestamp",
    "timestamp[us, tz=UTC]": "timestamptz",
}  # fmt: skip
#: Connections lost, servers that are not there or about to end, conflicts of transactions.
_PASSING: Final = ("08", "57P", "53", "40", "55P03")
_STAGE_NUMBERS: Final = itertools.count()
#: Rows that are sent as arrays in one statement.
_ROWS_AT_ONCE: Final = 20_000


class PostgresDialect(SqlDialect):
    """SQL of PostgreSQL."""

    two_phase = True
    # Of 199 bytes of a name, 30 stand behind the prefix at most.
    prefix_bytes = 199 - 30

    def table(self, name: str) -> str:
        """A table, or a query in parentheses with its alias, which Flink reads, too."""
        return f"(SELECT * FROM {name})" if is_query(name) else super().table(name)

    def connect(self, login: Login, auto_commit: bool = True) -> Database:
        """A connection through libpq."""
        address = login.address
        who = "" if login.user is None else quote(login.user, safe="")
        if login.password is not None:
            who += ":" + quote(login.password, safe="")
        # Parameters of the JDBC driver that libpq has, too.
        known = {"sslmode", "sslrootcert", "sslcert", "sslkey", "options", "connect_timeout"}
        parameters = {key: value for key, value in address.parameters.items() if key in known}
        parameters.setdefault("connect_timeout", str(max(1, login.timeout_ms // 1000)))
        zone = f"-c TimeZone={posix_zone(login.zone)}"
        parameters["options"] = f"{parameters['options']} {zone}" if "options" in parameters else zone
        parameters["application_name"] = address.parameters.get("ApplicationName", "flowsql")
        place = f"{address.host}:{address.port}" if ":" not in address.host else f"[{address.host}]:{address.port}"
        given = urlencode(parameters, quote_via=quote)
        uri = f"postgresql://{who}{'@' if who else ''}{place}/{quote(address.database, safe='')}?{given}"
        with _said(f"No connection to {address.shown}"):
            connection = adbc.connect(uri, autocommit=auto_commit)
        database = PostgresDatabase(self, connection, address.shown)
        schema = address.parameters.get("currentSchema")
        if schema is not None:
            database.execute(f"SET search_path TO {', '.join(map(self.quote, schema.split(',')))}")
        return database

    def expression(self, native: NativeColumn, type_: t.LogicalType, table: str = "") -> str:
        """The column, widened, rounded or as a text where it is to be another type."""
        column = table + self.quote(native.name)
        base = native.type_name.partition("(")[0]
        if isinstance(type_, t.TimestampType) and isinstance(native.type, t.TimestampLtzType):
            return f"{column}::timestamp"
        if native.type is None or base in _AS_TEXT:
            return f"{column}::text"
        if isinstance(type_, t.DecimalType):
            own = native.type
            # A numeric without a length may hold more than what stands for it.
            if "(" in native.type_name and own is not None and own.same(type_.as_nullable(own.nullable)):
                return column
            rounded = f"round({column}, {type_.scale})"
            return f"CASE WHEN abs({rounded}) < 1e{type_.precision - type_.scale} THEN {rounded} END"
        wanted = _WIDENED.get(type(type_))
        if wanted is not None and type(type_) is not type(native.type):
            return f"{column}::{wanted}"
        if isinstance(type_, t.ArrayType) and isinstance(native.type, t.ArrayType):
            wanted = _WIDENED.get(type(type_.element))
            if wanted is not None and type(type_.element) is not type(native.type.element):
                return f"{column}::{wanted}[]"
            if base.removesuffix("[]") in _AS_TEXT:
                return f"{column}::text[]"
        return column

    def read(self, native: NativeColumn, type_: t.LogicalType, table: str = "") -> str:
        """Numbers of digits as texts: ADBC would make these of PostgreSQL's own form, in more time."""
        value = self.expression(native, type_, table)
        return f"({value})::text" if isinstance(type_, t.DecimalType) else value

    def compared(self, column: str, operator: str, literal: Any, type_: t.LogicalType) -> str | None:
        """All types but BYTES and TIME; texts by their bytes."""
        match type_:
            case t.IntegerType() | t.DecimalType():
                return f"{column} {operator} {literal}"
            case t.ApproximateType() if literal - literal == 0:
                return f"{column} {operator} '{literal!r}'::float8"
            case t.CharacterType() if "\0" not in literal:
                if operator == "LIKE":
                    return f"{column} LIKE {sql_text(literal)} ESCAPE ''"
                ordered = "" if operator in ("=", "<>") else ' COLLATE "C"'
                return f"{column} {operator} {sql_text(literal)}{ordered}"
            case t.DateType() | t.TimestampType():
                moment = sql_moment(literal, type_)
                kind = "DATE" if isinstance(type_, t.DateType) else "TIMESTAMP"
                return None if moment is None else f"{column} {operator} {kind} '{moment}'"
        return None

    def number(self, value: int, type_: t.LogicalType) -> str:
        """Numbers as they are, moments as texts."""
        if isinstance(type_, t.DateType):
            return f"(DATE '1970-01-01' + {value})"
        if isinstance(type_, t.TimestampType):
            return f"(TIMESTAMP '1970-01-01' + {value} * INTERVAL '1 microsecond')"
        return str(value)


class PostgresDatabase(TwoPhaseDatabase):
    """A connection of ADBC."""

    #: Whether times that are read lose their fractions, see :func:`arrived`.
    whole_seconds: bool = True

    def __init__(self, dialect: PostgresDialect, connection: Any, shown: str) -> None:
        self._dialect = dialect
        self._connection = connection
        self.shown = shown
        #: The table that rows wait in, by the types of its columns.
        self._stages: dict[tuple[str, ...], str] = {}

    def execute(self, statement: str) -> None:
        """A statement without an answer."""
        with _said(self.shown), self._connection.cursor() as cursor:
            cursor.execute(statement)

    def query(self, text: str) -> list[tuple[Any, ...]]:
        """All rows of a small answer."""
        with _said(self.shown), self._connection.cursor() as cursor:
            cursor.execute(text)
            found: list[tuple[Any, ...]] = cursor.fetchall()
            return found

    def find_columns(self, table: str) -> dict[str, NativeColumn]:
        """From the system's catalog."""
        if is_query(table):
            return self._columns_of_query(self._dialect.table(table))
        found = self._described(f"a.attrelid = to_regclass({sql_text(self._dialect.table(table))})")
        return next(iter(found.values()), {})

    def _columns_of_query(self, query: str) -> dict[str, NativeColumn]:
        """Its columns have types without lengths."""
        with _said(self.shown), self._connection.cursor() as cursor:
            cursor.execute(f"SELECT * FROM {query} AS t LIMIT 0")
            names = [column[0] for column in cursor.description]
        # The query is planned and not run: no row of it is joined.
        asked = ", ".join(f"({at}, pg_typeof(t.{self._dialect.quote(name)})::oid)" for at, name in enumerate(names))
        found = self.query(
            "SELECT format_type(y.oid, NULL), COALESCE(e.typname, b.typname, y.typname), "
            "y.typelem <> 0 AND y.typlen = -1 "
            f"FROM (SELECT 1) AS one LEFT JOIN {query} AS t ON FALSE CROSS JOIN LATERAL (VALUES {asked}) AS c(n, type) "
            f"JOIN pg_type y ON y.oid = c.type {_ELEMENTS} ORDER BY c.n"
        )
        return {
            name: NativeColumn(name, spelled, logical_type(base, is_array, -1))
            for name, (spelled, base, is_array) in zip(names, found, strict=True)
        }

    def tables(self) -> dict[str, dict[str, NativeColumn]]:
        """Tables of all schemas but the system's; views are read where they are named."""
        return self._described(_ALL_TABLES)

    def _described(self, which: str) -> dict[str, dict[str, NativeColumn]]:
        tables: dict[str, dict[str, NativeColumn]] = {}
        for table, name, spelled, base, is_array, modifier, required, key in self.query(
            _COLUMNS.format(which=which, elements=_ELEMENTS)
        ):
            type_ = logical_type(base, is_array, modifier)
            tables.setdefault(table, {})[name] = NativeColumn(name, spelled, type_, not required, key)
        return tables

    def databases(self) -> list[str]:
        """Those that may be connected to, templates apart."""
        return [name for (name,) in self.query(_DATABASES)]

    def table_bytes(self, table: str) -> int | None:
        """With its large values, without its indexes."""
        if is_query(table):
            return None
        named = sql_text(self._dialect.table(table))
        return int(self.query(f"SELECT pg_table_size({named}::regclass)")[0][0])

    def read(self, query: str, columns: t.Schema, batch_rows: int) -> Iterator[Sequence[Any]]:
        """Through COPY in binary form; rows come in the order of the table."""
        with _said(self.shown), self._connection.cursor() as cursor:
            # So that a scan that begins anew finds the rows in the same order.
            cursor.execute("SET synchronize_seqscans = off")
            cursor.execute("SET max_parallel_workers_per_gather = 0")
            cursor.execute(query)
            for batch in cursor.fetch_record_batch():
                yield arrived(batch.columns, columns, self.whole_seconds)

    def find(
        self,
        table: str,
        native: Sequence[NativeColumn],
        columns: t.Schema,
        keys: Sequence[int],
        values: Sequence[Any],
    ) -> tuple[Any, Sequence[Any]]:
        """One query with the keys as arrays."""
        sent = [leaving(array) for array in values]
        bound = pa.record_batch(
            [pa.ListArray.from_arrays([0, len(array)], array) for array in sent], names=[f"k{at}" for at in keys]
        )
        names = ", ".join(f"k{at}" for at in range(len(keys)))
        # The type of the column, so that its index answers.
        types = ["text" if native[key].type is None else bare_type(native[key]) for key in keys]
        unnested = ", ".join(f"${at + 1}::{type_}[]" for at, type_ in enumerate(types))
        met = " AND ".join(f"{self._compared(native[key])} = k.k{at}" for at, key in enumerate(keys))
        wanted = ", ".join(
            self._dialect.read(there, column.type, "t.") for there, column in zip(native, columns, strict=True)
        )
        query = (
            f"SELECT (k.n - 1)::int4, {wanted} FROM unnest({unnested}) WITH ORDINALITY AS k({names}, n) "
            f"JOIN {self._dialect.table(table)} AS t ON {met} ORDER BY k.n"
        )
        with _said(self.shown), self._connection.cursor() as cursor:
            cursor.execute(query, parameters=bound)
            found = cursor.fetch_arrow_table().combine_chunks()
        arrays = [_whole(found.column(at)) for at in range(found.num_columns)]
        return positions(arrays[0]), arrived(arrays[1:], columns)

    @staticmethod
    def _compared(native: NativeColumn) -> str:
        column = 't."' + native.name.replace('"', '""') + '"'
        return f"{column}::text" if native.type is None else column

    def write(self, target: Target, changes: Changes) -> None:
        """Through a temporary table that COPY fills, and one INSERT or DELETE for all of its rows."""
        try:
            with _said(f"Table '{target.table}' at {self.shown}"), self._connection.cursor() as cursor:
                if changes.delete_count:
                    self._delete(cursor, target, changes.deleted)
                if changes.row_count:
                    self._insert(cursor, target, changes.rows)
                self._connection.commit()
        except BaseException:
            self._stages.clear()
            raise

    def _insert(self, cursor: Any, target: Target, rows: Sequence[Any]) -> None:
        stage = self._staged(cursor, rows)
        names = [self._dialect.quote(column.name) for column in target.native]
        values = ", ".join(f"c{at}::{bare_type(there)}" for at, there in enumerate(target.native))
        statement = f"INSERT INTO {self._dialect.table(target.table)} ({', '.join(names)}) SELECT {values} FROM {stage}"
        if target.keys:
            others = [name for at, name in enumerate(names) if at not in target.keys]
            updates = ", ".join(f"{name} = EXCLUDED.{name}" for name in others)
            keys = ", ".join(names[at] for at in target.keys)
            statement += f" ON CONFLICT ({keys}) DO " + (f"UPDATE SET {updates}" if updates else "NOTHING")
        cursor.execute(statement)
        cursor.execute(f"TRUNCATE {stage}")

    def _delete(self, cursor: Any, target: Target, keys: Sequence[Any]) -> None:
        stage = self._staged(cursor, keys)
        met = " AND ".join(
            f"t.{self._dialect.quote(target.native[key].name)} = s.c{at}::{bare_type(target.native[key])}"
            for at, key in enumerate(target.keys)
        )
        cursor.execute(f"DELETE FROM {self._dialect.table(target.table)} AS t USING {stage} AS s WHERE {met}")
        cursor.execute(f"TRUNCATE {stage}")

    def check_two_phase(self, table: str) -> None:
        """``max_prepared_transactions`` is above zero."""
        if self.query("SELECT current_setting('max_prepared_transactions')")[0][0] == "0":
            raise ConnectorError(
                "database",
                f"{self.shown} prepares no transactions, which 'sink.delivery-guarantee' = 'exactly-once' needs: "
                "'max_prepared_transactions' of the server is 0.",
                hint="set it to at least twice the number of writers, and start the server again",
            )

    def append(self, target: Target, changes: Changes, name: str) -> None:
        """Rows as arrays: a transaction that is to be prepared has no temporary tables."""
        sent = [leaving(array) for array in changes.rows]
        names = ", ".join(self._dialect.quote(column.name) for column in target.native)
        values = ", ".join(f"s.c{at}::{bare_type(there)}" for at, there in enumerate(target.native))
        arrays = ", ".join(f"${at + 1}::{_staged_type(array.type)}[]" for at, array in enumerate(sent))
        columns = ", ".join(f"c{at}" for at in range(len(sent)))
        statement = (
            f"INSERT INTO {self._dialect.table(target.table)} ({names}) SELECT {values} "
            f"FROM unnest({arrays}) AS s({columns})"
        )
        with _said(f"Table '{target.table}' at {self.shown}"), self._connection.cursor() as cursor:
            for start in range(0, changes.row_count, _ROWS_AT_ONCE):
                lists = []
                for array in sent:
                    part = array.slice(start, _ROWS_AT_ONCE)
                    lists.append(pa.ListArray.from_arrays([0, len(part)], part))
                cursor.execute(
                    statement, parameters=pa.record_batch(lists, names=[f"c{at}" for at in range(len(sent))])
                )

    def prepare(self, name: str) -> None:
        """PREPARE TRANSACTION."""
        with _said(self.shown), self._connection.cursor() as cursor:
            cursor.execute(f"PREPARE TRANSACTION {sql_text(name)}")
            # No transaction is open now; the client library believes that one is.
            self._connection.commit()

    def prepared(self, prefix: str) -> list[str]:
        """Of this database, in the order in which they were prepared."""
        query = (
            "SELECT gid FROM pg_prepared_xacts WHERE database = current_database() "
            f"AND starts_with(gid, {sql_text(prefix)}) ORDER BY prepared"
        )
        return [name for (name,) in self.query(query)]

    def finish(self, name: str, commit: bool) -> None:
        """COMMIT PREPARED or ROLLBACK PREPARED."""
        if name in self.prepared(name):
            self.execute(f"{'COMMIT' if commit else 'ROLLBACK'} PREPARED {sql_text(name)}")

    def _staged(self, cursor: Any, arrays: Sequence[Any]) -> str:
        """The name of a temporary table that holds rows."""
        sent = [leaving(array) for array in arrays]
        types = tuple(_staged_type(array.type) for array in sent)
        if types not in self._stages:
            name = f"flowsql_rows_{next(_STAGE_NUMBERS)}"
            described = ", ".join(f"c{at} {type_}" for at, type_ in enumerate(types))
            cursor.execute(f"CREATE TEMPORARY TABLE {name} ({described}) ON COMMIT DELETE ROWS")
            self._stages[types] = name
        batch = pa.record_batch(sent, names=[f"c{at}" for at in range(len(sent))])
        cursor.adbc_ingest(self._stages[types], batch, mode="append", temporary=True)
        return self._stages[types]

    def cancel(self) -> None:
        """Give up what another thread asks for."""
        with suppress(adbc_driver_manager.Error):
            self._connection.adbc_cancel()

    def close(self) -> None:
        """Whatever state the connection is in."""
        with suppress(adbc_driver_manager.Error):
            self._connection.close()


def _whole(chunked: Any) -> Any:
    return chunked.chunk(0) if chunked.num_chunks == 1 else chunked.combine_chunks()


def bare_type(native: NativeColumn) -> str:
    """A type without its length, to which a cast cuts nothing off."""
    head, _, tail = native.type_name.partition("(")
    return (head + tail.partition(")")[2]).replace("character varying", "varchar").replace("character", "bpchar")


def _staged_type(type_: Any) -> str:
    if pa.types.is_list(type_):
        return _staged_type(type_.value_type) + "[]"
    if pa.types.is_decimal(type_):
        return "numeric"
    found = _STAGED.get(str(type_))
    if found is None:
        raise ConnectorError("column-type", f"PostgreSQL has no type for values of the Arrow type {type_}.")
    return found


def logical_type(base: str, is_array: bool, modifier: int) -> t.LogicalType | None:
    """The SQL type of a PostgreSQL one, as Flink's catalog maps them; None where only its texts have one."""
    if is_array:
        element = logical_type(base, False, modifier)
        return None if element is None else t.ArrayType(element=element)
    match base:
        case "numeric" if modifier < 0:
            return t.DecimalType(precision=38, scale=18)
        case "numeric":
            precision, scale = (modifier - 4) >> 16 & 0xFFFF, (modifier - 4) & 0x7FF
            fitting = precision <= t.MAX_PRECISION and scale <= precision
            return t.DecimalType(precision=precision, scale=scale) if fitting else None
        case "bpchar":
            return t.STRING if modifier < 0 else t.CharType(length=modifier - 4)
        case "varchar":
            return t.STRING if modifier < 0 else t.VarCharType(length=modifier - 4)
        case "time":
            return t.TimeType(precision=6 if modifier < 0 else modifier)
        case "timestamp":
            return t.TimestampType(precision=6 if modifier < 0 else modifier)
        case "timestamptz":
            return t.TimestampLtzType(precision=6 if modifier < 0 else modifier)
    return _FIXED.get(base)


@contextmanager
def _said(what: str) -> Iterator[None]:
    """What PostgreSQL or libpq refuse, in one sentence."""
    try:
        yield
    except adbc_driver_manager.Error as error:
        told = {_text(key): value for key, value in error.details or ()}
        reason = told.get("PG_DIAG_MESSAGE_PRIMARY")
        detail = told.get("PG_DIAG_MESSAGE_DETAIL")
        text = _text(reason) if reason else _libpq(str(error))
        if detail:
            text += f" ({_text(detail).rstrip('.')})"
        state = error.sqlstate or ""
        lost = not state.strip("\0") and not reason
        raise ConnectorError("database", f"{what}: {text}.", retryable=lost or state.startswith(_PASSING)) from error


def _text(told: bytes | str) -> str:
    return told.decode("utf-8", "replace") if isinstance(told, bytes) else told


def _libpq(text: str) -> str:
    """The sentence of libpq in what ADBC says."""
    line = text.strip().partition("\n")[0]
    for mark in ("Failed to connect: ", "[libpq] "):
        line = line.rpartition(mark)[2]
    return line.strip().rstrip(".")
