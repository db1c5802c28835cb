"""Columns to orc files."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from flowsql_connectors.formats.columnar.counted_output import CountedOutput
from flowsql_connectors.formats.columnar.field_names import named_as
from flowsql_connectors.formats.format import DecodeContext, FileEncoder, FileView, PartEncoder, PartStream
from flowsql_core.arrow import compute as pc
from flowsql_core.errors import InternalError
from flowsql_core.types.arrow import arrow_schema
from flowsql_core.types.logical import Schema

if TYPE_CHECKING:
    from flowsql_connectors.formats.columnar.orc import OrcFormat

logger = logging.getLogger(__name__)

_PER_SECOND: Final = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
#: Rows are handed to the writer when they have so many bytes in memory.
_BUFFERED_BYTES: Final = 8 * 1024 * 1024
#: Rows that are merged at once.
_MERGED_ROWS: Final = 65_536


class OrcEncoder(FileEncoder):
    """Orc files of one table."""

    def __init__(self, format_: OrcFormat, columns: Schema) -> None:
        self.format = format_
        self._columns = columns
        self.schema = arrow_schema(columns)
        self._warned = False

    def prepare(self, columns: tuple[Any, ...], num_rows: int) -> Any:
        """The batch with the file's names."""
        arrays = [
            pc.cast(named_as(array, field.type, self._looked_at), field.type)
            for array, field in zip(columns, self.schema, strict=True)
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def _looked_at(self, array: Any, target: Any) -> Any:
        """The array; say once that Java cannot read some of its moments."""
        if pa.types.is_timestamp(array.type) and not self._warned:
            values = np.asarray(array.cast(pa.int64()).fill_null(0))
            if bool(((values < 0) & (values % _PER_SECOND[array.type.unit] != 0)).any()):
                self._warned = True
                logger.warning(
                    "A moment before 1970 with a fraction of a second is written to orc: readers in Java (Flink, Spark)"
                    " fail on the column. Parquet has no such limit."
                )
        return array

    def open_part(self, stream: PartStream) -> PartEncoder:
        """A part file."""
        return OrcPart(self, stream)

    def resume_part(self, stream: PartStream, size_bytes: int) -> PartEncoder:
        """Never called: a file ends with its footer."""
        raise InternalError("an orc file was to be continued")

    def merge(self, paths: Sequence[str], stream: PartStream) -> None:
        """The rows of all files."""
        everything = tuple(range(len(self._columns)))
        decoder = self.format.decoder(DecodeContext(self._columns, everything, _MERGED_ROWS, {}))
        part = self.open_part(stream)
        for path in paths:
            file = FileView(path, os.path.getsize(path))
            for stripe in self.format.ranges(file, 0):
                for columns in decoder.read(file, stripe):
                    part.append(self.prepare(columns.arrays, columns.num_rows), 0, columns.num_rows)
        part.close()


class OrcPart(PartEncoder):
    """Keeps some rows; Arrow's writer keeps those of a stripe."""

    def __init__(self, encoder: OrcEncoder, stream: PartStream) -> None:
        import pyarrow.orc as orc

        format_ = encoder.format
        self._encoder = encoder
        self._output = CountedOutput(stream)
        self._kept: list[Any] = []
        self._kept_bytes = 0
        self._writer = orc.ORCWriter(
            self._output,
            compression="uncompressed" if format_.compression == "NONE" else format_.compression.lower(),
            compression_block_size=format_.compression_bytes,
            stripe_size=format_.stripe_bytes,
            row_index_stride=format_.row_index_stride,
        )
        self._empty = True

    def append(self, rows: Any, start: int, stop: int) -> None:
        """Keep rows; hand them to the writer when enough are there."""
        # A copy: of a slice of rows in rows, Arrow's writer takes those at the start of the whole.
        part = rows.take(pa.array(np.arange(start, stop)))
        self._kept.append(part)
        self._kept_bytes += part.nbytes
        if self._kept_bytes >= min(_BUFFERED_BYTES, self._encoder.format.stripe_bytes):
            self._write()

    @property
    def size_bytes(self) -> int:
        """Encoded bytes and the kept rows' own size."""
        return self._output.written + self._kept_bytes

    def close(self) -> None:
        """The last stripe and the footer."""
        if self._kept or self._empty:
            self._write()
        self._writer.close()

    def _write(self) -> None:
        self._writer.write(pa.Table.from_batches(self._kept, self._encoder.schema))
        self._kept, self._kept_bytes, self._empty = [], 0, False
