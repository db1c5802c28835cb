"""File sources and sinks under PyFlink's names: lines of text, and the formats in ``flowsql.datastream.formats``."""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, Self

from flowsql.common.public_api import public_api
from flowsql.common.serialization import BulkWriterFactory, Encoder
from flowsql.common.typeinfo import TypeInformation, Types
from flowsql.datastream.bridges.columns import type_of_columns
from flowsql.datastream.bridges.tables import RowForm, rows_of
from flowsql.datastream.connectors.base import SinkFunctionOf, Source
from flowsql.datastream.connectors.file_sink import (
    BucketAssigner,
    DefaultRollingPolicy,
    FileCompactor,
    FileCompactStrategy,
    FileSink,
    OnCheckpointRollingPolicy,
    OutputFileConfig,
    RollingPolicy,
)
from flowsql.datastream.plan.operators import BatchMap, file_scan, line_source
from flowsql.datastream.plan.transformations import SpecMaker
from flowsql_compute.eval.time.machine_zone import machine_zone
from flowsql_connectors.filesystem.options import MONITOR_INTERVAL
from flowsql_connectors.filesystem.stream_options import PATHS, SPLITTABLE
from flowsql_core.catalog import ANONYMOUS
from flowsql_core.graph.specs import ScanSpec, TableSpec
from flowsql_core.record import record
from flowsql_core.stream.time import Span, span_ms
from flowsql_core.types.logical import Schema

__all__ = [
    "BucketAssigner",
    "BulkFormat",
    "DefaultRollingPolicy",
    "FileCompactStrategy",
    "FileCompactor",
    "FileEnumeratorProvider",
    "FileSink",
    "FileSource",
    "FileSourceBuilder",
    "FileSplitAssignerProvider",
    "OnCheckpointRollingPolicy",
    "OutputFileConfig",
    "RollingPolicy",
    "StreamFormat",
    "StreamingFileSink",
]


class FileEnumeratorProvider:
    """How files are found and cut. Made by its static methods; hidden names (``.`` and ``_`` first) are passed over.

    ``splittable``: whether several readers may share a file, as far as its format allows.
    """

    def __init__(self, splittable: bool) -> None:
        self.splittable = splittable

    @staticmethod
    def default_splittable_file_enumerator() -> FileEnumeratorProvider:
        """Large files are shared by several readers; compressed ones and lines of text are not."""
        return FileEnumeratorProvider(True)

    @staticmethod
    def default_non_splittable_file_enumerator() -> FileEnumeratorProvider:
        """Each file is read by one reader, in its order."""
        return FileEnumeratorProvider(False)


class FileSplitAssignerProvider:
    """How files are dealt out. Made by :meth:`locality_aware_split_assigner`."""

    @staticmethod
    def locality_aware_split_assigner() -> FileSplitAssignerProvider:
        """Files that are near to a reader first: all readers of a job are on one machine, so all are equally near."""
        return FileSplitAssignerProvider()


@record
class FileRecords:
    """Records of files that a format of tables reads.

    ``options``: of the format, and its name under ``format``. ``columns``: what it reads. ``type``: of the records.
    ``values``: makes them of the columns. ``splittable``: whether several readers share a file unless told otherwise.
    """

    options: Mapping[str, str]
    columns: Schema
    type: TypeInformation
    values: BatchMap
    splittable: bool = False

    @staticmethod
    def of_rows(options: Mapping[str, str], columns: Schema, splittable: bool = False) -> FileRecords:
        """Records that are rows of the columns; a TIMESTAMP_LTZ is a ``datetime`` in the machine's zone."""
        values = rows_of(columns, RowForm(zone=machine_zone()))
        return FileRecords(options, columns, type_of_columns(columns), values, splittable)


class StreamFormat:
    """How records are read from a file. Made by :meth:`text_line_format`, and by formats: ``CsvReaderFormat``.

    ``records``: what a format reads; None for lines of text in ``charset``.
    """

    def __init__(self, charset: str = "UTF-8", records: FileRecords | None = None) -> None:
        "".encode(charset)  # an unknown name fails here
        self.charset = charset
        self.records = records

    @staticmethod
    def text_line_format(charset_name: str = "UTF-8") -> StreamFormat:
        """One text for each line."""
        return StreamFormat(charset_name)


class BulkFormat:
    """How batches of records are read from a file. Made by formats: ``ParquetColumnarRowInputFormat``."""

    def __init__(self, records: FileRecords) -> None:
        self.records = records


@public_api
class FileSource(Source):
    """The records of files. Files are dealt out to the subtasks, which read theirs in the order of the paths.

    What is compressed is known by its extension: ``.gz``, ``.gzip``, ``.bz2``, ``.xz``, ``.zst``, ``.deflate``.
    """

    parallel = True

    def __init__(
        self,
        file_format: StreamFormat | BulkFormat,
        paths: Sequence[str],
        monitor_ms: int = 0,
        splittable: bool | None = None,
    ) -> None:
        self._format = file_format
        self._paths = tuple(paths)
        self._monitor_ms = monitor_ms
        self._splittable = splittable
        self.bounded = not monitor_ms

    @staticmethod
    def for_record_stream_format(stream_format: StreamFormat, *paths: str) -> FileSourceBuilder:
        """Files, or folders with files, in a record format."""
        if not isinstance(stream_format, StreamFormat):
            raise TypeError(f"{stream_format!r} is not a StreamFormat")
        return FileSourceBuilder(stream_format, paths)

    @staticmethod
    def for_bulk_file_format(bulk_format: BulkFormat, *paths: str) -> FileSourceBuilder:
        """Files, or folders with files, in a format that is read by columns."""
        if not isinstance(bulk_format, BulkFormat):
            raise TypeError(f"{bulk_format!r} is not a BulkFormat")
        return FileSourceBuilder(bulk_format, paths)

    def produced_type(self) -> TypeInformation:
        """STRING for lines, else what the format says."""
        return Types.STRING() if self._format.records is None else self._format.records.type

    def spec_maker(self) -> SpecMaker:
        """The job finds and reads the files."""
        records = self._format.records
        if records is None:
            assert isinstance(self._format, StreamFormat)
            return line_source(self._paths, self._format.charset, self._monitor_ms)
        splittable = records.splittable if self._splittable is None else self._splittable
        options = {
            "connector": "file-source",
            PATHS.key: json.dumps(self._paths),
            SPLITTABLE.key: str(splittable).lower(),
            **records.options,
        }
        if self._monitor_ms:
            options[MONITOR_INTERVAL.key] = f"{self._monitor_ms} ms"
        table = TableSpec((ANONYMOUS, "", "FileSource"), records.columns, tuple(options.items()))
        spec = ScanSpec(table, tuple(range(len(records.columns))), records.columns)
        return file_scan(spec, self.bounded)

    def values_of_columns(self) -> BatchMap | None:
        """What makes the format's records; lines of text are values as they are read."""
        return None if self._format.records is None else self._format.records.values


@public_api
class FileSourceBuilder:
    """Makes a :class:`FileSource`."""

    def __init__(self, file_format: StreamFormat | BulkFormat, paths: Sequence[str]) -> None:
        self._format = file_format
        self._paths = tuple(paths)
        self._monitor_ms = 0
        self._splittable: bool | None = None

    def process_static_file_set(self) -> FileSourceBuilder:
        """Read what is there and end (the default)."""
        self._monitor_ms = 0
        return self

    def set_file_enumerator(self, file_enumerator: FileEnumeratorProvider) -> FileSourceBuilder:
        """How files are found, and whether several readers may share one; by default as the format says."""
        if not isinstance(file_enumerator, FileEnumeratorProvider):
            raise TypeError(f"{file_enumerator!r} is not a FileEnumeratorProvider")
        self._splittable = file_enumerator.splittable
        return self

    def set_split_assigner(self, split_assigner: FileSplitAssignerProvider) -> FileSourceBuilder:
        """How files are dealt out."""
        if not isinstance(split_assigner, FileSplitAssignerProvider):
            raise TypeError(f"{split_assigner!r} is not a FileSplitAssignerProvider")
        return self

    def monitor_continuously(self, discovery_interval: Span) -> FileSourceBuilder:
        """Look for new files again and again; the stream does not end.

        Raises:
            ValueError: the interval is not positive.
        """
        interval_ms = span_ms(discovery_interval)
        if interval_ms <= 0:
            raise ValueError("the discovery interval must be positive")
        self._monitor_ms = interval_ms
        return self

    def build(self) -> FileSource:
        """The source."""
        return FileSource(self._format, self._paths, self._monitor_ms, self._splittable)


class StreamingFileSink(SinkFunctionOf):
    """The sink of files before :class:`FileSink`, for ``add_sink``: the same sink, files have its names."""

    def __init__(self, sink: FileSink) -> None:
        warnings.warn("Deprecated in 1.15. Use FileSink instead.", DeprecationWarning, stacklevel=3)
        super().__init__(sink)

    @staticmethod
    def for_row_format(base_path: str, encoder: Encoder) -> StreamingFileSink.DefaultRowFormatBuilder:
        """Text files."""
        return StreamingFileSink.DefaultRowFormatBuilder(FileSink.for_row_format(base_path, encoder))

    @staticmethod
    def for_bulk_format(
        base_path: str, writer_factory: BulkWriterFactory
    ) -> StreamingFileSink.DefaultBulkFormatBuilder:
        """Files of a format that writes rows by columns."""
        return StreamingFileSink.DefaultBulkFormatBuilder(FileSink.for_bulk_format(base_path, writer_factory))

    class BaseBuilder:
        """What builders of both kinds of formats have in common."""

        def __init__(self, builder: FileSink.RowFormatBuilder | FileSink.BulkFormatBuilder) -> None:
            self._builder = builder

        def with_bucket_check_interval(self, interval: int) -> Self:
            """How often ages of files are looked at, milliseconds."""
            self._builder.with_bucket_check_interval(interval)
            return self

        def with_bucket_assigner(self, bucket_assigner: BucketAssigner) -> Self:
            """Into which folder a row goes."""
            self._builder.with_bucket_assigner(bucket_assigner)
            return self

        def with_rolling_policy(self, policy: Any) -> Self:
            """When a file is closed."""
            self._builder.with_rolling_policy(policy)
            return self

        def with_output_file_config(self, output_file_config: OutputFileConfig) -> Self:
            """Names of files."""
            self._builder.with_output_file_config(output_file_config)
            return self

        def build(self) -> StreamingFileSink:
            """The sink."""
            return StreamingFileSink(self._builder.build())

    class DefaultRowFormatBuilder(BaseBuilder):
        """Makes a sink of text files."""

    class DefaultBulkFormatBuilder(BaseBuilder):
        """Makes a sink of a bulk format."""
