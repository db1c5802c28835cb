"""``FileSink`` and what a program says with it: folders, names, when files close and how they are merged.

What is written stands in ``flowsql_connectors/filesystem``: the same two phases as for tables.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, Self

from flowsql.common.serialization import BulkWriterFactory, Encoder
from flowsql.common.typeinfo import PickledBytesTypeInfo, TypeInformation
from flowsql.datastream.bridges.columns import column_maker
from flowsql.datastream.connectors.base import Sink, StreamTransformer, SupportsPreprocessing
from flowsql.datastream.connectors.rows_into import columns_of_rows
from flowsql.datastream.plan.operators import BatchMap
from flowsql.datastream.values.text import java_text
from flowsql_connectors.filesystem.options import (
    CHECK_MS,
    FORMAT,
    INACTIVITY_MS,
    PATH,
    ROLLING_SIZE,
    ROLLOVER_MS,
)
from flowsql_connectors.filesystem.stores.store import sink_folder
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
)
from flowsql_core.batch import ChangelogBatch
from flowsql_core.catalog import ANONYMOUS
from flowsql_core.graph.specs import SinkSpec, TableSpec
from flowsql_core.graph.stream_specs import VALUE
from flowsql_core.row import INSERT_ONLY
from flowsql_core.types.logical import STRING, Column

Options = Mapping[str, str]


class BucketAssigner:
    """Into which folder below the sink's own a row goes."""

    def __init__(self, options: Options) -> None:
        self.options = options

    @staticmethod
    def base_path_bucket_assigner() -> BucketAssigner:
        """All files in the sink's own folder."""
        return BucketAssigner({})

    @staticmethod
    def date_time_bucket_assigner(format_str: str = "yyyy-MM-dd--HH", timezone_id: str | None = None) -> BucketAssigner:
        """Folders by processing time, named with Java's DateTimeFormatter; without a zone the machine's clock counts.

        Raises:
            FlowSqlError: there is no such pattern, or no such zone.
        """
        from flowsql_connectors.filesystem.buckets import clock_text

        zone = "default" if timezone_id is None else timezone_id
        clock_text(0, format_str, zone)
        return BucketAssigner({BUCKET_PATTERN.key: format_str, BUCKET_ZONE.key: zone})


class RollingPolicy:
    """When a file is closed and the next one begins."""

    def __init__(self, options: Options) -> None:
        self.options = options

    @staticmethod
    def default_rolling_policy(
        part_size: int = 1024 * 1024 * 128, rollover_interval: int = 60 * 1000, inactivity_interval: int = 60 * 1000
    ) -> DefaultRollingPolicy:
        """By size in bytes, and by milliseconds since the file's first and its last row."""
        return DefaultRollingPolicy(part_size, rollover_interval, inactivity_interval)

    @staticmethod
    def on_checkpoint_rolling_policy() -> OnCheckpointRollingPolicy:
        """With each checkpoint, and only then."""
        return OnCheckpointRollingPolicy()


class DefaultRollingPolicy(RollingPolicy):
    """By size and by age: see :meth:`RollingPolicy.default_rolling_policy`."""

    def __init__(self, part_size: int, rollover_interval: int, inactivity_interval: int) -> None:
        for name, value in (
            ("part_size", part_size),
            ("rollover_interval", rollover_interval),
            ("inactivity_interval", inactivity_interval),
        ):
            if value <= 0:
                raise ValueError(f"{name} must be above 0, not {value}")
        super().__init__(
            {
                ROLLING_SIZE.key: f"{part_size} b",
                ROLLOVER_MS.key: f"{rollover_interval} ms",
                INACTIVITY_MS.key: f"{inactivity_interval} ms",
            }
        )


class OnCheckpointRollingPolicy(RollingPolicy):
    """With each checkpoint: see :meth:`RollingPolicy.on_checkpoint_rolling_policy`."""

    def __init__(self) -> None:
        super().__init__({ROLL_ON_CHECKPOINT.key: "true"})


class OutputFileConfig:
    """Names of part files: ``<prefix>-<id of the writer>-<number><suffix>``."""

    def __init__(self, part_prefix: str, part_suffix: str) -> None:
        self.options: Options = {PART_PREFIX.key: part_prefix, PART_SUFFIX.key: part_suffix}
        for option in (PART_PREFIX, PART_SUFFIX):
            option.read(self.options[option.key])

    def get_part_prefix(self) -> str:
        """Before the number."""
        return self.options[PART_PREFIX.key]

    def get_part_suffix(self) -> str:
        """Behind the number."""
        return self.options[PART_SUFFIX.key]

    @staticmethod
    def builder() -> OutputFileConfig.OutputFileConfigBuilder:
        """Begin a configuration."""
        return OutputFileConfig.OutputFileConfigBuilder()

    class OutputFileConfigBuilder:
        """Makes an :class:`OutputFileConfig`."""

        def __init__(self) -> None:
            self._prefix = PART_PREFIX.default
            self._suffix = PART_SUFFIX.default

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


class FileCompactStrategy:
    """When small files become one before they are shown. Made by :meth:`builder`."""

    def __init__(self, options: Options) -> None:
        self.options = options

    @staticmethod
    def builder() -> FileCompactStrategy.Builder:
        """Begin a strategy."""
        return FileCompactStrategy.Builder()

    class Builder:
        """Makes a :class:`FileCompactStrategy`."""

        def __init__(self) -> None:
            self._checkpoints = self._size = -1
            self._threads = 1

        def enable_compaction_on_checkpoint(self, num_checkpoints_before_compaction: int) -> Self:
            """At every n-th checkpoint."""
            if num_checkpoints_before_compaction <= 0:
                raise ValueError("Number of checkpoints before compaction should be more than 0.")
            self._checkpoints = num_checkpoints_before_compaction
            return self

        def set_size_threshold(self, size_threshold: int) -> Self:
            """When the files of a folder have so many bytes together; -1: not by size."""
            self._size = size_threshold
            return self

        def set_num_compact_threads(self, num_compact_threads: int) -> Self:
            """So many merges at once."""
            if num_compact_threads <= 0:
                raise ValueError("Compact threads should be more than 0.")
            self._threads = num_compact_threads
            return self

        def build(self) -> FileCompactStrategy:
            """The strategy.

            Raises:
                ValueError: nothing says when.
            """
            if self._size < 0 and self._checkpoints <= 0:
                raise ValueError("At least one trigger condition must be configured.")
            return FileCompactStrategy(
                {
                    COMPACTION_CHECKPOINTS.key: str(max(0, self._checkpoints)),
                    COMPACTION_BYTES.key: str(max(0, self._size)),
                    COMPACTION_THREADS.key: str(self._threads),
                }
            )


class FileCompactor:
    """How small files become one."""

    def __init__(self, options: Options) -> None:
        self.options = options

    @staticmethod
    def concat_file_compactor(file_delimiter: bytes | None = None) -> FileCompactor:
        """One behind the other, with a delimiter behind each, as Flink writes it; parquet files by their rows."""
        return FileCompactor({COMPACTOR.key: "concat", DELIMITER.key: (file_delimiter or b"").hex()})

    @staticmethod
    def identical_file_compactor() -> FileCompactor:
        """The only file under a new name; several at once fail the job, as in Flink."""
        return FileCompactor({COMPACTOR.key: "identical"})


class FileSink(Sink, SupportsPreprocessing):
    """Rows into files, exactly once: hidden while they grow, visible with the checkpoint that covers them."""

    def __init__(self, options: Options, writer_factory: BulkWriterFactory | None = None) -> None:
        self._options = options
        self._factory = writer_factory

    @staticmethod
    def for_row_format(base_path: str, encoder: Encoder) -> FileSink.RowFormatBuilder:
        """Text files."""
        if not isinstance(encoder, Encoder):
            raise TypeError(f"{encoder!r} is not an Encoder")
        return FileSink.RowFormatBuilder(base_path, {FORMAT.key: LINES, CHARSET.key: encoder.charset})

    @staticmethod
    def for_bulk_format(base_path: str, writer_factory: BulkWriterFactory) -> FileSink.BulkFormatBuilder:
        """Files of a format that writes rows by columns; the stream's elements are rows."""
        if not isinstance(writer_factory, BulkWriterFactory):
            raise TypeError(f"{writer_factory!r} is not a BulkWriterFactory")
        return FileSink.BulkFormatBuilder(base_path, writer_factory)

    def get_transformer(self) -> StreamTransformer | None:
        """None: the sink itself makes columns of rows."""
        return None

    def columns_of_values(self, type_: TypeInformation) -> BatchMap:
        """Texts, or the columns of the bulk format.

        Raises:
            TypeError: the elements are no rows of the format's fields.
        """
        if self._factory is None:
            return _texts(type_)
        if self._factory.columns_of is not None:
            made: BatchMap = self._factory.columns_of(type_)
            return made
        return columns_of_rows(type_, self._factory.columns, "the bulk format")

    def spec(self) -> SinkSpec:
        """The writing operator."""
        columns = (Column("line", STRING),) if self._factory is None else self._factory.columns
        options = {"connector": "file-sink", **self._options}
        table = TableSpec((ANONYMOUS, "", "FileSink"), columns, tuple(options.items()))
        return SinkSpec(table, columns, INSERT_ONLY)

    class BaseBuilder(ABC):
        """What builders of both kinds of formats have in common."""

        def __init__(self, base_path: str, options: Options, writer_factory: BulkWriterFactory | None = None) -> None:
            sink_folder(base_path, "a file sink")  # what is wrong with it shows here
            assigner = BucketAssigner.date_time_bucket_assigner()
            self._options = {PATH.key: base_path, **assigner.options, **options}
            self._factory = writer_factory
            self._compaction: Options = {}

        def with_bucket_check_interval(self, interval: int) -> Self:
            """How often ages of files are looked at, milliseconds."""
            if interval <= 0:
                raise ValueError("The bucket checking interval for processing time should be positive.")
            return self._with({CHECK_MS.key: f"{interval} ms"})

        def with_bucket_assigner(self, bucket_assigner: BucketAssigner) -> Self:
            """Into which folder a row goes; by default those of :meth:`BucketAssigner.date_time_bucket_assigner`."""
            for key in (BUCKET_PATTERN.key, BUCKET_ZONE.key):
                self._options.pop(key, None)
            return self._with(bucket_assigner.options)

        def with_output_file_config(self, output_file_config: OutputFileConfig) -> Self:
            """Names of files."""
            return self._with(output_file_config.options)

        def enable_compact(self, strategy: FileCompactStrategy, compactor: FileCompactor) -> Self:
            """Merge small files before they are shown."""
            self._compaction = {**strategy.options, **compactor.options}
            return self

        def disable_compact(self) -> Self:
            """Show files as they were written; those that wait to be merged, too."""
            self._compaction = {}
            return self

        @abstractmethod
        def with_rolling_policy(self, rolling_policy: Any) -> Self:
            """When a file is closed."""

        def build(self) -> FileSink:
            """The sink."""
            return FileSink({**self._options, **self._compaction}, self._factory)

        def _with(self, options: Options) -> Self:
            self._options.update(options)
            return self

    class RowFormatBuilder(BaseBuilder):
        """Makes a sink of text files."""

        def __init__(self, base_path: str, options: Options) -> None:
            super().__init__(base_path, {**RollingPolicy.default_rolling_policy().options, **options})

        def with_rolling_policy(self, rolling_policy: RollingPolicy) -> Self:
            """When a file is closed; by default :meth:`RollingPolicy.default_rolling_policy`."""
            self._options.pop(ROLL_ON_CHECKPOINT.key, None)
            return self._with(rolling_policy.options)

    class BulkFormatBuilder(BaseBuilder):
        """Makes a sink of a bulk format."""

        def __init__(self, base_path: str, writer_factory: BulkWriterFactory) -> None:
            rolling = RollingPolicy.on_checkpoint_rolling_policy().options
            super().__init__(base_path, {**rolling, **writer_factory.options}, writer_factory)

        def with_rolling_policy(self, rolling_policy: OnCheckpointRollingPolicy) -> Self:
            """Files of bulk formats are closed with each checkpoint."""
            if not isinstance(rolling_policy, OnCheckpointRollingPolicy):
                raise ValueError("rolling_policy must be OnCheckpointRollingPolicy for bulk format")
            return self


def _texts(type_: TypeInformation) -> BatchMap:
    text = str if isinstance(type_, PickledBytesTypeInfo) else java_text(type_)
    make = column_maker(Column("line", STRING))

    def convert(batch: ChangelogBatch) -> ChangelogBatch:
        texts = list(map(text, batch.columns[VALUE].values.tolist()))
        return ChangelogBatch((make(texts),), batch.num_rows, None, None, batch.track)

    return convert
