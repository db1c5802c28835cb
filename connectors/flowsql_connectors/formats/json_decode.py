"""Lines of json files to columns: in bulk by Arrow with the table's own schema, line by line where Arrow refuses.

A block that Arrow refuses is halved until the odd lines stand alone, so that one bad line does not cost its block.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flowsql_connectors.formats.format import Columns, DecodeContext, Decoder, FileView, Range, wider_type_hint
from flowsql_connectors.formats.json_values import JsonConverter, NumberToText, parse_document, plain_document
from flowsql_connectors.formats.losses import Losses
from flowsql_connectors.formats.rows_in_bytes import line_start, read_rows, rows_before, whole_lines
from flowsql_connectors.formats.text_values import parse_plain
from flowsql_connectors.spi.counters import Lose, lose_silently
from flowsql_core.arrow import compute as pc
from flowsql_core.errors import ExecutionError
from flowsql_core.record import record
from flowsql_core.types.arrow import to_arrow
from flowsql_core.types.logical import (
    INT,
    ArrayType,
    BinaryStringType,
    DateTimeType,
    LogicalType,
    MapType,
    MultisetType,
    RowType,
    Schema,
)

if TYPE_CHECKING:
    from flowsql_connectors.formats.jackson.rows import StreamedRows
    from flowsql_connectors.formats.json import JsonFormat
    from flowsql_connectors.formats.json_shape import JsonShape

#: Bytes that are offered to Arrow at once: what it refuses is read again, so a block is not one piece.
_PIECE_BYTES: Final = 512 * 1024
#: Pieces of so few bytes are read line by line when Arrow refuses them.
_SMALL_BYTES: Final = 4 * 1024
#: After a block that was mostly odd, so many blocks are not offered to Arrow at all.
_PATIENCE: Final = 8
#: A line that is not blank, from its first character on.
_LINE: Final = re.compile(rb"\S[^\n]*")
#: A line that begins with something else than an object.
_NO_OBJECT: Final = re.compile(rb"^[^\S\n]*[^\s{]", re.MULTILINE)
#: A line of blanks alone. One without anything is no row; this one holds no JSON.
_BLANK: Final = re.compile(rb"^[ \t]+\r?$", re.MULTILINE)
#: Flink's words of such a line, and of one that is ``null``.
_NO_CONTENT: Final = "Failed to deserialize JSON: No content to map due to end-of-input"
_NEWLINE: Final = ord("\n")
_BRACE: Final = ord("{")
_NO_COLUMN: Final = "\x00"


class BadLineError(Exception):
    """A line that breaks a rule: ``line`` counts from 0 within the block. ``field``: the column that is wrong."""

    def __init__(self, line: int, reason: str, raw: bytes, field: str | None = None) -> None:
        super().__init__(reason)
        self.field = field
        self.line = line
        self.reason = reason
        self.raw = raw


@record
class Lines:
    """Where the rows of a piece of a file come from, for what is wrong with one of them.

    ``first``: number of the piece's first line, from 0. ``numbers``: that of each row's line; None where each line that
    is not blank is a row. ``told``: what :meth:`JsonLines.tell` says of each row; None where rows were read in bulk.
    """

    data: bytes
    first: int
    numbers: Sequence[int] | None = None
    told: Sequence[tuple[bool, ...]] | None = None

    def of_rows(self) -> npt.NDArray[np.int64]:
        """The number of each row's line."""
        if self.numbers is not None:
            return np.asarray(self.numbers, np.int64)
        from flowsql_connectors.formats.change.lines import shown_lines

        return shown_lines(self.data) + self.first

    def bad(self, row: int, reason: str) -> BadLineError:
        """The error of a row."""
        if self.numbers is not None:
            number = self.numbers[row]
            return BadLineError(number, reason, self.data.split(b"\n")[number - self.first])
        line = next(islice(_LINE.finditer(self.data), row, None))
        return BadLineError(self.first + self.data.count(b"\n", 0, line.start()), reason, line.group())


class JsonLines(Decoder):
    """Decodes ranges of files whose lines are objects.

    Args:
        format_: the rules.
        wanted: the fields of an object that are read.
        tells_bad_rows: lines that hold no object are told, also where the rules would leave them out.
        number_text: see :class:`JsonConverter`.
        reshaped: lines go through the kernel of :class:`JsonShape`, which reads numbers from texts, too.
        lose: takes the numbers of lines and fields that are left out.
        tells_lines: rows bear the numbers of their lines.
    """

    def __init__(
        self,
        format_: JsonFormat,
        wanted: Schema,
        tells_bad_rows: bool,
        number_text: NumberToText | None = None,
        reshaped: bool = False,
        lose: Lose = lose_silently,
        tells_lines: bool = False,
    ) -> None:
        self._format = format_
        self.losses = Losses(lose, "line")
        self.tells_lines = tells_lines
        #: The line that is being read.
        self._line = 0
        self._wanted = list(wanted)
        #: Lines that hold no object are left out.
        self._drops_lines = format_.ignore_parse_errors and not tells_bad_rows
        self._converter = JsonConverter(
            format_.dialect, format_.ignore_parse_errors, format_.fail_on_missing, number_text, bool(format_.inferred)
        )
        # Arrow reads no objects as maps, and does not tell a missing field from a NULL one.
        self._shape: JsonShape | None = None
        if reshaped or format_.fail_on_missing or any(_has_map(column.type) for column in self._wanted):
            from flowsql_connectors.formats.json_shape import JsonShape

            self._shape = JsonShape(tuple(self._wanted), format_.fail_on_missing)
        fields = [pa.field(column.name, _read_type(column.type)) for column in self._wanted]
        self._schema = pa.schema(fields or [pa.field(_NO_COLUMN, pa.string())])
        self._distrust = 0

    def read_one_by_one(self) -> None:
        """From now on, read all lines by the exact rules."""
        self._distrust = sys.maxsize

    def read(self, file: FileView, part: Range) -> Iterator[Columns]:
        """The lines that begin in a byte range."""
        for position, data in read_rows(file, part, line_start, whole_lines):
            self.losses.enter(file, position)
            try:
                yield self._decode(self.relevant(data))
            except BadLineError as bad:
                raise self._error(file, position, bad) from bad

    def relevant(self, data: bytes) -> bytes:
        """The lines, blank ones in place of those that hold no rows of the table."""
        return data

    def documents(self, document: Any) -> list[dict[str, Any]]:
        """The objects of what a line holds: one, or those of an array.

        Raises:
            ValueError: there is something else, too, or ``null``.
        """
        if document is None:
            if not self._drops_lines:
                raise ValueError(_NO_CONTENT)
            self.lose_here()
            return []
        items = document if isinstance(document, list) else [document]
        found = [item for item in items if isinstance(item, dict)]
        if lost := sum(item is not None for item in items) - len(found):
            if not self._drops_lines:
                raise ValueError("Failed to deserialize JSON: the line holds no object")
            self.lose_here(lost)
        return found

    def lose_here(self, rows: int = 1) -> None:
        """So many rows of the line that is being read are left out."""
        self.losses.rows(rows, self._line)

    def tell(self, document: dict[str, Any]) -> tuple[bool, ...]:
        """What :meth:`finished` has to know of an object besides its fields."""
        return ()

    def finished(self, columns: Columns, lines: Lines) -> Columns | None:
        """The rows of a piece, given the wanted fields of its lines; None: read the lines one by one.

        Raises:
            BadLineError: some line must not be as it is.
        """
        return replace(columns, lines=lines.of_rows()) if self.tells_lines else columns

    def complaint(self, bad: BadLineError) -> str:
        """What is said of a bad line before its place."""
        return bad.reason

    def _decode(self, data: bytes) -> Columns:
        if self._distrust:
            self._distrust -= 1
            return self._line_by_line(data, 0)
        odd_bytes: list[int] = []
        parts: list[Columns] = []
        start = line = 0
        while start < len(data):
            stop = data.find(b"\n", start + _PIECE_BYTES) + 1 or len(data)
            piece = data[start:stop]
            parts.extend(self._halved(piece, line, odd_bytes))
            start, line = stop, line + piece.count(b"\n")
        if sum(odd_bytes) * 2 > len(data):
            self._distrust = _PATIENCE
        return Columns.joined(parts)

    def _halved(self, data: bytes, line: int, odd_bytes: list[int]) -> Iterator[Columns]:
        columns = self._bulk(data, line)
        if columns is not None:
            yield columns
            return
        middle = data.find(b"\n", len(data) // 2) + 1
        if len(data) <= _SMALL_BYTES or middle in (0, len(data)):
            odd_bytes.append(len(data))
            yield self._line_by_line(data, line)
            return
        yield from self._halved(data[:middle], line, odd_bytes)
        yield from self._halved(data[middle:], line + data.count(b"\n", 0, middle), odd_bytes)

    def _bulk(self, data: bytes, line: int) -> Columns | None:
        """Arrow's reading, or None where it refuses or may differ from Flink's."""
        import pyarrow.json as pajson

        if not _is_utf8(data):
            return None
        lines = _plain_lines(data)
        if lines is None:
            # Arrow crashes where the first value of a block is ``null``, and passes lines of blanks.
            if _NO_OBJECT.search(data) is not None or _BLANK.search(data) is not None:
                return None
            lines = _shown_lines(data)
        shaped = data if self._shape is None else self._shape.shaped(data)
        if shaped is None:
            return None
        try:
            table = pajson.read_json(
                pa.BufferReader(shaped),
                read_options=pajson.ReadOptions(use_threads=False, block_size=len(shaped) + 1),
                parse_options=pajson.ParseOptions(
                    explicit_schema=self._schema, newlines_in_values=False, unexpected_field_behavior="ignore"
                ),
            )
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            return None
        if table.num_rows != lines:
            return None
        arrays = []
        for name, column in zip(self._schema.names, self._wanted, strict=False):
            array = table.column(name).combine_chunks()
            converted = self._convert(array, column.type)
            if converted is None:
                return None
            arrays.append(converted)
        return self.finished(Columns(tuple(arrays), table.num_rows), Lines(data, line))

    def _convert(self, array: Any, type_: LogicalType) -> Any | None:
        """The array in the type's own form; None if a text in it is odd or a number not finite."""
        if isinstance(array, pa.ChunkedArray):
            array = array.combine_chunks()
        if pa.types.is_floating(array.type):
            return array if pc.all(pc.is_finite(array)).as_py() is not False else None
        if isinstance(type_, BinaryStringType | DateTimeType):
            return parse_plain(array, type_, self._format.dialect)
        if isinstance(type_, ArrayType):
            values = self._convert(array.values, type_.element)
            mask = pc.is_null(array) if array.null_count else None
            return None if values is None else pa.ListArray.from_arrays(array.offsets, values, mask=mask)
        if isinstance(type_, MapType | MultisetType):
            return self._maps(array, type_)
        if isinstance(type_, RowType):
            children = [self._convert(array.field(i), field.type) for i, field in enumerate(type_.fields)]
            if any(child is None for child in children):
                return None
            mask = pc.is_null(array) if array.null_count else None
            return pa.StructArray.from_arrays(children, [field.name for field in type_.fields], mask=mask)
        return array

    def _maps(self, entries: Any, type_: MapType | MultisetType) -> Any | None:
        from flowsql_connectors.formats.json_shape import keys_and_values, maps_of_entries

        keys, values = keys_and_values(entries)
        converted = self._convert(values, _value_type(type_))
        return None if converted is None else maps_of_entries(entries, keys, converted, type_)

    def _line_by_line(self, data: bytes, first_line: int) -> Columns:
        values: list[list[Any]] = [[] for _ in self._wanted]
        numbers: list[int] = []
        told: list[tuple[bool, ...]] = []
        wrong: BadLineError | None = None
        try:
            for number, raw in enumerate(data.split(b"\n"), first_line):
                if not raw.strip(b"\r"):
                    continue
                self._line = number
                for row, said in self._rows(raw, number):
                    if self._converter.nulled:
                        self.losses.fields(self._converter.nulled, None, number)
                        self._converter.nulled = 0
                    numbers.append(number)
                    told.append(said)
                    for made_of, value in zip(values, row, strict=True):
                        made_of.append(value)
        except BadLineError as error:
            # A line before it may be wrong in another way, and is to be told first.
            wrong = error
        made = [pa.array(column, to_arrow(c.type)) for column, c in zip(values, self._wanted, strict=True)]
        columns = self.finished(Columns(tuple(made), len(numbers)), Lines(data, first_line, numbers, told))
        if wrong is not None:
            raise wrong
        assert columns is not None
        return columns

    def _rows(self, raw: bytes, number: int) -> Iterator[tuple[list[Any], tuple[bool, ...]]]:
        """The wanted fields of each object of a line, and what :meth:`tell` says of it."""
        for document in self._documents(raw, number):
            row: list[Any] = []
            try:
                for column in self._wanted:
                    row.append(self._converter.field(document, column.name, column.type))
            except ValueError as error:
                if self._drops_lines:
                    self.lose_here()
                    continue
                raise BadLineError(number, str(error), raw, self._wanted[len(row)].name) from error
            yield row, self.tell(document)

    def _documents(self, raw: bytes, number: int) -> list[dict[str, Any]]:
        try:
            found = parse_document(raw) if raw.strip() else None
        except ValueError as error:
            if self._drops_lines:
                self.lose_here()
                return []
            raise BadLineError(number, f"Failed to deserialize JSON: {error}", raw) from error
        try:
            return self.documents(found)
        except ValueError as error:
            raise BadLineError(number, str(error), raw) from error

    def _error(self, file: FileView, position: int, bad: BadLineError) -> ExecutionError:
        before = rows_before(file, position)
        shown = bad.raw[:200].decode("utf-8", "replace")
        return ExecutionError(
            "json-parse-error",
            f"{self.complaint(bad)}\nin {file.place('line', before + bad.line + 1)}: {shown}",
            hint=wider_type_hint(self._format.inferred, bad.field)
            if self._format.inferred and bad.field
            else f"'{self._format.prefix}.ignore-parse-errors' = 'true' reads such fields as NULL and skips such lines",
        )


class JsonDecoder(JsonLines):
    """Decodes ranges of json files for one scan: each object is a row."""

    def __init__(self, format_: JsonFormat, context: DecodeContext) -> None:
        wanted = tuple(context.columns[index] for index in context.projection)
        super().__init__(format_, wanted, context.tells_bad_rows, lose=context.lose, tells_lines=context.tells_lines)
        self._streamed: StreamedRows | None = None

    def _rows(self, raw: bytes, number: int) -> Iterator[tuple[list[Any], tuple[bool, ...]]]:
        document, reason = plain_document(raw), ""
        if isinstance(document, dict):
            try:
                row = [self._converter.field(document, column.name, column.type) for column in self._wanted]
                if not self._converter.nulled:
                    yield row, ()
                    return
            except ValueError as error:
                # It shows the value as a whole.
                reason = str(error)
            self._converter.nulled = 0
        # What is odd in any way is read as Flink reads it, token by token.
        yield from ((row, ()) for row in self._read_streamed(raw, number, reason))

    def _read_streamed(self, raw: bytes, number: int, reason: str) -> Iterator[list[Any]]:
        from flowsql_connectors.formats.jackson.rows import FieldValueError, StreamedRows

        if self._streamed is None:
            rules = self._format
            self._streamed = StreamedRows(
                tuple(self._wanted), self._converter, rules.ignore_parse_errors, rules.fail_on_missing
            )
        try:
            yield from self._streamed.rows(raw)
        except FieldValueError as error:
            self._refuse(raw, number, reason or str(error), error.field)
        except ValueError as error:
            self._refuse(raw, number, f"Failed to deserialize JSON: {error}")

    def _refuse(self, raw: bytes, number: int, reason: str, field: str | None = None) -> None:
        """Leave the rest of a line out, or raise."""
        self._converter.nulled = 0
        if not self._drops_lines:
            raise BadLineError(number, reason, raw, field)
        self.lose_here()


def _plain_lines(data: bytes) -> int | None:
    """How many lines there are, where each is not blank and begins an object; otherwise None.

    One pass over the bytes: searches for two of them, as those below, take longer than Arrow's reading of some columns.
    """
    array = np.frombuffer(data, np.uint8)
    begins = np.flatnonzero(array == _NEWLINE) + 1
    count = len(begins) + 1
    if data.endswith(b"\n"):
        begins, count = begins[:-1], count - 1
    return count if data.startswith(b"{") and bool((array[begins] == _BRACE).all()) else None


def _is_utf8(data: bytes) -> bool:
    """Arrow does not look: what it makes of other bytes is no text."""
    if data.isascii():
        return True
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _shown_lines(data: bytes) -> int:
    """Lines that are not blank; a second value on a line makes Arrow find more than these."""
    return len(_LINE.findall(data))


def _has_map(type_: LogicalType) -> bool:
    match type_:
        case MapType() | MultisetType():
            return True
        case ArrayType(element=element):
            return _has_map(element)
        case RowType(fields=fields):
            return any(_has_map(field.type) for field in fields)
    return False


def _value_type(type_: MapType | MultisetType) -> LogicalType:
    """A multiset is a map of how often each element is there."""
    return INT if isinstance(type_, MultisetType) else type_.value


def _read_type(type_: LogicalType) -> Any:
    """What Arrow shall read: texts for what has its text form in JSON."""
    match type_:
        case BinaryStringType() | DateTimeType():
            return pa.string()
        case MapType() | MultisetType():
            from flowsql_connectors.formats.json_shape import entries_type

            return entries_type(pa.string(), _read_type(_value_type(type_)))
        case ArrayType(element=element):
            return pa.list_(_read_type(element))
        case RowType(fields=fields):
            return pa.struct([pa.field(field.name, _read_type(field.type)) for field in fields])
    return to_arrow(type_)
