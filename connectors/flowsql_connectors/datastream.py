"""``datastream``: the ends of a table's plan that are streams of the same job.

The planner sees tables; the bridge of the DataStream API puts the streams' operators into their place before the job
runs, so that nothing here ever reads or writes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from flowsql_connectors.options import ConnectorOption, OptionSet
from flowsql_connectors.spi.sink import SinkFactory, SinkWriter, TableSink, WriterContext
from flowsql_connectors.spi.source import ReaderContext, SourceFactory, SourceReader, SplitEnumerator, TableSource
from flowsql_core.errors import InternalError
from flowsql_core.graph.specs import ScanSpec, SinkSpec, TableSpec
from flowsql_core.row import INSERT_ONLY, ChangelogMode, RowKind
from flowsql_core.types.logical import LogicalType, TimestampLtzType, TimestampType

IDENTIFIER: Final = "datastream"
#: Keys of metadata columns: the timestamps of the stream's records, and what a clock in UTC shows then.
ROWTIME: Final = "rowtime"
UTC_TIME: Final = "rowtime-utc"


def _parse_mode(text: str) -> ChangelogMode:
    """The kinds of changes of ``I,UB,UA,D``; ``PD``: deletes by the key."""
    names = {
        "I": RowKind.INSERT,
        "UB": RowKind.UPDATE_BEFORE,
        "UA": RowKind.UPDATE_AFTER,
        "D": RowKind.DELETE,
        "PD": RowKind.DELETE,
    }
    parts = text.split(",")
    if not set(parts) <= set(names):
        raise ValueError("expected kinds of changes, e.g. 'I,UB,UA,D'")
    return ChangelogMode(frozenset(names[part] for part in parts), "PD" in parts)


def mode_text(mode: ChangelogMode) -> str:
    """The text that the option ``mode`` takes: ``I,UB,UA,D``."""
    return str(mode).strip("[]")


STREAM = ConnectorOption("stream", str, "", "Key of the stream among the job's streams.")
MODE = ConnectorOption("mode", _parse_mode, INSERT_ONLY, "Kinds of changes that the rows of the stream bear.")
SOURCE_WATERMARK = ConnectorOption("source-watermark", str, "", "'true' takes over the watermarks of the stream.")
PARALLELISM = ConnectorOption("scan.parallelism", int, 1, "Parallelism of the stream.")

_SOURCE_OPTIONS = OptionSet(required=(STREAM,), optional=(MODE, SOURCE_WATERMARK, PARALLELISM))
_SINK_OPTIONS = OptionSet(optional=(MODE,))


class StreamSource(TableSource):
    """A stream as a table."""

    def __init__(self, mode: ChangelogMode) -> None:
        self._mode = mode

    @property
    def changelog_mode(self) -> ChangelogMode:
        """What was declared for the stream's rows."""
        return self._mode

    def supports_projection(self) -> bool:
        """Columns that nobody reads are not made."""
        return True

    def metadata_columns(self) -> Mapping[str, LogicalType]:
        """The records' timestamps."""
        return {ROWTIME: TimestampLtzType(precision=3), UTC_TIME: TimestampType(precision=3)}

    def create_enumerator(self) -> SplitEnumerator:
        """Never called: a stream is an operator, not a source."""
        raise InternalError("a stream of the job was not put into its place")

    def create_reader(self, context: ReaderContext) -> SourceReader:
        """Never called: a stream is an operator, not a source."""
        raise InternalError("a stream of the job was not put into its place")


class StreamSourceFactory(SourceFactory):
    """Makes :class:`StreamSource`."""

    identifier = IDENTIFIER

    def options(self, table: TableSpec) -> OptionSet:
        """Which stream, and what its rows are."""
        return _SOURCE_OPTIONS

    def create_source(self, scan: ScanSpec, configuration: Mapping[str, str]) -> TableSource:
        """What the planner asks."""
        return StreamSource(_SOURCE_OPTIONS.check(scan.table).get(MODE))


class StreamSink(TableSink):
    """A table's rows as a stream."""

    def __init__(self, mode: ChangelogMode) -> None:
        self._mode = mode

    def accepts(self, wanted: ChangelogMode) -> ChangelogMode:
        """What was declared, as far as it occurs."""
        return ChangelogMode(self._mode.kinds & wanted.kinds | {RowKind.INSERT}, self._mode.key_only_deletes)

    def shows_each_change(self) -> bool:
        """The program gets every row."""
        return True

    def create_writer(self, context: WriterContext) -> SinkWriter:
        """Never called: the stream is an operator, not a sink."""
        raise InternalError("a stream of the job was not put into its place")


class StreamSinkFactory(SinkFactory):
    """Makes :class:`StreamSink`."""

    identifier = IDENTIFIER

    def options(self, table: TableSpec) -> OptionSet:
        """What the stream takes."""
        return _SINK_OPTIONS

    def create_sink(self, sink: SinkSpec, configuration: Mapping[str, str]) -> TableSink:
        """What the planner asks."""
        return StreamSink(_SINK_OPTIONS.check(sink.table).get(MODE))
