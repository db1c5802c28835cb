"""The ``orc`` format: stripes are the ranges, unread columns are not touched; its options.

Arrow reads ORC's timestamps as nanoseconds in 64 bits: those before 1677 and behind 2262 are errors when they are read.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import pyarrow as pa

from flowsql_connectors.formats.columnar.stored_texts import well_formed
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
from flowsql_connectors.formats.rows_in_bytes import decompressed, unreadable
from flowsql_connectors.options import (
    ConnectorOption,
    OptionSet,
    OptionValues,
    parse_choice,
    parse_natural,
    parse_positive,
)
from flowsql_core.arrow import compute as pc
from flowsql_core.errors import BindError, ConnectorError, ExecutionError
from flowsql_core.graph.specs import TableSpec
from flowsql_core.record import record
from flowsql_core.types.arrow import to_arrow
from flowsql_core.types.logical import (
    ArrayType,
    BinaryStringType,
    BooleanType,
    CharacterType,
    CharType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LogicalType,
    MapType,
    RowType,
    Schema,
    TimestampLtzType,
    TimestampType,
    VarCharType,
)

COMPRESS = ConnectorOption(
    "orc.compress", parse_choice("NONE", "ZLIB", "SNAPPY", "LZ4", "ZSTD"), "ZLIB", "Codec of written files."
)
COMPRESS_SIZE = ConnectorOption("orc.compress.size", parse_positive, 256 * 1024, "Bytes that are compressed together.")
STRIPE_SIZE = ConnectorOption("orc.stripe.size", parse_positive, 64 * 1024 * 1024, "Bytes of a stripe, about.")
ROW_INDEX_STRIDE = ConnectorOption("orc.row.index.stride", parse_natural, 10_000, "Rows between entries of the index.")
_OPTIONS: Final = OptionSet(optional=(COMPRESS, COMPRESS_SIZE, STRIPE_SIZE, ROW_INDEX_STRIDE))


@record
class OrcFormat(FileFormat):
    """An orc format with its options."""

    compression: str
    compression_bytes: int
    stripe_bytes: int
    row_index_stride: int

    identifier = "orc"

    def ranges(self, file: FileView, target_bytes: int) -> list[Range]:
        """One range a stripe."""
        return [Range(stripe, stripe + 1) for stripe in range(open_orc(file).nstripes)]

    def decoder(self, context: DecodeContext) -> Decoder:
        """A decoder of stripes."""
        for index in context.projection:
            check_type(context.columns[index].type)
        return OrcDecoder(context)

    def encoder(self, columns: Schema) -> FileEncoder:
        """An encoder of orc files.

        Raises:
            BindError: a column has a type that ORC has not.
        """
        from flowsql_connectors.formats.columnar.orc_encode import OrcEncoder

        for column in columns:
            check_type(column.type)
        return OrcEncoder(self, columns)


class OrcFormatFactory(FormatFactory):
    """Makes orc formats."""

    def options(self) -> OptionSet:
        """The ``orc.*`` options."""
        return _OPTIONS

    def create(self, values: OptionValues, table: TableSpec) -> FileFormat:
        """The format."""
        return OrcFormat(
            values.get(COMPRESS), values.get(COMPRESS_SIZE), values.get(STRIPE_SIZE), values.get(ROW_INDEX_STRIDE)
        )


def check_type(type_: LogicalType) -> None:
    """Raises BindError in Flink's words for what ORC has not."""
    match type_:
        case BooleanType() | IntegerType() | FloatType() | DoubleType() | DecimalType() | CharacterType() | DateType():
            return
        case BinaryStringType() | TimestampType() | TimestampLtzType():
            return
        case ArrayType(element=element):
            check_type(element)
        case MapType(key=key, value=value):
            check_type(key)
            check_type(value)
        case RowType(fields=fields):
            for field in fields:
                check_type(field.type)
        case _:
            raise BindError("unsupported-type", f"Unsupported type: {type_.as_nullable()} (format 'orc')")


class OrcDecoder(Decoder):
    """Decodes stripes for one scan. Columns are found by name; one that a file lacks is NULL."""

    def __init__(self, context: DecodeContext) -> None:
        self._wanted = [context.columns[index] for index in context.projection]
        self._batch_rows = context.batch_rows
        self._path: str | None = None
        self._file: Any = None

    def read(self, file: FileView, part: Range) -> Iterator[Columns]:
        """The rows of the stripes ``[start, stop)``."""
        orc = self._opened(file)
        present = set(orc.schema.names)
        # Without a column Arrow does not count rows.
        names = [column.name for column in self._wanted if column.name in present] or orc.schema.names[:1]
        for stripe in range(part.start, part.stop):
            try:
                batch = orc.read_stripe(stripe, columns=names)
            except (OSError, pa.ArrowInvalid) as error:
                raise ConnectorError("damaged-file", f"File {file.path} cannot be read as orc: {error}") from error
            arrays = [
                _converted(batch.column(column.name), column.type, column.name, file)
                if column.name in present
                else pa.nulls(batch.num_rows, to_arrow(column.type))
                for column in self._wanted
            ]
            columns = Columns(tuple(arrays), batch.num_rows)
            for start in range(0, batch.num_rows, self._batch_rows):
                yield columns.slice(start, min(start + self._batch_rows, batch.num_rows))

    def range_bytes(self, file: FileView, part: Range) -> int:
        """Each stripe counts as much of the file as the others."""
        stripes: int = self._opened(file).nstripes
        return file.size * (part.stop - part.start) // max(1, stripes)

    def _opened(self, file: FileView) -> Any:
        """The file's reader; it is kept while ranges of the same file follow."""
        if self._path != file.path:
            self._file, self._path = open_orc(file), file.path
        return self._file


def open_orc(file: FileView) -> Any:
    """A file's reader.

    Raises:
        ConnectorError: it is not there, or no orc file.
    """
    import pyarrow.orc as orc

    try:
        if file.compression is not None:
            return orc.ORCFile(pa.BufferReader(b"".join(decompressed(file))))
        return orc.ORCFile(file.path if file.remote is None else file.random_access())
    except FileNotFoundError as error:
        raise unreadable(file.path, error) from error
    except (OSError, pa.ArrowInvalid) as error:
        raise ConnectorError("damaged-file", f"File {file.path} is no readable orc file: {error}") from error


def _evolved(array: Any, type_: LogicalType) -> Any:
    target = to_arrow(type_)
    array = well_formed(array)
    length = type_.length if isinstance(type_, VarCharType | CharType) else None
    if array.type == target and (length is None or (pc.max(pc.utf8_length(array)).as_py() or 0) <= length):
        return array
    # Loaded where a file has other types than the table.
    from flowsql_connectors.formats.columnar.orc_evolution import evolved

    return evolved(array, type_)


def _converted(array: Any, type_: LogicalType, name: str, file: FileView) -> Any:
    try:
        array = _evolved(array, type_)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise ExecutionError(
            "orc-type-mismatch",
            f"Column '{name}' of file {file.path} is {array.type}, which does not fit {type_}: {error}",
        ) from error
    # ORC's CHAR has no blanks at its end.
    return pc.utf8_rtrim(array, " ") if isinstance(type_, CharType) else array
