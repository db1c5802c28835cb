"""``file-sink``: the FileSink of DataStreams. Writers, commits and merges are those of tables."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from typing import BinaryIO, Final

from flowsql_connectors.file_systems.choice import is_remote
from flowsql_connectors.filesystem.buckets import ClockBuckets, clock_text
from flowsql_connectors.filesystem.commit import FileCommitter
from flowsql_connectors.filesystem.compact import Compactor, Merge
from flowsql_connectors.filesystem.names import PartNames
from flowsql_connectors.filesystem.options import (
    CHECK_MS,
    FORMAT,
    INACTIVITY_MS,
    PATH,
    ROLLING_SIZE,
    ROLLOVER_MS,
)
from flowsql_connectors.filesystem.packing import WhenEnough
from flowsql_connectors.filesystem.sink import check_size
from flowsql_connectors.filesystem.stores.store import part_store, sink_folder
from flowsql_connectors.filesystem.stream_options import (
    BUCKET_PATTERN,
    BUCKET_ZONE,
    CHARSET,
    COMPACTION_BYTES,
    COMPACTION_CHECKPOINTS,
    COMPACTION_THREADS,
    COMPACTOR,
    DELIMITER,
    LINES,
    PART_PREFIX,
    PART_SUFFIX,
    ROLL_ON_CHECKPOINT,
    STREAM_SINK_OPTIONS,
)
from flowsql_connectors.filesystem.writer import FileWriter, Rolling
from flowsql_connectors.formats.format import FileEncoder
from flowsql_connectors.formats.line_encode import LineEncoder
from flowsql_connectors.formats.streams.registry import stream_format_factory
from flowsql_connectors.options import OptionSet, OptionValues
from flowsql_connectors.spi.sink import Committer, SinkFactory, SinkWriter, TableSink, WriterContext
from flowsql_core.errors import NotSupportedYetError
from flowsql_core.graph.specs import SinkSpec, TableSpec
from flowsql_core.row import INSERT_ONLY, ChangelogMode

#: Neither a size nor an age closes a file.
_NEVER: Final = Rolling(2**63, 2**63, 2**63, 2**63)


class StreamFileSink(TableSink):
    """Appends to folders of files."""

    def __init__(self, sink: SinkSpec, values: OptionValues, configuration: Mapping[str, str]) -> None:
        self._columns = sink.table.columns
        self._table = sink.table
        self._values = values
        self._settings = configuration
        self._store = part_store(sink_folder(values.get(PATH), "a file sink"), configuration)
        if is_remote(self._store.root):
            if self._compactor() is not None:
                raise NotSupportedYetError(f"FileSink with enable_compact in an object store ('{self._store.root}')")
            if not values.get(ROLL_ON_CHECKPOINT):
                check_size(self._store.root, values)
        self._batch = configuration.get("execution.runtime-mode", "streaming").lower() == "batch"
        self._names = PartNames(values.get(PART_PREFIX), values.get(PART_SUFFIX), with_subtask=False)
        self._folders = ClockBuckets(len(self._columns), values.get(BUCKET_PATTERN), values.get(BUCKET_ZONE))
        if self._folders.pattern is not None:
            clock_text(0, self._folders.pattern, self._folders.zone)  # what is wrong with it shows here

    def accepts(self, wanted: ChangelogMode) -> ChangelogMode:
        """Files hold no updates."""
        return INSERT_ONLY

    def create_writer(self, context: WriterContext) -> SinkWriter:
        """A writer with part files of its own."""
        values = self._values
        on_checkpoint = values.get(ROLL_ON_CHECKPOINT)
        own = Rolling(
            values.get(ROLLING_SIZE), values.get(ROLLOVER_MS), values.get(INACTIVITY_MS), values.get(CHECK_MS)
        )
        return FileWriter(
            store=self._store,
            folders=self._folders,
            names=self._names,
            encoder=self._encoder(),
            rolling=_NEVER if on_checkpoint else own,
            closes_with_checkpoint=on_checkpoint,
            policy=None,
            durable=not self._batch,
            context=context,
        )

    def create_committer(self) -> Committer:
        """The committer of all writers."""
        self._store.check()
        return FileCommitter(
            self._store,
            self._settings,
            self._names,
            policy=None,
            overwritten=None,
            overwrite=False,
            at_end_only=self._batch,
            compactor=self._compactor(),
        )

    def _encoder(self) -> FileEncoder:
        name = self._values.get(FORMAT)
        if name == LINES:
            return LineEncoder(self._values.get(CHARSET))
        return stream_format_factory(name).create(self._values, self._table).encoder(self._columns)

    def _compactor(self) -> Compactor | None:
        values = self._values
        packing = WhenEnough(values.get(COMPACTION_CHECKPOINTS), values.get(COMPACTION_BYTES))
        if not packing.checkpoints and not packing.size_bytes:
            return None
        if values.get(COMPACTOR) == "identical":
            return Compactor(packing, None)
        delimiter = values.get(DELIMITER)
        if delimiter:
            return Compactor(packing, _with_delimiter(delimiter), values.get(COMPACTION_THREADS), rewrites=True)
        return Compactor(packing, self._encoder().merge, values.get(COMPACTION_THREADS))


def _with_delimiter(delimiter: bytes) -> Merge:
    """As Flink's ConcatFileCompactor does: behind each file, the last one too."""

    def merge(paths: Sequence[str], stream: BinaryIO) -> None:
        for path in paths:
            with open(path, "rb") as file:
                shutil.copyfileobj(file, stream)
            stream.write(delimiter)

    return merge


class StreamFileSinkFactory(SinkFactory):
    """Makes :class:`StreamFileSink`."""

    identifier = "file-sink"

    def options(self, table: TableSpec) -> OptionSet:
        """Those of the sink and of its format."""
        name = table.option(FORMAT.key)
        if name is None or name == LINES:
            return STREAM_SINK_OPTIONS
        return STREAM_SINK_OPTIONS.merged(stream_format_factory(name).options())

    def create_sink(self, sink: SinkSpec, configuration: Mapping[str, str]) -> TableSink:
        """A sink."""
        return StreamFileSink(sink, self.options(sink.table).check(sink.table), configuration)
