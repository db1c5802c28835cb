"""A connector in memory for tests: splits of rows, a sink that writes to lists and commits in two phases."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pytest

from flowsql_connectors import registry
from flowsql_connectors.spi.sink import Committable, Committer, SinkWriter, TableSink, WriterContext
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
from flowsql_core.errors import ConnectorError
from flowsql_core.row import ALL_CHANGES, ChangelogMode

from .graphs import rows_of


@dataclass
class FakeStore:
    """What the source reads and the sink wrote. ``splits``: rows (n, name) of each, by split id."""

    splits: dict[str, list[tuple[int, str]]] = field(default_factory=dict)
    types: tuple[Any, ...] = (pa.int64(), pa.string())
    written: list[tuple[Any, ...]] = field(default_factory=list)
    committed: list[str] = field(default_factory=list)
    aborted: list[str] = field(default_factory=list)
    watermarks: list[int] = field(default_factory=list)
    closed: int = 0
    bounded: bool = True
    fail_on_write: bool = False


class FakeEnumerator(SplitEnumerator):
    def __init__(self, store: FakeStore) -> None:
        self._store = store

    def initial_splits(self, parallelism: int) -> list[list[Split]]:
        return self.redistribute([Split(name, b"0") for name in self._store.splits], parallelism)


class FakeReader(SourceReader):
    def __init__(self, store: FakeStore) -> None:
        self._store = store
        self._left: list[tuple[str, int]] = []
        self._wake: Callable[[], None] | None = None

    def add_splits(self, splits: list[Split]) -> None:
        self._left += [(split.id, int(split.data)) for split in splits]

    def no_more_splits(self) -> None:
        pass

    def poll(self, max_rows: int) -> SplitBatch | ReadStatus:
        if not self._left:
            return ReadStatus.END
        name, at = self._left[0]
        rows = self._store.splits[name]
        part = rows[at : at + max_rows]
        at += len(part)
        finished = at == len(rows)
        self._left[0] = (name, at)
        if finished:
            del self._left[0]
        columns = [pa.array([row[index] for row in part], type_) for index, type_ in enumerate(self._store.types)]
        return SplitBatch(name, ChangelogBatch.of(columns), finished)

    def wake_when_available(self, wake: Callable[[], None]) -> None:
        wake()

    def snapshot(self) -> list[Split]:
        return [Split(name, str(at).encode()) for name, at in self._left]

    def close(self) -> None:
        self._store.closed += 1


class FakeSource(TableSource):
    def __init__(self, store: FakeStore) -> None:
        self._store = store

    @property
    def bounded(self) -> bool:
        return self._store.bounded

    def create_enumerator(self) -> SplitEnumerator:
        return FakeEnumerator(self._store)

    def create_reader(self, context: ReaderContext) -> SourceReader:
        return FakeReader(self._store)


class FakeWriter(SinkWriter):
    def __init__(self, store: FakeStore, context: WriterContext) -> None:
        self._store = store
        self._subtask = context.subtask
        self._rows: list[tuple[Any, ...]] = []

    def write(self, batch: ChangelogBatch) -> None:
        if self._store.fail_on_write:
            raise ConnectorError("disk-full", "no space left")
        self._rows += rows_of(batch)

    def on_watermark(self, watermark_ms: int) -> None:
        self._store.watermarks.append(watermark_ms)

    def prepare_commit(self) -> list[Committable]:
        rows, self._rows = self._rows, []
        return [Committable(json.dumps(rows, default=str).encode())] if rows else []

    def close(self) -> None:
        self._store.closed += 1


class FakeCommitter(Committer):
    def __init__(self, store: FakeStore) -> None:
        self._store = store

    def commit(self, committables: list[Committable], end_of_input: bool) -> None:
        self._store.committed.append(f"end={end_of_input}")
        for committable in committables:
            self._store.written += [tuple(row) for row in json.loads(committable.data)]

    def abort(self, committables: list[Committable]) -> None:
        self._store.aborted.append(str(len(committables)))


class FakeSink(TableSink):
    def __init__(self, store: FakeStore) -> None:
        self._store = store

    def accepts(self, wanted: ChangelogMode) -> ChangelogMode:
        return ALL_CHANGES

    def create_writer(self, context: WriterContext) -> SinkWriter:
        return FakeWriter(self._store, context)

    def create_committer(self) -> Committer:
        return FakeCommitter(self._store)


def install(monkeypatch: pytest.MonkeyPatch, store: FakeStore) -> FakeStore:
    """Every table of the test reads from and writes to the store."""

    def source(scan: Any, configuration: Mapping[str, str]) -> TableSource:
        return FakeSource(store)

    def sink(spec: Any, configuration: Mapping[str, str]) -> TableSink:
        return FakeSink(store)

    monkeypatch.setattr(registry, "create_source", source)
    monkeypatch.setattr(registry, "create_sink", sink)
    return store
