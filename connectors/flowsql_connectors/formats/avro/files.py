"""Avro's container files: blocks to columns and back."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np

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
from flowsql_connectors.formats.avro.encode import EncodedRows, RecordEncoder
from flowsql_connectors.formats.avro.resolved import resolve, rules_of
from flowsql_connectors.formats.avro.schema import AvroType, parse_schema
from flowsql_connectors.formats.format import (
    Columns,
    Decoder,
    FileEncoder,
    FileView,
    PartEncoder,
    PartStream,
    Range,
)
from flowsql_core.errors import BindError, ExecutionError, InternalError
from flowsql_core.types.logical import Field, RowType, Schema

#: Rows that are merged at once.
_MERGED_ROWS: Final = 65_536


def row_of(columns: Schema) -> RowType:
    """Columns as the fields of a row."""
    return RowType(fields=tuple(Field(column.name, column.type) for column in columns), nullable=False)


class AvroDecoder(Decoder):
    """Decodes blocks of files for one scan; each file is read by the schema in its header."""

    def __init__(self, columns: Schema, batch_rows: int, schema: AvroType | None = None) -> None:
        """Of wanted columns; ``schema``: the reader's own, whose aliases and defaults count."""
        self._row = row_of(columns)
        self._rules = None if schema is None else rules_of(schema)
        self._batch_rows = batch_rows
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
                    self._records = RecordDecoder(
                        resolve(self._header.schema, self._row, self._rules), plain_millis=True
                    )
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
    """Container files of one schema.

    Args:
        columns: of the rows; the fields of the schema.
        schema: as files hold it.
        codec: how blocks are compressed.
        generic: see :class:`RecordEncoder`.
    """

    def __init__(self, columns: Schema, schema: bytes, codec: str, generic: bool = False) -> None:
        self._columns = columns
        self.schema = schema
        self.codec = codec
        self.compress = compressor(codec)
        parsed = parse_schema(schema)
        self._records = RecordEncoder(parsed, row_of(columns), generic)
        self._reader = parsed if generic else None

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
        decoder = AvroDecoder(self._columns, _MERGED_ROWS, self._reader)
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
