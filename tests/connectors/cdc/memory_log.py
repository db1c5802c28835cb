"""A database in memory whose log is read: what a server does, in an order that a test chooses."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
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
    LogBatch,
    Place,
    TableChanges,
    Transaction,
)
from flowsql_core.errors import ConnectorError
from flowsql_core.row import DELETE, INSERT, UPDATE_AFTER, UPDATE_BEFORE

Change = tuple[int, int, int, int]


class MemoryDatabase:
    """Tables of ``id -> value``, and all transactions as lists of ``(table, kind, id, value)``.

    Args:
        texts: keys are texts, which are ordered backwards, as no client would do it.
        columns: which of the two are read.
    """

    def __init__(
        self, names: Sequence[str], seed: int, *, texts: bool = False, columns: Sequence[int] = (0, 1)
    ) -> None:
        self.names = list(names)
        self.texts = texts
        self.columns = columns
        self.rows: list[dict[int, int]] = [{} for _ in names]
        self.log: list[list[Change]] = []
        self.draw = random.Random(seed)
        #: How often a connection is lost, of 100 calls.
        self.losses = 0
        self.told: Json = None
        #: Whether others write between calls.
        self.busy = True
        self._lock = threading.RLock()

    def write(self, transactions: int) -> None:
        """Transactions of random changes."""
        for _ in range(transactions):
            self.log.append([change for _ in range(self.draw.randint(0, 6)) for change in self._change()])

    def _change(self) -> list[Change]:
        table = self.draw.randrange(len(self.rows))
        rows = self.rows[table]
        id_, value = self.draw.randrange(60), self.draw.randrange(1000)
        if id_ not in rows:
            rows[id_] = value
            return [(table, INSERT, id_, value)]
        before = rows.pop(id_)
        if self.draw.random() < 0.3:
            return [(table, DELETE, id_, before)]
        moved = self.draw.randrange(60)
        if self.draw.random() < 0.3 and moved not in rows:
            rows[moved] = value
            return [(table, DELETE, id_, before), (table, INSERT, moved, value)]
        rows[id_] = value
        return [(table, UPDATE_BEFORE, id_, before), (table, UPDATE_AFTER, id_, value)]

    @contextmanager
    def visited(self) -> Iterator[MemoryDatabase]:
        """A call of a client, between which others write and connections are lost."""
        with self._lock:
            if self.busy and self.draw.random() < 0.3:
                self.write(1)
            if self.draw.randrange(100) < self.losses:
                raise ConnectorError("database", "The connection was lost.", retryable=True)
            yield self

    def order(self, id_: int) -> Any:
        """A key as bounds have it."""
        return f"{999 - id_}" if self.texts else id_


class MemoryLog(DatabaseLog):
    """A client of a :class:`MemoryDatabase`. Positions and marks are numbers of transactions."""

    def __init__(self, database: MemoryDatabase) -> None:
        self._database = database

    def tables(self) -> tuple[CapturedTable, ...]:
        """All of them."""
        key = ChunkKey("id", integer=not self._database.texts)
        return tuple(CapturedTable(name, {"table_name": name}, key) for name in self._database.names)

    def prepare(self) -> Json:
        """The end of the log."""
        with self._database.visited() as database:
            return len(database.log)

    def start(self, mode: str) -> Json:
        """The end of the log."""
        return len(self._database.log)

    def end(self) -> Json:
        """The number of transactions."""
        with self._database.visited() as database:
            return len(database.log)

    def reached(self, position: Json, end: Json) -> bool:
        """Behind so many transactions."""
        return bool(position >= end)

    def extremes(self, table: CapturedTable) -> tuple[int, int, float] | None:
        """As they are."""
        with self._database.visited():
            ids = self._rows(table)
            return (min(ids), max(ids), float(len(ids))) if ids else None

    def next_bound(self, table: CapturedTable, low: Json, rows: int) -> Json:
        """The key so many rows on."""
        with self._database.visited() as database:
            keys = sorted(database.order(id_) for id_ in self._rows(table))
        above = [key for key in keys if low is None or key >= low]
        return above[rows] if len(above) > rows else None

    def read_chunk(self, chunk: Chunk) -> ChunkRows:
        """Rows within the bounds."""
        order = self._database.order
        with self._database.visited() as database:
            mark = len(database.log)
            found = {
                id_: value
                for id_, value in self._rows(chunk.table).items()
                if (chunk.low is None or order(id_) >= chunk.low) and (chunk.high is None or order(id_) < chunk.high)
            }
        columns = [pa.array(list(found), pa.int32()), pa.array(list(found.values()), pa.int32())]
        return ChunkRows([columns[place] for place in self._database.columns], len(found), mark)

    def _rows(self, table: CapturedTable) -> dict[int, int]:
        return self._database.rows[self._database.names.index(table.id)]

    def places(self, table: CapturedTable, bounds: Sequence[Json], keys: Any) -> Int64s:
        """By comparing texts."""
        return np.array([sum(bound <= key for bound in bounds) for key in keys.to_pylist()], np.int64)

    def seen(self, mark: Json, transactions: Sequence[Transaction]) -> Bools:
        """Those before the mark."""
        return np.array([transaction.position < mark for transaction in transactions])

    def passed(self, mark: Json, position: Json) -> bool:
        """Behind the mark."""
        return bool(position >= mark)

    def stream(self, position: Json) -> ChangeStream:
        """Transactions by number."""
        with self._database.visited() as database:
            return _Stream(database, position)

    def close(self) -> None:
        """Nothing is open."""


class _Stream(ChangeStream):
    def __init__(self, database: MemoryDatabase, position: int) -> None:
        self._database = database
        self._next = position
        self._within = 0

    def read(self, max_rows: int, timeout_s: float) -> LogBatch | None:
        """A few transactions, or the beginning of one."""
        with self._database.visited() as database:
            return self._some(database.log)

    def _some(self, log: list[list[Change]]) -> LogBatch | None:
        if self._next >= len(log):
            return None
        begun = self._next
        taken: list[tuple[int, int, Change]] = []
        while self._next < len(log) and len(taken) < self._database.draw.randint(1, 10):
            changes = log[self._next]
            stop = min(self._within + self._database.draw.randint(1, 6), len(changes))
            taken += [(self._next - begun, at, changes[at]) for at in range(self._within, stop)]
            self._within = stop
            if stop < len(changes):
                break
            self._next, self._within = self._next + 1, 0
        last = min(self._next, len(log) - 1)
        tables = []
        for table in sorted({change[0] for _, _, change in taken}):
            lines = [line for line, (_, _, change) in enumerate(taken) if change[0] == table]
            ids = [taken[line][2][2] for line in lines]
            keys = pa.array([self._database.order(id_) for id_ in ids])
            columns = [pa.array(ids, pa.int32()), pa.array([taken[line][2][3] for line in lines], pa.int32())]
            tables.append(
                TableChanges(
                    table,
                    [columns[place] for place in self._database.columns],
                    np.array([taken[line][2][1] for line in lines], np.uint8),
                    keys,
                    np.array(lines, np.int64),
                )
            )
        return LogBatch(
            Place(self._next, self._within),
            [Transaction(number) for number in range(begun, last + 1)],
            tables,
            len(taken),
            np.array([transaction for transaction, _, _ in taken], np.int32),
            np.array([ordinal for _, ordinal, _ in taken], np.int64),
            np.array([1000 + begun + transaction for transaction, _, _ in taken], np.int64),
        )

    def confirm(self, position: Json) -> None:
        """Keep it to be looked at."""
        self._database.told = position

    def close(self) -> None:
        """Nothing is open."""
