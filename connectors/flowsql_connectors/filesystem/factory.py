"""Factories of ``filesystem`` tables: options of connector and format together."""

from __future__ import annotations

from collections.abc import Mapping

from flowsql_connectors.filesystem.options import FILESYSTEM_OPTIONS, FORMAT, REPORT_STATISTICS
from flowsql_connectors.formats.registry import format_factory
from flowsql_connectors.options import OptionSet
from flowsql_connectors.spi.sink import SinkFactory, TableSink
from flowsql_connectors.spi.source import SourceFactory, TableSource
from flowsql_core.errors import BindError, NotSupportedYetError
from flowsql_core.graph.specs import ScanSpec, SinkSpec, TableSpec


def _options(table: TableSpec) -> OptionSet:
    identifier = table.option(FORMAT.key)
    if identifier is None:
        return FILESYSTEM_OPTIONS
    return FILESYSTEM_OPTIONS.merged(format_factory(identifier).options())


class FileSourceFactory(SourceFactory):
    """Makes scans of files."""

    identifier = "filesystem"

    def options(self, table: TableSpec) -> OptionSet:
        """The connector's options and those of the table's format."""
        return _options(table)

    def create_source(self, scan: ScanSpec, configuration: Mapping[str, str]) -> TableSource:
        """A scan; files are looked for when it is enumerated."""
        from flowsql_connectors.filesystem.source import FileSource

        values = self.options(scan.table).check(scan.table)
        if values.get(REPORT_STATISTICS) != REPORT_STATISTICS.default:
            raise NotSupportedYetError(f"'{REPORT_STATISTICS.key}' = '{values.get(REPORT_STATISTICS)}'")
        format_ = format_factory(values.get(FORMAT)).create(values, scan.table)
        return FileSource(scan, values, format_, configuration)


class FileSinkFactory(SinkFactory):
    """Makes sinks into files."""

    identifier = "filesystem"

    def options(self, table: TableSpec) -> OptionSet:
        """The connector's options and those of the table's format."""
        return _options(table)

    def create_sink(self, sink: SinkSpec, configuration: Mapping[str, str]) -> TableSink:
        """A sink; INSERT OVERWRITE only in batch mode."""
        from flowsql_connectors.filesystem.sink import FileSink

        values = self.options(sink.table).check(sink.table)
        if sink.overwrite and configuration.get("execution.runtime-mode", "streaming").lower() != "batch":
            raise BindError("overwrite-in-streaming", "Streaming mode not support overwrite.")
        format_ = format_factory(values.get(FORMAT)).create(values, sink.table)
        return FileSink(sink, values, format_, configuration)
