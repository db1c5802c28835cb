"""Columns to lines of csv, with the quoting of Flink's writer (Jackson's loose one).

A text is quoted if it is longer than 24 characters or holds a character up to the greatest of delimiter, quote and the
first character of a line end, or a back-slash; numbers and booleans never are.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from flowsql_compute.eval.text.columns import contains_bytes
from flowsql_compute.eval.text.render import float_texts, regrouped
from flowsql_connectors.formats.csv_lines import Integers, Texts, Timestamps, lines
from flowsql_connectors.formats.format import TextEncoder
from flowsql_connectors.formats.text_output import (
    base64_texts,
    decimal_texts,
    stripped_plain_texts,
    time_texts,
    timestamp_texts,
)
from flowsql_connectors.formats.text_values import TextDialect
from flowsql_core.arrow import compute as pc
from flowsql_core.errors import NotSupportedYetError
from flowsql_core.types.logical import (
    ArrayType,
    BinaryStringType,
    BooleanType,
    CharacterType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LogicalType,
    RowType,
    Schema,
    TimestampLtzType,
    TimestampType,
    TimeType,
)

if TYPE_CHECKING:
    from flowsql_connectors.formats.csv import CsvFormat

_UNCHECKED_LENGTH: Final = 24
#: Rows from which on an output is written by kernels.
KERNEL_ROWS: Final = 100_000
_NOTHING: Final = np.zeros(256, np.uint8)


class CsvEncoder(TextEncoder):
    """Lines of one table.

    Args:
        format_: the rules.
        columns: of the table.
        grouped: fractions of timestamps have 3, 6 or 9 digits (``.200``), as answers are printed; else, as Flink writes
            them, those up to the last one that is not zero (``.2``).
    """

    def __init__(self, format_: CsvFormat, columns: Schema, grouped: bool = True) -> None:
        self._format = format_
        self._columns = columns
        self._grouped = grouped
        dialect = format_.dialect
        self._null = next(iter(format_.null_literals), "")
        self._mark = " " if format_.texts is TextDialect.CSV else "T"
        self._end = format_.line_end
        top = max(ord(dialect.delimiter), ord(dialect.quote or "\0"), *map(ord, self._end[:1] or "\n"))
        escape = re.escape(dialect.escape) if dialect.escape else ""
        self._special = f"[\\x00-\\x{{{top:x}}}\\\\{escape}]"
        # The same as a table by byte, where all these characters are single bytes.
        self._special_bytes = None
        self._quotes_blanks = dialect.quote is not None and top >= ord(" ")
        if top < 128 and ord(dialect.escape or "\\") < 128:
            self._special_bytes = np.zeros(256, dtype=np.bool_)
            self._special_bytes[: top + 1] = True
            self._special_bytes[[ord("\\"), ord(dialect.escape or "\\")]] = True

        #: Rows written so far: kernels are worth their load time from KERNEL_ROWS on.
        self._rows = 0

    def count_rows(self, rows: int) -> None:
        """Rows that were or will be written beside those that ``prepare`` sees."""
        self._rows += rows

    def prepare(self, columns: tuple[Any, ...], num_rows: int) -> Any:
        """The lines of a batch."""
        self.count_rows(num_rows)
        if self._rows >= KERNEL_ROWS and columns and self._format.dialect.delimiter.isascii() and self._end == "\n":
            parts = [self._part(array, index) for index, array in enumerate(columns)]
            made = lines(parts, num_rows, self._null, self._format.dialect.delimiter)
            if made is not None:
                return made
        texts = [pc.fill_null(self._texts(array, index), self._null) for index, array in enumerate(columns)]
        if not texts:
            return pa.array([self._end] * num_rows, pa.string())
        texts[-1] = pc.binary_join_element_wise(texts[-1], self._end, "")
        if len(texts) == 1:
            return texts[0]
        return pc.binary_join_element_wise(*texts, self._format.dialect.delimiter)

    def _part(self, array: Any, index: int) -> Integers | Timestamps | Texts:
        """How the kernels write a column."""
        type_ = self._columns[index].type
        quote, escape = self._format.dialect.quote, self._format.dialect.escape
        match type_:
            case IntegerType():
                return Integers.of(array)
            case TimestampType() | TimestampLtzType() if self._mark == " " and (
                quote is None or (self._quotes_blanks and quote.isascii())
            ):
                if (part := Timestamps.of(array, quote, self._grouped)) is not None:
                    return part
            case CharacterType() if self._special_bytes is not None:
                texts = pc.cast(array, pa.string())
                if quote is None:
                    return Texts.of(texts, _NOTHING, -1, None)
                doubled = contains_bytes(texts, quote) or (escape is not None and contains_bytes(texts, escape))
                if not doubled:
                    return Texts.of(texts, self._special_bytes.view(np.uint8), _UNCHECKED_LENGTH, quote)
        return Texts.of(self._texts(array, index), _NOTHING, -1, None)

    def head(self) -> bytes:
        """With ``csv.header`` the first line holds the names."""
        if not self._format.header:
            return b""
        names = self._quoted(pa.array([column.name for column in self._columns]))
        return (self._format.dialect.delimiter.join(name.as_py() for name in names) + self._end).encode()

    def _texts(self, array: Any, index: int) -> Any:
        """The field's text with its quotes; NULL stays NULL."""
        match type_ := self._columns[index].type:
            case BooleanType() | IntegerType() | FloatType() | DoubleType() | DecimalType():
                return self._plain(array, type_)
            case ArrayType(element=element):
                inner = pc.fill_null(self._plain(array.flatten(), element), self._null)
                return self._quoted(pc.binary_join(regrouped(array, inner), self._format.delimiter_in(index)))
            case TimestampType() | TimestampLtzType() if self._quotes_blanks and self._mark == " ":
                quote = self._format.dialect.quote
                return pc.binary_join_element_wise(quote, self._plain(array, type_), quote, "")
        return self._quoted(self._plain(array, type_))

    def _plain(self, array: Any, type_: LogicalType) -> Any:
        match type_:
            case BooleanType() | IntegerType() | CharacterType() | DateType():
                return pc.cast(array, pa.string())
            case FloatType() | DoubleType():
                return float_texts(array)
            case DecimalType():
                return decimal_texts(array, plain=False) if self._format.scientific else stripped_plain_texts(array)
            case BinaryStringType():
                return base64_texts(array)
            case TimeType():
                return time_texts(array)
            case TimestampType() | TimestampLtzType():
                return timestamp_texts(array, self._mark, self._grouped)
            case RowType(fields=fields):
                parts = [
                    pc.fill_null(self._plain(pc.struct_field(array, [i]), field.type), self._null)
                    for i, field in enumerate(fields)
                ]
                joined = (
                    pc.binary_join_element_wise(*parts, self._format.array_delimiter) if len(parts) > 1 else parts[0]
                )
                return pc.if_else(pc.is_valid(array), joined, pa.scalar(None, pa.string()))
        raise NotSupportedYetError(f"writing {type_} to csv")

    def _special_rows(self, texts: Any) -> Any:
        """Which texts hold a special character."""
        _, offsets, data = texts.buffers()
        if self._special_bytes is None or data is None:
            return pc.match_substring_regex(texts, self._special)
        ends = np.frombuffer(offsets, dtype=np.int32)[texts.offset : texts.offset + len(texts) + 1]
        flags = self._special_bytes[np.frombuffer(data, dtype=np.uint8)[ends[0] : ends[-1]]]
        before = np.zeros(len(flags) + 1, dtype=np.int32)
        np.cumsum(flags, out=before[1:])
        marks = before[ends - ends[0]]
        return pa.array(marks[1:] > marks[:-1])

    def _quoted(self, texts: Any) -> Any:
        quote, escape = self._format.dialect.quote, self._format.dialect.escape
        if quote is None:
            return texts
        wanted = pc.greater(pc.utf8_length(texts), _UNCHECKED_LENGTH)
        if pc.all(wanted).as_py() is not True:
            wanted = pc.or_(wanted, self._special_rows(texts))
        if not pc.any(wanted).as_py():
            return texts
        inner = texts
        if escape is not None and contains_bytes(texts, escape):
            inner = pc.replace_substring(inner, escape, escape * 2)
        if contains_bytes(texts, quote):
            inner = pc.replace_substring(inner, quote, quote * 2)
        quoted = pc.binary_join_element_wise(quote, inner, quote, "")
        return quoted if pc.all(wanted).as_py() else pc.if_else(wanted, quoted, texts)
