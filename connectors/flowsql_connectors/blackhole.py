"""``blackhole``: takes everything, keeps nothing, and copies nothing for it.

What may fail was computed before a row gets here; only columns that were selected and not yet gathered
(``LateColumns``) stay so, as Flink hands its sink rows that nobody copies.
"""

from __future__ import annotations

from collections.abc import Mapping

from flowsql_connectors.options import SINK_PARALLELISM, OptionSet
from flowsql_connectors.spi.sink import SinkFactory, SinkWriter, TableSink, WriterContext
from flowsql_core.batch import ChangelogBatch
from flowsql_core.graph.specs import SinkSpec, TableSpec
from flowsql_core.row import ChangelogMode, RowKind

_OPTIONS = OptionSet(optional=(SINK_PARALLELISM,))


class BlackholeWriter(SinkWriter):
    """Counts rows and forgets them."""

    def __init__(self) -> None:
        self.rows = 0

    def write(self, batch: ChangelogBatch) -> None:
        """Count the rows."""
        self.rows += batch.num_rows


class BlackholeSink(TableSink):
    """Accepts every change, and asks for none that it need not see."""

    def __init__(self, parallelism: int | None) -> None:
        self._parallelism = parallelism

    def accepts(self, wanted: ChangelogMode) -> ChangelogMode:
        """What the query produces, without ``-U`` (as in Flink): nobody looks at the old rows."""
        return ChangelogMode(wanted.kinds - {RowKind.UPDATE_BEFORE})

    def create_writer(self, context: WriterContext) -> SinkWriter:
        """A writer that keeps nothing."""
        return BlackholeWriter()

    def parallelism(self) -> int | None:
        """``sink.parallelism``."""
        return self._parallelism


class BlackholeSinkFactory(SinkFactory):
    """Makes ``blackhole`` sinks."""

    identifier = "blackhole"

    def options(self, table: TableSpec) -> OptionSet:
        """Only ``sink.parallelism``."""
        return _OPTIONS

    def create_sink(self, sink: SinkSpec, configuration: Mapping[str, str]) -> TableSink:
        """A sink that keeps nothing."""
        return BlackholeSink(_OPTIONS.check(sink.table).get(SINK_PARALLELISM))
