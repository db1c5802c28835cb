"""Factories of tables that are declared with Flink 1's keys, which Flink 2.3 still reads for csv files.

A scan is that of a ``filesystem`` table with the same options of today. A sink writes one file under the path itself,
or numbered files in a folder of that name where it runs in parallel.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from flowsql_connectors.filesystem.files import local_path
from flowsql_connectors.options import (
    ConnectorOption,
    OptionSet,
    OptionValues,
    optional,
    parse_boolean,
    parse_choice,
    parse_positive,
)
from flowsql_connectors.spi.sink import SinkFactory, SinkWriter, TableSink, WriterContext
from flowsql_connectors.spi.source import SourceFactory, TableSource
from flowsql_core.errors import NotSupportedYetError
from flowsql_core.graph.specs import ScanSpec, SinkSpec, TableSpec
from flowsql_core.row import INSERT_ONLY, ChangelogMode
from flowsql_core.types.logical import (
    ArrayType,
    BinaryStringType,
    LogicalType,
    MapType,
    MultisetType,
    RowType,
)


def _character(text: str) -> str:
    if len(text) != 1:
        raise ValueError("expected a single character")
    return text


def _only(wanted: str, otherwise: str) -> Any:
    """A parser for an option of which FlowSQL follows one value."""

    def parse(text: str) -> str:
        if text != wanted:
            raise ValueError(otherwise)
        return text

    return parse


TYPE: Final = ConnectorOption("connector.type", parse_choice("filesystem"), "filesystem", "Flink 1's `connector`.")
PATH: Final = ConnectorOption("connector.path", str, "", "The file, or a folder of files.")
FORMAT: Final = ConnectorOption("format.type", parse_choice("csv"), "csv", "Flink 1's `format`: csv.")
DELIMITER: Final = ConnectorOption("format.field-delimiter", _character, ",", "Character between fields.")
WRITE_MODE: Final = ConnectorOption(
    "format.write-mode",
    parse_choice("NO_OVERWRITE", "OVERWRITE"),
    "NO_OVERWRITE",
    "Whether a file that is there is replaced; else it is an error.",
)
FILES: Final[ConnectorOption[int | None]] = ConnectorOption(
    "format.num-files", optional(parse_positive), None, "Files to write; by default one for each subtask of the input."
)
LINE_DELIMITER: Final = ConnectorOption(
    "format.line-delimiter", _only("\n", "FlowSQL reads lines that end with a line feed"), "\n", "End of a line."
)
QUOTE: Final[ConnectorOption[str | None]] = ConnectorOption(
    "format.quote-character", optional(_character), None, "Character around fields; none by default."
)
COMMENTS: Final[ConnectorOption[str | None]] = ConnectorOption(
    "format.comment-prefix", optional(str), None, "Starts lines to be skipped."
)
FIRST_LINE: Final = ConnectorOption("format.ignore-first-line", parse_boolean, False, "Whether it is skipped.")
PARSE_ERRORS: Final = ConnectorOption(
    "format.ignore-parse-errors", parse_boolean, False, "NULL for fields that cannot be read, no row for such rows."
)
#: What says nothing, and may be there.
_SILENT: Final = (
    ConnectorOption("connector.property-version", _only("1", "expected 1"), "1", "Always 1."),
    ConnectorOption("format.property-version", _only("1", "expected 1"), "1", "Always 1."),
    ConnectorOption("format.derive-schema", parse_boolean, True, "Columns are those of the table, whatever it says."),
    ConnectorOption("update-mode", _only("append", "csv files are appended to: expected append"), "append", "append"),
)
_SOURCE: Final = OptionSet(
    (TYPE, PATH, FORMAT), (DELIMITER, LINE_DELIMITER, QUOTE, COMMENTS, FIRST_LINE, PARSE_ERRORS, *_SILENT)
)
_SINK: Final = OptionSet((TYPE, PATH, FORMAT), (DELIMITER, WRITE_MODE, FILES, *_SILENT))


class OldFileSourceFactory(SourceFactory):
    """Makes scans of csv files."""

    identifier = "filesystem"

    def options(self, table: TableSpec) -> OptionSet:
        """Flink 1's keys that a scan follows."""
        return _SOURCE

    def create_source(self, scan: ScanSpec, configuration: Mapping[str, str]) -> TableSource:
        """A scan of the files with Flink 1's rules of csv."""
        from flowsql_connectors.filesystem.flink1.reader import OldCsvFormat
        from flowsql_connectors.filesystem.source import FileSource

        _refuse(scan.table)
        values = _SOURCE.check(scan.table)
        today = (("connector", "filesystem"), ("path", values.get(PATH)))
        table = replace(scan.table, options=today)
        format_ = OldCsvFormat(
            values.get(DELIMITER),
            values.get(QUOTE),
            values.get(COMMENTS),
            values.get(FIRST_LINE),
            values.get(PARSE_ERRORS),
        )
        return FileSource(replace(scan, table=table), OptionValues(dict(today)), format_, configuration)


class OldFileSinkFactory(SinkFactory):
    """Makes sinks into csv files."""

    identifier = "filesystem"

    def options(self, table: TableSpec) -> OptionSet:
        """Flink 1's keys that a sink follows."""
        return _SINK

    def create_sink(self, sink: SinkSpec, configuration: Mapping[str, str]) -> TableSink:
        """A sink; refuses types that have no text in csv."""
        _refuse(sink.table)
        return OldFileSink(sink, _SINK.check(sink.table))


class OldFileSink(TableSink):
    """Appends rows to a file, or to numbered files of a folder."""

    def __init__(self, sink: SinkSpec, values: OptionValues) -> None:
        self._columns = sink.table.columns
        self._delimiter = values.get(DELIMITER)
        self._files = values.get(FILES)
        self._replaces = values.get(WRITE_MODE) == "OVERWRITE"
        self._path = local_path(values.get(PATH))

    def accepts(self, wanted: ChangelogMode) -> ChangelogMode:
        """Insertions alone."""
        return INSERT_ONLY

    def create_writer(self, context: WriterContext) -> SinkWriter:
        """The path is that of the file, or of the folder of the subtasks' files, which are numbered from 1."""
        from flowsql_connectors.filesystem.flink1.writer import OldFileWriter

        path = self._path if context.parallelism == 1 else f"{self._path}/{context.subtask + 1}"
        return OldFileWriter(path, self._columns, self._delimiter, self._replaces)

    def parallelism(self) -> int | None:
        """``format.num-files``."""
        return self._files


def _refuse(table: TableSpec) -> None:
    """Refuse what only the options of today have."""
    if table.partition_keys:
        raise NotSupportedYetError("PARTITIONED BY of a table with Flink 1's keys", hint=_HINT)
    for column in table.columns:
        if _is_refused(column.type):
            raise NotSupportedYetError(f"column '{column.name}' of type {column.type} in csv of Flink 1", hint=_HINT)


def _is_refused(type_: LogicalType) -> bool:
    return isinstance(type_, ArrayType | MapType | MultisetType | RowType | BinaryStringType)


_HINT: Final = "'connector' = 'filesystem', 'path' = '...', 'format' = '...' are the options of today"
