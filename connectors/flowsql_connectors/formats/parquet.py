"""The ``parquet`` format: row groups are the ranges, unread columns are not touched.

Timestamps: Flink reads stored instants as wall clocks of the machine's time zone unless ``parquet.utc-timezone`` is
set; on a machine that runs in UTC both are the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from flowsql_compute.eval.time.machine_zone import machine_zone
from flowsql_connectors.file_systems.remote import is_of_storage, storage_error
from flowsql_connectors.formats.columnar.field_names import cast_cutting_times
from flowsql_connectors.formats.columnar.row_groups import GroupFilter
from flowsql_connectors.formats.columnar.stored_texts import texts_of_binaries, well_formed
from flowsql_connectors.formats.format import (
    Columns,
    DecodeContext,
    Decoder,
    FileEncoder,
    FileFormat,
    FileView,
    FormatFactory,
    Range,
)
from flowsql_connectors.formats.rows_in_bytes import unreadable
from flowsql_connectors.options import ConnectorOption, OptionSet, OptionValues, parse_boolean, parse_choice
from flowsql_core.arrow import compute as pc
from flowsql_core.errors import ConnectorError, ExecutionError
from flowsql_core.graph.specs import TableSpec
from flowsql_core.record import record
from flowsql_core.types.arrow import to_arrow
from flowsql_core.types.logical import CharacterType, Column, LogicalType, Schema, TimestampLtzType, TimestampType

UTC_TIMEZONE = ConnectorOption(
    "parquet.utc-timezone", parse_boolean, False, "Whether stored timestamps are read and written as UTC wall clocks."
)
COMPRESSION = ConnectorOption(
    "parquet.compression",
    parse_choice("SNAPPY", "GZIP", "ZSTD", "LZ4", "BROTLI", "UNCOMPRESSED", "NONE"),
    "SNAPPY",
    "Codec of written pages.",
)
INT64_TIMESTAMP = ConnectorOption(
    "parquet.write.int64.timestamp", parse_boolean, False, "Whether timestamps are written as INT64, not INT96."
)
TIMESTAMP_UNIT = ConnectorOption(
    "parquet.timestamp.time.unit", parse_choice("nanos", "micros", "millis"), "micros", "Unit of INT64 timestamps."
)
BLOCK_SIZE: ConnectorOption[int] = ConnectorOption(
    "parquet.block.size", int, 128 * 1024 * 1024, "Bytes of a row group, about."
)

_OPTIONS = OptionSet(optional=(UTC_TIMEZONE, COMPRESSION, INT64_TIMESTAMP, TIMESTAMP_UNIT, BLOCK_SIZE))


@record
class ParquetFormat(FileFormat):
    """A parquet format with its options.

    ``timestamp_unit`` ``own``: each INT64 timestamp has the unit of its column. ``any_case``: columns are found in any
    case of letters. ``avro_schema``: as JSON, which files tell readers of Avro.
    """

    utc_timezone: bool
    compression: str
    int64_timestamps: bool
    timestamp_unit: str
    block_bytes: int
    any_case: bool = False
    avro_schema: str | None = None

    identifier = "parquet"

    @property
    def grows_by_lines(self) -> bool:
        """The end of a file tells what is in it."""
        return False

    def ranges(self, file: FileView, target_bytes: int) -> list[Range]:
        """One range a row group."""
        with open_parquet(file) as parquet:
            return [Range(group, group + 1) for group in range(parquet.num_row_groups)]

    def decoder(self, context: DecodeContext) -> Decoder:
        """A decoder of row groups."""
        return ParquetDecoder(self, context)

    def encoder(self, columns: Schema) -> FileEncoder:
        """An encoder of parquet files."""
        from flowsql_connectors.formats.parquet_encode import ParquetEncoder

        return ParquetEncoder(self, columns)


class ParquetFormatFactory(FormatFactory):
    """Makes parquet formats."""

    def options(self) -> OptionSet:
        """The ``parquet.*`` options."""
        return _OPTIONS

    def create(self, values: OptionValues, table: TableSpec) -> FileFormat:
        """The format."""
        return ParquetFormat(
            values.get(UTC_TIMEZONE),
            values.get(COMPRESSION),
            values.get(INT64_TIMESTAMP),
            values.get(TIMESTAMP_UNIT),
            values.get(BLOCK_SIZE),
        )


class ParquetDecoder(Decoder):
    """Decodes row groups for one scan. Columns are found by name; one that a file lacks is NULL."""

    def __init__(self, format_: ParquetFormat, context: DecodeContext) -> None:
        self._format = format_
        self._context = context
        self._path: str | None = None
        self._file: Any = None
        plain_times = format_.utc_timezone or machine_zone() == "UTC"
        self._filter = GroupFilter(context.filters, context.columns, plain_times)

    def read(self, file: FileView, part: Range) -> Iterator[Columns]:
        """The rows of the row groups ``[start, stop)``, but for groups that can hold no wanted one."""
        wanted = [self._context.columns[index] for index in self._context.projection]
        parquet = self._opened(file)
        stored = self._stored_names(parquet, wanted, file)
        names = [name for name in stored if name is not None]
        batches = parquet.iter_batches(
            batch_size=self._context.batch_rows,
            row_groups=self._groups(parquet, part),
            columns=names,
            use_threads=False,
        )
        try:
            for batch in batches:
                arrays = [
                    self._convert(batch.column(names.index(name)), column.type, column.name, file)
                    if name is not None
                    else pa.nulls(batch.num_rows, to_arrow(column.type))
                    for column, name in zip(wanted, stored, strict=True)
                ]
                yield Columns(tuple(arrays), batch.num_rows)
        except (OSError, pa.ArrowInvalid) as error:
            raise _unread(file, error) from error

    def _stored_names(self, parquet: Any, wanted: list[Column], file: FileView) -> list[str | None]:
        """What the file calls each wanted column; None for one that it lacks."""
        present = parquet.schema_arrow.names
        if not self._format.any_case:
            return [column.name if column.name in present else None for column in wanted]
        folded: dict[str, str] = {}
        for name in present:
            if name.lower() in folded:
                raise ExecutionError(
                    "ambiguous-column",
                    f"File {file.path} has columns '{folded[name.lower()]}' and '{name}', which differ in case alone.",
                )
            folded[name.lower()] = name
        return [folded.get(column.name.lower()) for column in wanted]

    def _groups(self, parquet: Any, part: Range) -> list[int]:
        """The row groups of a range that may hold wanted rows."""
        metadata = parquet.metadata
        return [group for group in range(part.start, part.stop) if self._filter.may_hold(metadata.row_group(group))]

    def range_bytes(self, file: FileView, part: Range) -> int:
        """Of the columns that are read."""
        wanted = {self._context.columns[index].name for index in self._context.projection}
        metadata = self._opened(file).metadata
        groups = [metadata.row_group(number) for number in self._groups(self._file, part)]
        columns = (group.column(place) for group in groups for place in range(group.num_columns))
        return sum(
            found.total_compressed_size
            for found in columns
            if any(f"{found.path_in_schema}.".startswith(f"{name}.") for name in wanted)
        )

    def _opened(self, file: FileView) -> Any:
        """The file's reader; it is kept while ranges of the same file follow."""
        if self._path != file.path:
            fine = any(
                isinstance(column.type, TimestampType | TimestampLtzType) and column.type.precision > 6
                for column in self._context.columns
            )
            self._file, self._path = open_parquet(file, "ns" if fine else "us"), file.path
        return self._file

    def _convert(self, array: Any, type_: LogicalType, name: str, file: FileView) -> Any:
        target = to_arrow(type_)
        if isinstance(type_, TimestampType) and pa.types.is_timestamp(array.type):
            array = _wall_clock(array, self._format.utc_timezone)
        if array.type == target:
            return well_formed(array)
        try:
            if isinstance(type_, CharacterType):
                array = texts_of_binaries(array)
            elif isinstance(array.type, pa.UuidType):
                array = array.storage
            # Digits past the type's precision are cut off, as Flink cuts them; other losses are errors.
            return well_formed(cast_cutting_times(array, target))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise ExecutionError(
                "parquet-type-mismatch",
                f"Column '{name}' of file {file.path} is {array.type}, which does not fit {type_}: {error}",
            ) from error


def open_parquet(file: FileView, int96_unit: str = "us") -> Any:
    """A file's reader. INT96 holds every nanosecond of every year; as 64 bits of nanoseconds it ends in 2262."""
    import pyarrow.parquet as pq

    try:
        if file.remote is None:
            return pq.ParquetFile(file.path, memory_map=False, coerce_int96_timestamp_unit=int96_unit)
        # Wanted pages that lie near each other come with one request.
        return pq.ParquetFile(file.remote.random_access(), pre_buffer=True, coerce_int96_timestamp_unit=int96_unit)
    except FileNotFoundError as error:
        raise unreadable(file.path, error) from error
    except (OSError, pa.ArrowInvalid) as error:
        raise _unread(file, error) from error


def _unread(file: FileView, error: Exception) -> ConnectorError:
    if is_of_storage(error):
        return storage_error(file.path, error)
    return ConnectorError("damaged-file", f"File {file.path} is no readable parquet file: {error}")


def _wall_clock(array: Any, utc: bool) -> Any:
    """Stored timestamps as wall clocks: of UTC, or of the machine's time zone."""
    plain = pa.timestamp(array.type.unit)
    zone = machine_zone()
    if utc or zone == "UTC":
        return array.cast(plain) if array.type.tz is not None else array
    return pc.local_timestamp(
        array.cast(plain).cast(pa.timestamp(array.type.unit, "UTC")).cast(pa.timestamp(array.type.unit, zone))
    )
