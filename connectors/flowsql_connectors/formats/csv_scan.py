"""The fast way through a csv block: fields are cut, and the common types read, by kernels of FlowSQL.

Only for blocks without quotes, escapes, lone carriage returns and rows of another width. Whatever else is odd about a
text sends its column to the rules of all formats (``text_values``); an odd block goes the way of ``csv_decode``.
Decision and numbers: docs/adr/010-csv-scan.md.
"""

from __future__ import annotations

from typing import Any, Final

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
from flowsql_connectors.formats.csv_tokens import CsvDialect
from flowsql_connectors.formats.rows_in_bytes import Block
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

#: Digits of a fraction by the unit of the Arrow type; nanoseconds have a narrower range and go as text.
_FRACTION_DIGITS: Final = {"s": 0, "ms": 3, "us": 6}
#: A byte that no text has.
_NONE: Final = 255
#: Whole numbers that a double holds exactly.
_EXACT: Final = 1 << 53


class CsvScan:
    """Cuts blocks of one scan; keeps working memory from block to block."""

    def __init__(self, dialect: CsvDialect, null_literal: str | None, columns: Schema, wanted: tuple[int, ...]) -> None:
        self._delimiter = ord(dialect.delimiter)
        self._quote, self._escape = (
            _NONE if mark is None else mark.encode()[0] for mark in (dialect.quote, dialect.escape)
        )
        literal = (null_literal or "").encode()
        self._null = np.frombuffer(literal + b"\0", np.uint8).copy()
        self._null_size = -1 if null_literal is None else len(literal)
        self._columns = columns
        self._wanted = tuple(sorted(set(wanted)))
        self._kinds = np.zeros(len(columns), np.int64)
        self._slots = np.zeros(len(columns), np.int64)
        self._precisions = np.zeros(len(columns), np.int64)
        for slot, index in enumerate(self._wanted):
            self._slots[index] = slot
            self._kinds[index], self._precisions[index] = _kind(columns[index].type)
        self._ahead = np.zeros(len(columns), np.uint64)
        for index in reversed(range(len(columns))):
            behind = self._ahead[index + 1] if index + 1 < len(columns) else 0
            self._ahead[index] = 0 if self._kinds[index] != SKIP else behind + 1
        self._values = np.empty((0, 0), np.int64)
        self._marks = np.empty((0, 0), np.uint8)
        self._nulls = np.zeros(0, np.int64)
        self._beyond_ascii = False

    @staticmethod
    def reads(dialect: CsvDialect, width: int) -> bool:
        """Whether blocks of this dialect can be plain at all."""
        return width > 1 and not dialect.comments and dialect.delimiter.isascii() and dialect.delimiter not in "\r\n\0"

    def read(self, block: Block) -> tuple[dict[int, Any], int] | None:
        """The wanted columns, typed or as texts, and the number of rows; None where the block is not plain."""
        size = block.ended_by_newline()
        rows = self._cut(block, size)
        if rows < 0:
            return None
        made: dict[int, Any] = {}
        for index in self._wanted:
            array = self._array(block, index, rows)
            if array is None:
                # Some number has more digits than the exact arithmetic takes: from now on as text.
                self._kinds[index] = TEXT
                return self.read(block)
            if self._beyond_ascii and self._kinds[index] == TEXT:
                try:
                    array.validate(full=True)
                except pa.ArrowInvalid:
                    return None
            made[index] = array
        return made, rows

    def _cut(self, block: Block, size: int) -> int:
        most = size // len(self._kinds) + 1
        if most > self._values.shape[1]:
            self._values = np.empty((len(self._wanted), most), np.int64)
            self._marks = np.empty((len(self._wanted), most), np.uint8)
        while True:
            self._nulls = np.zeros(len(self._wanted), np.int64)
            bad = np.zeros(len(self._kinds) + 1, np.int64)
            rows: int = cut_fields(
                block.bytes,
                size,
                self._delimiter,
                self._quote,
                self._escape,
                self._null,
                self._null_size,
                self._kinds,
                self._ahead,
                self._slots,
                self._precisions,
                self._values,
                self._marks,
                self._nulls,
                bad,
            )
            self._beyond_ascii = bool(bad[-1])
            if rows < 0 or not bad[:-1].any():
                return rows
            self._kinds[bad[:-1] != 0] = TEXT

    def _array(self, block: Block, index: int, rows: int) -> Any:
        slot = self._slots[index]
        values, marks = self._values[slot], self._marks[slot, :rows]
        nulls = int(self._nulls[slot])
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


def _kind(type_: LogicalType) -> tuple[int, int]:
    match type_:
        case IntegerType(bits=bits):
            return INTEGER, bits
        case TimestampType() if (digits := _FRACTION_DIGITS.get(to_arrow(type_).unit)) is not None:
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
