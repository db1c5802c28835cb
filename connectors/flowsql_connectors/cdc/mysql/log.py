"""MySQL and MariaDB as a database whose log is read."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from typing import Any, Final

import numpy as np

from flowsql_connectors.cdc.log import (
    Bools,
    CapturedTable,
    ChangeStream,
    Chunk,
    ChunkRows,
    DatabaseLog,
    Int64s,
    Json,
    TableChanges,
    Transaction,
)
from flowsql_connectors.cdc.mysql.backfill import caught_up, changes_until
from flowsql_connectors.cdc.mysql.columns.column_types import base_name, natural_types
from flowsql_connectors.cdc.mysql.dump import Dump, ServerIds, first_second
from flowsql_connectors.cdc.mysql.gtid import GtidSet
from flowsql_connectors.cdc.mysql.layout import Wanted
from flowsql_connectors.cdc.mysql.position import Position
from flowsql_connectors.cdc.mysql.schema import Schemas
from flowsql_connectors.cdc.mysql.server import Server
from flowsql_connectors.cdc.mysql.snapshot import SnapshotColumn, read_rows, snapshot_columns
from flowsql_connectors.cdc.mysql.stream import BinlogStream
from flowsql_connectors.cdc.mysql.tables import Table, TableColumn, TablePattern, captured, check_columns, find_tables
from flowsql_connectors.jdbc.database import Login
from flowsql_connectors.jdbc.mysql import MySqlDialect
from flowsql_core.errors import ConnectorError
from flowsql_core.record import record
from flowsql_core.types import logical as t

_QUOTE: Final = MySqlDialect().quote
#: Keys whose place among bounds is asked at once.
_KEYS: Final = 512
#: How often a table without primary key is read again.
_TRIES: Final = 10
#: How long a transaction may stand in the log before tables show it, seconds: a server writes the log first.
_COMMIT_S: Final = 0.5
#: Types whose values are compared as what texts of them are cast to; other ones are texts.
_CASTS: Final = {"bigint": "UNSIGNED", "decimal": "DECIMAL(65, 30)", "date": "DATE", "datetime": "DATETIME(6)"}


@record
class MySqlSettings:
    """What a scan of tables asks for.

    ``start``: a position for ``scan.startup.mode`` = specific-offset; ``start_ms``: for timestamp. ``chunks``: whether
    tables are cut into them. ``catches_up``: whether chunks that were read while tables changed are brought up to date.
    """

    pattern: TablePattern
    wanted: Wanted
    heartbeat_ms: int
    start: Position | None = None
    start_ms: int = 0
    chunk_column: str | None = None
    chunks: bool = True
    catches_up: bool = True
    upserts: bool = False


class MySqlLog(DatabaseLog):
    """One connection to ask, and another one for each stream."""

    def __init__(self, login: Login, ids: ServerIds, settings: MySqlSettings) -> None:
        self._login = login
        self._ids = ids
        self._settings = settings
        self._opened: Server | None = None
        self._found: tuple[Table, ...] = ()
        self._captured: tuple[CapturedTable, ...] = ()

    @property
    def _server(self) -> Server:
        if self._opened is None:
            self._opened = Server(self._login)
        return self._opened

    def tables(self) -> tuple[CapturedTable, ...]:
        """The tables that match; whether the log may be read is tried."""
        server, settings = self._server, self._settings
        server.check()
        self._look()
        Dump(server, self._ids, server.end_of_log(), 0, waits=False).close()
        for table in self._found:
            check_columns(table, settings.wanted.columns, settings.wanted.binary_as)
        return self._captured

    def _look(self) -> tuple[Table, ...]:
        if not self._found:
            settings = self._settings
            self._found = find_tables(self._server, settings.pattern)
            self._captured = tuple(captured(table, settings.chunk_column, settings.chunks) for table in self._found)
        return self._found

    def _table(self, table: CapturedTable) -> Table:
        return next(one for one in self._look() if one.id == table.id)

    def prepare(self) -> Json:
        """Where the log stands, once tables show all that is before."""
        server = self._server
        told = server.begin_snapshot()
        server.end_snapshot()
        position = server.end_of_log() if told is None or server.has_gtids else told
        if told is None:
            time.sleep(_COMMIT_S)
        return position.to_json()

    def start(self, mode: str) -> Json:
        """Where a mode begins."""
        server, settings = self._server, self._settings
        match mode:
            case "earliest-offset":
                return Position(server.files()[0], 4, "" if server.has_gtids else None).to_json()
            case "specific-offset":
                assert settings.start is not None
                return self._specific(settings.start).to_json()
            case "timestamp":
                return self._of_time(settings.start_ms).to_json()
        return server.end_of_log().to_json()

    def _specific(self, start: Position) -> Position:
        server = self._server
        if start.gtids is None:
            return start
        if server.is_mariadb:
            return replace(start, gtids=None, last=start.gtids)
        if not server.has_gtids:
            raise ConnectorError(
                "mysql-cdc-log",
                f"'scan.startup.specific-offset.gtid-set' is of no use at {server.shown}: its gtid_mode is not ON.",
            )
        return replace(start, gtids=str(GtidSet(start.gtids)))

    def _of_time(self, milliseconds: int) -> Position:
        """The beginning of the newest file that was begun before a moment; what is older in it is left out."""
        server = self._server
        files = server.files()
        seconds = -(-milliseconds // 1000)
        for file in reversed(files[1:]):
            if first_second(server, self._ids, file) < seconds:
                return Position(file, 4, since_s=seconds)
        return Position(files[0], 4, since_s=seconds)

    def end(self) -> Json:
        """Where the log stands, and what was done by then."""
        return self._server.end_of_log().to_json()

    def reached(self, position: Json, end: Json) -> bool:
        """Whether all that is before the end is before a position."""
        return Position.of_json(position).covers(Position.of_json(end))

    def extremes(self, table: CapturedTable) -> tuple[int, int, float] | None:
        """From the ends of the key's index, and the server's estimate of the rows."""
        assert table.key is not None
        there = self._table(table)
        column = _QUOTE(table.key.column)
        least, greatest = self._server.database.query(f"SELECT MIN({column}), MAX({column}) FROM {_named(there)}")[0]
        if least is None or greatest is None:
            return None
        rows = self._server.database.query(
            "SELECT table_rows FROM information_schema.tables WHERE table_schema = %s AND table_name = %s",
            (there.database, there.name),
        )
        return int(least), int(greatest), float(rows[0][0] or 0)

    def next_bound(self, table: CapturedTable, low: Json, rows: int) -> Json:
        """The key so many rows above, by the key's index."""
        assert table.key is not None
        there = self._table(table)
        column = there.column(table.key.column)
        assert column is not None
        name = _QUOTE(column.name)
        above = "" if low is None else f"WHERE {name} >= {_literal(column)}"
        parameters = () if low is None else (low,)
        found = self._server.database.query(
            f"SELECT {name} FROM {_named(there)} {above} ORDER BY {name} LIMIT 1 OFFSET {int(rows)}", parameters
        )
        if not found or found[0][0] is None:
            return None
        bound = found[0][0]
        # Rows that all have one key are one chunk.
        beyond = "" if low is None else f"AND {name} > {_literal(column)}"
        found = self._server.database.query(
            f"SELECT MIN({name}) FROM {_named(there)} WHERE {name} >= {_literal(column)} {beyond}", (bound, *parameters)
        )
        if found[0][0] is None:
            return None
        return int(found[0][0]) if table.key.integer else found[0][0]

    def read_chunk(self, chunk: Chunk) -> ChunkRows:
        """The rows at one position of the log, if the server tells it; else as they were between two positions, and
        then brought up to the later one."""
        server, settings = self._server, self._settings
        table = self._table(chunk.table)
        columns = snapshot_columns(table, settings.wanted.columns)
        told = server.begin_snapshot()
        if told is not None:
            rows, arrays = self._rows(table, chunk, columns)
            server.end_snapshot()
            return ChunkRows(arrays, rows, told.to_json())
        server.end_snapshot()
        low = server.end_of_log()
        if settings.catches_up:
            time.sleep(_COMMIT_S)
            return self._between(table, chunk, low)
        rows, arrays = self._rows(table, chunk, columns)
        return ChunkRows(arrays, rows, low.to_json())

    def _between(self, table: Table, chunk: Chunk, low: Position) -> ChunkRows:
        """The rows as they are at a position behind ``low``."""
        settings = self._settings
        keys = tuple(t.Column(key.name, natural_types(key.spelled)[0]) for key in table.primary_key)
        wanted = replace(settings.wanted, columns=(*settings.wanted.columns, *keys))
        count = len(settings.wanted.columns)
        for _ in range(_TRIES):
            rows, arrays = self._rows(table, chunk, snapshot_columns(table, wanted.columns))
            high = self._server.end_of_log()
            found = [] if high.order == low.order else self._changes(table, chunk, wanted, low, high)
            if found and keys:
                arrays = caught_up(
                    arrays, range(count, count + len(keys)), found, lambda keys: self._belongs(chunk, keys)
                )
                rows = len(arrays[0])
            if keys or not sum(len(changes.lines) for changes in found):
                return ChunkRows(arrays[:count], rows, high.to_json())
            low = high
        raise ConnectorError(
            "mysql-cdc-chunk",
            f"Table '{table.id}' has no primary key, and changes too often to be read at one moment of the log.",
            hint="give it a primary key, or let its rows be read when nobody writes",
        )

    def _changes(self, table: Table, chunk: Chunk, wanted: Wanted, low: Position, high: Position) -> list[TableChanges]:
        number = [one.id for one in self._look()].index(table.id)
        schemas = Schemas(self._server, self._look(), self._captured, wanted)
        dump = Dump(self._server, self._ids, low, 0)
        stream = BinlogStream(dump, schemas, low, False, self._server.has_gtids)
        try:
            return changes_until(stream, number, high, self._login.timeout_ms / 1000)
        finally:
            stream.close()

    def _belongs(self, chunk: Chunk, keys: Any) -> Bools:
        """Of chunk keys whether their rows are in a chunk."""
        bounds = [bound for bound in (chunk.low, chunk.high) if bound is not None]
        key = chunk.table.key
        if key is None or not bounds:
            return np.ones(0 if keys is None else len(keys), np.bool_)
        if key.integer:
            places = np.searchsorted(np.asarray(bounds, np.int64), np.asarray(keys.fill_null(0)), side="right")
            places = np.where(np.asarray(keys.is_null()), 0, places)
        else:
            places = self.places(chunk.table, bounds, keys)
        inside: Bools = places == (chunk.low is not None)
        return inside

    def _rows(self, table: Table, chunk: Chunk, columns: Sequence[SnapshotColumn]) -> tuple[int, list[Any]]:
        condition, parameters = _condition(table, chunk)
        query = f"SELECT {', '.join(column.expression for column in columns) or '1'} FROM {_named(table)}"
        with closing(self._server.database.connection.cursor()) as cursor:
            query += cursor.mogrify(condition, parameters) if parameters else condition
        return read_rows(self._server, query, columns, self._settings.wanted)

    def places(self, table: CapturedTable, bounds: Sequence[Json], keys: Any) -> Int64s:
        """Asked of the server, which alone knows the order of its collations."""
        assert table.key is not None
        column = self._table(table).column(table.key.column)
        assert column is not None
        one = _literal(column)
        of_bounds = " UNION ALL ".join([f"SELECT {one} AS v"] * len(bounds))
        encoded = keys.dictionary_encode()
        distinct = encoded.dictionary
        found = np.zeros(len(distinct) + 1, np.int64)
        for start in range(0, len(distinct), _KEYS):
            part = distinct.slice(start, _KEYS).to_pylist()
            of_keys = " UNION ALL ".join(f"SELECT {number} AS n, {one} AS v" for number in range(len(part)))
            rows = self._server.database.query(
                f"SELECT k.n, COUNT(*) FROM ({of_keys}) k JOIN ({of_bounds}) b ON k.v >= b.v GROUP BY k.n",
                (*part, *bounds),
            )
            for number, count in rows:
                found[start + int(number)] = int(count)
        numbers = np.asarray(encoded.indices.fill_null(len(distinct)))
        places: Int64s = found[numbers]
        return places

    def seen(self, mark: Json, transactions: Sequence[Transaction]) -> Bools:
        """By global transaction ids where a chunk knows them, else by the place in the log."""
        position = Position.of_json(mark)
        if position.gtids is not None:
            done = GtidSet(position.gtids)
            told = (one.id[1] is not None and done.has(*one.id[1]) for one in transactions)
        else:
            told = (one.id[0] < position.order for one in transactions)
        return np.fromiter(told, np.bool_, len(transactions))

    def passed(self, mark: Json, position: Json) -> bool:
        """Whether all that a chunk has seen is before a position."""
        return Position.of_json(position).covers(Position.of_json(mark))

    def stream(self, position: Json) -> ChangeStream:
        """The log from a position on."""
        server, settings, begin = self._server, self._settings, Position.of_json(position)
        schemas = Schemas(server, self._look(), self._captured, settings.wanted)
        dump = Dump(server, self._ids, begin, settings.heartbeat_ms)
        return BinlogStream(dump, schemas, begin, settings.upserts, server.has_gtids)

    def close(self) -> None:
        """Release the connection to ask; streams have their own."""
        if self._opened is not None:
            self._opened.close()
            self._opened = None


def _named(table: Table) -> str:
    return f"{_QUOTE(table.database)}.{_QUOTE(table.name)}"


def _literal(column: TableColumn) -> str:
    """A parameter as a value that is compared as the column's values are."""
    cast = _CASTS.get(base_name(column.spelled))
    if cast is not None:
        return f"CAST(%s AS {cast})" if "unsigned" in column.spelled or cast != "UNSIGNED" else "%s"
    if column.charset is not None and column.collation is not None:
        return f"CONVERT(%s USING {column.charset}) COLLATE {column.collation}"
    return "%s"


def _condition(table: Table, chunk: Chunk) -> tuple[str, tuple[Any, ...]]:
    """Which rows a chunk has, with the parameters of the condition."""
    key = chunk.table.key
    column = None if key is None else table.column(key.column)
    if column is None or (chunk.low is None and chunk.high is None):
        return "", ()
    name = _QUOTE(column.name).replace("%", "%%")
    literal = _literal(column)
    if chunk.low is None:
        return f" WHERE {name} < {literal} OR {name} IS NULL", (chunk.high,)
    if chunk.high is None:
        return f" WHERE {name} >= {literal}", (chunk.low,)
    return f" WHERE {name} >= {literal} AND {name} < {literal}", (chunk.low, chunk.high)
