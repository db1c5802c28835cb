"""How the rows of one table lie in the log, and what is read out of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from flowsql_compute.kernels.wire import mysql_rows
from flowsql_connectors.cdc.log import Bools, ChunkKey, Int64s, Kinds
from flowsql_connectors.cdc.mysql.columns.fit import fitted
from flowsql_connectors.cdc.mysql.columns.values import ReadValues, UnreadableTypeError, reader_of
from flowsql_connectors.cdc.mysql.table_map import LogColumn
from flowsql_core.errors import ConnectorError
from flowsql_core.record import record
from flowsql_core.row import DELETE, INSERT, UPDATE_AFTER, UPDATE_BEFORE
from flowsql_core.types import logical as t

#: Types of events of rows; those of MariaDB and of MySQL before 5.6 are the first version.
WRITES: Final = (23, 30)
UPDATES: Final = (24, 31)
DELETES: Final = (25, 32)
ROWS: Final = frozenset({*WRITES, *UPDATES, *DELETES})
_SECOND_VERSION: Final = 30


@record
class Wanted:
    """What a scan reads of each table.

    ``zone``: of the server. ``binary_as``: how bytes are spelled as texts. ``legacy_json``: documents of MySQL's JSON
    have no blanks between their values.
    """

    columns: t.Schema
    zone: str
    binary_as: str
    legacy_json: bool


@record
class DecodedRows:
    """Rows of some events of one table. ``counts``: of each event; ``keys``: of chunks, None where nothing cuts it."""

    columns: Sequence[Any]
    kinds: Kinds
    keys: Any
    counts: Int64s


@record
class RowLayout:
    """A table's rows.

    ``table``: its place among those that are read. ``slots``: of each column, -1 of one that nobody looks at;
    ``slot_count``: how many there are. ``reads``: slots of the wanted columns with what reads their values, and behind
    them of the key of chunks. ``keys``: slots of the primary key.
    """

    table: int
    name: str
    widths: Int64s
    slots: Int64s
    slot_count: int
    reads: Sequence[tuple[int, ReadValues]]
    keys: Sequence[int]
    chunk: ChunkKey | None
    wanted: Wanted

    def decode(self, data: Any, events: Int64s, upserts: bool) -> DecodedRows:
        """The rows of events, in their order.

        Args:
            data: uint8 (n,). ``events``: (events, 6), as ``scan_events`` has them.
            upserts: no rows as they were before an update.

        Raises:
            ConnectorError: rows are not whole.
        """
        types = events[:, mysql_rows.TYPE]
        updates = np.isin(types, UPDATES)
        shapes = np.stack([1 + (types >= _SECOND_VERSION), 1 + updates], axis=1).astype(np.int64)
        counts = np.zeros(len(events), np.int64)
        nothing = np.empty((self.slot_count, 0), np.int64)
        rows = self._walk(data, events, shapes, False, counts, nothing, nothing.astype(np.uint8))
        ranges, valid = np.empty((self.slot_count, rows), np.int64), np.empty((self.slot_count, rows), np.uint8)
        self._walk(data, events, shapes, True, counts, ranges, valid)
        kinds = np.repeat(np.where(np.isin(types, DELETES), DELETE, INSERT).astype(np.uint8), counts)
        kept = self._updates(data, np.flatnonzero(np.repeat(updates, counts)), ranges, valid, kinds, upserts)
        if kept is not None:
            ranges, valid, kinds = ranges[:, kept], valid[:, kept], kinds[kept]
            counts = np.add.reduceat(np.append(kept, False).astype(np.int64), np.cumsum(counts) - counts) * (counts > 0)
        arrays = [
            read(data, np.ascontiguousarray(ranges[slot]), valid[slot].astype(np.bool_)) for slot, read in self.reads
        ]
        wanted = self.wanted
        columns = [
            fitted(array, column, wanted.zone, wanted.binary_as)
            for array, column in zip(arrays, wanted.columns, strict=False)
        ]
        return DecodedRows(columns, kinds, self._chunk_keys(arrays), counts)

    def _chunk_keys(self, arrays: Sequence[Any]) -> Any:
        if self.chunk is None:
            return None
        return arrays[-1] if self.chunk.integer else arrays[-1].cast(pa.string())

    def _walk(
        self, data: Any, events: Int64s, shapes: Int64s, fill: bool, counts: Int64s, ranges: Any, valid: Any
    ) -> int:
        rows = int(mysql_rows.walk_rows(data, events, shapes, self.widths, self.slots, fill, counts, ranges, valid))
        if rows == mysql_rows.PARTIAL:
            raise ConnectorError(
                "mysql-cdc-log",
                f"The log has only parts of rows of table '{self.name}'.",
                hint="sessions must not change binlog_row_image from FULL",
            )
        if rows < 0:
            raise ConnectorError("mysql-cdc-log", f"The log has rows of table '{self.name}' that are not as it says.")
        return rows

    def _updates(
        self, data: Any, places: Int64s, ranges: Int64s, valid: Any, kinds: Kinds, upserts: bool
    ) -> Bools | None:
        """Set the kinds of updated rows, as they were and as they are by turns; which rows are kept, None: all."""
        if not len(places):
            return None
        before, after = places[::2], places[1::2]
        same = np.ones(len(before), np.uint8)
        for slot in self.keys:
            mysql_rows.clear_different(
                data, ranges[slot, before], ranges[slot, after], valid[slot, before], valid[slot, after], same
            )
        kinds[before] = np.where(same, UPDATE_BEFORE, DELETE)
        kinds[after] = np.where(same, UPDATE_AFTER, INSERT)
        if not upserts:
            return None
        kept = np.ones(len(kinds), np.bool_)
        kept[before] = same == 0
        return kept


class _Slots:
    """Gives each column that is looked at a slot."""

    def __init__(self, count: int) -> None:
        self.of_column = np.full(count, -1, np.int64)
        self.count = 0

    def of(self, column: int) -> int:
        """The slot of a column."""
        if self.of_column[column] < 0:
            self.of_column[column] = self.count
            self.count += 1
        return int(self.of_column[column])


def layout_of(
    place: int,
    name: str,
    columns: Sequence[LogColumn],
    primary_key: Sequence[int],
    chunk: ChunkKey | None,
    wanted: Wanted,
) -> RowLayout:
    """The layout of a table whose columns in the log are fully known.

    Args:
        chunk: the column that cuts it into chunks.

    Raises:
        ConnectorError: a wanted column is missing, or its values do not fit.
    """
    names = [column.name for column in columns]
    slots = _Slots(len(columns))
    reads: list[tuple[int, ReadValues]] = []
    declared = [(column.name, column.type) for column in wanted.columns]
    if chunk is not None:
        declared.append((chunk.column, t.BIGINT if chunk.integer else t.STRING))
    for column, type_ in declared:
        if column not in names:
            raise ConnectorError("mysql-cdc-schema", f"Table '{name}' has no column '{column}' any more.")
        there = columns[names.index(column)]
        try:
            reads.append((slots.of(names.index(column)), reader_of(there, type_, wanted.legacy_json)))
        except UnreadableTypeError as error:
            raise ConnectorError("mysql-cdc-schema", f"Column '{column}' of table '{name}': {error}.") from None
    keys = [slots.of(there) for there in primary_key]
    widths = np.array([column.wire.width for column in columns], np.int64)
    return RowLayout(place, name, widths, slots.of_column, slots.count, reads, keys, chunk, wanted)
