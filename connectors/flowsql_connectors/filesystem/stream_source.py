"""``file-source``: the FileSource of DataStreams. Finding, reading and positions are those of tables."""

from __future__ import annotations

from collections.abc import Mapping

from flowsql_connectors.filesystem.files import FoundFile, find_files
from flowsql_connectors.filesystem.options import FORMAT, MONITOR_INTERVAL
from flowsql_connectors.filesystem.source import FileSource
from flowsql_connectors.filesystem.splits import FileEnumerator
from flowsql_connectors.filesystem.stream_options import BATCH_ROWS, PATHS, SPLITTABLE, STREAM_SOURCE_OPTIONS
from flowsql_connectors.formats.format import Decoder
from flowsql_connectors.formats.streams.registry import stream_format_factory
from flowsql_connectors.options import OptionSet, OptionValues
from flowsql_connectors.spi.counters import Lose, lose_silently
from flowsql_connectors.spi.source import SourceFactory, SplitEnumerator, TableSource
from flowsql_core.graph.specs import ScanSpec, TableSpec


class StreamFileSource(FileSource):
    """Files at several paths; a file that two of them reach is read twice, as in Flink."""

    def __init__(self, scan: ScanSpec, values: OptionValues, configuration: Mapping[str, str]) -> None:
        format_ = stream_format_factory(values.get(FORMAT)).create(values, scan.table)
        super().__init__(scan, values, format_, configuration)
        self._paths = values.get(PATHS)
        self._whole_files = not values.get(SPLITTABLE)

    def create_enumerator(self) -> SplitEnumerator:
        """Files, or ranges of them."""
        self._decoder_for(1)
        return FileEnumerator(self._find, self._cut, self._values.get(MONITOR_INTERVAL), self._whole_files)

    def _decoder_for(self, batch_rows: int, lose: Lose = lose_silently) -> Decoder:
        return super()._decoder_for(min(batch_rows, self._values.get(BATCH_ROWS) or batch_rows), lose)

    def _find(self, path: str | None = None) -> list[FoundFile]:
        paths = self._paths if path is None else (path,)
        return [file for one in paths for file in find_files(one, settings=self._configuration)]


class StreamFileSourceFactory(SourceFactory):
    """Makes :class:`StreamFileSource`."""

    identifier = "file-source"

    def options(self, table: TableSpec) -> OptionSet:
        """Those of the source and of its format."""
        name = table.option(FORMAT.key)
        return (
            STREAM_SOURCE_OPTIONS
            if name is None
            else STREAM_SOURCE_OPTIONS.merged(stream_format_factory(name).options())
        )

    def create_source(self, scan: ScanSpec, configuration: Mapping[str, str]) -> TableSource:
        """A scan; files are looked for when it is enumerated."""
        return StreamFileSource(scan, self.options(scan.table).check(scan.table), configuration)
