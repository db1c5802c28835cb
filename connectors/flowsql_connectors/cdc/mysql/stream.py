"""The log's events as changes of tables.

A transaction begins with its id (or, in old servers, with BEGIN) and ends with XID or COMMIT; a statement that changes
tables themselves is one alone. Rows of an event are decoded together, and those of all events of a table that came at
once.
"""

from __future__ import annotations

import logging
import re
import struct
import zlib
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa

from flowsql_compute.kernels.wire.mysql_rows import TIME
from flowsql_connectors.cdc.log import ChangeStream, Int64s, Json, LogBatch, Place, TableChanges, Transaction
from flowsql_connectors.cdc.mysql.cursor import Cursor
from flowsql_connectors.cdc.mysql.dump import Dump
from flowsql_connectors.cdc.mysql.expand import expanded
from flowsql_connectors.cdc.mysql.layout import ROWS, DecodedRows, RowLayout
from flowsql_connectors.cdc.mysql.position import Position
from flowsql_connectors.cdc.mysql.schema import Schemas
from flowsql_core.errors import ConnectorError

logger = logging.getLogger(__name__)

_QUERY, _ROTATE, _FORMAT, _XID, _TABLE_MAP, _INCIDENT, _HEARTBEAT = 2, 4, 15, 16, 19, 26, 27
_GTID, _ANONYMOUS, _XA_PREPARE, _PARTIAL_ROWS, _TAGGED, _MARIADB_GTID = 33, 34, 38, 39, 42, 162
#: Events whose rows FlowSQL does not read, with the reason.
_UNREAD: Final = {
    _PARTIAL_ROWS: ("parts of JSON documents", "SET GLOBAL binlog_row_value_options = ''"),
}
_STATEMENT: Final = re.compile(r"(?:\s|/\*.*?\*/)*([A-Za-z]+)", re.DOTALL)
_CHANGES_ROWS: Final = frozenset({"INSERT", "UPDATE", "DELETE", "REPLACE", "LOAD"})
_CHANGES_TABLES: Final = frozenset({"ALTER", "CREATE", "DROP", "RENAME", "TRUNCATE"})
_NAME: Final = re.compile(r"(?:(?:`((?:[^`]|``)+)`|([\w$]+))\s*\.\s*)?(?:`((?:[^`]|``)+)`|([\w$]+))")
#: Events that begin a transaction, and those that tell nothing that matters here.
_BEGINS: Final = frozenset({_GTID, _ANONYMOUS, _MARIADB_GTID})
_OTHERS: Final = frozenset({_FORMAT, 13, 14, 28, 29, 160})
#: What a file begins with: sets of global transaction ids, and checkpoints of MariaDB.
_HEADS: Final = frozenset({35, 161, 163})


@dataclass(slots=True)
class _Open:
    """A transaction with rows. ``rows``: those that were handed over; ``place``: in the batch, -1: nowhere."""

    transaction: Transaction
    rows: int = 0
    place: int = -1


class BinlogStream(ChangeStream):
    """Reads the log from a position on.

    Args:
        upserts: no rows as they were before an update.
    """

    def __init__(self, dump: Dump, schemas: Schemas, position: Position, upserts: bool, has_gtids: bool) -> None:
        self._dump = dump
        self._schemas = schemas
        self._upserts = upserts
        self._cursor = Cursor(position, has_gtids)
        #: Whether a transaction is being read, and it, once it has a row.
        self._within = False
        self._open: _Open | None = None
        self._failure: ConnectorError | None = None
        self._since_s = position.since_s
        self._skip_events = position.skip_events
        self._skip_rows = position.skip_rows
        #: By the number of a table: its table map, and what it tells.
        self._layouts: dict[bytes, tuple[bytes, RowLayout | None]] = {}

    def read(self, max_rows: int, timeout_s: float) -> LogBatch | None:
        """What comes next."""
        if self._failure is not None:
            raise self._failure
        found = self._dump.read(timeout_s)
        if found is None:
            return None
        data, events = self._expanded(*found)
        view = memoryview(data)
        before = self._end_of_batch()
        known: list[_Open] = []
        rows: list[tuple[int, RowLayout, int]] = []
        if self._open is not None:
            self._open.place = -1
        try:
            for number, event in enumerate(events.tolist()):
                self._take(number, event, view, rows, known)
        except ConnectorError as error:
            # What came before it is given first.
            self._failure = error
        if rows:
            return self._decoded(data, events, rows, known)
        if self._failure is not None:
            raise self._failure
        end = self._end_of_batch()
        return None if end == before else LogBatch(end)

    def _expanded(self, data: Any, events: Int64s) -> tuple[Any, Int64s]:
        try:
            return expanded(data, events)
        except (ValueError, IndexError, struct.error, zlib.error, pa.ArrowException, OSError) as error:
            raise ConnectorError(
                "mysql-cdc-log", f"The log has at {self._cursor.file}:{self._cursor.place} {error}."
            ) from error

    def _take(
        self,
        number: int,
        event: list[int],
        view: memoryview,
        rows: list[tuple[int, RowLayout, int]],
        known: list[_Open],
    ) -> None:
        """Follow an event; those of rows that are read go to ``rows``."""
        kind, seconds, size, following, start, stop = event
        if kind in ROWS:
            layout = self._layout_of_rows(bytes(view[start : start + 6]), seconds, following)
            if layout is not None:
                rows.append((number, layout, self._place_of_open(known)))
        elif kind == _TABLE_MAP:
            self._table_map(bytes(view[start:stop]), following - size)
        elif kind in _BEGINS:
            self._begin(following - size, bytes(view[start:stop]) if kind != _ANONYMOUS else b"", view, start)
        elif kind in (_XID, _XA_PREPARE):
            self._end(following)
        elif kind not in _OTHERS:
            self._seldom(kind, bytes(view[start:stop]), following, size)
        if self._skip_events and kind not in (_FORMAT, _ROTATE, _HEARTBEAT):
            self._skip_events -= 1

    def _seldom(self, kind: int, body: bytes, following: int, size: int) -> None:
        if kind == _QUERY:
            self._query(body, following, size)
        elif kind == _ROTATE:
            self._cursor.rotate(body[8:].decode(), int.from_bytes(body[:8], "little"), self._within)
        elif kind == _HEARTBEAT or (kind in _HEADS and not self._skip_events and not self._skip_rows):
            if not self._within:
                self._cursor.idle(following)
        elif kind in _UNREAD or kind in (_INCIDENT, _TAGGED):
            self._unread(kind, following)

    def _layout_of_rows(self, number: bytes, seconds: int, following: int) -> RowLayout | None:
        """The layout of an event's rows; None: they are not read."""
        told = self._layouts.get(number)
        if told is None:
            raise ConnectorError(
                "mysql-cdc-log",
                f"The log has rows before {self._cursor.file}:{following} whose table it does not name: its reading "
                "began inside of a statement.",
                hint="begin at the place of a transaction",
            )
        if self._skip_events or seconds < self._since_s:
            return None
        return told[1]

    def _place_of_open(self, known: list[_Open]) -> int:
        """The place of the open transaction among those of the batch."""
        if self._open is None:
            self._open, self._within = _Open(self._cursor.transaction()), True
        if self._open.place < 0:
            self._open.place = len(known)
            known.append(self._open)
        return self._open.place

    def _table_map(self, body: bytes, place: int) -> None:
        told = self._layouts.get(body[:6])
        if told is None or told[0] != body:
            self._layouts[body[:6]] = body, self._schemas.layout(body, f"{self._cursor.file}:{place}")

    def _begin(self, place: int, id_: bytes, data: memoryview, start: int) -> None:
        self._cursor.begin(place, id_, int.from_bytes(data[start - 14 : start - 10], "little"))
        self._within, self._open = True, None

    def _end(self, following: int) -> None:
        """The open transaction is complete."""
        self._cursor.end(following)
        self._within, self._open = False, None

    def _query(self, body: bytes, following: int, size: int) -> None:
        schema_size, about_size = body[8], int.from_bytes(body[11:13], "little")
        schema = body[13 + about_size : 13 + about_size + schema_size].decode(errors="replace")
        text = body[14 + about_size + schema_size :].decode(errors="replace")
        word = found[1].upper() if (found := _STATEMENT.match(text)) else ""
        if word == "BEGIN":
            if not self._within:
                # A server before MySQL 5.7.
                self._cursor.begin(following - size, b"", 0)
                self._within = True
            return
        if word == "SAVEPOINT" or re.match(r"\s*(XA\s+(START|BEGIN|END)|ROLLBACK\s.*TO)\b", text, re.IGNORECASE):
            return
        if word in _CHANGES_TABLES:
            self._schemas.changed()
            self._warn(word, text, schema, following)
        elif word in _CHANGES_ROWS and self._names(text, schema):
            raise ConnectorError(
                "mysql-cdc-log",
                f"The log has a statement before {self._cursor.file}:{following} where the rows that it changed would "
                f"have to be: {text[:60]!r}.",
                hint="sessions must not change binlog_format from ROW",
            )
        self._end(following)

    def _warn(self, word: str, text: str, schema: str, following: int) -> None:
        gone = word == "TRUNCATE" or (word == "DROP" and re.match(r"\s*DROP\s+TABLE\b", text, re.IGNORECASE))
        named = self._names(text, schema) if gone else []
        if named:
            logger.warning(
                "%s at %s:%d of the log: the rows of %s stay in what was read, as the log does not tell them.",
                "TRUNCATE" if word == "TRUNCATE" else "DROP TABLE", self._cursor.file, following, ", ".join(named),
            )  # fmt: skip

    def _names(self, text: str, schema: str) -> list[str]:
        """Tables of a statement that are read."""
        found = []
        for parts in _NAME.findall(text):
            database, table = (
                (parts[0] or parts[1] or schema).replace("``", "`"),
                (parts[2] or parts[3]).replace("``", "`"),
            )
            if self._schemas.is_read(database, table):
                found.append(f"{database}.{table}")
        return found

    def _unread(self, kind: int, following: int) -> None:
        where = f"before {self._cursor.file}:{following}"
        if kind == _INCIDENT:
            raise ConnectorError("mysql-cdc-log", f"The log lacks changes {where}: the server wrote an incident there.")
        if kind == _TAGGED:
            raise ConnectorError(
                "mysql-cdc-log", f"The log has global transaction ids with tags {where}, which are not read."
            )
        what, remedy = _UNREAD[kind]
        raise ConnectorError("mysql-cdc-log", f"The log has {what} {where}, which FlowSQL does not read.", hint=remedy)

    def _end_of_batch(self) -> Place:
        if self._open is not None:
            return Place(self._open.transaction.position, self._open.rows)
        return Place(self._cursor.position())

    def _decoded(
        self, data: Any, events: Int64s, rows: list[tuple[int, RowLayout, int]], known: list[_Open]
    ) -> LogBatch:
        """The rows of events, each with its layout and the place of its transaction."""
        counts = np.zeros(len(rows), np.int64)
        layouts: dict[int, tuple[RowLayout, list[int]]] = {}
        for place, (_, layout, _) in enumerate(rows):
            layouts.setdefault(id(layout), (layout, []))[1].append(place)
        numbers = np.array([number for number, _, _ in rows])
        decoded: list[tuple[RowLayout, Int64s, DecodedRows]] = []
        for layout, places in layouts.values():
            of_layout = np.array(places)
            made = layout.decode(data, np.ascontiguousarray(events[numbers[of_layout]]), self._upserts)
            counts[of_layout] = made.counts
            decoded.append((layout, of_layout, made))
        bounds = np.concatenate([[0], np.cumsum(counts)])
        total = int(bounds[-1])
        of_events = np.array([transaction for _, _, transaction in rows], np.int32)
        transaction = np.repeat(of_events, counts)
        ordinal = self._ordinals(of_events, counts, bounds, known)
        tables = [
            self._changes(layout, made, _lines(bounds[places], made.counts), int(counts[0]))
            for layout, places, made in decoded
        ]
        self._skip_rows = 0
        times_ms = np.repeat(events[numbers, TIME] * 1000, counts)
        transactions = [one.transaction for one in known]
        return LogBatch(self._end_of_batch(), transactions, tables, total, transaction, ordinal, times_ms)

    def _ordinals(self, of_events: Any, counts: Int64s, bounds: Int64s, known: list[_Open]) -> Int64s:
        """The number of each row in its transaction; the first and the last may go on in other batches."""
        first = bounds[np.searchsorted(of_events, np.arange(len(known)))]
        before = np.array([one.rows for one in known], np.int64)
        for one, rows in zip(known, np.diff(np.append(first, bounds[-1])), strict=True):
            one.rows += int(rows)
        ordinal: Int64s = np.arange(int(bounds[-1])) + np.repeat((before - first)[of_events], counts)
        return ordinal

    def _changes(self, layout: RowLayout, made: DecodedRows, lines: Int64s, of_first: int) -> TableChanges:
        """The rows, without those of the first event that are to be left out."""
        left_out = min(self._skip_rows, of_first)
        if not left_out or not len(lines) or lines[0] >= left_out:
            return TableChanges(layout.table, made.columns, made.kinds, made.keys, lines)
        kept = lines >= left_out
        mask = pa.array(kept)
        keys = None if made.keys is None else made.keys.filter(mask)
        columns = [column.filter(mask) for column in made.columns]
        return TableChanges(layout.table, columns, made.kinds[kept], keys, lines[kept])

    def confirm(self, position: Json) -> None:
        """The server drops its log by its own rules."""

    def close(self) -> None:
        """End the connection."""
        self._dump.close()


def _lines(begins: Int64s, counts: Int64s) -> Int64s:
    """Ranges of rows behind one another."""
    total = int(counts.sum())
    inside = np.arange(total) - np.repeat(np.cumsum(counts) - counts, counts)
    return np.repeat(begins, counts) + inside
