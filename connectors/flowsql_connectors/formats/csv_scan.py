"""The fast way through a csv block: fields are cut, and the common types read, by kernels of FlowSQL.

Rows with quotes, escapes, lone carriage returns or another width are left to the exact rules, one by one; a block with
many of them goes the way of ``csv_decode``. Whatever else is odd about a text sends its column to the rules of all
formats (``text_values``). Decision and numbers: docs/adr/010-csv-scan.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flowsql_compute.kernels.delimited import (
    DATE,
    INTEGER,
    NUMBER,
    SKIP,
    TEXT,
    TIMESTAMP,
    cut_fields,
    gather_texts,
    text_offsets,
)
from flowsql_connectors.formats.csv_tokens import CsvRow, CsvTokenizer
from flowsql_connectors.formats.rows_in_bytes import Block
from flowsql_connectors.formats.text_values import TextDialect
from flowsql_core.record import record
from flowsql_core.types.arrow import to_arrow
from flowsql_core.types.logical import (
    DateType,
    DecimalType,
    DoubleType,
    IntegerType,
    LogicalType,
    Schema,
    TimestampType,
)

if TYPE_CHECKING:
    from flowsql_connectors.formats.csv import CsvFormat

#: Digits of a fraction by the unit of the Arrow type; nanoseconds have a narrower range and go as text.
_FRACTION_DIGITS: Final = {"s": 0, "ms": 3, "us": 6}
#: A byte that no text has.
_NONE: Final = 255
#: Whole numbers that a double holds exactly.
_EXACT: Final = 1 << 53
#: Rows of a block that are odd for the text of one column; more of them are a reason to read the column as text.
_FEW_BAD: Final = 16
#: Rows of a block that may be odd for other reasons, whatever its size, and bytes to one more of them.
_FEW_ODD: Final = 64
_BYTES_BETWEEN: Final = 4096
#: Bytes in which an odd row is looked for first.
_WINDOW_BYTES: Final = 1024


@record
class Scanned:
    """``columns``: the wanted ones of ``rows`` plain rows, typed or as texts. ``odd``: the other rows by their places,
    which count from 0 in the whole block."""

    columns: dict[int, Any]
    rows: int
    odd: list[tuple[int, CsvRow]]


class CsvScan:
    """Cuts blocks of one scan; keeps working memory from block to block."""

    def __init__(self, format_: CsvFormat, columns: Schema, wanted: tuple[int, ...]) -> None:
        dialect = format_.dialect
        self._tokenizer = CsvTokenizer(dialect)
        self._delimiter = ord(dialect.delimiter)
        self._comments = dialect.comments
        self._quote, self._escape = (
            _NONE if mark is None else mark.encode()[0] for mark in (dialect.quote, dialect.escape)
        )
        literal = "".join(format_.null_literals).encode()
        self._null = np.frombuffer(literal + b"\0", np.uint8).copy()
        self._null_size = len(literal) if format_.null_literals else -1
        self._columns = columns
        self._wanted = tuple(sorted(set(wanted)))
        self._kinds = np.zeros(len(columns), np.int64)
        self._slots = np.zeros(len(columns), np.int64)
        self._precisions = np.zeros(len(columns), np.int64)
        for slot, index in enumerate(self._wanted):
            self._slots[index] = slot
            self._kinds[index], self._precisions[index] = _kind(columns[index].type, format_.texts)
        self._ahead = np.zeros(len(columns), np.uint64)
        for index in reversed(range(len(columns))):
            behind = self._ahead[index + 1] if index + 1 < len(columns) else 0
            self._ahead[index] = 0 if self._kinds[index] != SKIP else behind + 1
        self._values = np.empty((0, 0), np.int64)
        self._marks = np.empty((0, 0), np.uint8)
        #: By column, how many texts have not the plain form of its kind; behind them, whether a byte is above 127.
        self._bad = np.zeros(len(columns) + 1, np.int64)
        #: Where the kernel stands in a block, how many rows it has cut, which field made it stop.
        self._progress = np.zeros(3, np.int64)

    @staticmethod
    def reads(format_: CsvFormat, width: int) -> bool:
        """Whether rows of this format can be plain at all: the kernel knows one text for NULL."""
        dialect = format_.dialect
        return (
            width > 1
            and len(format_.null_literals) <= 1
            and dialect.delimiter.isascii()
            and dialect.delimiter not in "\r\n\0"
        )

    def read(self, block: Block) -> Scanned | None:
        """The rows of a block; None where too many of them are odd.

        Raises:
            UnicodeDecodeError: bytes of an odd row are no UTF-8.
        """
        odd = self._cut(block)
        while odd is not None and (bad := self._bad[:-1] > _FEW_BAD).any():
            self._kinds[bad] = TEXT
            odd = self._cut(block)
        if odd is None:
            return None
        made: dict[int, Any] = {}
        rows = int(self._progress[1])
        for index in self._wanted:
            array = self._array(block, index, rows)
            if array is None:
                # Some number has more digits than the exact arithmetic takes: from now on as text.
                self._kinds[index] = TEXT
                return self.read(block)
            if self._bad[-1] and self._kinds[index] == TEXT:
                try:
                    array.validate(full=True)
                except pa.ArrowInvalid:
                    return None
            made[index] = array
        return Scanned(made, rows, odd)

    def _cut(self, block: Block) -> list[tuple[int, CsvRow]] | None:
        """Fill the working memory with the plain rows; the odd ones."""
        size = block.ended_by_newline()
        most = size // len(self._kinds) + 1
        if most > self._values.shape[1]:
            self._values = np.empty((len(self._wanted), most), np.int64)
            self._marks = np.empty((len(self._wanted), most), np.uint8)
        self._bad[:] = 0
        self._progress[:] = 0
        odd: list[tuple[int, CsvRow]] = []
        while self._cut_plain(block, size):
            if len(odd) >= _FEW_ODD + _FEW_BAD * len(self._kinds) + self._progress[0] // _BYTES_BETWEEN:
                return None
            row, after = self._odd_row(block, int(self._progress[0]))
            if row is not None:
                odd.append((int(self._progress[1]) + len(odd), row))
            if self._progress[2] >= 0 and (row is None or len(row.fields) != len(self._kinds)):
                # That text was no value of the column.
                self._bad[self._progress[2]] -= 1
            if after >= block.size:
                break
            self._progress[0] = after
        return odd

    def _cut_plain(self, block: Block, size: int) -> bool:
        """Cut the rows up to the next odd one, if there is one."""
        return bool(
            cut_fields(
                block.bytes,
                size,
                self._delimiter,
                self._quote,
                self._escape,
                self._comments,
                self._null,
                self._null_size,
                self._kinds,
                self._ahead,
                self._slots,
                self._precisions,
                self._values,
                self._marks,
                _FEW_BAD,
                self._bad,
                self._progress,
            )
        )

    def _odd_row(self, block: Block, at: int) -> tuple[CsvRow | None, int]:
        """The row that begins at a byte, by the exact rules, and where the next one begins; None behind comments."""
        window = _WINDOW_BYTES
        while True:
            stop = block.size
            if at + window < block.size:
                # Whole lines are whole characters.
                stop = block.find(b"\n", at + window) + 1 or block.size
            text = bytes(block.bytes[at:stop]).decode()
            row, end = self._tokenizer.next_row(text, 0)
            if stop == block.size or (row is not None and end < len(text)):
                return row, at + (end if text.isascii() else len(text[:end].encode()))
            # A quoted field may go on behind the window.
            window *= 16

    def _array(self, block: Block, index: int, rows: int) -> Any:
        slot = self._slots[index]
        values, marks = self._values[slot], self._marks[slot, :rows]
        nulls = rows - int(np.count_nonzero(marks))
        valid = pa.py_buffer(np.packbits(marks != 0, bitorder="little")) if nulls else None
        kind = self._kinds[index]
        if kind == TEXT:
            return _texts(block, values, rows, valid, nulls)
        target = to_arrow(self._columns[index].type)
        found = values[:rows]
        made: npt.NDArray[Any] | None
        match target.bit_width:
            case 64 if kind != NUMBER:
                made = found.copy()
            case 64:
                made = _doubles(found, marks)
            case 128:
                made = _decimals(found, marks, target.precision, target.scale)
            case bits:
                made = found.astype(f"i{bits // 8}")
        return None if made is None else pa.Array.from_buffers(target, rows, [valid, pa.py_buffer(made)], nulls)


def _kind(type_: LogicalType, texts: TextDialect) -> tuple[int, int]:
    match type_:
        case IntegerType(bits=bits):
            return INTEGER, bits
        case TimestampType() if (
            texts is TextDialect.CSV and (digits := _FRACTION_DIGITS.get(to_arrow(type_).unit)) is not None
        ):
            return TIMESTAMP, digits
        case DateType():
            return DATE, 0
        case DoubleType():
            return NUMBER, 0
        case DecimalType(precision=precision) if precision <= 18:
            return NUMBER, 0
        case _:
            return TEXT, 0


def _texts(block: Block, bounds: npt.NDArray[np.int64], rows: int, valid: Any, nulls: int) -> Any:
    places = pa.allocate_buffer(4 * (rows + 1))
    offsets = np.frombuffer(places, np.int32)
    size = text_offsets(bounds, rows, offsets)
    data = pa.allocate_buffer(size + 32)
    gather_texts(block.bytes, bounds, rows, offsets, np.frombuffer(data, np.uint8))
    return pa.Array.from_buffers(pa.string(), rows, [valid, places, data.slice(0, size)], nulls)


def _doubles(digits: npt.NDArray[np.int64], marks: npt.NDArray[np.uint8]) -> npt.NDArray[np.float64] | None:
    """Exact whole numbers over exact powers of ten: one correctly rounded division each."""
    if len(digits) and int(np.abs(digits).max()) > _EXACT:
        return None
    # A NULL's power does not matter.
    exact: npt.NDArray[np.float64] = digits / _POWERS_F64[np.maximum(marks, 1) - 1]
    return exact


def _decimals(
    digits: npt.NDArray[np.int64], marks: npt.NDArray[np.uint8], precision: int, scale: int
) -> npt.NDArray[np.int64] | None:
    """Little-endian 128-bit numbers, int64 (n, 2): low word and sign."""
    missing = scale + 1 - np.maximum(marks, 1).astype(np.int64)
    if len(digits) and int(missing.min()) < 0:
        return None
    unscaled = digits * _POWERS_I64[missing]
    # No number of digits that fits is as large as the next power; the bound is on what is multiplied.
    if len(digits) and (np.abs(digits) >= _POWERS_I64[precision - missing]).any():
        return None
    return np.stack((unscaled, unscaled >> 63), axis=1)


_POWERS_I64: Final = np.array([10**power for power in range(19)], np.int64)
_POWERS_F64: Final = _POWERS_I64.astype(np.float64)
