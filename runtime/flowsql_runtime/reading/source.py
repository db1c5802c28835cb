"""``state(path, operator, state)``: the rows of a snapshot's state as a bounded source.

A split is one part: the rows of some key groups of one subtask. It is read and decoded by a thread beside the task's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from typing import Any, Final

import orjson

from flowsql_connectors.options import ConnectorOption, OptionSet, optional, parse_boolean
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
from flowsql_core.errors import BindError
from flowsql_core.graph.specs import ScanSpec, TableSpec
from flowsql_runtime.reading.columns import ReadableState, find_state
from flowsql_runtime.reading.snapshot import SnapshotParts, find_parts, reopen_parts

IDENTIFIER: Final = "savepoint"

PATH = ConnectorOption("path", str, "", "Folder of a snapshot, or a folder with several: the newest.")
OPERATOR = ConnectorOption("operator", str, "", "Id of an operator, or its name.")
STATE: ConnectorOption[str | None] = ConnectorOption("state", optional(str), None, "Name of one of its states.")
UNPICKLE = ConnectorOption(
    "unpickle", parse_boolean, False, "'true' shows Python objects; unpickling runs code that the snapshot names."
)

_OPTIONS = OptionSet(required=(PATH, OPERATOR), optional=(STATE, UNPICKLE))


class StateEnumerator(SplitEnumerator):
    """All parts of a state."""

    def __init__(self, state: ReadableState) -> None:
        self._parts = state.parts

    def initial_splits(self, parallelism: int) -> list[list[Split]]:
        """The largest first, each to the subtask that has the fewest bytes."""
        dealt: list[list[Split]] = [[] for _ in range(parallelism)]
        sizes = [0] * parallelism
        order = sorted(range(len(self._parts)), key=lambda number: (-self._parts[number].length, number))
        for number in order:
            subtask = sizes.index(min(sizes))
            dealt[subtask].append(_split(number, 0))
            sizes[subtask] += self._parts[number].length
        return dealt


class StateReader(SplitQueueReader):
    """Reads parts one after another, the next one while the task works on the one before."""

    def __init__(self, snapshot: SnapshotParts, state: ReadableState, columns: tuple[int, ...]) -> None:
        super().__init__()
        self._snapshot = snapshot
        self._state = state
        self._columns = columns
        self._batches: list[ChangelogBatch] | None = None
        self._next: tuple[str, Future[list[ChangelogBatch]]] | None = None
        self._thread: ThreadPoolExecutor | None = None

    def read(self, split: Split, max_rows: int) -> SplitBatch | ReadStatus:
        """The next rows of the first part."""
        number, rows = orjson.loads(split.data)
        if self._batches is None:
            reading = self._reading(split)
            if not reading.done():
                return ReadStatus.NOTHING_NOW
            self._next = None
            self._batches = _after(reading.result(), rows)
            if len(self.splits) > 1:
                self._reading(self.splits[1])
        if not self._batches:
            return self._end_of_split(split, ChangelogBatch.of(self._nothing(), num_rows=0))
        batch = self._batches[0]
        if batch.num_rows > max_rows:
            self._batches[0] = batch.slice(max_rows, batch.num_rows)
            batch = batch.slice(0, max_rows)
        else:
            self._batches.pop(0)
            if not self._batches:
                return self._end_of_split(split, batch)
        self.splits[0] = _split(number, rows + batch.num_rows)
        return SplitBatch(split.id, batch)

    def pause_splits(self, paused: Set[str]) -> bool:
        """Parts are read whole, one behind another."""
        return False

    def wake_when_available(self, wake: Callable[[], None]) -> None:
        """When the part is read."""
        if self._batches is not None or not self.splits:
            wake()
        else:
            self._reading(self.splits[0]).add_done_callback(lambda _: wake())

    def close(self) -> None:
        """Nothing more is read."""
        if self._thread is not None:
            self._thread.shutdown(wait=True, cancel_futures=True)

    def _end_of_split(self, split: Split, batch: ChangelogBatch) -> SplitBatch:
        self.splits.pop(0)
        self._batches = None
        return SplitBatch(split.id, batch, finished=True)

    def _reading(self, split: Split) -> Future[list[ChangelogBatch]]:
        if self._next is None or self._next[0] != split.id:
            if self._thread is None:
                self._thread = ThreadPoolExecutor(1, "state-reader")
            self._next = (split.id, self._thread.submit(self._read, orjson.loads(split.data)[0]))
        return self._next[1]

    def _read(self, number: int) -> list[ChangelogBatch]:
        found = self._state.read(self._snapshot, self._state.parts[number], self._columns)
        return [ChangelogBatch.of(columns, num_rows=rows) for columns, rows in found if rows]

    def _nothing(self) -> list[Any]:
        import pyarrow as pa

        from flowsql_core.types.arrow import to_arrow

        return [pa.nulls(0, to_arrow(self._state.columns[place].type)) for place in self._columns]


class StateSource(TableSource):
    """A scan of one state."""

    def __init__(self, scan: ScanSpec) -> None:
        self._scan = scan

    def supports_projection(self) -> bool:
        """Columns that nobody reads are not decoded."""
        return True

    def create_enumerator(self) -> SplitEnumerator:
        """The parts."""
        return StateEnumerator(self._open()[1])

    def create_reader(self, context: ReaderContext) -> SourceReader:
        """A reader of parts, with files of its own."""
        return StateReader(*self._open(), self._scan.projection)

    def _open(self) -> tuple[SnapshotParts, ReadableState]:
        """The state, as it was when the query was planned.

        Raises:
            ConnectorError: the snapshot is not there any more.
            BindError: it has another state under this path and name.
        """
        values = _OPTIONS.check(self._scan.table)
        snapshot = reopen_parts(values.get(PATH))
        state = find_state(snapshot, snapshot.find(values.get(OPERATOR)), values.get(STATE), values.get(UNPICKLE))
        if state.columns != self._scan.table.columns:
            raise BindError(
                "state-changed",
                f"The state '{state.name}' in '{snapshot.path}' has other columns than the table.",
                hint="ask state('...', '...') again",
            )
        return snapshot, state


class StateSourceFactory(SourceFactory):
    """Makes tables of states."""

    identifier = IDENTIFIER

    def options(self, table: TableSpec) -> OptionSet:
        """Snapshot, operator, state."""
        return _OPTIONS

    def function_parameters(self) -> tuple[str, ...]:
        """``state(path, operator [, state [, unpickle]])``."""
        return (PATH.key, OPERATOR.key, STATE.key, UNPICKLE.key)

    def discovered(self, table: TableSpec) -> TableSpec:
        """The columns of the state, and the one snapshot that the query reads, if the path has several."""
        values = _OPTIONS.check(table)
        snapshot = find_parts(values.get(PATH))
        operator = snapshot.find(values.get(OPERATOR))
        state = find_state(snapshot, operator, values.get(STATE), values.get(UNPICKLE))
        options = dict(table.options) | {
            PATH.key: snapshot.path,
            OPERATOR.key: operator.uid,
            STATE.key: state.name,
        }
        return replace(table, columns=state.columns, options=tuple(options.items()))

    def create_source(self, scan: ScanSpec, configuration: Mapping[str, str]) -> TableSource:
        """A source of one state."""
        return StateSource(scan)


def _split(number: int, rows: int) -> Split:
    return Split(f"part-{number}", orjson.dumps([number, rows]))


def _after(batches: list[ChangelogBatch], rows: int) -> list[ChangelogBatch]:
    """What follows the first ``rows`` rows."""
    left = []
    for batch in batches:
        skipped = min(rows, batch.num_rows)
        rows -= skipped
        if skipped < batch.num_rows:
            left.append(batch.slice(skipped, batch.num_rows))
    return left
