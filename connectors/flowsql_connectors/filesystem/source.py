"""Scans of files."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from flowsql_connectors.bad_rows import TolerantDecoder, bad_row_policy
from flowsql_connectors.filesystem.files import FoundFile, find_files
from flowsql_connectors.filesystem.lookup import ChangedFiles
from flowsql_connectors.filesystem.options import DEFAULT_NAME, MONITOR_INTERVAL, PATH, PATH_PATTERN
from flowsql_connectors.filesystem.partitions.pruning import PartitionFilter, partition_values, refuse_moments
from flowsql_connectors.filesystem.reader import FileReader, PausingFileReader
from flowsql_connectors.filesystem.splits import FileEnumerator, FileSplit
from flowsql_connectors.formats.csv import HEADER
from flowsql_connectors.formats.format import Columns, DecodeContext, Decoder, FileFormat, Range
from flowsql_connectors.lookup.options import Reload, cache_of
from flowsql_connectors.lookup.whole_table import WholeTable, reloaded_table
from flowsql_connectors.options import SCAN_PARALLELISM, OptionValues
from flowsql_connectors.spi.counters import Lose, lose_silently
from flowsql_connectors.spi.lookup import LookupContext, LookupTableSource, PartialCache, TableLookup
from flowsql_connectors.spi.source import BatchedInput, ReaderContext, SourceReader, SplitEnumerator
from flowsql_core.batch import ChangelogBatch
from flowsql_core.errors import BindError, ExecutionError
from flowsql_core.expr import Expr, input_refs, remap_inputs
from flowsql_core.graph.specs import ScanSpec
from flowsql_core.row import ChangelogMode
from flowsql_core.types.arrow import to_arrow
from flowsql_core.types.logical import BIGINT, STRING, LogicalType, Schema, TimestampLtzType

if TYPE_CHECKING:
    from flowsql_connectors.spi.tail import TableTail

_METADATA: dict[str, LogicalType] = {
    "file.path": STRING.as_nullable(False),
    "file.name": STRING.as_nullable(False),
    "file.size": BIGINT.as_nullable(False),
    "file.modification-time": TimestampLtzType(precision=3, nullable=False),
}
#: Before the metadata keys of a format.
_OF_VALUE = "value."


class FileSource(LookupTableSource):
    """A scan of a ``filesystem`` table.

    Partition columns come from the folders' names and may stand anywhere in the table; the files hold the others.
    """

    def __init__(
        self, scan: ScanSpec, values: OptionValues, format_: FileFormat, configuration: Mapping[str, str]
    ) -> None:
        self._scan = scan
        self._values = values
        self._format = format_
        self._configuration = configuration
        header = bool(values.get(HEADER)) if format_.identifier == "csv" else False
        keys = scan.table.partition_keys
        names = [column.name for column in scan.table.columns]
        read = tuple(names[index] for index in scan.projection)
        self._bad_rows = bad_row_policy(scan.table.name, values, format_.identifier, header, read)
        self._partitions = PartitionFilter(scan, configuration) if keys and scan.filters else None
        self._file_columns: Schema = tuple(column for column in scan.table.columns if column.name not in keys)
        positions = {column.name: at for at, column in enumerate(self._file_columns)}
        wanted = [names[index] for index in scan.projection]
        self._file_projection = tuple(positions[name] for name in wanted if name in positions)
        self._file_filters = tuple(
            remap_inputs(part, lambda index: positions[names[index]])
            for part in scan.filters
            if all(names[index] in positions for index in input_refs(part))
        )
        known = self.metadata_columns()
        for key in scan.metadata:
            if key not in known:
                raise BindError(
                    "no-such-metadata",
                    f"Invalid metadata key '{key}' of table '{scan.table.name}'.",
                    hint="the filesystem connector has " + ", ".join(known),
                )

    @property
    def bounded(self) -> bool:
        """With ``source.monitor-interval`` files are looked for as long as the job runs."""
        return self._values.get(MONITOR_INTERVAL) is None

    @property
    def tells_backlog(self) -> bool:
        """Files are read to their ends."""
        return True

    def batched_input(self) -> BatchedInput:
        """New files of the table."""
        return BatchedInput(path=self._values.get(PATH))

    def input_bytes(self) -> int | None:
        """The sizes of all files."""
        return sum(file.size for file in self._find()) if self.bounded else None

    @property
    def changelog_mode(self) -> ChangelogMode:
        """What the format's rows carry."""
        return self._format.changelog_mode

    def supports_projection(self) -> bool:
        """Only wanted columns are converted."""
        return True

    def shows_filters(self) -> bool:
        """Flink shows filters in the scan and keeps them above it."""
        return True

    def supports_filters(self, filters: tuple[Expr, ...]) -> tuple[bool, ...]:
        """None is handled by the scan itself; some on partitions are refused."""
        refuse_moments(self._scan.table, filters, self._find)
        return (False,) * len(filters)

    def supports_limit(self) -> bool:
        """A reader stops after so many rows."""
        return True

    def metadata_columns(self) -> Mapping[str, LogicalType]:
        """Path, name, size and age of a row's file; what the format tells, under names as Flink's Kafka has them."""
        told = {_OF_VALUE + key: type_ for key, type_ in self._format.metadata_columns().items()}
        return {**_METADATA, **told} if told else _METADATA

    def parallelism(self) -> int | None:
        """``scan.parallelism``."""
        return self._values.get(SCAN_PARALLELISM)

    def create_enumerator(self) -> SplitEnumerator:
        """Ranges of the table's files."""
        self._decoder_for(1)
        return FileEnumerator(self._find, self._cut, self._values.get(MONITOR_INTERVAL))

    def tail(self) -> TableTail:
        """The files that were changed last, and what is added."""
        from flowsql_connectors.filesystem.tail import FileTail

        interval_ms = self._values.get(MONITOR_INTERVAL)
        return FileTail(self._find, self._cut, self._format.grows_by_lines, interval_ms, self._configuration)

    def _cut(self, file: FoundFile, target_bytes: int) -> list[Range]:
        return self._format.ranges(file.view(self._configuration), target_bytes)

    def _find(self, path: str | None = None) -> list[FoundFile]:
        """All files of the table, or one of them; those of partitions that the filters leave."""
        found = find_files(
            self._values.get(PATH) if path is None else path,
            self._scan.table.partition_keys,
            self._values.get(DEFAULT_NAME),
            self._values.get(PATH_PATTERN),
            self._configuration,
        )
        return found if self._partitions is None else self._partitions.kept(found)

    def partial_cache(self) -> PartialCache | None:
        """``lookup.cache`` = PARTIAL."""
        cache = cache_of(self._values)
        return cache if isinstance(cache, PartialCache) else None

    def create_lookup(self, context: LookupContext) -> TableLookup:
        """The whole table by key; it is read again when the files change, or as ``lookup.full-cache.*`` say."""
        cache = cache_of(self._values)
        if isinstance(cache, Reload):
            return reloaded_table(self, self._scan.output, cache, context)
        return WholeTable(self, self._scan.output, context, ChangedFiles(self._find))

    def create_reader(self, context: ReaderContext) -> SourceReader:
        """A reader, with a fetcher thread where there is much to read."""
        empty = ChangelogBatch.of(
            tuple(pa.array([], to_arrow(column.type)) for column in self._scan.output), num_rows=0
        )
        if self._bad_rows is not None:
            self._bad_rows.prepare()
        make_decoder = partial(self._decoder_of, context)
        if context.aligned:
            return PausingFileReader(make_decoder, self._complete, empty, self._scan.limit, context)
        return FileReader(make_decoder(), self._complete, empty, self._scan.limit, context)

    def _decoder_of(self, context: ReaderContext) -> Decoder:
        if self._bad_rows is None:
            return self._decoder_for(context.batch_rows, context.lose)
        # It decodes the same rows more than once, and counts by itself.
        decoder = self._decoder_for(context.batch_rows)
        return TolerantDecoder(decoder, decoder, self._bad_rows, context.lose)

    def _decoder_for(self, batch_rows: int, lose: Lose = lose_silently) -> Decoder:
        return self._format.decoder(
            DecodeContext(
                self._file_columns,
                self._file_projection,
                batch_rows,
                self._configuration,
                tells_bad_rows=self._bad_rows is not None,
                metadata=tuple(key.removeprefix(_OF_VALUE) for key in self._scan.metadata if key not in _METADATA),
                lose=lose,
                filters=self._file_filters,
            )
        )

    def _complete(self, split: FileSplit, columns: Columns) -> tuple[Any, ...]:
        """File columns, partition columns and metadata in the order of the scan's output."""
        table = self._scan.table
        if not table.partition_keys and not self._scan.metadata:
            return columns.arrays
        decoded = iter(columns.arrays)
        made: list[Any] = []
        for index in self._scan.projection:
            column = table.columns[index]
            if column.name in table.partition_keys:
                text = split.file.partition[table.partition_keys.index(column.name)]
                made.append(_repeated(_partition_value(text, column.name, column.type, split.file), columns.num_rows))
            else:
                made.append(next(decoded))
        for key in self._scan.metadata:
            of_file = key in _METADATA
            made.append(_repeated(_metadata(key, split.file), columns.num_rows) if of_file else next(decoded))
        return tuple(made)


#: The folder of a NULL that Spark or Hive wrote.
_HIVE_NULL: Final = "__HIVE_DEFAULT_PARTITION__"


def _repeated(one: Any, times: int) -> Any:
    return pa.repeat(one[0], times)


def _partition_value(text: str | None, name: str, type_: LogicalType, file: FoundFile) -> Any:
    values, bad, reason = partition_values([text], type_)
    if bad is not None:
        of_spark = f"this is NULL as Spark and Hive write it: set 'partition.default-name' = '{text}'"
        raise ExecutionError(
            "bad-partition-value",
            f"Partition value '{text}' of column '{name}' is no {type_}: {reason} ({file.path})",
            hint=of_spark if text == _HIVE_NULL else None,
        )
    return values


def _metadata(key: str, file: FoundFile) -> Any:
    match key:
        case "file.path":
            return pa.array([file.path])
        case "file.name":
            return pa.array([file.path.rpartition("/")[2]])
        case "file.size":
            return pa.array([file.size], pa.int64())
    return pa.array([file.modified_ms], pa.int64()).cast(to_arrow(_METADATA["file.modification-time"]))
