"""INSERTs into a :class:`BatchSink`."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from flowsql_connectors.options import SINK_PARALLELISM, OptionSet
from flowsql_connectors.rowwise.base import BatchSink, DeclaredTable, failure_text
from flowsql_connectors.spi.sink import SinkFactory, SinkWriter, TableSink, WriterContext
from flowsql_core.arrow import compute as pc
from flowsql_core.batch import ChangelogBatch
from flowsql_core.errors import ConnectorError, FlowSqlError
from flowsql_core.graph.specs import SinkSpec, TableSpec
from flowsql_core.row import SHORT_STRINGS, ChangelogMode
from flowsql_core.types.arrow import arrow_schema
from flowsql_core.types.logical import Column, LogicalType, Schema
from flowsql_core.types.text import parse_type


class _Writer(SinkWriter):
    def __init__(self, connector: str, sink: BatchSink, schema: Schema) -> None:
        self._connector = connector
        self._sink = sink
        self._schema = arrow_schema(schema)

    def write(self, batch: ChangelogBatch) -> None:
        """Hand the rows over."""
        if not batch.num_rows:
            return
        rows = pa.RecordBatch.from_arrays(list(batch.columns), schema=self._schema)
        kinds = None
        if batch.kinds is not None and batch.kinds.any():
            kinds = pc.take(pa.array(SHORT_STRINGS), pa.array(batch.kinds))
        try:
            self._sink.write(rows, kinds)
        except FlowSqlError:
            raise
        except Exception as error:
            raise _failed(self._connector, "wrote rows", error) from error

    def flush(self, end_of_input: bool) -> None:
        """All that was written arrives."""
        try:
            self._sink.flush()
        except FlowSqlError:
            raise
        except Exception as error:
            raise _failed(self._connector, "let rows arrive", error) from error

    def close(self) -> None:
        """Release what the object holds."""
        self._sink.close()


class BatchTableSink(TableSink):
    """An INSERT whose rows Python code takes."""

    def __init__(self, kind: type[BatchSink], sink: SinkSpec, options: OptionSet) -> None:
        self._kind = kind
        self._spec = sink
        values = options.check(sink.table)
        self._declared = DeclaredTable(sink.table, values, sink.metadata)
        self._parallelism = values.get(SINK_PARALLELISM)

    def accepts(self, wanted: ChangelogMode) -> ChangelogMode:
        """Inserts, or the changes that the class takes."""
        return self._kind.accepted(wanted, bool(self._declared.primary_key))

    def create_writer(self, context: WriterContext) -> SinkWriter:
        """A writer with an object of the class."""
        connector = self._spec.table.option("connector") or ""
        columns = self._spec.input
        plain = columns[: len(columns) - len(self._spec.metadata)]
        told = columns[len(plain) :]
        keys = tuple(Column(key, column.type) for key, column in zip(self._spec.metadata, told, strict=True))
        return _Writer(connector, self._kind(self._declared), (*plain, *keys))

    def parallelism(self) -> int | None:
        """``sink.parallelism``."""
        return self._parallelism


class BatchSinkFactory(SinkFactory):
    """Makes sinks of one class."""

    identifier = "batch-sink"

    def __init__(self, kind: type[BatchSink]) -> None:
        self._kind = kind

    def options(self, table: TableSpec) -> OptionSet:
        """Those that the class names, and ``sink.parallelism``."""
        return self._kind.options.merged(OptionSet(optional=(SINK_PARALLELISM,)))

    def writable_metadata(self, table: TableSpec) -> Mapping[str, LogicalType]:
        """What the class names."""
        return {key: parse_type(text) for key, text in self._kind.metadata.items()}

    def create_sink(self, sink: SinkSpec, configuration: Mapping[str, str]) -> TableSink:
        """A sink of a table."""
        return BatchTableSink(self._kind, sink, self.options(sink.table))


def _failed(connector: str, when: str, error: BaseException) -> ConnectorError:
    return ConnectorError("sink-failed", f"The connector '{connector}' failed while it {when}: {failure_text(error)}")
