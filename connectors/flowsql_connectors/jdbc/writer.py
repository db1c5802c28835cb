"""Writers of tables of databases: rows wait a little, and go in one transaction each time."""

from __future__ import annotations

import time

from flowsql_connectors.jdbc.changes import reduced
from flowsql_connectors.jdbc.database import Changes, Database, Dialect, Login, Target
from flowsql_connectors.jdbc.native import matched, takes
from flowsql_connectors.jdbc.options import FLUSH_MS, FLUSH_ROWS, SINK_RETRIES, TABLE
from flowsql_connectors.options import OptionValues
from flowsql_connectors.spi.alarm import ALARM
from flowsql_connectors.spi.sink import SinkWriter, WriterContext
from flowsql_core.batch import ChangelogBatch
from flowsql_core.errors import ConnectorError
from flowsql_core.graph.specs import SinkSpec


class JdbcWriter(SinkWriter):
    """Writes when enough rows wait, when they waited long enough, and at each checkpoint.

    What was written once more behind a crash is the same again by key; without a key rows may come twice.
    """

    def __init__(
        self, sink: SinkSpec, dialect: Dialect, login: Login, values: OptionValues, context: WriterContext
    ) -> None:
        self._sink = sink
        self._dialect = dialect
        self._login = login
        self._table = values.get(TABLE)
        self._most_rows = values.get(FLUSH_ROWS)
        self._interval_ms = values.get(FLUSH_MS)
        self._retries = values.get(SINK_RETRIES)
        self._context = context
        names = [column.name for column in sink.table.columns]
        self._keys = tuple(names.index(name) for name in sink.table.primary_key)
        self._waiting: list[ChangelogBatch] = []
        self._rows = 0
        #: Counts the flushes: an alarm that was set before one is out of date.
        self._flushes = 0
        self._database: Database | None = None
        self._target: Target | None = None
        self._closed = False

    def write(self, batch: ChangelogBatch) -> None:
        """Keep the rows, and write if there are enough."""
        first = not self._waiting
        self._waiting.append(batch)
        self._rows += batch.num_rows
        if self._most_rows and self._rows >= self._most_rows:
            self._flush()
        elif first and self._interval_ms:
            number = self._flushes
            ALARM.after(self._interval_ms / 1000, lambda: self._context.submit(lambda: self._due(number)))

    def _due(self, number: int) -> None:
        if number == self._flushes and not self._closed:
            self._flush()

    def flush(self, end_of_input: bool) -> None:
        """All rows are in the table."""
        self._flush()

    def _flush(self) -> None:
        self._flushes += 1
        waiting, self._waiting, self._rows = self._waiting, [], 0
        if not waiting:
            return
        changes = reduced(waiting, self._keys)
        for attempt in range(self._retries + 1):
            try:
                self._write(changes)
                return
            except ConnectorError as error:
                self._disconnect()
                if not error.retryable or attempt == self._retries or not self._may_repeat():
                    raise
                time.sleep(attempt + 1)

    def _may_repeat(self) -> bool:
        """Whether the changes can be written again over another connection."""
        return True

    def _write(self, changes: Changes) -> None:
        database, target = self._opened()
        database.write(target, changes)

    def _opened(self) -> tuple[Database, Target]:
        if self._database is None:
            self._database = self._dialect.connect(self._login, auto_commit=False)
        if self._target is None:
            columns = self._sink.table.columns
            there = self._database.columns(self._table)
            native = matched(self._table, there, columns, any_type=self._dialect.any_type, suits=takes)
            self._target = Target(self._table, columns, native, self._keys)
        return self._database, self._target

    def _disconnect(self) -> None:
        if self._database is not None:
            self._database.close()
            self._database = None

    def close(self) -> None:
        """Release the connection; rows that wait are not written."""
        self._closed = True
        self._disconnect()
