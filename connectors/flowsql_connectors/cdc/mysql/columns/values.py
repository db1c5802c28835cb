"""Values of rows in the log to Arrow arrays, a column at a time.

Source: MySQL internals, "Row Based Replication", and ``decimal.c``, ``my_time.cc`` for DECIMAL and moments.
"""

from __future__ import annotations

import codecs
from collections.abc import Callable
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flowsql_compute.eval.columns import make_array, make_strings
from flowsql_compute.eval.distinct import map_distinct
from flowsql_compute.eval.time.calendar import days_from_civil
from flowsql_compute.kernels.wire import mysql_rows
from flowsql_compute.kernels.wire.varints import gather_ranges
from flowsql_connectors.cdc.mysql.columns.geometry import geometry_text
from flowsql_connectors.cdc.mysql.columns.json_binary import json_text
from flowsql_connectors.cdc.mysql.columns.moments import time_texts
from flowsql_connectors.cdc.mysql.columns.wire_types import Wire
from flowsql_connectors.cdc.mysql.table_map import LogColumn
from flowsql_connectors.formats.columnar.ranges import texts
from flowsql_core.types import logical as t

Int64s = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Bytes = npt.NDArray[np.uint8]
#: Makes an array of ranges of bytes (start << 31 | length), some of which are valid.
ReadValues: TypeAlias = Callable[[Bytes, Int64s, Bools], Any]

_SIZE: Final = 0x7FFFFFFF
_POWERS: Final = 10 ** np.arange(10, dtype=np.int64)
#: Python's names of character sets that it calls otherwise. MySQL's latin1 has letters where ISO 8859-1 has none.
_CODECS: Final = {
    "binary": "utf-8", "latin1": "cp1252", "utf8mb3": "utf-8", "ucs2": "utf-16-be", "utf16": "utf-16-be",
    "utf16le": "utf-16-le", "utf32": "utf-32-be", "ujis": "euc_jp", "eucjpms": "euc_jp", "sjis": "shift_jis",
    "euckr": "euc_kr", "tis620": "tis_620", "macroman": "mac_roman", "macce": "mac_latin2", "koi8r": "koi8_r",
    "koi8u": "koi8_u", "hebrew": "iso8859_8", "greek": "iso8859_7", "latin2": "iso8859_2", "latin5": "iso8859_9",
    "latin7": "iso8859_13",
}  # fmt: skip
_UTF_8: Final = frozenset({"utf8mb4", "utf8mb3", "utf8", "ascii"})


class UnreadableTypeError(Exception):
    """Values of a type cannot be read out of the log; the text says why, in a few words."""


def reader_of(column: LogColumn, declared: t.LogicalType, legacy_json: bool) -> ReadValues:
    """How values of a column of the log are read as a declared type that fits it.

    Args:
        legacy_json: documents of MySQL's JSON have no blanks between their values.

    Raises:
        UnreadableTypeError: FlowSQL does not know the type, or its character set.
    """
    wire = column.wire
    match wire.code:
        case Wire.TINY | Wire.SHORT | Wire.INT24 | Wire.LONG | Wire.LONGLONG:
            return _integers(wire.width, bool(column.unsigned), isinstance(declared, t.BooleanType))
        case Wire.BIT:
            return _bits(wire.size, isinstance(declared, t.BooleanType))
        case Wire.NEWDECIMAL:
            as_text = isinstance(declared, t.CharacterType)
            return (_decimal_texts if as_text else _decimals)(wire.precision, wire.scale)
        case Wire.FLOAT | Wire.DOUBLE:
            return _floats("<f4" if wire.code == Wire.FLOAT else "<f8")
        case Wire.YEAR:
            return lambda data, ranges, valid: _years(_words(data, ranges), valid)
        case Wire.DATE | Wire.NEWDATE:
            return lambda data, ranges, valid: _dates(_words(data, ranges), valid)
        case Wire.DATETIME2:
            return _datetimes(wire.precision)
        case Wire.TIMESTAMP2:
            return _timestamps(wire.precision)
        case Wire.TIME2:
            return _times(wire.precision, isinstance(declared, t.CharacterType))
        case Wire.ENUM:
            return _members(column)
        case Wire.SET:
            return _sets(column, isinstance(declared, t.ArrayType))
        case Wire.STRING | Wire.VARCHAR | Wire.VAR_STRING | Wire.BLOB:
            return _characters(column, declared)
        case Wire.JSON:
            return _documents(lambda value: json_text(value, legacy_json))
        case Wire.GEOMETRY:
            return _documents(geometry_text)
    try:
        name = Wire(wire.code).name
    except ValueError:
        name = str(wire.code)
    raise UnreadableTypeError(f"values of its type ({name}) cannot be read out of the log")


def _words(data: Bytes, ranges: Int64s, big_endian: bool = False) -> Int64s:
    made = np.empty(len(ranges), np.int64)
    mysql_rows.words(data, ranges, big_endian, made)
    return made


def _integers(width: int, unsigned: bool, as_boolean: bool) -> ReadValues:
    def read(data: Bytes, ranges: Int64s, valid: Bools) -> Any:
        words = _words(data, ranges)
        if as_boolean:
            # As Flink CDC: other numbers than 1 are false.
            return make_array(words == 1, valid, pa.bool_())
        if unsigned:
            whole = width == 8
            return make_array(words.view(np.uint64) if whole else words, valid, pa.uint64() if whole else pa.int64())
        unused = 64 - 8 * width
        return make_array((words << unused) >> unused, valid, pa.int64())

    return read


def _bits(size: int, as_boolean: bool) -> ReadValues:
    def read(data: Bytes, ranges: Int64s, valid: Bools) -> Any:
        return bit_values(_words(data, ranges, big_endian=True), valid, size, as_boolean)

    return read


def bit_values(words: Int64s, valid: Bools | None, size: int, as_boolean: bool) -> Any:
    """BIT columns: whether the bit is set, or ``size`` bytes, the lowest first, as in Debezium."""
    if as_boolean:
        return make_array(words != 0, valid, pa.bool_())
    kept = np.ascontiguousarray(words).view(np.uint8).reshape(-1, 8)[:, :size]
    if valid is None:
        valid = np.ones(len(words), np.bool_)
    return _of_one_size(np.ascontiguousarray(kept).reshape(-1), valid, size)


def _of_one_size(data: Bytes, valid: Bools, size: int) -> Any:
    """Binary values of one size; ``data`` has one for NULL, too."""
    offsets = np.arange(len(valid) + 1, dtype=np.int64) * size
    return make_strings(offsets, data, valid, pa.binary())


def _decimals(precision: int, scale: int) -> ReadValues:
    def read(data: Bytes, ranges: Int64s, valid: Bools) -> Any:
        words = np.empty((len(ranges), 2), np.int64)
        mysql_rows.decimal_words(data, ranges, precision, scale, _POWERS, words)
        return make_array(words, valid, pa.decimal128(precision, scale))

    return read


def _decimal_texts(precision: int, scale: int) -> ReadValues:
    def read(data: Bytes, ranges: Int64s, valid: Bools) -> Any:
        room = np.empty((len(ranges), precision + 3), np.uint8)
        sizes = np.empty(len(ranges), np.int64)
        mysql_rows.decimal_texts(data, ranges, precision, scale, room, sizes)
        starts = np.arange(len(ranges), dtype=np.int64) * room.shape[1]
        return texts((starts << 31) | sizes, valid, room.reshape(-1), pa.string(), characters=True)

    return read


def _floats(dtype: str) -> ReadValues:
    def read(data: Bytes, ranges: Int64s, valid: Bools) -> Any:
        words = _words(data, ranges)
        if dtype == "<f4":
            return make_array(words.astype(np.int32).view(np.float32), valid, pa.float32())
        return make_array(words.view(np.float64), valid, pa.float64())

    return read


def _years(words: Int64s, valid: Bools) -> Any:
    return make_array(np.where(words == 0, 0, words + 1900), valid, pa.int64())


def _dates(words: Int64s, valid: Bools) -> Any:
    year, month, day = words >> 9, (words >> 5) & 15, words & 31
    valid = valid & (month > 0) & (day > 0)
    days = days_from_civil(year, np.maximum(month, 1), np.maximum(day, 1))
    return make_array(days.astype(np.int32), valid, pa.date32())


def _split(ranges: Int64s, head: int) -> tuple[Int64s, Int64s]:
    """The first bytes of values, and those behind them; both empty for NULL."""
    starts, sizes = ranges >> 31, ranges & _SIZE
    first = np.minimum(sizes, head)
    return (starts << 31) | first, ((starts + first) << 31) | (sizes - first)


def _fractions(data: Bytes, ranges: Int64s, precision: int) -> Int64s:
    """Microseconds of fractions, which have two digits in each byte."""
    stored = (precision + 1) // 2 * 2
    return _words(data, ranges, big_endian=True) * np.int64(10 ** (6 - stored))


def _datetimes(precision: int) -> ReadValues:
    def read(data: Bytes, ranges: Int64s, valid: Bools) -> Any:
        head, tail = _split(ranges, 5)
        words = _words(data, np.ascontiguousarray(head), big_endian=True) - (1 << 39)
        months, day = words >> 22, (words >> 17) & 31
        year, month = months // 13, months % 13
        seconds = ((words >> 12) & 31) * 3600 + ((words >> 6) & 63) * 60 + (words & 63)
        valid = valid & (month > 0) & (day > 0)
        days = days_from_civil(year, np.maximum(month, 1), np.maximum(day, 1))
        micros = (days * 86_400 + seconds) * 1_000_000 + _fractions(data, np.ascontiguousarray(tail), precision)
        return make_array(micros, valid, pa.timestamp("us"))

    return read


def _timestamps(precision: int) -> ReadValues:
    def read(data: Bytes, ranges: Int64s, valid: Bools) -> Any:
        head, tail = _split(ranges, 4)
        seconds = _words(data, np.ascontiguousarray(head), big_endian=True)
        micros = seconds * 1_000_000 + _fractions(data, np.ascontiguousarray(tail), precision)
        # The moment 0 is what MySQL shows as 0000-00-00.
        return make_array(micros, valid & (micros != 0), pa.timestamp("us", tz="UTC"))

    return read


def _times(precision: int, as_text: bool) -> ReadValues:
    tail = (precision + 1) // 2

    def read(data: Bytes, ranges: Int64s, valid: Bools) -> Any:
        words = _words(data, ranges, big_endian=True) - (1 << (23 + 8 * tail))
        sign, words = np.sign(words), np.abs(words)
        whole, fraction = words >> (8 * tail), words & ((1 << 8 * tail) - 1)
        seconds = ((whole >> 12) & 1023) * 3600 + ((whole >> 6) & 63) * 60 + (whole & 63)
        micros = sign * (seconds * 1_000_000 + fraction * 10 ** (6 - 2 * tail))
        if as_text:
            return time_texts(micros, valid, precision)
        return make_array(micros, valid, pa.duration("us"))

    return read


def _names(column: LogColumn) -> list[str]:
    """The values of an ENUM or SET."""
    decode = _decoder(column.charset or "utf8mb4")
    return [decode(name, "replace")[0] for name in column.members or ()]


def _decoder(charset: str) -> Any:
    """What makes texts of bytes of a character set."""
    name = "utf-8" if charset in _UTF_8 else _CODECS.get(charset, charset)
    try:
        return codecs.lookup(name).decode
    except LookupError:
        raise UnreadableTypeError(f"texts in its character set ({charset}) cannot be read out of the log") from None


def _members(column: LogColumn) -> ReadValues:
    # 0 stands for a value that was none of them.
    names = pa.array(["", *_names(column)], pa.string())

    def read(data: Bytes, ranges: Int64s, valid: Bools) -> Any:
        return names.take(make_array(_words(data, ranges), valid, pa.int64()))

    return read


def _sets(column: LogColumn, as_array: bool) -> ReadValues:
    members = _names(column)

    def of_mask(mask: int) -> str:
        return ",".join(name for place, name in enumerate(members) if mask >> place & 1)

    def read(data: Bytes, ranges: Int64s, valid: Bools) -> Any:
        joined = map_distinct(
            make_array(_words(data, ranges).view(np.uint64), valid, pa.uint64()), of_mask, pa.string()
        )
        return set_members(joined) if as_array else joined

    return read


def set_members(joined: Any) -> Any:
    """SETs as lists: names with commas between them; of none of them, as in Flink CDC, one empty text."""
    return map_distinct(joined, lambda names: names.split(","), pa.list_(pa.string()))


def _characters(column: LogColumn, declared: t.LogicalType) -> ReadValues:
    if isinstance(declared, t.BinaryStringType) or column.charset == "binary":
        if column.wire.code == Wire.STRING:
            return _padded(column.wire.size)
        return lambda data, ranges, valid: texts(ranges, valid, data, pa.binary(), characters=False)
    charset = column.charset or "utf8mb4"
    if charset in _UTF_8:
        return lambda data, ranges, valid: texts(ranges, valid, data, pa.string(), characters=True)
    decode = _decoder(charset)

    def read(data: Bytes, ranges: Int64s, valid: Bools) -> Any:
        raw = texts(ranges, valid, data, pa.binary(), characters=False)
        return map_distinct(raw, lambda value: decode(value, "replace")[0], pa.string())

    return read


def _padded(size: int) -> ReadValues:
    """BINARY: the log leaves zeros at the end out."""

    def read(data: Bytes, ranges: Int64s, valid: Bools) -> Any:
        made = np.zeros(len(ranges) * size, np.uint8)
        gather_ranges(data, ranges, (np.arange(len(ranges), dtype=np.int64) * size).astype(np.int32), made)
        return _of_one_size(made, valid, size)

    return read


def _documents(text: Callable[[bytes], str]) -> ReadValues:
    def read(data: Bytes, ranges: Int64s, valid: Bools) -> Any:
        return map_distinct(texts(ranges, valid, data, pa.binary(), characters=False), text, pa.string())

    return read
