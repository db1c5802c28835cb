"""Tables of a :class:`RowSource`: each split is read in a thread of its own, its rows wait for the task in a queue.

A split's position is that of the last :class:`At` with one, and how many rows came behind it.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Mapping, Set
from typing import Any, Final

import orjson
import pyarrow as pa

from flowsql_connectors.options import OptionSet
from flowsql_connectors.rowwise.base import At, DeclaredTable, RowSource, failure_text
from flowsql_connectors.rowwise.values import batch_of_arrow, batch_of_rows, metadata_of_arrow, metadata_of_rows
from flowsql_connectors.spi.source import (
    ReaderContext,
    ReadStatus,
    SourceReader,
    Split,
    SplitBatch,
    SplitEnumerator,
    TableSource,
)
from flowsql_core.batch import ChangelogBatch
from flowsql_core.errors import ConnectorError, FlowSqlError
from flowsql_core.graph.specs import ScanSpec
from flowsql_core.row import ChangelogMode
from flowsql_core.types.logical import Column, LogicalType, Schema
from flowsql_core.types.text import parse_type

#: Items that may wait for the task: a source ahead of that pauses.
_CAPACITY: Final = 100_000
#: How long a reader waits for the iterator of a closed split to end.
_PATIENCE_S: Final = 1.0


class _SplitThread:
    """Reads one split; ``take`` hands out what has come."""

    def __init__(self, source: RowSource, split: Split, wake: Callable[[], None]) -> None:
        self._source = source
        self.id = split.id
        #: Behind which position rows were taken, and how many.
        position, behind = orjson.loads(split.data) if split.data else (None, 0)
        self._position: Any = position
        self._behind = int(behind)
        self._skip = self._behind
        self._waiting: deque[At] = deque()
        self._changed = threading.Condition()
        self._wake = wake
        self._over = False
        #: Whether there was a moment without rows.
        self._had_nothing = False
        self._closing = False
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name=f"read-{split.id}", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            rows = iter(self._source.read(self.id, self._position))
            for item in rows:
                if self._closing:
                    break
                if item is None:
                    self._had_nothing = True
                else:
                    self._put(item if isinstance(item, At) else At(item))
            if (close := getattr(rows, "close", None)) is not None:
                close()
        except BaseException as error:
            self._failure = error
        with self._changed:
            self._over = True
        self._wake()

    def _put(self, item: At) -> None:
        count = item.row.num_rows if isinstance(item.row, pa.RecordBatch) else 1
        if self._skip >= count:
            self._skip -= count
            return
        if self._skip:
            item = At(item.row.slice(self._skip), item.position, item.kind, item.metadata)
            self._skip = 0
        with self._changed:
            self._changed.wait_for(lambda: len(self._waiting) < _CAPACITY or self._closing)
            self._waiting.append(item)
            is_first = len(self._waiting) == 1
        if is_first:
            self._wake()

    def has_something(self) -> bool:
        """Whether rows, the end or a failure can be taken."""
        return bool(self._waiting) or self._over

    def has_caught_up(self) -> bool:
        """Whether all rows were taken that came before some moment without rows."""
        return self._had_nothing and not self._waiting

    def is_at_its_end(self) -> bool:
        """Whether all rows were taken and no further one comes."""
        with self._changed:
            return self._over and not self._waiting and self._failure is None

    def take(self, most: int, connector: str, schema: Schema, keys: Schema) -> ChangelogBatch | None:
        """The next rows, all columns, then metadata of some keys; None where none wait.

        Raises:
            ConnectorError: the source failed, behind the rows that it gave before.
        """
        with self._changed:
            if not self._waiting:
                if self._failure is not None:
                    raise _failed(connector, self.id, self._failure)
                return None
            first = self._waiting[0]
            if isinstance(first.row, pa.RecordBatch):
                rows = self._taken_arrow(first.row, most)
                told = metadata_of_arrow(connector, schema, keys, rows, first.metadata)
                return _with_columns(batch_of_arrow(connector, schema, rows), told)
            taken: list[At] = []
            while self._waiting and len(taken) < most and not isinstance(self._waiting[0].row, pa.RecordBatch):
                taken.append(self._waiting.popleft())
            for item in taken:
                self._count(item.position, 1)
            self._changed.notify()
        batch = batch_of_rows(connector, schema, [item.row for item in taken], [item.kind for item in taken])
        return _with_columns(batch, metadata_of_rows(connector, keys, [item.metadata for item in taken]))

    def _taken_arrow(self, rows: pa.RecordBatch, most: int) -> pa.RecordBatch:
        item = self._waiting.popleft()
        if rows.num_rows > most:
            self._waiting.appendleft(At(rows.slice(most), item.position, item.kind, item.metadata))
            self._count(None, most)
            return rows.slice(0, most)
        self._count(item.position, rows.num_rows)
        self._changed.notify()
        return rows

    def _count(self, position: Any, rows: int) -> None:
        if position is None:
            self._behind += rows
        else:
            self._position, self._behind = position, 0

    def split(self) -> Split:
        """The split at the next row that is taken."""
        try:
            return Split(self.id, orjson.dumps([self._position, self._behind]))
        except TypeError as error:
            raise ConnectorError(
                "bad-position",
                f"The position {self._position!r} of split '{self.id}' cannot be kept: {error}.",
                hint="a position is a number, a text, or a list or dict of them",
            ) from None

    def close(self) -> None:
        """Ask the iterator to end."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        self._thread.join(_PATIENCE_S)


class RowReader(SourceReader):
    """Reads its splits side by side."""

    reads_side_by_side = True

    def __init__(
        self, connector: str, source: RowSource, schema: Schema, columns: tuple[int, ...], keys: Schema
    ) -> None:
        self._connector = connector
        self._source = source
        self._schema = schema
        self._keys = keys
        self._columns = (*columns, *range(len(schema), len(schema) + len(keys)))
        self._threads: list[_SplitThread] = []
        self._no_more = False
        self._paused: Set[str] = frozenset()
        self._wake: Callable[[], None] | None = None

    def add_splits(self, splits: list[Split]) -> None:
        """Begin to read them."""
        self._threads += [_SplitThread(self._source, split, self._woken) for split in splits]

    def caught_up(self) -> bool:
        """Whether every split has had a moment without rows, and all were taken."""
        return all(thread.has_caught_up() for thread in self._threads)

    def no_more_splits(self) -> None:
        """END follows the last row."""
        self._no_more = True
        self._woken()

    def poll(self, max_rows: int) -> SplitBatch | ReadStatus:
        """Rows of the next split that has some."""
        if not self._threads:
            return ReadStatus.END if self._no_more else ReadStatus.NOTHING_NOW
        for _ in range(len(self._threads)):
            thread = self._threads.pop(0)
            self._threads.append(thread)
            if thread.id in self._paused:
                continue
            batch = thread.take(max_rows, self._connector, self._schema, self._keys)
            finished = thread.is_at_its_end()
            if finished:
                self._threads.remove(thread)
            if batch is not None or finished:
                return SplitBatch(thread.id, self._projected(batch), finished)
        return ReadStatus.NOTHING_NOW

    def _projected(self, batch: ChangelogBatch | None) -> ChangelogBatch:
        if batch is None:
            batch = batch_of_rows(self._connector, (*self._schema, *self._keys), [], [])
        if self._columns == tuple(range(len(self._schema) + len(self._keys))):
            return batch
        return batch.with_columns([batch.columns[place] for place in self._columns])

    def pause_splits(self, paused: Set[str]) -> bool:
        """Rows of paused splits wait in their queues."""
        self._paused = paused
        return True

    def wake_when_available(self, wake: Callable[[], None]) -> None:
        """Wake with the next row, the end or a failure of a split."""
        self._wake = wake
        if any(thread.has_something() for thread in self._threads if thread.id not in self._paused):
            self._woken()

    def _woken(self) -> None:
        wake, self._wake = self._wake, None
        if wake is not None:
            wake()

    def snapshot(self) -> list[Split]:
        """The splits that are left, at their next rows."""
        return [thread.split() for thread in self._threads]

    def close(self) -> None:
        """End the threads, then the source."""
        for thread in self._threads:
            thread.close()
        self._source.close()


class _Splits(SplitEnumerator):
    def __init__(self, source: RowSource) -> None:
        self._source = source

    def initial_splits(self, parallelism: int) -> list[list[Split]]:
        """All splits of the source, dealt out in turn."""
        names = list(self._source.splits())
        self._source.close()
        return [[Split(name, b"") for name in names[subtask::parallelism]] for subtask in range(parallelism)]


class RowTableSource(TableSource):
    """A scan of a table whose rows Python code makes."""

    def __init__(self, kind: type[RowSource], scan: ScanSpec, options: OptionSet) -> None:
        self.kind = kind
        self.scan = scan
        self.values = options.check(scan.table)
        self.declared = DeclaredTable(scan.table, self.values, scan.metadata)
        self.connector = scan.table.option("connector") or ""

    @property
    def bounded(self) -> bool:
        """What the class says."""
        return self.kind.bounded

    @property
    def tells_backlog(self) -> bool:
        """What the class says."""
        return self.kind.tells_backlog

    @property
    def changelog_mode(self) -> ChangelogMode:
        """What the class says."""
        return self.kind.changelog

    def supports_projection(self) -> bool:
        """Columns that nobody reads are left out behind the source."""
        return True

    def metadata_columns(self) -> Mapping[str, LogicalType]:
        """What the class names."""
        return {key: parse_type(text) for key, text in self.kind.metadata.items()}

    def create_enumerator(self) -> SplitEnumerator:
        """The splits that the class names."""
        return _Splits(self.kind(self.declared))

    def create_reader(self, context: ReaderContext) -> SourceReader:
        """A reader with an object of the class."""
        source = self.kind(self.declared)
        scan = self.scan
        told = scan.output[len(scan.projection) :]
        keys = tuple(Column(key, column.type) for key, column in zip(scan.metadata, told, strict=True))
        return RowReader(self.connector, source, scan.table.columns, scan.projection, keys)


def _with_columns(batch: ChangelogBatch, more: list[Any]) -> ChangelogBatch:
    return batch.with_columns([*batch.columns, *more]) if more else batch


def _failed(connector: str, split: str, error: BaseException) -> FlowSqlError:
    if isinstance(error, FlowSqlError):
        return error
    made = ConnectorError(
        "source-failed", f"The connector '{connector}' failed while it read the split '{split}': {failure_text(error)}"
    )
    made.__cause__ = error
    return made
