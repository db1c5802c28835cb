"""Columns to parquet files."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from flowsql_compute.eval.time.machine_zone import machine_zone
from flowsql_connectors.formats.columnar.counted_output import CountedOutput
from flowsql_connectors.formats.columnar.field_names import cast_cutting_times, named_as
from flowsql_connectors.formats.format import DecodeContext, FileEncoder, FileView, PartEncoder, PartStream
from flowsql_core.arrow import compute as pc
from flowsql_core.errors import ExecutionError, InternalError
from flowsql_core.types.arrow import to_arrow
from flowsql_core.types.logical import ArrayType, LogicalType, MapType, RowType, Schema, TimestampType

if TYPE_CHECKING:
    from flowsql_connectors.formats.parquet import ParquetFormat

_UNITS: Final = {"nanos": "ns", "micros": "us", "millis": "ms"}
#: Digits of decimals that Flink keeps in 64 bits.
_SHORT_DIGITS: Final = 18
#: In-memory bytes are several times the encoded ones; a row group is written when these are reached.
_BUFFERED_BYTES: Final = 64 * 1024 * 1024
#: Rows that are merged at once.
_MERGED_ROWS: Final = 65_536


class ParquetEncoder(FileEncoder):
    """Parquet files of one table; timestamps as INT96 unless ``parquet.write.int64.timestamp``."""

    def __init__(self, format_: ParquetFormat, columns: Schema) -> None:
        self.format = format_
        self._columns = columns
        told = None if format_.avro_schema is None else {"parquet.avro.schema": format_.avro_schema}
        self.schema = pa.schema([self._field(column.name, column.type) for column in columns], told)
        #: Columns that may have a dictionary: Flink's reader fails on one of DECIMAL up to 18 digits.
        self.dictionaries = [path for field in self.schema for path in _paths(field.name, field.type)]

    def _file_type(self, type_: LogicalType) -> Any:
        """The type that the file has: required where NOT NULL, also inside of rows, arrays and maps."""
        match type_:
            case RowType(fields=fields):
                return pa.struct([self._field(field.name, field.type) for field in fields])
            case ArrayType(element=element):
                return pa.list_(self._field("element", element))
            case MapType(key=key, value=value):
                return pa.map_(self._file_type(key), self._field("value", value))
        target = to_arrow(type_)
        if pa.types.is_timestamp(target) and self.format.int64_timestamps:
            return pa.timestamp(_UNITS.get(self.format.timestamp_unit, target.unit), target.tz)
        return target

    def _field(self, name: str, type_: LogicalType) -> Any:
        return pa.field(name, self._file_type(type_), nullable=type_.nullable)

    def prepare(self, columns: tuple[Any, ...], num_rows: int) -> Any:
        """The batch with the file's types."""
        arrays = []
        for array, column, field in zip(columns, self._columns, self.schema, strict=True):
            if isinstance(column.type, TimestampType) and not self.format.utc_timezone:
                array = _as_instant(array)
            try:
                arrays.append(named_as(array, field.type, cast_cutting_times))
            except pa.ArrowInvalid as error:
                raise ExecutionError(
                    "timestamp-range",
                    f"Column '{column.name}' holds a moment that a file of parquet cannot hold in "
                    f"{self.format.timestamp_unit}: {error}",
                    hint="nanoseconds in 64 bits reach from 1677 to 2262; 'parquet.timestamp.time.unit' = 'micros' "
                    "holds all years",
                ) from error
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def open_part(self, stream: PartStream) -> PartEncoder:
        """A part file."""
        return ParquetPart(self, stream)

    def resume_part(self, stream: PartStream, size_bytes: int) -> PartEncoder:
        """Never called: a file ends with its footer."""
        raise InternalError("a parquet file was to be continued")

    def merge(self, paths: Sequence[str], stream: PartStream) -> None:
        """The rows of all files, in row groups of the usual size."""
        everything = tuple(range(len(self._columns)))
        decoder = self.format.decoder(DecodeContext(self._columns, everything, _MERGED_ROWS, {}))
        part = self.open_part(stream)
        for path in paths:
            file = FileView(path, os.path.getsize(path))
            for group in self.format.ranges(file, 0):
                for columns in decoder.read(file, group):
                    part.append(self.prepare(columns.arrays, columns.num_rows), 0, columns.num_rows)
        part.close()


class ParquetPart(PartEncoder):
    """Keeps rows until a row group is worth writing."""

    def __init__(self, encoder: ParquetEncoder, stream: PartStream) -> None:
        self._encoder = encoder
        self._output = CountedOutput(stream)
        self._writer: Any = None
        self._kept: list[Any] = []
        self._kept_bytes = 0

    def append(self, rows: Any, start: int, stop: int) -> None:
        """Keep rows; write a row group when enough are there."""
        part = rows.slice(start, stop - start)
        self._kept.append(part)
        self._kept_bytes += part.nbytes
        if self._kept_bytes >= min(_BUFFERED_BYTES, self._encoder.format.block_bytes):
            self._write_group()

    @property
    def size_bytes(self) -> int:
        """Encoded bytes and the kept rows' own size."""
        return self._output.written + self._kept_bytes

    def close(self) -> None:
        """Write the last row group and the footer."""
        self._write_group()
        self._writer.close()

    def _write_group(self) -> None:
        import pyarrow.parquet as pq

        if self._writer is None:
            codec = self._encoder.format.compression
            self._writer = pq.ParquetWriter(
                self._output,
                self._encoder.schema,
                compression="NONE" if codec == "UNCOMPRESSED" else codec,
                use_deprecated_int96_timestamps=not self._encoder.format.int64_timestamps,
                use_dictionary=self._encoder.dictionaries or False,
                write_time_adjusted_to_utc=True,
            )
        if self._kept:
            table = pa.Table.from_batches(self._kept, self._encoder.schema)
            self._kept, self._kept_bytes = [], 0
            self._writer.write_table(table, row_group_size=max(1, table.num_rows))


def _paths(path: str, type_: Any) -> Iterator[str]:
    """Paths of the values below a field, as files name them, but for short decimals."""
    if pa.types.is_struct(type_):
        for field in type_:
            yield from _paths(f"{path}.{field.name}", field.type)
    elif pa.types.is_list(type_):
        yield from _paths(f"{path}.list.element", type_.value_type)
    elif pa.types.is_map(type_):
        yield from _paths(f"{path}.key_value.key", type_.key_type)
        yield from _paths(f"{path}.key_value.value", type_.item_type)
    elif not (pa.types.is_decimal(type_) and type_.precision <= _SHORT_DIGITS):
        yield path


def _as_instant(array: Any) -> Any:
    """Wall clocks of the machine's time zone as instants, which is what INT96 holds."""
    zone = machine_zone()
    if zone == "UTC":
        return array
    instants = pc.assume_timezone(array, zone, ambiguous="earliest", nonexistent="latest")
    return instants.cast(pa.timestamp(array.type.unit, "UTC")).cast(array.type)
