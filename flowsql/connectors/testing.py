"""The conformance kit of connectors: what the engine relies on, checked against a connector's own class.

For the tests of a connector's author. Each function raises AssertionError with what does not hold; no engine runs.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa

from flowsql.table.values.result_rows import rows_of
from flowsql_connectors import registry
from flowsql_connectors.rowwise.base import BatchSink, RowSource
from flowsql_connectors.rowwise.values import batch_of_rows
from flowsql_connectors.spi.lookup import LookupContext, LookupTableSource
from flowsql_connectors.spi.sink import SinkFactory, WriterContext
from flowsql_connectors.spi.source import ReaderContext, ReadStatus, SourceFactory, SourceReader, Split, TableSource
from flowsql_core.batch import ChangelogBatch
from flowsql_core.clock import SystemClock
from flowsql_core.graph.specs import ScanSpec, SinkSpec, TableSpec
from flowsql_core.row import INSERT_ONLY, RowKind
from flowsql_core.types.arrow import to_arrow
from flowsql_core.types.logical import Column, Schema
from flowsql_core.types.text import parse_type

#: Seconds that rows are waited for.
PATIENCE_S: Final = 10.0
#: Seconds that one call of ``poll`` may take: while it waits, the task takes no barrier.
POLL_S: Final = 0.5
#: The largest batch that is asked for.
_BATCH_ROWS: Final = 7
_NAME: Final = "connector-under-test"
#: A row as the kit compares it: its texts.
_Row = tuple[str, ...]


def check_source(
    source: type[RowSource] | type[SourceFactory],
    columns: Mapping[str, str],
    options: Mapping[str, str] | None = None,
    expected: Iterable[Sequence[Any]] | None = None,
    rows: int = 200,
) -> None:
    """Check that a source gives each row once: at any parallelism, and gone on with from any position.

    Args:
        source: the class.
        columns: types by name, as SQL writes them.
        options: the WITH clause.
        expected: all rows, in any order, as Python values; None: those that the first run gives.
        rows: of a source whose rows never end, so many are looked at.

    Raises:
        AssertionError: rows are missing, double or others; ``poll`` waits; a thread outlives ``close``.
    """
    factory = registry.factory_of(_NAME, source)
    assert isinstance(factory, SourceFactory), f"{source} is neither a RowSource nor a SourceFactory"
    schema = _schema(columns)
    table = TableSpec(("kit", "kit", "kit"), schema, (("connector", _NAME), *(options or {}).items()))
    factory.options(table).check(table)
    whole = _Scan(factory, table)
    # The first Python values that become Arrow ones import pandas where it is installed: that is not the connector's.
    pa.array([None])
    first = whole.run(1, rows)
    assert first, "the source gives no rows: the kit needs some"
    if expected is not None:
        wanted = [tuple(map(repr, row)) for row in expected]
        _same(first if whole.bounded else first[: len(wanted)], wanted, "the rows of the source, - as expected")
    for parallelism in (2, 3):
        if whole.bounded:
            _same(whole.run(parallelism, rows), first, f"the rows at parallelism {parallelism}, - those at 1")
    for cut in sorted({0, 1, 2, len(first) // 2, max(len(first) - 1, 0)}):
        for parallelism in (1, 2):
            _check_cut(whole, first, cut, parallelism)
    for place, column in enumerate(schema):
        alone = _Scan(factory, table, (place,))
        values = [(row[place],) for row in first]
        if whole.bounded:
            _same(alone.run(1, rows), values, f"the column '{column.name}' read alone, - read with the others")
    _check_threads()


def check_sink(
    sink: type[BatchSink] | type[SinkFactory],
    columns: Mapping[str, str],
    rows: Sequence[Sequence[Any]],
    read_back: Callable[[], Iterable[Sequence[Any]]],
    options: Mapping[str, str] | None = None,
) -> None:
    """Check that the rows of an INSERT have arrived once the sink was flushed.

    Args:
        sink: the class.
        columns: types by name, as SQL writes them.
        rows: to be written, as Python values.
        read_back: all rows that have arrived, in any order.
        options: the WITH clause.

    Raises:
        AssertionError: rows are missing, double or others behind a flush, or change when the sink is closed.
    """
    factory = registry.factory_of(_NAME, sink)
    assert isinstance(factory, SinkFactory), f"{sink} is neither a BatchSink nor a SinkFactory"
    schema = _schema(columns)
    table = TableSpec(("kit", "kit", "kit"), schema, (("connector", _NAME), *(options or {}).items()))
    factory.options(table).check(table)
    made = factory.create_sink(SinkSpec(table, schema, INSERT_ONLY), {})
    assert made.accepts(INSERT_ONLY) == INSERT_ONLY, "a sink takes a query that only inserts"
    context = WriterContext("kit", 0, 1, SystemClock(), {}, lambda name, by: None, lambda call: call())
    writer, committer = made.create_writer(context), made.create_committer()
    half = len(rows) // 2
    for part, is_last in ((rows[:half], False), ([], False), (rows[half:], True)):
        writer.write(batch_of_rows(_NAME, schema, part, [RowKind.INSERT] * len(part)))
        writer.flush(is_last)
        committables = writer.prepare_commit()
        writer.snapshot()
        if committer is not None:
            committer.commit(committables, is_last)
            # A crash behind a commit brings it again.
            committer.commit(committables, is_last)
    wanted = [tuple(map(repr, row)) for row in rows]
    _same([tuple(map(repr, row)) for row in read_back()], wanted, "the rows behind a flush, - as written")
    writer.close()
    _same([tuple(map(repr, row)) for row in read_back()], wanted, "the rows behind close(), - as written")


def check_lookup(
    source: type[RowSource] | type[SourceFactory],
    columns: Mapping[str, str],
    keys: Sequence[str],
    rows: Sequence[Sequence[Any]],
    options: Mapping[str, str] | None = None,
) -> None:
    """Check that rows are found by their keys: all of a batch, some of them, and none for keys that are not asked for.

    Args:
        source: the class.
        columns: types by name, as SQL writes them.
        keys: names of the columns that rows are found by.
        rows: of the table, as Python values: all rows of the keys that they have.
        options: the WITH clause.

    Raises:
        AssertionError: rows are missing, double or others, or stand at other keys.
    """
    factory = registry.factory_of(_NAME, source)
    assert isinstance(factory, SourceFactory), f"{source} is neither a RowSource nor a SourceFactory"
    schema = _schema(columns)
    table = TableSpec(("kit", "kit", "kit"), schema, (("connector", _NAME), *(options or {}).items()))
    factory.options(table).check(table)
    made = factory.create_source(ScanSpec(table, tuple(range(len(schema))), schema), {})
    assert source.looks_up() if issubclass(source, RowSource) else True, f"{source} has no lookup"
    assert isinstance(made, LookupTableSource), f"{source} has no lookup"
    places = tuple(list(columns).index(key) for key in keys)
    lookup = made.create_lookup(LookupContext(places, SystemClock(), {}, lambda name, by: None))
    known = list(dict.fromkeys(tuple(row[place] for place in places) for row in rows))
    try:
        for asked in (known, known[::-1], *([key] for key in known[:3])):
            arrays = [
                pa.array([key[at] for key in asked], to_arrow(schema[place].type)) for at, place in enumerate(places)
            ]
            found = lookup.find(arrays)
            positions = [int(position) for position in found.positions]
            assert positions == sorted(positions), f"positions fall: {positions}"
            batch = ChangelogBatch.of(tuple(found.columns), num_rows=len(positions))
            texts = [tuple(map(repr, row)) for row in rows_of(batch, schema)]
            wanted = [row for row in rows if tuple(row[place] for place in places) in asked]
            _same(texts, [tuple(map(repr, row)) for row in wanted], f"the rows of the keys {asked!r}, - as expected")
            for position, text in zip(positions, texts, strict=True):
                key = tuple(map(repr, asked[position]))
                assert key == tuple(text[place] for place in places), f"the row ({', '.join(text)}) stands at {key}"
    finally:
        lookup.close()
    _check_threads()


class _Scan:
    """A scan of some columns, read as an engine would."""

    def __init__(self, factory: SourceFactory, table: TableSpec, columns: tuple[int, ...] | None = None) -> None:
        chosen = tuple(range(len(table.columns))) if columns is None else columns
        self._factory = factory
        self._output = tuple(table.columns[place] for place in chosen)
        self._spec = ScanSpec(table, chosen, self._output)
        self.bounded = self.source().bounded

    def source(self) -> TableSource:
        """Made anew, as each process makes it."""
        return self._factory.create_source(self._spec, {})

    def reader(self, splits: Sequence[Split], subtask: int = 0, parallelism: int = 1) -> SourceReader:
        """A reader that has its splits and gets no more."""
        made = self.source().create_reader(
            ReaderContext(subtask, parallelism, _BATCH_ROWS, SystemClock(), {}, lambda name, by: None)
        )
        made.add_splits(list(splits))
        made.no_more_splits()
        return made

    def run(self, parallelism: int, most: int) -> list[_Row]:
        """The rows of all subtasks; of a source that never ends the first ones."""
        found: list[_Row] = []
        for subtask, splits in enumerate(self.source().create_enumerator().initial_splits(parallelism)):
            reader = self.reader(splits, subtask, parallelism)
            found += self.take(reader, None if self.bounded else most)
            reader.close()
        return found

    def take(self, reader: SourceReader, most: int | None) -> list[_Row]:
        """The next rows of a reader: ``most``, or all."""
        found: list[_Row] = []
        for rows in self._polled(reader, most):
            found += rows
        return found

    def _polled(self, reader: SourceReader, most: int | None) -> Iterator[list[_Row]]:
        left = most
        while left is None or left > 0:
            asked = _BATCH_ROWS if left is None else min(left, _BATCH_ROWS)
            polled = _poll(reader, asked)
            if polled is ReadStatus.END:
                return
            assert not isinstance(polled, ReadStatus)
            assert polled.batch.num_rows <= asked, f"poll({asked}) gave {polled.batch.num_rows} rows"
            rows = [tuple(map(repr, row)) for row in rows_of(polled.batch, self._output)]
            if left is not None:
                left -= len(rows)
            yield rows


def _check_cut(whole: _Scan, all_rows: list[_Row], cut: int, parallelism: int) -> None:
    """Read some rows, go on with new readers from the positions that are kept then."""
    splits = [split for dealt in whole.source().create_enumerator().initial_splits(1) for split in dealt]
    reader = whole.reader(splits)
    before = whole.take(reader, cut)
    kept = reader.snapshot()
    reader.close()
    left = len(all_rows) - len(before)
    behind: list[_Row] = []
    dealt = whole.source().create_enumerator().redistribute(kept, parallelism)
    for subtask, part in enumerate(dealt):
        again = whole.reader(part, subtask, parallelism)
        behind += whole.take(again, None if whole.bounded else (left if part else 0))
        again.close()
    _same(before + behind, all_rows, f"the rows when reading goes on behind row {cut}, - when it does not stop")


def _poll(reader: SourceReader, most: int) -> Any:
    """What ``poll`` gives once it has something."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        woken = threading.Event()
        started = time.monotonic()
        polled = reader.poll(most)
        took = time.monotonic() - started
        assert took < POLL_S, f"poll() took {took:.1f} s: it must not wait, a thread of its own may"
        if polled is not ReadStatus.NOTHING_NOW:
            return polled
        reader.wake_when_available(woken.set)
        assert woken.wait(max(0.0, deadline - time.monotonic())), f"no row and no end came for {PATIENCE_S:g} s"


def _check_threads() -> None:
    """Nothing that belongs to a connector runs on behind ``close``."""
    deadline = time.monotonic() + PATIENCE_S
    while running := [thread.name for thread in threading.enumerate() if thread.name.startswith("read-")]:
        assert time.monotonic() < deadline, f"these threads run on behind close(): {', '.join(running)}"
        time.sleep(0.05)


def _schema(columns: Mapping[str, str]) -> Schema:
    return tuple(Column(name, parse_type(text)) for name, text in columns.items())


def _same(found: Sequence[_Row], wanted: Sequence[_Row], what: str) -> None:
    """AssertionError with the rows that differ."""
    more, less = Counter(found) - Counter(wanted), Counter(wanted) - Counter(found)
    if not more and not less:
        return
    lines = [f"  {sign} ({', '.join(row)})" for sign, rows in (("+", more), ("-", less)) for row in rows.elements()]
    raise AssertionError(f"{what}:\n" + "\n".join(lines[:20]))
