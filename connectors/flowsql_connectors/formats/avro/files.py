"""Avro's container files: blocks to columns and back."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import orjson

from flowsql_connectors.formats.avro.container import (
    BLOCK_BYTES,
    SYNC_BYTES,
    DamagedError,
    Header,
    block_bytes,
    compressor,
    damaged,
    header_bytes,
    open_container,
    read_header,
    read_records,
)
from flowsql_connectors.formats.avro.decode import BadRecordError, RecordDecoder
from flowsql_connectors.formats.avro.derived import derived_schema
from flowsql_connectors.formats.avro.encode import EncodedRows, RecordEncoder
from flowsql_connectors.formats.avro.resolved import resolve
from flowsql_connectors.formats.avro.schema import parse_schema
from flowsql_connectors.formats.format import (
    Columns,
    DecodeContext,
    Decoder,
    FileEncoder,
    FileView,
    PartEncoder,
    PartStream,
    Range,
)
from flowsql_core.errors import BindError, ExecutionError, InternalError
from flowsql_core.types.logical import Field, RowType, Schema

if TYPE_CHECKING:
    from flowsql_connectors.formats.avro.factory import AvroFormat

#: Rows that are merged at once.
_MERGED_ROWS: Final = 65_536


def row_of(columns: Schema) -> RowType:
    """Columns as the fields of a row."""
    return RowType(fields=tuple(Field(column.name, column.type) for column in columns), nullable=False)


class AvroDecoder(Decoder):
    """Decodes blocks of files for one scan; each file is read by the schema in its header."""

    def __init__(self, format_: AvroFormat, context: DecodeContext) -> None:
        wanted = tuple(context.columns[index] for index in context.projection)
        # What Avro cannot hold at all is refused before a file is opened, as in Flink.
        derived_schema(context.columns, format_.legacy)
        self._row = row_of(wanted)
        self._batch_rows = context.batch_rows
        self._path: str | None = None
        self._header: Header | None = None
        self._records: RecordDecoder | None = None

    def read(self, file: FileView, part: Range) -> Iterator[Columns]:
        """The rows of the blocks behind the sync markers that begin in a range."""
        stream, size = open_container(file)
        with stream:
            try:
                if self._path != file.path or self._header is None or self._records is None:
                    self._header = read_header(stream)
                    self._records = RecordDecoder(resolve(self._header.schema, self._row), plain_millis=True)
                    self._path = file.path
                for records in read_records(stream, size, self._header, self._whole(file, part, size)):
                    if not self._row.fields:
                        yield Columns((), records.count)
                        continue
                    try:
                        arrays = self._records.block(records.data, records.count)
                    except BadRecordError as bad:
                        raise ExecutionError(
                            "bad-avro-record",
                            f"Failed to deserialize Avro record: {bad.reason}.\nin file {file.path}, record "
                            f"{bad.record + 1} behind byte {records.position:,}, field '{bad.column}'",
                        ) from bad
                    columns = Columns(arrays, records.count)
                    for start in range(0, records.count, self._batch_rows):
                        yield columns.slice(start, min(start + self._batch_rows, records.count))
            except DamagedError as error:
                raise damaged(file, error) from error
            except BindError as error:
                raise BindError(error.code, f"{error.message}\nin file {file.path}", hint=error.hint) from error

    @staticmethod
    def _whole(file: FileView, part: Range, size: int) -> Range:
        """A compressed file is one range, of the bytes that it is when it is compressed."""
        return Range(0, size) if file.compression is not None else part


class AvroEncoder(FileEncoder):
    """Container files of one table."""

    def __init__(self, format_: AvroFormat, columns: Schema) -> None:
        self._format = format_
        self._columns = columns
        self.schema = orjson.dumps(derived_schema(columns, format_.legacy))
        self.codec = format_.codec or "snappy"
        self.compress = compressor(self.codec)
        self._records = RecordEncoder(parse_schema(self.schema), row_of(columns))

    def prepare(self, columns: tuple[Any, ...], num_rows: int) -> Any:
        """The batch as records."""
        return self._records.encode(columns, num_rows)

    def open_part(self, stream: PartStream) -> PartEncoder:
        """A part file."""
        return AvroPart(self, stream)

    def resume_part(self, stream: PartStream, size_bytes: int) -> PartEncoder:
        """Never called: as in Flink a part ends with its checkpoint."""
        raise InternalError("an avro file was to be continued")

    def merge(self, paths: Sequence[str], stream: PartStream) -> None:
        """The rows of all files."""
        everything = tuple(range(len(self._columns)))
        decoder = AvroDecoder(self._format, DecodeContext(self._columns, everything, _MERGED_ROWS, {}))
        part = self.open_part(stream)
        for path in paths:
            size = os.path.getsize(path)
            for columns in decoder.read(FileView(path, size), Range(0, size)):
                part.append(self.prepare(columns.arrays, columns.num_rows), 0, columns.num_rows)
        part.close()


class AvroPart(PartEncoder):
    """Keeps records until a block is full."""

    def __init__(self, encoder: AvroEncoder, stream: PartStream) -> None:
        self._encoder = encoder
        self._stream = stream
        self._sync = os.urandom(SYNC_BYTES)
        self._kept: list[bytes] = []
        self._kept_bytes = self._kept_rows = 0
        self._written = stream.write(header_bytes(encoder.schema, encoder.codec, self._sync))

    def append(self, rows: EncodedRows, start: int, stop: int) -> None:
        """Keep records; write each block that is full."""
        offsets = rows.offsets
        while start < stop:
            room = int(offsets[start]) + BLOCK_BYTES - self._kept_bytes
            until = min(stop, int(np.searchsorted(offsets, room)))
            until = max(until, start + 1)
            data = rows.data[offsets[start] : offsets[until]].tobytes()
            self._kept.append(data)
            self._kept_bytes += len(data)
            self._kept_rows += until - start
            if self._kept_bytes >= BLOCK_BYTES:
                self._write_block()
            start = until

    def _write_block(self) -> None:
        if self._kept_rows:
            payload = self._encoder.compress(b"".join(self._kept))
            self._written += self._stream.write(block_bytes(self._kept_rows, payload, self._sync))
            self._kept, self._kept_bytes, self._kept_rows = [], 0, 0

    @property
    def size_bytes(self) -> int:
        """Bytes written and kept."""
        return self._written + self._kept_bytes

    def close(self) -> None:
        """The last block."""
        self._write_block()
