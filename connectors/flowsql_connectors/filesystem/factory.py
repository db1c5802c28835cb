"""Factories of ``filesystem`` tables: options of connector and format together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from flowsql_connectors.bad_rows import LETTER_COLUMNS
from flowsql_connectors.dead_letter_table import with_letters
from flowsql_connectors.file_systems.choice import is_remote
from flowsql_connectors.filesystem.options import (
    DEFAULT_NAME,
    FILESYSTEM_OPTIONS,
    FORMAT,
    MONITOR_INTERVAL,
    PATH,
    PATH_PATTERN,
    REPORT_STATISTICS,
)
from flowsql_connectors.formats.registry import format_factory
from flowsql_connectors.options import OptionSet
from flowsql_connectors.spi.sink import SinkFactory, TableSink
from flowsql_connectors.spi.source import InferredTable, PlainFiles, SourceFactory, TableSource
from flowsql_core.errors import BindError, NotSupportedYetError
from flowsql_core.graph.specs import ScanSpec, SinkSpec, TableSpec

#: Options that change which rows there are, or what stands in them.
_OWN_WAY: Final = ("flowsql.", MONITOR_INTERVAL.key, "scan.")


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

    def inferred(self, table: TableSpec, configuration: Mapping[str, str]) -> InferredTable:
        """What the files show."""
        from flowsql_connectors.filesystem.inferring import infer_files

        return infer_files(table, configuration)

    def create_source(self, scan: ScanSpec, configuration: Mapping[str, str]) -> TableSource:
        """A scan; files are looked for when it is enumerated."""
        from flowsql_connectors.filesystem.source import FileSource

        values = self.options(scan.table).check(scan.table)
        if values.get(REPORT_STATISTICS) != REPORT_STATISTICS.default:
            raise NotSupportedYetError(f"'{REPORT_STATISTICS.key}' = '{values.get(REPORT_STATISTICS)}'")
        format_ = format_factory(values.get(FORMAT)).create(values, scan.table)
        return FileSource(scan, values, format_, configuration)

    def plain_files(self, table: TableSpec) -> PlainFiles | None:
        """The path, where no option changes which rows there are or what is in them."""
        options = table.filled_options()
        if any(key.startswith(_OWN_WAY) for key in options) or PATH.key not in options:
            return None
        if is_remote(options[PATH.key]):
            # Another engine would reach it with settings of its own.
            return None
        return PlainFiles(
            options.get(FORMAT.key, ""),
            options[PATH.key],
            options.get(PATH_PATTERN.key),
            table.partition_keys,
            options.get(DEFAULT_NAME.key, DEFAULT_NAME.default),
        )

    def with_referenced(self, table: TableSpec, referenced: TableSpec) -> TableSpec:
        """The table with the folder of its dead-letter table as an option instead of that table's name."""
        return with_letters(table, referenced, LETTER_COLUMNS)


class FileSinkFactory(SinkFactory):
    """Makes sinks into files."""

    identifier = "filesystem"

    def supports_overwrite(self) -> bool:
        """Folders can be replaced."""
        return True

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
