"""Factories of ``delta`` tables."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from flowsql_connectors.lakes.delta.options import TIMESTAMP_AS_OF, checked, table_options
from flowsql_connectors.lakes.installed import require
from flowsql_connectors.options import OptionSet
from flowsql_connectors.spi.sink import SinkFactory, TableSink
from flowsql_connectors.spi.source import InferredTable, SourceFactory, TableSource
from flowsql_core.graph.specs import ScanSpec, SinkSpec, TableSpec


class DeltaSourceFactory(SourceFactory):
    """Makes scans of Delta tables."""

    identifier = "delta"

    def options(self, table: TableSpec) -> OptionSet:
        """Those of scans and of sinks, of the storage, and properties of the table."""
        return table_options(table)

    def create_source(self, scan: ScanSpec, configuration: Mapping[str, str]) -> TableSource:
        """A scan.

        Raises:
            BindError: options contradict each other.
        """
        require("delta", "deltalake")
        from flowsql_connectors.lakes.delta.source import DeltaSource

        return DeltaSource(scan, checked(scan.table), configuration)

    def as_of(self, table: TableSpec, moment_ms: int) -> tuple[tuple[str, str], ...]:
        """``timestampAsOf``."""
        moment = datetime.fromtimestamp(moment_ms / 1000, UTC)
        return ((TIMESTAMP_AS_OF.key, moment.isoformat(timespec="milliseconds")),)

    def inferred(self, table: TableSpec, configuration: Mapping[str, str]) -> InferredTable:
        """The columns of the Delta table."""
        require("delta", "deltalake")
        from flowsql_connectors.lakes.delta.connection import address_of, arrow_schema
        from flowsql_connectors.lakes.delta.types import to_columns

        checked(table)
        address = address_of(table, configuration)
        found = address.load()
        columns = to_columns(arrow_schema(found), address.uri)
        keys = tuple(found.metadata().partition_columns)
        return InferredTable(columns, table.options, keys, f"Delta table '{address.uri}', version {found.version()}")


class DeltaSinkFactory(SinkFactory):
    """Makes sinks into Delta tables."""

    identifier = "delta"

    def supports_overwrite(self) -> bool:
        """Partitions, or a whole table, are replaced with one version."""
        return True

    def options(self, table: TableSpec) -> OptionSet:
        """Those of scans and of sinks, of the storage, and properties of the table."""
        return table_options(table)

    def create_sink(self, sink: SinkSpec, configuration: Mapping[str, str]) -> TableSink:
        """A sink; INSERT OVERWRITE only in batch mode."""
        require("delta", "deltalake")
        from flowsql_connectors.lakes.delta.sink import DeltaSink

        return DeltaSink(sink, checked(sink.table), configuration)
