"""PostgreSQL's log: tables, slot and publication, chunks, and the stream of a slot."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

import numpy as np
import psycopg
import pyarrow as pa

from flowsql_connectors.cdc.log import (
    Bools,
    CapturedTable,
    ChangeStream,
    Chunk,
    ChunkKey,
    ChunkRows,
    DatabaseLog,
    Int64s,
    Json,
    Transaction,
)
from flowsql_connectors.cdc.postgres.catalog import SourceColumn, SourceTable, tables_like, types_of
from flowsql_connectors.cdc.postgres.connection import asked, said
from flowsql_connectors.cdc.postgres.decode import Captured, ChangeDecoder, Relation
from flowsql_connectors.cdc.postgres.options import COMMITTED
from flowsql_connectors.cdc.postgres.positions import Visible
from flowsql_connectors.cdc.postgres.settings import PostgresSettings
from flowsql_connectors.cdc.postgres.slot import Slot
from flowsql_connectors.cdc.postgres.stream import PostgresStream
from flowsql_connectors.jdbc.literals import sql_text
from flowsql_connectors.jdbc.native import NativeColumn, matched
from flowsql_connectors.jdbc.postgres import PostgresDatabase, PostgresDialect, bare_type
from flowsql_core.arrow import compute as pc
from flowsql_core.errors import ConnectorError, did_you_mean
from flowsql_core.graph.specs import ScanSpec
from flowsql_core.types.arrow import to_arrow
from flowsql_core.types.logical import INT, ArrayType, Column, IntegerType, LogicalType, Schema

logger = logging.getLogger(__name__)

_DIALECT: Final = PostgresDialect()
_ANYTHING: Final = re.compile(".*")
#: What is read where no column is: rows count all the same.
_ONE: Final = (Column("1", INT),)
#: Both as of the same moment: what is shown was committed before the end of the log.
_MARK: Final = "SELECT txid_current_snapshot()::text, (pg_current_wal_insert_lsn() - '0/0')::int8"
#: How often and how long a slot that is still read is asked for again before it stays, seconds.
_DROP_PAUSE_S: Final = 0.1
_DROP_TRIES: Final = 50


class PostgresLog(DatabaseLog):
    """The log of one server for one scan; it connects when it is first asked."""

    def __init__(self, settings: PostgresSettings, scan: ScanSpec) -> None:
        self._settings = settings
        self._declared = scan.table.columns
        self._output: Schema = scan.output[: len(scan.projection)]
        self._slot = Slot(settings, self._ask)
        self._queries: psycopg.Connection[tuple[Any, ...]] | None = None
        self._rows: PostgresDatabase | None = None
        self._found: tuple[SourceTable, ...] = ()
        self._captured: tuple[CapturedTable, ...] = ()

    def _ask(self, query: str, *parameters: Any) -> list[tuple[Any, ...]]:
        if self._queries is None:
            self._queries = self._settings.server.queries()
        with said(self._settings.server.shown):
            return asked(self._queries, query, *parameters)

    def tables(self) -> tuple[CapturedTable, ...]:
        """Tables whose names match, in a database that may be read as the scan does."""
        if not self._captured:
            if self._settings.reads_log:
                self._check_log()
            self._found = tuple(self._matching())
            self._captured = tuple(self._capture(table) for table in self._found)
        return self._captured

    def _check_log(self) -> None:
        ((level,),) = self._ask("SHOW wal_level")
        if level != "logical":
            raise ConnectorError(
                "wal-level",
                f"{self._settings.server.shown} writes a log that has no rows: 'wal_level' is {level}.",
                hint="set wal_level = logical in postgresql.conf and restart the server",
            )

    def _matching(self) -> list[SourceTable]:
        settings = self._settings
        found = tables_like(self._ask, settings.schema, settings.table)
        named = f"'{settings.schema.pattern}.{settings.table.pattern}'"
        whole = [table for table in found if not table.partitioned or settings.partitioned]
        if not whole:
            if found:
                raise ConnectorError(
                    "partitioned-table",
                    f"Table '{found[0].id}' is partitioned.",
                    hint="'scan.include-partitioned-tables.enabled' = 'true' reads it; or name its partitions",
                )
            others = [table.id for table in tables_like(self._ask, settings.schema, _ANYTHING)]
            raise ConnectorError(
                "no-such-table",
                f"Database '{settings.server.database}' at {settings.server.shown} has no table {named}.",
                hint=did_you_mean(named.strip("'"), others)
                or "'schema-name' and 'table-name' are names or patterns of whole names",
            )
        for table in whole:
            if not table.readable:
                raise ConnectorError(
                    "database",
                    f"User '{settings.server.user}' may not read table '{table.id}' at {settings.server.shown}.",
                    hint=f"GRANT USAGE ON SCHEMA {table.schema} TO {settings.server.user}; "
                    f"GRANT SELECT ON {table.id} TO {settings.server.user}",
                )
        return whole

    def _capture(self, table: SourceTable) -> CapturedTable:
        natives = {name: column.native for name, column in table.columns.items()}
        matched(table.id, natives, self._declared)
        for column in self._output:
            if self._settings.reads_log and table.columns[column.name].generated:
                raise ConnectorError(
                    "generated-column",
                    f"Column '{column.name}' of table '{table.id}' is generated: the log does not have it.",
                    hint="leave it out, or compute it in a column of the declared table",
                )
        metadata = {
            "database_name": self._settings.server.database,
            "schema_name": table.schema,
            "table_name": table.name,
        }
        name = self._settings.chunk_column or next(iter(table.key), None)
        if name is None:
            return CapturedTable(table.id, metadata, None)
        if name not in natives:
            raise ConnectorError(
                "no-such-column",
                f"'scan.incremental.snapshot.chunk.key-column': table '{table.id}' has no column '{name}'.",
                hint=did_you_mean(name, natives),
            )
        if self._settings.scan.upserts and name not in table.key:
            raise ConnectorError(
                "chunk-column",
                f"'scan.incremental.snapshot.chunk.key-column': '{name}' is not in the primary key of '{table.id}', so "
                "an upsert might come before the row that it replaces.",
                hint="take a column of the primary key",
            )
        return CapturedTable(table.id, metadata, ChunkKey(name, isinstance(natives[name].type, IntegerType)))

    def prepare(self) -> Json:
        """Where the slot stands, which is made where it is missing."""
        self.tables()
        return self._slot.made(self._found)

    def start(self, mode: str) -> Json:
        """``committed-offset``: where the slot stands; ``latest-offset``: the end of the log."""
        if mode == COMMITTED:
            return self._slot.existing()
        confirmed: int = self.prepare()
        ((end,),) = self._ask("SELECT (pg_current_wal_lsn() - '0/0')::int8")
        return max(confirmed, end)

    def end(self) -> Json:
        """What the server has flushed, which it sends up to: beyond, transactions are not durable yet."""
        ((end,),) = self._ask("SELECT (pg_current_wal_flush_lsn() - '0/0')::int8")
        return end

    def reached(self, position: Json, end: Json) -> bool:
        """Positions are numbers of bytes."""
        return bool(position >= end)

    # -- chunks -----------------------------------------------------------------------------------------------------

    def _table(self, id_: str) -> SourceTable:
        self.tables()
        return next(table for table in self._found if table.id == id_)

    def _from(self, table: SourceTable) -> str:
        query = self._settings.overrides.get(table.id)
        return table.quoted if query is None else f"({query}) AS rows_of_snapshot"

    def _key(self, captured: CapturedTable) -> SourceColumn:
        assert captured.key is not None
        return self._table(captured.id).columns[captured.key.column]

    def _bound(self, captured: CapturedTable, bound: Json) -> str:
        return str(bound) if isinstance(bound, int) else f"{sql_text(bound)}::{bare_type(self._key(captured).native)}"

    def extremes(self, table: CapturedTable) -> tuple[int, int, float] | None:
        """From the index, and the number of rows that ANALYZE found last."""
        source = self._table(table.id)
        key = _DIALECT.quote(self._key(table).native.name)
        ((least, greatest),) = self._ask(f"SELECT min({key})::int8, max({key})::int8 FROM {self._from(source)}")
        if least is None:
            return None
        ((rows,),) = self._ask("SELECT reltuples::float8 FROM pg_class WHERE oid = %s", source.oid)
        if rows <= 0:
            ((rows,),) = self._ask(f"SELECT count(*) FROM {self._from(source)}")
        return least, greatest, float(rows)

    def next_bound(self, table: CapturedTable, low: Json, rows: int) -> Json:
        """One step through the index; behind many equal keys the next other one."""
        source, native = self._from(self._table(table.id)), self._key(table).native
        key = _DIALECT.quote(native.name)
        shown = f"{key}::int8" if table.key is not None and table.key.integer else f"{key}::text"
        above = f"{key} IS NOT NULL" if low is None else f"{key} >= {self._bound(table, low)}"
        found = self._ask(f"SELECT {shown} FROM {source} WHERE {above} ORDER BY {key} OFFSET {rows} LIMIT 1")
        if not found:
            return None
        ((bound,),) = found
        least = low
        if least is None:
            ((least,),) = self._ask(f"SELECT {shown} FROM {source} WHERE {above} ORDER BY {key} LIMIT 1")
        if bound != least:
            return bound
        found = self._ask(
            f"SELECT {shown} FROM {source} WHERE {key} > {self._bound(table, bound)} ORDER BY {key} LIMIT 1"
        )
        return found[0][0] if found else None

    def read_chunk(self, chunk: Chunk) -> ChunkRows:
        """In a transaction of its own, whose snapshot is the mark."""
        source = self._table(chunk.table.id)
        wanted = [_read(source.columns[column.name].native, column.type) for column in self._output] or ["1"]
        query = f"SELECT {', '.join(wanted)} FROM {self._from(source)}"
        within = self._within(chunk)
        if within:
            query += f" WHERE {within}"
        if self._rows is None:
            self._rows = self._settings.server.rows()
        self._rows.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        ((snapshot, end),) = self._rows.query(_MARK)
        counted = self._output or _ONE
        batches = list(self._rows.read(query, counted, self._settings.scan.chunk_rows))
        self._rows.execute("COMMIT")
        columns = [
            pa.concat_arrays([batch[place] for batch in batches]) if batches else pa.nulls(0, to_arrow(column.type))
            for place, column in enumerate(counted)
        ]
        return ChunkRows(columns[: len(self._output)], len(columns[0]), [snapshot, end])

    def _within(self, chunk: Chunk) -> str:
        if chunk.table.key is None:
            return ""
        key = _DIALECT.quote(chunk.table.key.column)
        low = None if chunk.low is None else f"{key} >= {self._bound(chunk.table, chunk.low)}"
        high = None if chunk.high is None else f"{key} < {self._bound(chunk.table, chunk.high)}"
        if low is None:
            return "" if high is None else f"({high} OR {key} IS NULL)"
        return low if high is None else f"{low} AND {high}"

    def places(self, table: CapturedTable, bounds: Sequence[Json], keys: Any) -> Int64s:
        """By the server, whose collations and types no client has."""
        column = self._key(table)
        bare = bare_type(column.native)
        collation = "" if column.collation is None else f" COLLATE {column.collation}"
        encoded = pc.dictionary_encode(keys)
        found = self._ask(
            f"SELECT width_bucket(k.key::{bare}{collation}, %s::{bare}[]) FROM unnest(%s::text[]) WITH ORDINALITY AS "
            "k(key, number) ORDER BY k.number",
            list(bounds),
            encoded.dictionary.to_pylist(),
        )
        of_distinct = pa.array([place for (place,) in found], pa.int64())
        taken = of_distinct.take(encoded.indices)
        return np.asarray(pc.fill_null(taken, 0))

    def seen(self, mark: Json, transactions: Sequence[Transaction]) -> Bools:
        """What the snapshot of a chunk shows."""
        return Visible.of(mark[0]).shows([transaction.id for transaction in transactions])

    def passed(self, mark: Json, position: Json) -> bool:
        """What a snapshot shows was committed before the end of the log at that moment."""
        return bool(position >= mark[1])

    # -- the log ----------------------------------------------------------------------------------------------------

    def stream(self, position: Json) -> ChangeStream:
        """The slot's stream from an LSN on."""
        self.tables()
        self._slot.check(position)
        places = {table.id: place for place, table in enumerate(self._found)}
        decoder = ChangeDecoder(position, self._settings.rules, lambda relation: self._relation(relation, places))
        return PostgresStream(
            self._settings.server.replication(),
            self._settings.server.shown,
            self._settings.slot,
            self._settings.publication,
            position,
            decoder,
            self._settings.heartbeat_ms,
        )

    def _relation(self, relation: Relation, places: Mapping[str, int]) -> Captured | None:
        """What is read of a relation, whose columns may be others than now."""
        place = places.get(relation.id)
        if place is None:
            return None
        source, captured = self._found[place], self._captured[place]
        natives = {}
        unlike: list[tuple[str, int, int]] = []
        for name, type_, modifier in relation.columns:
            now = source.columns.get(name)
            if now is not None and now.type_id == (type_, modifier):
                natives[name] = now.native
            else:
                unlike.append((name, type_, modifier))
        types = types_of(self._ask, {(type_, modifier) for _, type_, modifier in unlike})
        for name, type_, modifier in unlike:
            spelled, logical = types.get((type_, modifier), ("a type that was dropped", None))
            natives[name] = NativeColumn(name, spelled, logical)
        # Chunks are told by their key, whether it is asked for or not.
        cutting = () if captured.key is None else (captured.key.column,)
        hidden = next((name for name in cutting if name not in natives), None)
        if hidden is not None:
            raise ConnectorError(
                "changed-table",
                f"The log has no column '{hidden}' of table '{relation.id}', by which its rows are cut into chunks.",
                hint="'scan.incremental.snapshot.chunk.key-column' names another one; begin anew",
            )
        try:
            needed = matched(relation.id, natives, self._output)
        except ConnectorError as error:
            raise ConnectorError(
                "changed-table",
                f"Table '{relation.id}' was changed, and does not fit its declaration from there on in the log: "
                f"{error.message}",
                hint="declare the table as it is now and begin anew, or change it back for a later start",
            ) from error
        keys = tuple(name for name in source.key if name in natives)
        return Captured(place, self._output, needed, keys, captured.key)

    def cancel(self) -> None:
        """Ask the server to give the queries up."""
        queries, rows = self._queries, self._rows
        with suppress(psycopg.Error):
            if queries is not None:
                queries.cancel_safe(timeout=2)
        if rows is not None:
            rows.cancel()

    def finish(self) -> None:
        """``debezium.slot.drop.on.stop``; the server may take a moment to see that nobody reads the slot any more, and
        to have answered to :meth:`cancel`."""
        if not self._settings.drop_slot or not self._settings.reads_log:
            return
        for _ in range(_DROP_TRIES):
            try:
                return self._slot.drop()
            except ConnectorError as error:
                logger.debug("%s", error.message)
                time.sleep(_DROP_PAUSE_S)
        logger.warning("Replication slot '%s' is still there: it could not be dropped.", self._settings.slot)

    def close(self) -> None:
        """Whatever state the connections are in."""
        if self._rows is not None:
            self._rows.close()
        if self._queries is not None:
            with suppress(psycopg.Error):
                self._queries.close()
        self._rows = self._queries = None


def _read(native: NativeColumn, type_: LogicalType) -> str:
    """A column's value as the log has it: where texts are read, the ones that PostgreSQL shows, as a cast to text gives
    others for some types (``inet``)."""
    if native.type is None and not isinstance(type_, ArrayType):
        column = _DIALECT.quote(native.name)
        return f"CASE WHEN {column} IS NOT NULL THEN format('%s', {column}) END"
    return _DIALECT.read(native, type_)
