"""``handed-rows``: rows that another engine hands over while the job runs, as a resource of the job.

The planner makes such tables; SQL cannot. The rows come once and in order: only jobs without checkpoints read them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from flowsql_connectors.options import ConnectorOption, OptionSet
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
from flowsql_core.errors import InternalError
from flowsql_core.graph.specs import ScanSpec, TableSpec

ROWS = ConnectorOption("rows", str, "", "The resource of the job that the rows come from.")

_OPTIONS = OptionSet(required=(ROWS,))


class HandedRows:
    """The resource: batches whose columns are the table's, in order. ``take`` waits for whoever makes them."""

    def __init__(self, batches: Iterable[ChangelogBatch]) -> None:
        self._batches = iter(batches)
        self._left: ChangelogBatch | None = None

    def take(self, max_rows: int) -> ChangelogBatch | None:
        """The next rows; None behind the last."""
        batch, self._left = self._left, None
        while batch is None or not batch.num_rows:
            batch = next(self._batches, None)
            if batch is None:
                return None
        if batch.num_rows > max_rows:
            self._left = batch.slice(max_rows, batch.num_rows)
            batch = batch.slice(0, max_rows)
        return batch


class _OneSplit(SplitEnumerator):
    def initial_splits(self, parallelism: int) -> list[list[Split]]:
        """All rows go to the first reader."""
        return [[Split("rows", b"")], *([] for _ in range(parallelism - 1))]


class _HandedReader(SplitQueueReader):
    def __init__(self, rows: HandedRows, columns: tuple[int, ...]) -> None:
        super().__init__()
        self._rows = rows
        self._columns = columns

    def read(self, split: Split, max_rows: int) -> SplitBatch | ReadStatus:
        """The next rows. Waits for them: nobody else works in a task of another engine."""
        batch = self._rows.take(max_rows)
        if batch is None:
            self.splits.clear()
            return ReadStatus.END
        columns = [batch.columns[index] for index in self._columns]
        return SplitBatch(split.id, ChangelogBatch.of(columns, num_rows=batch.num_rows))

    def wake_when_available(self, wake: Callable[[], None]) -> None:
        """Waits inside of ``read``."""
        wake()


class HandedSource(TableSource):
    """A scan of rows that are handed over."""

    def __init__(self, scan: ScanSpec) -> None:
        self._rows = _OPTIONS.check(scan.table).get(ROWS)
        self._columns = scan.projection

    def create_enumerator(self) -> SplitEnumerator:
        """One split."""
        return _OneSplit()

    def create_reader(self, context: ReaderContext) -> SourceReader:
        """A reader of the resource."""
        rows = context.resources.get(self._rows)
        if not isinstance(rows, HandedRows):
            raise InternalError(f"nobody hands over the rows '{self._rows}'")
        return _HandedReader(rows, self._columns)


class HandedSourceFactory(SourceFactory):
    """Makes sources of handed rows."""

    identifier = "handed-rows"

    def options(self, table: TableSpec) -> OptionSet:
        """The resource."""
        return _OPTIONS

    def create_source(self, scan: ScanSpec, configuration: Mapping[str, str]) -> TableSource:
        """A source of handed rows."""
        return HandedSource(scan)
