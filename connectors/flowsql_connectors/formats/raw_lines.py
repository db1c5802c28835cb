"""Lines that are the bytes of one value: to a column and back."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flowsql_compute.eval.columns import values_and_validity
from flowsql_compute.eval.text.render import over_distinct
from flowsql_connectors.formats.format import Columns, DecodeContext, Decoder, FileView, Range, TextEncoder
from flowsql_connectors.formats.line_encode import LineEncoder
from flowsql_connectors.formats.rows_in_bytes import line_start, read_rows, rows_before, whole_lines
from flowsql_core.arrow import compute as pc
from flowsql_core.errors import ExecutionError
from flowsql_core.types.arrow import to_arrow
from flowsql_core.types.logical import BinaryStringType, BooleanType, CharacterType, LogicalType, Schema

if TYPE_CHECKING:
    from flowsql_connectors.formats.raw import RawFormat

_NEWLINE: Final = 0x0A
_RETURN: Final = 0x0D


def _number_type(type_: LogicalType, little_endian: bool) -> np.dtype[Any]:
    """How a value of fixed width lies in a line."""
    if isinstance(type_, BooleanType):
        return np.dtype(np.uint8)
    native: np.dtype[Any] = np.dtype(to_arrow(type_).to_pandas_dtype())
    ordered: np.dtype[Any] = native.newbyteorder("<" if little_endian else ">")
    return ordered


class RawDecoder(Decoder):
    """Decodes ranges of raw files for one scan; blank lines are values, too."""

    def __init__(self, format_: RawFormat, context: DecodeContext) -> None:
        self._format = format_
        self._wanted = [context.columns[index] for index in context.projection]

    def read(self, file: FileView, part: Range) -> Iterator[Columns]:
        """The lines that begin in a byte range."""
        for position, data in read_rows(file, part, line_start, whole_lines):
            lines = _lines(data)

            def place(row: int, file: FileView = file, position: int = position) -> str:
                return file.place("line", rows_before(file, position) + row + 1)

            arrays = [self.values(lines, column.type, place) for column in self._wanted]
            yield Columns(tuple(arrays), len(lines))

    def values(self, lines: pa.BinaryArray, type_: LogicalType, place: Callable[[int], str]) -> Any:
        """Values of bytes, none of which is NULL; ``place``: where one of them is, in words.

        Raises:
            ExecutionError: bytes have another length than values of the type.
        """
        match type_:
            case BinaryStringType():
                return lines
            case CharacterType():
                return self._texts(lines)
        dtype = _number_type(type_, self._format.little_endian)
        offsets = np.frombuffer(lines.buffers()[1], np.int32)[lines.offset : lines.offset + len(lines) + 1]
        wrong = np.flatnonzero(np.diff(offsets) != dtype.itemsize)
        if len(wrong):
            row = int(wrong[0])
            raise ExecutionError(
                "raw-size",
                f"Size of data received for deserializing {type_.root} type is not {dtype.itemsize}.\n"
                f"in {place(row)}: {lines[row].as_py()[:200]!r}",
            )
        values = (
            np.frombuffer(lines.buffers()[2], dtype, len(lines), int(offsets[0])) if len(lines) else np.empty(0, dtype)
        )
        native = values != 0 if isinstance(type_, BooleanType) else values.astype(dtype.newbyteorder("="))
        return pa.array(native, to_arrow(type_))

    def _texts(self, lines: pa.BinaryArray) -> Any:
        charset = codecs.lookup(self._format.charset).name
        if charset == "utf-8":
            try:
                return lines.cast(pa.string())
            except pa.ArrowInvalid:
                pass
        # Arrow knows no other character sets, nor what Java makes of bytes that are no text.
        return over_distinct(lines, lambda value: value.decode(charset, "replace"))


def _lines(data: bytes) -> pa.BinaryArray:
    """The lines one behind the other, without their ends."""
    raw = np.frombuffer(data, np.uint8)
    ends = np.flatnonzero(raw == _NEWLINE)
    starts = np.concatenate([[0], ends + 1])
    if starts[-1] == len(data):
        starts = starts[:-1]
    stops = np.append(ends, len(data))[: len(starts)]
    # The carriage return of a line that ends in both.
    stops = stops - ((stops > starts) & (stops < len(data)) & (raw[stops - 1] == _RETURN))
    kept = np.ones(len(data), np.bool_)
    kept[ends] = False
    kept[stops[stops < len(data)]] = False
    offsets = np.concatenate([[0], np.cumsum(stops - starts)]).astype(np.int32)
    return pa.BinaryArray.from_buffers(
        pa.binary(), len(starts), [None, pa.py_buffer(offsets.tobytes()), pa.py_buffer(raw[kept].tobytes())]
    )


class RawEncoder(TextEncoder):
    """Lines of one table."""

    def __init__(self, format_: RawFormat, columns: Schema) -> None:
        self._format = format_
        (self._column,) = columns
        self._texts = LineEncoder(format_.charset)

    def prepare(self, columns: tuple[Any, ...], num_rows: int) -> Any:
        """The lines of a batch."""
        (values,) = columns
        if values.null_count:
            raise ExecutionError(
                "raw-null",
                f"NULL in column '{self._column.name}' has no form in format 'raw'",
                hint="leave such rows out with WHERE, or write another value with COALESCE",
            )
        match self._column.type:
            case CharacterType():
                return self._texts.prepare(columns, num_rows)
            case BinaryStringType():
                return pc.binary_join_element_wise(values, pa.scalar(b"\n"), pa.scalar(b""))
        numbers, _ = values_and_validity(values)
        dtype = _number_type(self._column.type, self._format.little_endian)
        return _ended(np.ascontiguousarray(numbers.astype(dtype)), num_rows)


def _ended(numbers: npt.NDArray[Any], num_rows: int) -> pa.BinaryArray:
    """Values of a fixed width as lines."""
    width = numbers.dtype.itemsize
    lines = np.full((num_rows, width + 1), _NEWLINE, np.uint8)
    lines[:, :width] = numbers.view(np.uint8).reshape(num_rows, width)
    offsets = (np.arange(num_rows + 1) * (width + 1)).astype(np.int32)
    return pa.BinaryArray.from_buffers(
        pa.binary(), num_rows, [None, pa.py_buffer(offsets.tobytes()), pa.py_buffer(lines.tobytes())]
    )
