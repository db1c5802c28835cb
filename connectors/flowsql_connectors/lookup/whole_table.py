"""A whole table, read by its scan and kept by key until it shall be read again."""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Final

import pyarrow as pa

from flowsql_connectors.lookup.keyed_rows import KeyedRows
from flowsql_connectors.lookup.options import Reload, ReloadMode
from flowsql_connectors.spi.lookup import FoundRows, LookupContext, TableLookup
from flowsql_connectors.spi.source import ReaderContext, ReadStatus, SplitBatch, TableSource
from flowsql_core.column_bytes import joined
from flowsql_core.errors import ConnectorError
from flowsql_core.types.arrow import to_arrow
from flowsql_core.types.logical import Schema

_BATCH_ROWS: Final = 65_536
_DAY_MS: Final = 86_400_000


class ReloadTrigger(ABC):
    """Says when a table that was read is to be read again."""

    @abstractmethod
    def due(self) -> bool:
        """Whether the table is out of date. Asked before each batch of keys."""

    def started(self) -> None:
        """A reload begins."""

    def finished(self) -> None:
        """The table was read."""


class TimedReload(ReloadTrigger):
    """By the clock, as the options say."""

    def __init__(self, reload: Reload, context: LookupContext) -> None:
        self._reload = reload
        self._clock = context.clock
        self._next_ms = -(2**63)

    def due(self) -> bool:
        """The time has come."""
        return self._clock.now_ms() >= self._next_ms

    def started(self) -> None:
        """With a fixed rate the interval counts from here."""
        if self._reload.interval_ms is None or self._reload.mode is ReloadMode.FIXED_RATE:
            self._next_ms = self._after(self._clock.now_ms())

    def finished(self) -> None:
        """With a fixed delay it counts from here."""
        if self._reload.interval_ms is not None and self._reload.mode is ReloadMode.FIXED_DELAY:
            self._next_ms = self._after(self._clock.now_ms())

    def _after(self, now_ms: int) -> int:
        if self._reload.interval_ms is not None:
            return now_ms + self._reload.interval_ms
        assert self._reload.time_of_day_ms is not None
        today = now_ms - now_ms % _DAY_MS + self._reload.time_of_day_ms
        return today if today > now_ms else today + self._reload.days * _DAY_MS


class WholeTable(TableLookup):
    """Finds rows of a table that a bounded, append-only scan reads.

    Args:
        source: the scan. ``output``: its columns.
        retries: how often a reading that failed is begun anew, each time after a second more.
    """

    def __init__(
        self, source: TableSource, output: Schema, context: LookupContext, trigger: ReloadTrigger, retries: int = 0
    ) -> None:
        self._source = source
        self._output = output
        self._context = context
        self._trigger = trigger
        self._retries = retries
        self._rows: KeyedRows | None = None

    def find(self, keys: Sequence[Any]) -> FoundRows:
        """The rows of the table as it was read last."""
        if self._rows is None or self._trigger.due():
            self._trigger.started()
            self._rows = KeyedRows(self._tried(), self._context.keys)
            self._trigger.finished()
        return self._rows.find(keys)

    def _tried(self) -> list[Any]:
        for attempt in range(self._retries):
            try:
                return self._read()
            except ConnectorError as error:
                if not error.retryable:
                    raise
                time.sleep(attempt + 1)
        return self._read()

    def _read(self) -> list[Any]:
        context = self._context
        reader = self._source.create_reader(
            ReaderContext(0, 1, _BATCH_ROWS, context.clock, context.configuration, context.count)
        )
        batches = []
        try:
            reader.add_splits(self._source.create_enumerator().initial_splits(1)[0])
            reader.no_more_splits()
            while (found := reader.poll(_BATCH_ROWS)) is not ReadStatus.END:
                if isinstance(found, SplitBatch):
                    batches.append(found.batch)
                    continue
                awake = threading.Event()
                reader.wake_when_available(awake.set)
                awake.wait()
        finally:
            reader.close()
        if not batches:
            return [pa.nulls(0, to_arrow(column.type)) for column in self._output]
        return [joined([batch.columns[index] for batch in batches]) for index in range(len(self._output))]


def reloaded_table(
    source: TableSource, output: Schema, reload: Reload, context: LookupContext, retries: int = 0
) -> TableLookup:
    """``lookup.cache`` = FULL of any table that a bounded, append-only scan reads.

    Args:
        output: the columns of the scan.
        retries: how often a reading that failed is begun anew.
    """
    return WholeTable(source, output, context, TimedReload(reload, context), retries)
