"""``datagen``: rows out of nothing, column by column: random values or sequences, at a rate.

Row ``i`` of the job is made by subtask ``i mod parallelism``; a split is that arithmetic progression with its position.
The values themselves stand in ``fields`` and ``realistic``. Source: Flink manual, "DataGen SQL Connector".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import orjson

from flowsql_connectors.datagen.fields import ColumnGenerator, column_generator, column_options
from flowsql_connectors.datagen.rows import RowRange
from flowsql_connectors.options import (
    SCAN_PARALLELISM,
    ConnectorOption,
    OptionSet,
    optional,
    parse_natural,
    parse_positive,
)
from flowsql_connectors.spi.alarm import ALARM
from flowsql_connectors.spi.source import (
    BatchedInput,
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

ROWS_PER_SECOND = ConnectorOption("rows-per-second", parse_positive, 10_000, "Rows per second of the whole job.")
NUMBER_OF_ROWS: ConnectorOption[int | None] = ConnectorOption(
    "number-of-rows", optional(parse_natural), None, "Rows in total; without it the source goes on for ever."
)

#: How soon to look again when the rate allows no row yet.
_PAUSE_S = 0.01


def _next_row(split: Split) -> tuple[int, int, int | None]:
    """The next row of a progression, its stride, and the row before which it ends."""
    first, stride, *stop = orjson.loads(split.data)
    return int(first), int(stride), int(stop[0]) if stop else None


def _progression(first: int, stride: int, stop: int | None = None) -> bytes:
    return orjson.dumps([first, stride] if stop is None else [first, stride, stop])


class DatagenEnumerator(SplitEnumerator):
    """One progression per subtask."""

    def initial_splits(self, parallelism: int) -> list[list[Split]]:
        """Subtask s makes rows s, s + parallelism, ..."""
        return [[Split(f"rows-{subtask}", _progression(subtask, parallelism))] for subtask in range(parallelism)]

    def batch(self, files: Sequence[str], rows: range, parallelism: int) -> list[list[Split]]:
        """What of each progression is due."""
        del files
        made: list[list[Split]] = [[] for _ in range(parallelism)]
        for first in rows[:parallelism]:
            subtask = first % parallelism
            made[subtask] = [Split(f"rows-{subtask}", _progression(first, parallelism, rows.stop))]
        return made


class DatagenReader(SplitQueueReader):
    """Makes the rows that the rate allows by now."""

    def __init__(
        self,
        generators: tuple[ColumnGenerator, ...],
        total_rows: int | None,
        rows_per_second: int,
        context: ReaderContext,
    ) -> None:
        super().__init__()
        self._generators = generators
        self._total_rows = total_rows
        self._rate = rows_per_second / max(context.parallelism, 1)
        self._clock = context.clock
        self._rng = np.random.default_rng(
            None if context.rng_seed is None else [context.rng_seed, context.subtask, context.parallelism]
        )
        self._started_ms: int | None = None
        self._made = 0

    def read(self, split: Split, max_rows: int) -> SplitBatch | ReadStatus:
        """Rows that are due."""
        first, stride, stop = _next_row(split)
        ends = [end for end in (self._total_rows, stop) if end is not None]
        left = max(0, -(-(min(ends) - first) // stride)) if ends else None
        if left == 0:
            self.splits.pop(0)
            return SplitBatch(split.id, self._rows(RowRange(first, stride, 0)), finished=True)
        now_ms = self._clock.now_ms()
        if self._started_ms is None:
            self._started_ms = now_ms
        # What has an end is due already.
        due = max_rows if stop is not None else int((now_ms - self._started_ms) * self._rate / 1000) + 1 - self._made
        n = min(due, max_rows if left is None else min(max_rows, left))
        if n <= 0:
            return ReadStatus.NOTHING_NOW
        batch = self._rows(RowRange(first, stride, n))
        self._made += n
        finished = left == n
        if finished:
            self.splits.pop(0)
        else:
            # Further progressions (after a restore at lower parallelism) take turns.
            self.splits.append(Split(self.splits.pop(0).id, _progression(first + n * stride, stride, stop)))
        return SplitBatch(split.id, batch, finished)

    def _rows(self, rows: RowRange) -> ChangelogBatch:
        now_ms = self._clock.now_ms()
        return ChangelogBatch.of(
            tuple(generator(rows, self._rng, now_ms) for generator in self._generators), num_rows=rows.count
        )

    def wake_when_available(self, wake: Callable[[], None]) -> None:
        """Wake after a short pause: the rate will allow a row soon."""
        ALARM.after(_PAUSE_S, wake)


class DatagenSource(TableSource):
    """A scan of a ``datagen`` table."""

    def __init__(
        self,
        generators: tuple[ColumnGenerator, ...],
        total_rows: int | None,
        rate: int,
        parallelism: int | None,
        bounded: bool,
    ) -> None:
        self._generators = generators
        self._total_rows = total_rows
        self._bounded = bounded
        self._rate = rate
        self._parallelism = parallelism

    @property
    def bounded(self) -> bool:
        """Whether ``number-of-rows`` is set; a source that only its sequences end counts as unbounded, as in Flink."""
        return self._bounded

    @property
    def paced(self) -> bool:
        """``rows-per-second`` always holds."""
        return True

    def batched_input(self) -> BatchedInput:
        """Rows at the rate."""
        return BatchedInput(rows_per_second=self._rate)

    def input_rows(self) -> int | None:
        """``number-of-rows``, or those of the shortest sequence."""
        return self._total_rows

    def supports_limit(self) -> bool:
        """The limit caps ``number-of-rows``."""
        return True

    def parallelism(self) -> int | None:
        """``scan.parallelism``."""
        return self._parallelism

    def create_enumerator(self) -> SplitEnumerator:
        """One progression per subtask."""
        return DatagenEnumerator()

    def create_reader(self, context: ReaderContext) -> SourceReader:
        """A reader of one subtask's progressions."""
        return DatagenReader(self._generators, self._total_rows, self._rate, context)


class DatagenSourceFactory(SourceFactory):
    """Makes ``datagen`` sources."""

    identifier = "datagen"

    def options(self, table: TableSpec) -> OptionSet:
        """Rate, number of rows, and what each column's generator reads."""
        per_column = tuple(option for column in table.columns for option in column_options(column, table))
        return OptionSet(optional=(ROWS_PER_SECOND, NUMBER_OF_ROWS, SCAN_PARALLELISM, *per_column))

    def create_source(self, scan: ScanSpec, configuration: Mapping[str, str]) -> TableSource:
        """Generators of the projected columns; the shortest sequence of the *table* ends the source."""
        values = self.options(scan.table).check(scan.table)
        if scan.metadata:
            raise BindError("no-such-metadata", f"datagen has no metadata column '{scan.metadata[0]}'.")
        generators = [column_generator(column, values) for column in scan.table.columns]
        ends = [generator.length for generator in generators if generator.length is not None]
        limits = [n for n in (values.get(NUMBER_OF_ROWS), scan.limit, *ends) if n is not None]
        return DatagenSource(
            tuple(generators[index] for index in scan.projection),
            min(limits) if limits else None,
            values.get(ROWS_PER_SECOND),
            values.get(SCAN_PARALLELISM),
            values.has(NUMBER_OF_ROWS),
        )
