"""``given-rows``: tables of a test: rows come and watermarks move when it says so, and what is written stays.

A table is a list of happenings (rows, a watermark, the end) that grows. Each scan reads it from its first to its last
happening and waits for more; each INSERT adds to it. The table's ``rows`` option names the list.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from flowsql_connectors.datastream import MODE
from flowsql_connectors.lookup.keyed_rows import KeyedRows
from flowsql_connectors.options import ConnectorOption, OptionSet
from flowsql_connectors.spi.lookup import FoundRows, LookupContext, LookupTableSource, TableLookup
from flowsql_connectors.spi.sink import SinkFactory, SinkWriter, TableSink, WriterContext
from flowsql_connectors.spi.source import (
    ReaderContext,
    ReadStatus,
    SourceFactory,
    SourceReader,
    Split,
    SplitBatch,
    SplitEnumerator,
)
from flowsql_core.batch import ChangelogBatch
from flowsql_core.graph.specs import ScanSpec, SinkSpec, TableSpec
from flowsql_core.row import ChangelogMode
from flowsql_core.types.arrow import to_arrow
from flowsql_core.types.logical import LogicalType

IDENTIFIER: Final = "given-rows"

_ROWS = ConnectorOption("rows", str, "", "Number of the list of happenings.")

#: What happens to a table: rows, a watermark in milliseconds, or its end.
Happening = ChangelogBatch | int | None


class GivenRows:
    """What has happened to a table so far. Any thread."""

    def __init__(self, metadata: Mapping[str, LogicalType], columns: int) -> None:
        #: Keys and types of columns behind the physical ones.
        self.metadata = metadata
        self.columns = columns
        self._happenings: list[Happening] = []
        self._waiting: list[Callable[[], None]] = []
        self._lock = threading.Lock()

    def add(self, happening: Happening) -> None:
        """The next one; whoever waits hears of it."""
        with self._lock:
            self._happenings.append(happening)
            waiting, self._waiting = self._waiting, []
        for wake in waiting:
            wake()

    def since(self, place: int) -> list[Happening]:
        """Those from a place on."""
        with self._lock:
            return self._happenings[place:]

    def batches(self) -> list[ChangelogBatch]:
        """The rows among them."""
        return [each for each in self.since(0) if isinstance(each, ChangelogBatch)]

    def wake_behind(self, place: int, wake: Callable[[], None]) -> None:
        """Call ``wake`` as soon as there is one at a place."""
        with self._lock:
            if len(self._happenings) <= place:
                self._waiting.append(wake)
                return
        wake()


_LISTS: Final[dict[str, GivenRows]] = {}


def register(rows: GivenRows) -> str:
    """The value of the ``rows`` option for a list."""
    name = str(id(rows))
    _LISTS[name] = rows
    return name


def forget(name: str) -> None:
    """No table uses the list any more."""
    _LISTS.pop(name, None)


class GivenReader(SourceReader):
    """One subtask reads; the others have no split."""

    def __init__(self, rows: GivenRows, columns: tuple[int, ...]) -> None:
        self._rows = rows
        self._columns = columns
        self._split: Split | None = None
        self._place = 0

    def add_splits(self, splits: list[Split]) -> None:
        """The one split; its data is the place of the next happening."""
        (self._split,) = splits
        self._place = int(self._split.data)

    def no_more_splits(self) -> None:
        """There never are others."""

    def poll(self, max_rows: int) -> SplitBatch | ReadStatus:
        """The next happening. Rows of a test come in one piece, however many."""
        if self._split is None:
            return ReadStatus.END
        following = self._rows.since(self._place)
        if not following:
            return ReadStatus.NOTHING_NOW
        happening = following[0]
        if happening is None:
            return ReadStatus.END
        self._place += 1
        if isinstance(happening, int):
            return SplitBatch(self._split.id, _projected(None, self._columns), watermark_ms=happening)
        return SplitBatch(self._split.id, _projected(happening, self._columns))

    def wake_when_available(self, wake: Callable[[], None]) -> None:
        """When something happens."""
        self._rows.wake_behind(self._place, wake)

    def snapshot(self) -> list[Split]:
        """The split at its place."""
        return [] if self._split is None else [replace(self._split, data=str(self._place).encode())]


def _projected(batch: ChangelogBatch | None, columns: tuple[int, ...]) -> ChangelogBatch:
    if batch is None:
        return ChangelogBatch.of([], num_rows=0)
    return ChangelogBatch.of([batch.columns[index] for index in columns], batch.kinds, num_rows=batch.num_rows)


class _OneSplit(SplitEnumerator):
    def initial_splits(self, parallelism: int) -> list[list[Split]]:
        return [[Split("given", b"0")], *([] for _ in range(parallelism - 1))]


class GivenLookup(TableLookup):
    """Finds among the rows that have been given so far."""

    def __init__(self, rows: GivenRows, columns: tuple[int, ...], types: list[Any], context: LookupContext) -> None:
        self._rows = rows
        self._columns = columns
        self._types = types
        self._context = context

    def find(self, keys: Sequence[Any]) -> FoundRows:
        """All rows of each key."""
        import pyarrow as pa

        batches = [_projected(batch, self._columns) for batch in self._rows.batches()]
        columns = [
            pa.concat_arrays([pa.nulls(0, type_), *(batch.columns[place] for batch in batches)])
            for place, type_ in enumerate(self._types)
        ]
        return KeyedRows(columns, self._context.keys).find(keys)


class GivenSource(LookupTableSource):
    """A scan of what happens to a table."""

    def __init__(self, scan: ScanSpec) -> None:
        values = _OPTIONS.check(scan.table)
        self._rows = _LISTS[values.get(_ROWS)]
        self._mode = values.get(MODE)
        self._types = [to_arrow(column.type) for column in scan.output]
        keys = list(self._rows.metadata)
        physical = scan.projection
        self._columns = (*physical, *(self._rows.columns + keys.index(key) for key in scan.metadata))

    @property
    def bounded(self) -> bool:
        """Watermarks never move by the clock alone: the test says when they do."""
        return True

    @property
    def changelog_mode(self) -> ChangelogMode:
        """What the test says."""
        return self._mode

    def metadata_columns(self) -> Mapping[str, LogicalType]:
        """Those that the table declares: they are given like others."""
        return self._rows.metadata

    def supports_projection(self) -> bool:
        """Columns that nobody reads stay away."""
        return True

    def create_enumerator(self) -> SplitEnumerator:
        """One split."""
        return _OneSplit()

    def create_reader(self, context: ReaderContext) -> SourceReader:
        """A reader from the first happening on."""
        return GivenReader(self._rows, self._columns)

    def create_lookup(self, context: LookupContext) -> TableLookup:
        """Finds rows by their keys."""
        return GivenLookup(self._rows, self._columns, self._types, context)


class GivenWriter(SinkWriter):
    """Adds rows to the list."""

    def __init__(self, rows: GivenRows) -> None:
        self._rows = rows

    def write(self, batch: ChangelogBatch) -> None:
        """The rows as they come."""
        if batch.num_rows:
            self._rows.add(ChangelogBatch.of(list(batch.columns), batch.kinds, num_rows=batch.num_rows))


class GivenSink(TableSink):
    """A table of a test that is written."""

    def __init__(self, rows: GivenRows, mode: ChangelogMode) -> None:
        self._rows = rows
        self._mode = mode

    def accepts(self, wanted: ChangelogMode) -> ChangelogMode:
        """What the table's own connector takes."""
        return ChangelogMode(wanted.kinds & self._mode.kinds, self._mode.key_only_deletes and wanted.key_only_deletes)

    def create_writer(self, context: WriterContext) -> SinkWriter:
        """A writer to the list."""
        return GivenWriter(self._rows)


_OPTIONS: Final = OptionSet(required=(_ROWS,), optional=(MODE,))


class GivenSourceFactory(SourceFactory):
    """Makes :class:`GivenSource`."""

    identifier = IDENTIFIER

    def options(self, table: TableSpec) -> OptionSet:
        """Which list."""
        return _OPTIONS

    def create_source(self, scan: ScanSpec, configuration: Mapping[str, str]) -> GivenSource:
        """What the planner asks, and the runtime."""
        return GivenSource(scan)


class GivenSinkFactory(SinkFactory):
    """Makes :class:`GivenSink`."""

    identifier = IDENTIFIER

    def options(self, table: TableSpec) -> OptionSet:
        """Which list."""
        return _OPTIONS

    def create_sink(self, sink: SinkSpec, configuration: Mapping[str, str]) -> GivenSink:
        """What the planner asks, and the runtime."""
        values = _OPTIONS.check(sink.table)
        return GivenSink(_LISTS[values.get(_ROWS)], values.get(MODE))
