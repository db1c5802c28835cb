"""A sink for tests: changelogs in csv files, the kind of change first; files, commits and recovery are filesystem's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pyarrow as pa

from flowsql_connectors import registry
from flowsql_connectors.filesystem.factory import FileSinkFactory
from flowsql_connectors.options import OptionSet
from flowsql_connectors.spi.sink import Committable, Committer, SinkFactory, SinkWriter, TableSink, WriterContext
from flowsql_core.batch import ChangelogBatch
from flowsql_core.graph.specs import SinkSpec, TableSpec
from flowsql_core.row import ALL_CHANGES, SHORT_STRINGS, ChangelogMode
from flowsql_core.types.logical import STRING, Column

_KINDS = pa.array(SHORT_STRINGS)


def _with_kind(table: TableSpec) -> TableSpec:
    options = tuple((key, "filesystem" if key == "connector" else value) for key, value in table.options)
    return replace(table, columns=(Column("op", STRING), *table.columns), options=options)


class ChangelogWriter(SinkWriter):
    """Hands rows on with their kind as the first column."""

    def __init__(self, inner: SinkWriter) -> None:
        self._inner = inner

    def write(self, batch: ChangelogBatch) -> None:
        kinds = np.zeros(batch.num_rows, np.uint8) if batch.kinds is None else batch.kinds
        columns = [_KINDS.take(pa.array(kinds)), *batch.columns]
        self._inner.write(batch.with_columns(columns).with_kinds(None))

    def on_watermark(self, watermark_ms: int) -> None:
        self._inner.on_watermark(watermark_ms)

    def flush(self, end_of_input: bool) -> None:
        self._inner.flush(end_of_input)

    def prepare_commit(self) -> list[Committable]:
        return self._inner.prepare_commit()

    def snapshot(self) -> bytes:
        return self._inner.snapshot()

    def restore(self, states: list[bytes]) -> None:
        self._inner.restore(states)

    def close(self) -> None:
        self._inner.close()


class ChangelogSink(TableSink):
    """Takes every change."""

    def __init__(self, inner: TableSink) -> None:
        self._inner = inner

    def accepts(self, wanted: ChangelogMode) -> ChangelogMode:
        return ALL_CHANGES

    def create_writer(self, context: WriterContext) -> SinkWriter:
        return ChangelogWriter(self._inner.create_writer(context))

    def create_committer(self) -> Committer | None:
        return self._inner.create_committer()


class ChangelogSinkFactory(SinkFactory):
    """``'connector' = 'changelog'`` with filesystem's options."""

    identifier = "changelog"

    def options(self, table: TableSpec) -> OptionSet:
        return FileSinkFactory().options(_with_kind(table))

    def create_sink(self, sink: SinkSpec, configuration: Mapping[str, str]) -> TableSink:
        return ChangelogSink(FileSinkFactory().create_sink(replace(sink, table=_with_kind(sink.table)), configuration))


def register() -> None:
    """Make the connector known in this process."""
    registry._BUILT_IN["changelog"] = registry.Connector(sink=f"{__name__}:ChangelogSinkFactory")
