"""File sources and sinks under PyFlink's names; sources read lines of text files, all other formats are tables."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, Final, NoReturn, Self

from flowsql.common.public_api import public_api
from flowsql.common.refused import Refused
from flowsql.common.serialization import BulkWriterFactory, Encoder
from flowsql.common.typeinfo import TypeInformation, Types
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
from flowsql.datastream.plan.operators import line_source
from flowsql.datastream.plan.transformations import SpecMaker
from flowsql_core.errors import NotSupportedYetError
from flowsql_core.stream.time import Span, span_ms

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


class StreamFormat:
    """How records stand in a file. Made by :meth:`text_line_format`."""

    def __init__(self, charset: str) -> None:
        "".encode(charset)  # an unknown name fails here
        self.charset = charset

    @staticmethod
    def text_line_format(charset_name: str = "UTF-8") -> StreamFormat:
        """One text for each line."""
        return StreamFormat(charset_name)


@public_api
class FileSource(Source):
    """The lines of files. Files are dealt out to the subtasks, which read theirs in the order of the paths.

    What is compressed is known by its extension: ``.gz``, ``.gzip``, ``.bz2``, ``.xz``, ``.zst``, ``.deflate``.
    """

    parallel = True

    def __init__(self, stream_format: StreamFormat, paths: Sequence[str], monitor_ms: int = 0) -> None:
        self._format = stream_format
        self._paths = tuple(paths)
        self._monitor_ms = monitor_ms
        self.bounded = not monitor_ms

    @staticmethod
    def for_record_stream_format(stream_format: StreamFormat, *paths: str) -> FileSourceBuilder:
        """Files, or folders with files, in a record format."""
        if not isinstance(stream_format, StreamFormat):
            raise NotSupportedYetError(
                f"file sources of format {type(stream_format).__name__}",
                hint="read a filesystem table and make it a stream with to_data_stream",
            )
        return FileSourceBuilder(stream_format, paths)

    @staticmethod
    def for_bulk_file_format(bulk_format: object, *paths: str) -> NoReturn:
        """Refused: column formats are read as tables."""
        raise NotSupportedYetError(
            "bulk formats of DataStream file sources",
            hint="read a filesystem table and make it a stream with to_data_stream",
        )

    def produced_type(self) -> TypeInformation:
        """STRING."""
        return Types.STRING()

    def spec_maker(self) -> SpecMaker:
        """The job finds and reads the files."""
        return line_source(self._paths, self._format.charset, self._monitor_ms)


@public_api
class FileSourceBuilder:
    """Makes a :class:`FileSource`."""

    def __init__(self, stream_format: StreamFormat, paths: Sequence[str]) -> None:
        self._format = stream_format
        self._paths = tuple(paths)
        self._monitor_ms = 0

    def process_static_file_set(self) -> FileSourceBuilder:
        """Read what is there and end (the default)."""
        self._monitor_ms = 0
        return self

    def set_file_enumerator(self, file_enumerator: object) -> NoReturn:
        """Refused."""
        raise NotSupportedYetError(_NO_SPLITS, hint=_AS_IT_IS)

    def set_split_assigner(self, split_assigner: object) -> NoReturn:
        """Refused."""
        raise NotSupportedYetError(_NO_SPLITS, hint=_AS_IT_IS)

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
        return FileSource(self._format, self._paths, self._monitor_ms)


_NO_SPLITS: Final = "settings of how file sources find and deal out files"
_AS_IT_IS: Final = "leave it out: folders are read with all folders below them, and files are dealt out in turn"


class BulkFormat(metaclass=Refused, construct="bulk formats of DataStream file sources"):
    """Formats of column files."""


class FileEnumeratorProvider(metaclass=Refused, construct=_NO_SPLITS, hint=_AS_IT_IS):
    """How files are found."""


class FileSplitAssignerProvider(metaclass=Refused, construct=_NO_SPLITS, hint=_AS_IT_IS):
    """How files are dealt out."""


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
