"""Which rows of the log are to be emitted: none that a chunk of the snapshot shows, none that was read before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from flowsql_connectors.cdc.log import Bools, CapturedTable, DatabaseLog, Int64s, Json, LogBatch, Place, TableChanges
from flowsql_connectors.cdc.state import TableState


class NewChanges:
    """Tells the rows of the log that are new; chunks are forgotten once the log is beyond what any of them has seen.

    Args:
        tables: by their place.
        states: their chunks, which were all read; rows of other tables are never new.
    """

    def __init__(self, tables: Sequence[CapturedTable], states: Mapping[str, TableState]) -> None:
        self._tables = tables
        self._known = [table.id in states for table in tables]
        self._states = {
            place: states[table.id]
            for place, table in enumerate(tables)
            if table.id in states and states[table.id].marks
        }

    def of(self, log: DatabaseLog, batch: LogBatch, behind: Place) -> list[Bools | None]:
        """Of each table of the batch which of its rows are new, bool (n,); None: all.

        Args:
            behind: where the stream began: so many rows of the transaction there were read before.
        """
        if self._states and batch.transactions:
            self._forget(log, batch.transactions[0].position)
        found = [self._unseen(log, batch, changes) for changes in batch.tables]
        if not behind.done or not batch.transactions or batch.transactions[0].position != behind.position:
            return found
        late = (batch.transaction > 0) | (batch.ordinal >= behind.done)
        return [
            late[changes.lines] if new is None else new & late[changes.lines]
            for changes, new in zip(batch.tables, found, strict=True)
        ]

    def _forget(self, log: DatabaseLog, position: Json) -> None:
        for place, state in list(self._states.items()):
            if all(log.passed(mark, position) for mark in state.marks.values()):
                del self._states[place]

    def _unseen(self, log: DatabaseLog, batch: LogBatch, changes: TableChanges) -> Bools | None:
        if not self._known[changes.table]:
            return np.zeros(len(changes.lines), np.bool_)
        state = self._states.get(changes.table)
        if state is None:
            return None
        chunks = self._chunks(log, changes, state)
        of_rows = batch.transaction[changes.lines]
        new = np.ones(len(chunks), np.bool_)
        for number in np.unique(chunks).tolist():
            mark = state.marks.get(number)
            if mark is not None:
                rows = chunks == number
                new[rows] = ~log.seen(mark, batch.transactions)[of_rows[rows]]
        return new

    def _chunks(self, log: DatabaseLog, changes: TableChanges, state: TableState) -> Int64s:
        """The number of each row's chunk."""
        table = self._tables[changes.table]
        if not state.bounds or table.key is None:
            return np.zeros(len(changes.lines), np.int64)
        if not table.key.integer:
            return log.places(table, state.bounds, changes.keys)
        missing = np.asarray(changes.keys.is_null())
        keys = np.asarray(changes.keys.fill_null(0))
        places = np.searchsorted(np.asarray(state.bounds, np.int64), keys, side="right")
        return np.where(missing, 0, places).astype(np.int64)
