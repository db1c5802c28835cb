"""Reads csv as Flink 1 did: no escapes, empty fields are NULL, fields beyond the columns are ignored."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from flowsql_connectors.formats.format import Columns, DecodeContext, Decoder, FileFormat, FileView, Range
from flowsql_connectors.formats.rows_in_bytes import line_start, read_rows, rows_before, whole_lines
from flowsql_connectors.formats.text_values import TextDialect, parse_texts
from flowsql_core.arrow import compute as pc
from flowsql_core.errors import ExecutionError
from flowsql_core.record import record
from flowsql_core.types.logical import CharacterType


@record
class OldCsvFormat(FileFormat):
    """Lines of fields.

    ``quote``: a character around fields, which may then hold the delimiter; None: none. ``comment``: starts lines that
    are skipped. ``first_line``: whether the first line of each file is skipped. ``lenient``: NULL for fields that
    cannot be read, no row for lines with too few fields.
    """

    delimiter: str
    quote: str | None
    comment: str | None
    first_line: bool
    lenient: bool

    identifier = "csv"

    def decoder(self, context: DecodeContext) -> Decoder:
        """A decoder of byte ranges."""
        return OldCsvDecoder(self, context)


class OldCsvDecoder(Decoder):
    """Decodes ranges of files for one scan, a block at a time."""

    def __init__(self, format_: OldCsvFormat, context: DecodeContext) -> None:
        self._format = format_
        self._columns = context.columns
        self._projection = context.projection
        #: Fields that a line needs.
        self._width = len(context.columns)

    def read(self, file: FileView, part: Range) -> Iterator[Columns]:
        """The rows of lines that begin in a byte range."""
        for position, data in read_rows(file, part, line_start, whole_lines):
            try:
                lines, numbers = self._lines(data.decode(), position == 0)
            except UnicodeDecodeError as error:
                raise ExecutionError("csv-not-utf8", f"Invalid UTF-8 in {file.origin}: {error}.") from error
            try:
                fields, wide = self._fields(lines)
                columns = [self._typed(fields[index], index, wide) for index in self._projection]
            except _BadLineError as bad:
                line = rows_before(file, position) + int(numbers[bad.line]) + 1
                raise _failure(bad, file.place("line", line), lines) from bad
            yield Columns(tuple(columns), int(wide.sum()))

    def _lines(self, text: str, first: bool) -> tuple[Any, Any]:
        """The lines that are rows, and their numbers within the block."""
        lines = pa.array(text.removesuffix("\n").split("\n"), pa.string())
        lines = pc.utf8_rtrim(lines, "\r")
        keep = np.ones(len(lines), bool)
        if first and self._format.first_line:
            keep[0] = False
        if self._format.comment is not None:
            keep &= ~np.asarray(pc.starts_with(lines, self._format.comment))
        numbers = np.flatnonzero(keep)
        return (lines if len(numbers) == len(lines) else pc.take(lines, pa.array(numbers))), numbers

    def _fields(self, lines: Any) -> tuple[list[Any], Any]:
        """The texts of each column, of the lines that are wide enough; which ones these are."""
        if self._format.quote is not None and pc.any(pc.match_substring(lines, self._format.quote)).as_py():
            return self._quoted_fields(lines)
        split = pc.split_pattern(lines, self._format.delimiter)
        wide = np.asarray(pc.greater_equal(pc.list_value_length(split), self._width))
        if not wide.all():
            if not self._format.lenient:
                raise _BadLineError(int(np.argmin(wide)), "Row too short")
            split = split.filter(pa.array(wide))
        return [pc.list_element(split, index) for index in range(self._width)], wide

    def _quoted_fields(self, lines: Any) -> tuple[list[Any], Any]:
        """Those of lines some of which have quotes."""
        from pyarrow import csv

        quote, delimiter = re.escape(self._format.quote or ""), re.escape(self._format.delimiter)
        broken = pc.match_substring_regex(lines, f"(^|{delimiter}){quote}[^{quote}]*{quote}[^{delimiter}]")
        if pc.any(broken).as_py():
            raise _BadLineError(pc.index(broken, True).as_py(), "A field goes on after its closing quote")
        wrong: list[int] = []

        def odd(row: Any) -> str:
            wrong.append(row.number - 1)
            return "skip"

        names = [str(index) for index in range(self._width)]
        text = pc.binary_join(pa.ListArray.from_arrays(pa.array([0, len(lines)], pa.int32()), lines), "\n")[0].as_py()
        data = f"{text}\n".encode()
        table = csv.read_csv(
            io.BytesIO(data),
            csv.ReadOptions(column_names=names, use_threads=False, block_size=len(data) + 1),
            csv.ParseOptions(
                delimiter=self._format.delimiter,
                quote_char=self._format.quote,
                double_quote=False,
                ignore_empty_lines=False,
                invalid_row_handler=odd,
            ),
            csv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.string()), null_values=[], strings_can_be_null=False
            ),
        )
        wide = np.ones(len(lines), bool)
        wide[wrong] = False
        if wrong and not self._format.lenient:
            raise _BadLineError(wrong[0], f"expected {self._width} fields")
        return [table.column(name).combine_chunks() for name in names], wide

    def _typed(self, texts: Any, index: int, wide: Any) -> Any:
        """The values of a column."""
        column = self._columns[index]
        if isinstance(column.type, CharacterType):
            return texts
        given = pc.if_else(pc.equal(texts, ""), pa.scalar(None, pa.string()), texts)
        values, bad, reason = parse_texts(given, column.type, TextDialect.CSV)
        if bad is not None and not self._format.lenient:
            at = int(np.argmax(np.asarray(bad)))
            raise _BadLineError(
                int(np.flatnonzero(wide)[at]), f"Parsing error for column {index + 1} ({column.name}): {reason}"
            )
        return values


def _failure(bad: _BadLineError, place: str, lines: Any) -> ExecutionError:
    text = lines[bad.line].as_py()[:200]
    return ExecutionError(
        "csv-parse-error",
        f"{bad.reason}\nin {place}: {text!r}",
        hint="'format.ignore-parse-errors' = 'true' reads such fields as NULL and skips such rows",
    )


class _BadLineError(Exception):
    """A line that is no row; ``line`` counts from 0 within the block."""

    def __init__(self, line: int, reason: str) -> None:
        super().__init__(reason)
        self.line = line
        self.reason = reason
