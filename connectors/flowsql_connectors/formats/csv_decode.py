"""Bytes of csv files to columns: in bulk by Arrow, row by row only where Arrow and Flink's reader would differ.

The bulk reader gets only the wanted columns, in their own types where Arrow reads a type as Java does, else as text.
Rows that it would misread (escapes, stray quotes, blank lines, comments) are taken out before, rows of another width
are refused by it: these alone are read by the exact rules and put back in their places.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from decimal import Decimal
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from flowsql_compute.eval.text.render import regrouped
from flowsql_connectors.formats.csv_misread import failed_column, has_blank_line, holds_hexadecimal, holds_padded
from flowsql_connectors.formats.csv_odd_rows import Int64s, Parted, part_blank_rows, part_rows, put_between
from flowsql_connectors.formats.csv_scan import CsvScan
from flowsql_connectors.formats.csv_tokens import CsvRow, CsvTokenizer, header_fault
from flowsql_connectors.formats.format import Columns, DecodeContext, Decoder, FileView, Range, wider_type_hint
from flowsql_connectors.formats.losses import Losses
from flowsql_connectors.formats.rows_in_bytes import Block, line_start, read_blocks, rows_before, whole_lines
from flowsql_connectors.formats.text_values import JAVA_BLANK, parse_texts, parse_true_or_false
from flowsql_core.arrow import compute as pc
from flowsql_core.errors import ExecutionError
from flowsql_core.types.arrow import to_arrow
from flowsql_core.types.logical import (
    ArrayType,
    BooleanType,
    CharacterType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LogicalType,
    RowType,
)

if TYPE_CHECKING:
    from flowsql_connectors.formats.csv import CsvFormat

_BOM: Final = b"\xef\xbb\xbf"
_LINE_END: Final = re.compile(rb"\r\n|\n|\r")
_NEWLINE: Final = 10
_RETURN: Final = 13
#: Files from this size on are worth the time that loading the kernels takes.
SCANNED_BYTES: Final = 32 * 1024 * 1024
#: Rows that must look right before a quoted file is believed to have a row start there.
_PROBE_ROWS: Final = 8


class CsvDecoder(Decoder):
    """Decodes ranges of csv files for one scan."""

    def __init__(self, format_: CsvFormat, context: DecodeContext) -> None:
        self._format = format_
        self._dialect = format_.dialect
        self._columns = context.columns
        self._projection = context.projection
        #: Rows that are no rows of the table are left out.
        self._drops_rows = format_.ignore_parse_errors and not context.tells_bad_rows
        self._tokenizer = CsvTokenizer(format_.dialect)
        self._width = len(context.columns)
        self._quote = None if format_.dialect.quote is None else format_.dialect.quote.encode()
        #: Rows in front of those of the table in each file.
        self._head = int(format_.header) + int(format_.skips_first)
        self._losses = Losses(context.lose, "row", self._quote, self._head)
        #: Where rows that are converted stand among those of a block; None: as they are.
        self._places: Int64s | None = None
        self._block = Block()
        self._scan: CsvScan | None = None
        #: Projected columns that proved to hold texts which only the exact rules read.
        self._as_text: set[int] = set()
        #: The width that rows of this file mostly have (a final delimiter makes one more).
        self._usual_width = self._width

    def read(self, file: FileView, part: Range) -> Iterator[Columns]:
        """The rows that begin in a byte range."""
        if self._scan is None and file.size >= SCANNED_BYTES and CsvScan.reads(self._format, self._width):
            self._scan = CsvScan(self._format, self._columns, self._projection)
        for position, block in read_blocks(file, part, self._find_row_start, self._cut_rows, self._block):
            try:
                if position == 0:
                    self._drop_head(block)
                self._losses.enter(file, position)
                if block.size:
                    yield self._scanned(block) or self._decode(block.contents())
            except _BadRowError as bad:
                raise self._error(file, position, bad) from bad
            except UnicodeDecodeError as error:
                raise ExecutionError(
                    "csv-not-utf8", f"Invalid UTF-8 in {file.origin}: {error}. csv is read as UTF-8."
                ) from error

    def _scanned(self, block: Block) -> Columns | None:
        """The columns of a block whose rows are mostly plain."""
        found = None if self._scan is None or self._usual_width != self._width else self._scan.read(block)
        if found is None:
            return None
        bulk = {index: self._not_null_array(column, index) for index, column in found.columns.items()}
        if not found.odd:
            return Columns(tuple(self._convert(bulk[index], index) for index in self._projection), found.rows)
        at_odd = np.array([place for place, _ in found.odd], np.int64)
        places = np.delete(np.arange(found.rows + len(found.odd)), at_odd)
        return self._with_odd(bulk, places, found.odd)

    def _drop_head(self, block: Block) -> None:
        if self._head or block.begins_with(_BOM):
            block.fill(self._without_head(block.contents()))

    def _without_head(self, data: bytes) -> bytes:
        if data.startswith(_BOM):
            data = data[len(_BOM) :]
        if self._format.header:
            if self._format.strict_header:
                self._check_header(data)
            data = data[self._cut_at_row_starts(data, 1) :]
        if self._format.skips_first:
            # As in Flink a line, whatever is quoted in it.
            end = _LINE_END.search(data)
            data = b"" if end is None else data[end.end() :]
        return data

    def _check_header(self, data: bytes) -> None:
        """Refuse a header that has other names than the columns."""
        row = next(iter(self._tokenizer.rows(data[: 1024 * 1024].decode("utf-8", "replace"))), None)
        if row is not None and (reason := header_fault(row, [column.name for column in self._columns])) is not None:
            raise _BadRowError(-1, reason, row.text)

    # -- borders of rows --------------------------------------------------------------------------------------------

    def row_start(self, window: bytes) -> int | None:
        """Behind the first newline that ends a row."""
        return self._find_row_start(window)

    def whole_rows(self, data: bytes) -> int:
        """Newlines inside quotes end no row."""
        return self._cut_rows(data)

    def _find_row_start(self, window: bytes) -> int | None:
        """Behind the first newline that ends a row: with quotes about, the reading that makes rows of the right width.

        A quoted field may hold newlines. Outside-quotes is tried first, then inside-quotes; a position inside a
        quoted field whose text itself looks like rows of this table is taken for a row start (the one ambiguity).
        """
        if self._quote is None or self._quote not in window:
            return line_start(window)
        newlines = np.flatnonzero(np.frombuffer(window, dtype=np.uint8) == _NEWLINE)
        best, best_score = None, 0.0
        for at in newlines[: 4 * _PROBE_ROWS]:
            score = self._score(window[at + 1 :])
            if score == 1.0:
                return int(at) + 1
            if score > best_score:
                best, best_score = int(at) + 1, score
        if best is not None:
            return best
        return line_start(window) if len(newlines) else None

    def _score(self, rest: bytes) -> float:
        """Share of the next rows that are well-formed and of the usual width; the last one may be cut off."""
        text = rest[: 64 * 1024].decode("utf-8", "replace")
        rows: list[CsvRow] = []
        for row in self._tokenizer.rows(text):
            rows.append(row)
            if len(rows) > _PROBE_ROWS:
                break
        judged = rows[:-1] if len(rows) > 1 else rows
        good = sum(len(row.fields) == self._usual_width and self._tokenizer.is_strict(row) for row in judged)
        return good / len(judged) if judged else 1.0

    def _cut_rows(self, data: bytes) -> int:
        """Length of the whole rows at the start of ``data``."""
        if self._quote is None or self._quote not in data:
            return whole_lines(data)
        raw = np.frombuffer(data, dtype=np.uint8)
        newlines = np.flatnonzero(raw == _NEWLINE)
        # A newline with an even number of quotes before it ends a row, where quotes come in pairs.
        quotes = np.flatnonzero(raw == self._quote[0])
        even = newlines[np.searchsorted(quotes, newlines) % 2 == 0]
        return int(even[-1]) + 1 if len(even) else 0

    def _cut_at_row_starts(self, data: bytes, rows: int) -> int:
        """Bytes of the first ``rows`` rows with their line ends."""
        head = data[: 1024 * 1024].decode("utf-8", "replace")
        starts = [row.start for _, row in zip(range(rows + 1), self._tokenizer.rows(head), strict=False)]
        return len(head[: starts[rows]].encode()) if len(starts) > rows else len(data)

    # -- columns ----------------------------------------------------------------------------------------------------

    def _decode(self, data: bytes) -> Columns:
        parts = self._parted(data) if self._has_odd_rows(data) else None
        if parts is None:
            table, wrong = self._usual(data)
            if self._may_hold_blank_lines(table) and has_blank_line(data):
                usual = not wrong and self._usual_width == self._width
                parted = part_blank_rows(data, table, self._tokenizer) if usual else None
                if parted is not None:
                    return self._mixed(parted[0], [], parted[1])
                parts = self._parted(data)
        if parts is None:
            if not wrong and self._usual_width == self._width:
                return self._typed(table)
            parts = Parted(data, np.arange(table.num_rows + len(wrong)), [])
        elif parts.plain:
            table, wrong = self._usual(parts.plain)
        else:
            return self._from_rows(parts.odd)
        return self._mixed(table, wrong, parts)

    def _usual(self, data: bytes) -> tuple[Any, list[Any]]:
        """Arrow's table of the rows that are as wide as most of the file, and the others."""
        table, wrong = self._bulk(data, self._usual_width)
        if len(wrong) > table.num_rows:
            width, times = Counter(row.actual_columns for row in wrong).most_common(1)[0]
            if times > table.num_rows:
                self._usual_width = width
                table, wrong = self._bulk(data, width)
        return table, wrong

    def _parted(self, data: bytes) -> Parted:
        return part_rows(data, self._tokenizer, blank_is_odd=self._width > 1)

    def _has_odd_rows(self, data: bytes) -> bool:
        dialect = self._dialect
        if dialect.comments or (dialect.escape is not None and dialect.escape.encode() in data):
            return True
        return self._quote is not None and self._quote in data and self._odd_quotes(data)

    def _odd_quotes(self, data: bytes) -> bool:
        """Whether a quote stands where it neither opens nor closes a field nor doubles another one."""
        assert self._quote is not None
        raw = np.frombuffer(data, dtype=np.uint8)
        quote, delimiter = self._quote[0], ord(self._dialect.delimiter)
        at = np.flatnonzero(raw == quote)
        before = np.where(at > 0, raw[at - 1], _NEWLINE)
        after = np.where(at + 1 < len(raw), raw[np.minimum(at + 1, len(raw) - 1)], _NEWLINE)
        # As long as all is well every other quote opens; the second half of a doubled one counts as opening again.
        neighbour = np.where(np.arange(len(at)) % 2 == 0, before, after)
        regular = np.zeros(len(at), dtype=np.bool_)
        for byte in (delimiter, _NEWLINE, _RETURN, quote):
            regular |= neighbour == byte
        return len(at) % 2 == 1 or not bool(regular.all())

    def _bulk(self, data: bytes, width: int) -> tuple[Any, list[Any]]:
        """Arrow's table of the rows that are ``width`` fields wide, and the others."""
        import pyarrow.csv as pacsv

        odd: list[Any] = []

        def keep(row: Any) -> str:
            odd.append(row)
            return "skip"

        names = [f"{index}" for index in range(width)]
        wanted = sorted({index for index in self._projection if index < width}) or [0]
        null_literals = list(self._format.null_literals)
        # Most blocks hold neither a quote nor a byte above 127: Arrow is faster when it looks for neither.
        quoted = self._quote is not None and self._quote in data
        check_utf8 = not data.isascii()
        as_text = width != self._width
        self._as_text |= self._misread(data, wanted)
        while True:
            odd.clear()
            types = {f"{i}": pa.string() if as_text else self._read_type(i) for i in wanted}
            types |= {name: pa.string() for name in names[self._width :]}
            try:
                table = pacsv.read_csv(
                    pa.BufferReader(data),
                    read_options=pacsv.ReadOptions(column_names=names, use_threads=False, block_size=len(data) + 1),
                    parse_options=pacsv.ParseOptions(
                        delimiter=self._dialect.delimiter,
                        quote_char=(self._dialect.quote or False) if quoted else False,
                        ignore_empty_lines=False,
                        newlines_in_values=quoted,
                        invalid_row_handler=keep,
                    ),
                    convert_options=pacsv.ConvertOptions(
                        check_utf8=check_utf8,
                        column_types=types,
                        include_columns=[f"{i}" for i in wanted] + ([names[-1]] if width > self._width else []),
                        null_values=null_literals,
                        strings_can_be_null=bool(null_literals),
                        quoted_strings_can_be_null=True,
                        true_values=["true", "TRUE", "True"],
                        false_values=["false", "FALSE", "False"],
                    ),
                )
            except pa.ArrowInvalid as error:
                failed = failed_column(str(error), wanted)
                if failed is None or failed in self._as_text or as_text:
                    data.decode()
                    raise
                self._as_text.add(failed)
                continue
            dubious = set() if as_text else self._dubious(table, wanted)
            if dubious:
                self._as_text |= dubious
                continue
            return table, odd

    def _read_type(self, index: int) -> Any:
        """The type that Arrow reads as Java does; text for the others."""
        type_ = self._columns[index].type
        if index not in self._as_text and isinstance(
            type_, IntegerType | FloatType | DoubleType | DecimalType | BooleanType
        ):
            return to_arrow(type_)
        return pa.string()

    def _misread(self, data: bytes, wanted: Sequence[int]) -> set[int]:
        """Columns of which Arrow may read texts that Java refuses: hexadecimal integers and decimals in blanks."""
        types = {index: self._columns[index].type for index in wanted if index < self._width}
        integers = {index for index, type_ in types.items() if isinstance(type_, IntegerType)} - self._as_text
        decimals = {index for index, type_ in types.items() if isinstance(type_, DecimalType)} - self._as_text
        found: set[int] = set()
        if integers and holds_hexadecimal(data, self._dialect):
            found |= integers
        if decimals and holds_padded(data, self._dialect):
            found |= decimals
        return found

    def _dubious(self, table: Any, wanted: Sequence[int]) -> set[int]:
        """Columns that Arrow read although Java might not.

        ``inf`` and ``nan`` in any case of letters; decimals whose exponent gives them more digits than their type has.
        """
        found = set()
        for index in wanted:
            column = table.column(f"{index}")
            if pa.types.is_decimal(column.type):
                limit = Decimal(10) ** (column.type.precision - column.type.scale)
                ends = pc.min_max(column).as_py()
                if ends["max"] is not None and (ends["max"] >= limit or ends["min"] <= -limit):
                    found.add(index)
            if pa.types.is_floating(column.type) and pc.any(pc.invert(pc.is_finite(column))).as_py():
                found.add(index)
        return found

    def _may_hold_blank_lines(self, table: Any) -> bool:
        """Arrow makes a row of empty fields of a blank line; a column without any empty value rules that out."""
        if self._width == 1:
            return False
        for column in table.columns:
            if column.null_count:
                continue
            if not pa.types.is_string(column.type):
                return False
            if len(column) and pc.min(pc.binary_length(column)).as_py() > 0:
                return False
        return bool(table.num_rows > 0)

    def _typed(self, table: Any) -> Columns:
        arrays = [self._convert(self._bulk_column(table, index), index) for index in self._projection]
        return Columns(tuple(arrays), table.num_rows)

    def _bulk_column(self, table: Any, index: int) -> Any:
        return self._not_null_array(_whole(table.column(f"{index}")), index)

    def _not_null_array(self, column: Any, index: int) -> Any:
        """An array is never NULL as a whole: the literal stands for a NULL element."""
        if isinstance(self._columns[index].type, ArrayType) and self._format.null_literals:
            return pc.fill_null(column, self._format.null_literals[0])
        return column

    def _convert(self, array: Any, index: int) -> Any:
        column = self._columns[index]
        if not pa.types.is_string(array.type) or isinstance(column.type, CharacterType):
            return array
        if isinstance(column.type, ArrayType):
            return self._parse_lists(array, column.type.element, column.name, self._format.delimiter_in(index))
        return self._parse(array, column.type, column.name, is_row=True)

    def _parse(self, texts: Any, type_: LogicalType, name: str, is_row: bool = False) -> Any:
        match type_:
            case RowType():
                return self._parse_structs(texts, type_, name)
        if self._format.inferred and isinstance(type_, BooleanType):
            values, bad, reason = parse_true_or_false(texts)
        else:
            values, bad, reason = parse_texts(texts, type_, self._format.texts)
        if bad is not None and pc.any(bad).as_py():
            row = pc.index(bad, True).as_py()
            if self._format.ignore_parse_errors:
                place = row if self._places is None else int(self._places[row])
                self._losses.fields(pc.sum(bad).as_py(), name, place if is_row else None)
                return values
            raise _BadRowError(row, f"Fail to deserialize at field: {name}. {reason}", texts[row].as_py(), field=name)
        return values

    def _parse_lists(self, texts: Any, element: LogicalType, name: str, delimiter: str) -> Any:
        lists = pc.split_pattern(texts, delimiter)
        empty = pc.fill_null(pc.equal(pc.utf8_trim(texts, JAVA_BLANK), ""), False)
        if pc.any(empty).as_py():
            lists = pc.if_else(empty, pa.scalar([], lists.type), lists)
        inner = lists.flatten()
        inner = self._with_nulls(inner)
        try:
            values = self._parse(inner, element, name)
        except _BadRowError as bad:
            raise _BadRowError(pc.list_parent_indices(lists)[bad.row].as_py(), bad.reason, bad.text, bad.field) from bad
        made = regrouped(lists, values)
        return pc.if_else(pc.is_valid(texts), made, pa.scalar(None, made.type)) if texts.null_count else made

    def _with_nulls(self, texts: Any) -> Any:
        """NULL in place of the texts that stand for it."""
        for literal in self._format.null_literals:
            texts = pc.if_else(pc.equal(texts, literal), pa.scalar(None, pa.string()), texts)
        return texts

    def _parse_structs(self, texts: Any, type_: RowType, name: str) -> Any:
        # A field of blanks or of nothing is no row at all, quoted or not.
        empty = pc.equal(pc.utf8_trim(texts, JAVA_BLANK), "")
        texts = pc.if_else(empty, pa.scalar(None, pa.string()), texts)
        lists = pc.split_pattern(texts, self._format.array_delimiter)
        lengths = pc.list_value_length(lists)
        short = pc.fill_null(pc.less(lengths, len(type_.fields)), False)
        if not self._format.ignore_parse_errors and pc.any(short).as_py():
            row = pc.index(short, True).as_py()
            reason = f"Row length mismatch. {len(type_.fields)} fields expected but was {lengths[row].as_py()}."
            raise _BadRowError(row, reason, texts[row].as_py())
        padded = pc.list_slice(lists, 0, len(type_.fields), return_fixed_size_list=True)
        children = []
        for position, field in enumerate(type_.fields):
            part = self._with_nulls(pc.list_element(padded, position))
            children.append(self._parse(part, field.type, f"{name}.{field.name}"))
        mask = pc.is_null(texts) if texts.null_count else None
        return pa.StructArray.from_arrays(children, [field.name for field in type_.fields], mask=mask)

    # -- rows of their own shape ------------------------------------------------------------------------------------

    def _mixed(self, table: Any, wrong: list[Any], parts: Parted) -> Columns:
        """Arrow's rows and the odd ones, in file order. ``wrong``: rows of another width that Arrow found."""
        wrong_at = np.array([row.number - 1 for row in wrong], np.int64)
        places = np.delete(parts.places, wrong_at)
        broken: _BadRowError | None = None
        if self._usual_width > self._width and table.num_rows and not self._format.drops_more:
            # Only a final delimiter may make a row longer: the field behind it is empty.
            extra = _whole(table.column(f"{self._usual_width - 1}"))
            longer = pc.or_(pc.not_equal(pc.fill_null(extra, ""), ""), self._usual_width > self._width + 1)
            if pc.any(longer).as_py():
                if not self._drops_rows:
                    at = pc.index(longer, True).as_py()
                    reason = _too_many(self._width, extra[at].as_py() or "")
                    broken = _BadRowError(int(places[at]), reason, self._text_of_usual(parts.plain, at))
                elif lost := pc.sum(longer).as_py():
                    self._losses.rows(lost, int(places[pc.index(longer, True).as_py()]))
                kept = pc.indices_nonzero(pc.invert(longer))
                table = table.take(kept)
                places = places[np.frombuffer(kept.buffers()[1], dtype=np.uint64)[: len(kept)]]
        elif self._usual_width < self._width and table.num_rows:
            broken = self._width_error(int(places[0]), self._usual_width, self._text_of_usual(parts.plain, 0))
        repaired = [
            (int(parts.places[at]), next(iter(self._tokenizer.rows(row.text)), CsvRow(("",), 0, row.text)))
            for at, row in zip(wrong_at, wrong, strict=True)
        ]
        bulk = {
            index: self._bulk_column(table, index)
            if index < self._usual_width
            else pa.nulls(table.num_rows, pa.string())
            for index in self._projection
        }
        return self._with_odd(bulk, places, [*repaired, *parts.odd], broken)

    def _text_of_usual(self, data: bytes, at: int) -> str:
        """The text of the row number ``at`` (from 0) among those that are as wide as most, for an error."""
        rows = (row for row in self._tokenizer.rows(data.decode()) if len(row.fields) == self._usual_width)
        return next(islice(rows, at, None)).text

    def _with_odd(
        self,
        bulk: dict[int, Any],
        places: Int64s,
        odd: list[tuple[int, CsvRow]],
        broken: _BadRowError | None = None,
    ) -> Columns:
        """Columns of rows at ``places`` with the odd ones between them; fails with the first row that is none."""
        odd_places, fields = self._fields_of(odd, broken)
        arrays = []
        for index in self._projection:
            texts = pa.array([row[index] for row in fields], pa.string())
            made = self._converted(((bulk[index], places), (texts, odd_places)), index)
            arrays.append(put_between(made[0], made[1], np.searchsorted(places, odd_places)))
        return Columns(tuple(arrays), len(places) + len(odd_places))

    def _converted(self, parts: Sequence[tuple[Any, Int64s]], index: int) -> list[Any]:
        """Arrays of texts or values as values; fails with the first row in file order that has none."""
        made: list[Any] = []
        first: _BadRowError | None = None
        for array, places in parts:
            self._places = places
            try:
                made.append(self._convert(array, index))
            except _BadRowError as bad:
                row = int(places[bad.row])
                if first is None or row < first.row:
                    first = _BadRowError(row, bad.reason, bad.text, bad.field)
            finally:
                self._places = None
        if first is not None:
            raise first
        return made

    def _fields_of(
        self, rows: list[tuple[int, CsvRow]], broken: _BadRowError | None = None
    ) -> tuple[Int64s, list[tuple[str | None, ...]]]:
        """Places and fields of the rows that are rows of the table, in file order; fails with the first that is none,
        ``broken`` among them."""
        kept = []
        for place, row in sorted(rows, key=lambda found: found[0]):
            if broken is not None and broken.row < place:
                break
            fields = self._fields(row, place)
            if fields is not None:
                kept.append((place, fields))
        if broken is not None:
            raise broken
        return np.array([place for place, _ in kept], np.int64), [fields for _, fields in kept]

    def _from_rows(self, rows: list[tuple[int, CsvRow]]) -> Columns:
        """Columns of tokenised rows alone."""
        places, kept = self._fields_of(rows)
        arrays = [
            self._converted([(pa.array([fields[index] for fields in kept], pa.string()), places)], index)[0]
            for index in self._projection
        ]
        return Columns(tuple(arrays), len(kept))

    def _fields(self, row: CsvRow, at: int) -> tuple[str | None, ...] | None:
        """The row's fields padded to the table's width, NULL literals replaced; None when the row is skipped."""
        fields = row.fields
        if self._format.inferred and fields == ("",) and self._width > 1:
            # Nobody said that a blank line means something.
            return None
        if len(fields) == self._width + 1 and fields[-1] == "":
            fields = fields[:-1]
        if self._format.drops_more:
            fields = fields[: self._width]
        if row.error is not None or len(fields) > self._width:
            if self._drops_rows:
                self._losses.rows(1, at)
                return None
            raise _BadRowError(at, row.error or _too_many(self._width, fields[self._width]), row.text)
        if (short := self._width_error(at, len(fields), row.text)) is not None:
            raise short
        literals = self._format.null_literals
        padded = (*fields, *(None for _ in range(self._width - len(fields))))
        if not literals:
            return padded
        return tuple(
            None if field in literals and not isinstance(column.type, ArrayType) else field
            for field, column in zip(padded, self._columns, strict=True)
        )

    def _width_error(self, at: int, width: int, text: str) -> _BadRowError | None:
        # Flink compares with the number of projected fields, not with the table's.
        if width < len(self._projection) and not self._format.ignore_parse_errors:
            reason = f"Row length mismatch. {len(self._projection)} fields expected but was {width}."
            return _BadRowError(at, reason, text)
        return None

    def _error(self, file: FileView, position: int, bad: _BadRowError) -> ExecutionError:
        before = rows_before(file, position, self._quote)
        shown = f": {bad.text[:200]!r}" if bad.text else ""
        head = self._head if not before else 0
        if bad.row < 0:
            return ExecutionError("csv-header-mismatch", f"{bad.reason}\nin {file.place('row', 1)}{shown}")
        return ExecutionError(
            "csv-parse-error",
            f"{bad.reason}\nin {file.place('row', before + bad.row + 1 + head)}{shown}",
            hint=wider_type_hint(self._format.inferred, bad.field)
            if self._format.inferred and bad.field
            else "'csv.ignore-parse-errors' = 'true' reads such fields as NULL and skips such rows",
        )


class _BadRowError(Exception):
    """A row that breaks a rule: ``row`` counts from 0 within the block. ``field``: the one that is of another type."""

    def __init__(self, row: int, reason: str, text: str | None, field: str | None = None) -> None:
        super().__init__(reason)
        self.field = field
        self.row = row
        self.reason = reason
        self.text = text or ""


def _too_many(width: int, first: str) -> str:
    return f'Too many entries: expected at most {width} (value #{width} ({len(first)} chars) "{first}")'


def _whole(column: Any) -> Any:
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
