"""Sources and sinks of tables in memory.

A sink shows each change at once. A scan gives the rows of the moment at which it begins, and ends.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import orjson
import pyarrow as pa

from flowsql_connectors.memory.store import STORES, KeptRows
from flowsql_connectors.options import ConnectorOption, OptionSet, OptionValues, parse_positive
from flowsql_connectors.spi.sink import SinkFactory, SinkWriter, TableSink, WriterContext
from flowsql_connectors.spi.source import (
    ReaderContext,
    ReadStatus,
    SourceFactory,
    SourceReader,
    Split,
    SplitBatch,
    SplitEnumerator,
    TableSource,
)
from flowsql_connectors.spi.split_queue import SplitQueueReader
from flowsql_core.batch import ChangelogBatch
from flowsql_core.errors import BindError, ConnectorError
from flowsql_core.graph.specs import ScanSpec, SinkSpec, TableSpec
from flowsql_core.row import INSERT_ONLY, ChangelogMode, RowKind

NAME = ConnectorOption("name", str, "", "The name of the rows in this process: whoever knows it reads and writes them.")
MAX_ROWS = ConnectorOption("max-rows", parse_positive, 10_000_000, "Rows that the table may have.")

_OPTIONS = OptionSet(required=(NAME,), optional=(MAX_ROWS,))


def _kept(table: TableSpec) -> KeptRows:
    values: OptionValues = _OPTIONS.check(table)
    names = [column.name for column in table.columns]
    key = tuple(names.index(name) for name in table.primary_key)
    return STORES.table(values.get(NAME), table.columns, key, values.get(MAX_ROWS))


class _Moments(SplitEnumerator):
    """Cuts the rows of the moment into parts."""

    def __init__(self, rows: KeptRows) -> None:
        self._rows = rows

    def initial_splits(self, parallelism: int) -> list[list[Split]]:
        """A range of rows for each subtask."""
        rows = self._rows.now()
        length = -(-rows.num_rows // parallelism)
        ranges = [(first, min(first + length, rows.num_rows)) for first in range(0, rows.num_rows, max(length, 1))]
        scan = STORES.begin_scan(rows, len(ranges))
        splits = [[Split(f"rows-{first}", orjson.dumps([scan, first, stop]))] for first, stop in ranges]
        return [*splits, *([] for _ in range(parallelism - len(splits)))]


class _Reader(SplitQueueReader):
    def __init__(self, columns: tuple[int, ...]) -> None:
        super().__init__()
        self._columns = columns

    def read(self, split: Split, max_rows: int) -> SplitBatch | ReadStatus:
        """The next rows of the first range."""
        scan, first, stop = orjson.loads(split.data)
        rows = STORES.scanned(scan)
        if rows is None:
            raise ConnectorError(
                "memory-scan-gone",
                "A table in memory cannot be read on: the rows that the scan began with are gone.",
                hint="start the job anew, without its checkpoint",
            )
        end = min(stop, first + max_rows)
        part = rows.slice(first, end - first)
        columns = [_one_array(part.column(place)) for place in self._columns]
        finished = end >= stop
        self.splits[:1] = [] if finished else [Split(split.id, orjson.dumps([scan, end, stop]))]
        if finished:
            STORES.end_part(scan)
        return SplitBatch(split.id, ChangelogBatch.of(columns, num_rows=part.num_rows), finished)

    def wake_when_available(self, wake: Callable[[], None]) -> None:
        """Never waits."""
        wake()

    def close(self) -> None:
        """Let go of what was not read."""
        for split in self.splits:
            STORES.end_part(orjson.loads(split.data)[0])
        self.splits.clear()


def _one_array(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


class MemorySource(TableSource):
    """A scan of the rows of a moment."""

    def __init__(self, scan: ScanSpec) -> None:
        self._rows = _kept(scan.table)
        self._columns = scan.projection

    def supports_projection(self) -> bool:
        """Columns are apart."""
        return True

    def create_enumerator(self) -> SplitEnumerator:
        """Parts of the rows that are there when the job starts."""
        return _Moments(self._rows)

    def create_reader(self, context: ReaderContext) -> SourceReader:
        """A reader of parts."""
        return _Reader(self._columns)


class MemorySourceFactory(SourceFactory):
    """Makes scans of tables in memory."""

    identifier = "memory"

    def options(self, table: TableSpec) -> OptionSet:
        """The name of the rows."""
        return _OPTIONS

    def create_source(self, scan: ScanSpec, configuration: Mapping[str, str]) -> TableSource:
        """A scan."""
        if scan.metadata:
            raise BindError("no-such-metadata", f"memory has no metadata column '{scan.metadata[0]}'.")
        return MemorySource(scan)


class _Writer(SinkWriter):
    def __init__(self, rows: KeptRows) -> None:
        self._rows = rows

    def write(self, batch: ChangelogBatch) -> None:
        """Changes can be seen at once."""
        self._rows.write(batch)


class MemorySink(TableSink):
    """An INSERT into a table in memory."""

    def __init__(self, sink: SinkSpec) -> None:
        self._rows = _kept(sink.table)

    def accepts(self, wanted: ChangelogMode) -> ChangelogMode:
        """Changes by key; without a key only inserts."""
        return ChangelogMode(wanted.kinds - {RowKind.UPDATE_BEFORE}) if self._rows.key else INSERT_ONLY

    def create_writer(self, context: WriterContext) -> SinkWriter:
        """A writer."""
        return _Writer(self._rows)


class MemorySinkFactory(SinkFactory):
    """Makes sinks of tables in memory."""

    identifier = "memory"

    def options(self, table: TableSpec) -> OptionSet:
        """The name of the rows."""
        return _OPTIONS

    def create_sink(self, sink: SinkSpec, configuration: Mapping[str, str]) -> TableSink:
        """A sink."""
        return MemorySink(sink)
