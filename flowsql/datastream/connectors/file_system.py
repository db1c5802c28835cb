"""File sources under PyFlink's names: lines of text files can be read, everything else goes through tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NoReturn

from flowsql.common.refused import Refused
from flowsql.common.serialization import Encoder
from flowsql.common.typeinfo import TypeInformation, Types
from flowsql.datastream.connectors.base import Sink, Source
from flowsql.datastream.plan.operators import line_source
from flowsql.datastream.plan.transformations import SpecMaker
from flowsql_core.errors import NotSupportedYetError
from flowsql_core.stream.time import Span, span_ms


class StreamFormat:
    """How records stand in a file. Made by :meth:`text_line_format`."""

    def __init__(self, charset: str) -> None:
        "".encode(charset)  # an unknown name fails here
        self.charset = charset

    @staticmethod
    def text_line_format(charset_name: str = "UTF-8") -> StreamFormat:
        """One text for each line."""
        return StreamFormat(charset_name)


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


class OutputFileConfig:
    """Names of part files."""

    def __init__(self, part_prefix: str, part_suffix: str) -> None:
        self._part_prefix = part_prefix
        self._part_suffix = part_suffix

    def get_part_prefix(self) -> str:
        """Before the number."""
        return self._part_prefix

    def get_part_suffix(self) -> str:
        """Behind the number."""
        return self._part_suffix

    @staticmethod
    def builder() -> OutputFileConfig.OutputFileConfigBuilder:
        """Begin a configuration."""
        return OutputFileConfig.OutputFileConfigBuilder()

    class OutputFileConfigBuilder:
        """Makes an :class:`OutputFileConfig`."""

        def __init__(self) -> None:
            self._prefix = "part"
            self._suffix = ""

        def with_part_prefix(self, prefix: str) -> OutputFileConfig.OutputFileConfigBuilder:
            """Before the number."""
            self._prefix = prefix
            return self

        def with_part_suffix(self, suffix: str) -> OutputFileConfig.OutputFileConfigBuilder:
            """Behind the number."""
            self._suffix = suffix
            return self

        def build(self) -> OutputFileConfig:
            """The configuration."""
            return OutputFileConfig(self._prefix, self._suffix)


class RollingPolicy:
    """When a sink begins a new file."""

    @staticmethod
    def default_rolling_policy(
        part_size: int = 1 << 27, rollover_interval: int = 60_000, inactivity_interval: int = 60_000
    ) -> NoReturn:
        """Refused, like the sink that it is for."""
        raise _no_file_sink()

    @staticmethod
    def on_checkpoint_rolling_policy() -> NoReturn:
        """Refused, like the sink that it is for."""
        raise _no_file_sink()


_NO_SINK: Final = "file sinks of DataStreams"
_TABLES_INSTEAD: Final = "make the stream a table with from_data_stream and insert that into a filesystem table"


class BucketAssigner(metaclass=Refused, construct=_NO_SINK, hint=_TABLES_INSTEAD):
    """Into which folder a sink writes an element."""


class FileCompactStrategy(metaclass=Refused, construct=_NO_SINK, hint=_TABLES_INSTEAD):
    """When a sink merges small files."""


class FileCompactor(metaclass=Refused, construct=_NO_SINK, hint=_TABLES_INSTEAD):
    """How a sink merges small files."""


class StreamingFileSink(metaclass=Refused, construct=_NO_SINK, hint=_TABLES_INSTEAD):
    """The older sink of files."""


_NO_SPLITS: Final = "settings of how file sources find and deal out files"
_AS_IT_IS: Final = "leave it out: folders are read with all folders below them, and files are dealt out in turn"


class BulkFormat(metaclass=Refused, construct="bulk formats of DataStream file sources"):
    """Formats of column files."""


class FileEnumeratorProvider(metaclass=Refused, construct=_NO_SPLITS, hint=_AS_IT_IS):
    """How files are found."""


class FileSplitAssignerProvider(metaclass=Refused, construct=_NO_SPLITS, hint=_AS_IT_IS):
    """How files are dealt out."""


class FileSink(Sink):
    """A sink of files: refused, streams are written through tables."""

    @staticmethod
    def for_row_format(base_path: str, encoder: Encoder) -> NoReturn:
        """Refused."""
        raise _no_file_sink()

    @staticmethod
    def for_bulk_format(base_path: str, writer_factory: object) -> NoReturn:
        """Refused."""
        raise _no_file_sink()


def _no_file_sink() -> NotSupportedYetError:
    return NotSupportedYetError(_NO_SINK, hint=_TABLES_INSTEAD)
