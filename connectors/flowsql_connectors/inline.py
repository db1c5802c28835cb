"""``python-input-format`` and ``arrow``: rows that a program gave, as a resource of the job.

The table's ``rows`` option names the resource; SQL alone cannot make one. A split is a range of rows with its position.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate

import orjson

from flowsql_connectors.options import ConnectorOption, OptionSet, parse_natural
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
from flowsql_core.errors import ConnectorError
from flowsql_core.graph.specs import ScanSpec, TableSpec

ROWS = ConnectorOption("rows", str, "", "The resource of the job that holds the rows.")
ROW_COUNT = ConnectorOption("row-count", parse_natural, 0, "How many rows there are.")
SPLITS = ConnectorOption("splits", parse_natural, 1, "Into how many parts the rows are cut.")

_OPTIONS = OptionSet(required=(ROWS,), optional=(ROW_COUNT, SPLITS))


class InlineRows:
    """The resource: batches whose columns are the table's, in order."""

    def __init__(self, batches: Sequence[ChangelogBatch]) -> None:
        self.batches = tuple(batch for batch in batches if batch.num_rows)
        self._ends = list(accumulate(batch.num_rows for batch in self.batches))

    @property
    def count(self) -> int:
        """Rows of all batches."""
        return self._ends[-1] if self._ends else 0

    def read(self, start: int, stop: int) -> ChangelogBatch:
        """Rows from ``start`` up to ``stop`` or the end of their batch; ``start`` is one that there is."""
        index = bisect_right(self._ends, start)
        before = self._ends[index - 1] if index else 0
        return self.batches[index].slice(start - before, min(stop, self._ends[index]) - before)


class InlineEnumerator(SplitEnumerator):
    """Ranges of equal length, dealt out in turn."""

    def __init__(self, count: int, splits: int) -> None:
        self._count = count
        self._splits = max(splits, 1)

    def initial_splits(self, parallelism: int) -> list[list[Split]]:
        """Range ``i`` goes to subtask ``i mod parallelism``."""
        length = -(-self._count // self._splits)
        dealt: list[list[Split]] = [[] for _ in range(parallelism)]
        for i in range(self._splits):
            start, stop = i * length, min((i + 1) * length, self._count)
            if start < stop:
                dealt[i % parallelism].append(_split(f"rows-{i}", start, stop))
        return dealt


class InlineReader(SplitQueueReader):
    """Slices of the resource."""

    def __init__(self, rows: InlineRows, columns: tuple[int, ...]) -> None:
        super().__init__()
        self._rows = rows
        self._columns = columns

    def read(self, split: Split, max_rows: int) -> SplitBatch | ReadStatus:
        """The next rows of the first range."""
        start, stop = orjson.loads(split.data)
        batch = self._rows.read(start, min(stop, start + max_rows))
        position = start + batch.num_rows
        finished = position >= stop
        self.splits[:1] = [] if finished else [_split(split.id, position, stop)]
        if len(self._columns) != len(batch.columns):
            batch = ChangelogBatch.of([batch.columns[i] for i in self._columns], num_rows=batch.num_rows)
        return SplitBatch(split.id, batch, finished)

    def wake_when_available(self, wake: Callable[[], None]) -> None:
        """Never waits."""
        wake()


class InlineSource(TableSource):
    """A scan of rows that a program gave."""

    def __init__(self, scan: ScanSpec) -> None:
        values = _OPTIONS.check(scan.table)
        self._rows = values.get(ROWS)
        self._count = values.get(ROW_COUNT)
        self._splits = values.get(SPLITS)
        self._columns = scan.projection

    def input_rows(self) -> int | None:
        """As many as were given."""
        return self._count

    def create_enumerator(self) -> SplitEnumerator:
        """Ranges of rows."""
        return InlineEnumerator(self._count, self._splits)

    def create_reader(self, context: ReaderContext) -> SourceReader:
        """A reader of ranges.

        Raises:
            ConnectorError: the job does not hold the rows.
        """
        rows = context.resources.get(self._rows)
        if not isinstance(rows, InlineRows):
            raise ConnectorError(
                "rows-not-given",
                f"The job does not hold the rows '{self._rows}'.",
                hint="rows are given by a program: TableEnvironment.from_elements, from_arrow or from_pandas",
            )
        return InlineReader(rows, self._columns)


class InlineSourceFactory(SourceFactory):
    """Makes sources of given rows."""

    identifier = "python-input-format"

    def options(self, table: TableSpec) -> OptionSet:
        """The resource, its length, its parts."""
        return _OPTIONS

    def create_source(self, scan: ScanSpec, configuration: Mapping[str, str]) -> TableSource:
        """A source of given rows."""
        return InlineSource(scan)


def _split(name: str, start: int, stop: int) -> Split:
    return Split(name, orjson.dumps([start, stop]))
