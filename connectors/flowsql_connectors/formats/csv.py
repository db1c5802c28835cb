"""The ``csv`` format: its options and the way from bytes to columns.

Flink's csv has no header option; ``csv.header`` is FlowSQL's own: reading skips each file's first row, writing starts
each file with the column names. So are ``csv.null-literals`` and ``csv.timestamp-format.standard``, for files of other
programs. ``csv.write-bigdecimal-in-scientific-notation`` counts for writing only.
"""

from __future__ import annotations

from flowsql_connectors.formats.csv_tokens import CsvDialect
from flowsql_connectors.formats.format import (
    DecodeContext,
    Decoder,
    EncodeContext,
    FileEncoder,
    FileFormat,
    FormatFactory,
    MessageDecoder,
    MessageEncoder,
)
from flowsql_connectors.formats.messages.lines import EmptyMessage, LineMessageEncoder, LineMessages
from flowsql_connectors.formats.text_values import TextDialect
from flowsql_connectors.options import (
    COLUMNS_INFERRED,
    ConnectorOption,
    OptionSet,
    OptionValues,
    optional,
    parse_boolean,
    parse_choice,
)
from flowsql_core.errors import BindError
from flowsql_core.graph.specs import TableSpec
from flowsql_core.record import record
from flowsql_core.types.logical import (
    ArrayType,
    LogicalType,
    MapType,
    MultisetType,
    RawType,
    RowType,
    Schema,
)


def _character(key: str, default: str, doc: str, unescape: bool = False) -> ConnectorOption[str]:
    def parse(text: str) -> str:
        character = _UNESCAPED.get(text, text) if unescape else text
        if len(character) != 1:
            raise ValueError(f"Option '{key}' must be a string with single character, but was: {text}")
        return character

    return ConnectorOption(key, parse, default, doc)


#: Flink unescapes Java's escapes in the delimiter.
_UNESCAPED = {"\\t": "\t", "\\n": "\n", "\\r": "\r", "\\\\": "\\", "\\u0001": "\x01", "\\0001": "\x01"}

FIELD_DELIMITER = _character("csv.field-delimiter", ",", "Character between fields.", unescape=True)
DISABLE_QUOTE = ConnectorOption(
    "csv.disable-quote-character", parse_boolean, False, "Whether no character quotes fields."
)
QUOTE_CHARACTER = _character("csv.quote-character", '"', "Character around fields.")
ALLOW_COMMENTS = ConnectorOption(
    "csv.allow-comments",
    parse_boolean,
    False,
    "Whether lines that start with # are skipped, and with them blank lines and blanks before a row.",
)
IGNORE_PARSE_ERRORS = ConnectorOption(
    "csv.ignore-parse-errors", parse_boolean, False, "NULL for fields that cannot be read, no row for such rows."
)
ARRAY_DELIMITER = _character(
    "csv.array-element-delimiter", ";", "Character between the elements of an array or the fields of a row."
)
ESCAPE_CHARACTER: ConnectorOption[str | None] = ConnectorOption(
    "csv.escape-character",
    optional(_character("csv.escape-character", "", "").parse),
    None,
    "Character that takes the meaning from the next one.",
)
NULL_LITERAL: ConnectorOption[str | None] = ConnectorOption(
    "csv.null-literal", optional(str), None, "Text that stands for NULL."
)
NULL_LITERALS: ConnectorOption[tuple[str, ...]] = ConnectorOption(
    "csv.null-literals",
    lambda text: tuple(text.split(";")),
    (),
    "FlowSQL: texts that stand for NULL, separated by ';'; the first one is written.",
)
TIMESTAMP_FORMAT = ConnectorOption(
    "csv.timestamp-format.standard",
    parse_choice("SQL", "ISO-8601"),
    "SQL",
    "FlowSQL: SQL: with a blank, as in Flink; ISO-8601: with T (written) or a blank, without seconds, with any offset.",
)
SCIENTIFIC = ConnectorOption(
    "csv.write-bigdecimal-in-scientific-notation", parse_boolean, True, "Whether 100000 is written as 1E+5."
)
HEADER = ConnectorOption(
    "csv.header", parse_boolean, False, "FlowSQL: each file's first row holds column names (skipped, written)."
)

_OPTIONS = OptionSet(
    optional=(
        FIELD_DELIMITER,
        DISABLE_QUOTE,
        QUOTE_CHARACTER,
        ALLOW_COMMENTS,
        IGNORE_PARSE_ERRORS,
        ARRAY_DELIMITER,
        ESCAPE_CHARACTER,
        NULL_LITERAL,
        NULL_LITERALS,
        TIMESTAMP_FORMAT,
        SCIENTIFIC,
        HEADER,
    )
)


@record
class CsvFormat(FileFormat):
    """A csv format with its options.

    ``null_literals``: texts that stand for NULL, the first one when written; ``texts``: the rules of typed fields.
    """

    dialect: CsvDialect
    null_literals: tuple[str, ...]
    array_delimiter: str
    ignore_parse_errors: bool
    header: bool
    scientific: bool
    texts: TextDialect = TextDialect.CSV
    #: Where the files are whose types a sample told: columns take nothing else, and errors tell how to declare them.
    inferred: str | None = None
    #: By the column's index: a text of its own between the elements of an array; None as ``array_delimiter``.
    array_delimiters: tuple[str | None, ...] = ()
    #: Whether the names in the header must be those of the columns.
    strict_header: bool = False
    #: Whether the first line behind the header is left out, too.
    skips_first: bool = False
    #: Whether fields behind those of the last column are left out.
    drops_more: bool = False
    #: What ends written lines.
    line_end: str = "\n"
    #: Whether written fractions of timestamps have 3, 6 or 9 digits (``.200``), or end with the last one above zero.
    grouped: bool = True

    identifier = "csv"

    def delimiter_in(self, index: int) -> str:
        """What is between the elements of an array in the column of an index."""
        own = self.array_delimiters[index] if self.array_delimiters else None
        return self.array_delimiter if own is None else own

    def decoder(self, context: DecodeContext) -> Decoder:
        """A decoder of byte ranges."""
        from flowsql_connectors.formats.csv_decode import CsvDecoder

        return CsvDecoder(self, context)

    def encoder(self, columns: Schema) -> FileEncoder:
        """An encoder of rows with Flink's quoting."""
        from flowsql_connectors.formats.csv_encode import CsvEncoder

        return CsvEncoder(self, columns, self.grouped)

    def message_decoder(self, context: DecodeContext) -> MessageDecoder:
        """A row a message."""
        self._refuse_header()
        from flowsql_connectors.formats.messages.rows import RowMessages

        empty = EmptyMessage.SKIPPED if self.ignore_parse_errors else EmptyMessage.BAD
        lines = LineMessages(self.decoder, context, empty, row_a_message=True)
        if not RowMessages.reads(self, context.columns, context.projection):
            return lines
        return RowMessages(self, context.columns, context.projection, lines)

    def message_encoder(self, columns: Schema, context: EncodeContext | None = None) -> MessageEncoder:
        """A row a message."""
        self._refuse_header()
        from flowsql_connectors.formats.csv_encode import CsvEncoder

        return LineMessageEncoder(CsvEncoder(self, columns, grouped=False))

    def _refuse_header(self) -> None:
        if self.header:
            raise BindError("invalid-option-value", f"Messages have no head: '{HEADER.key}' is for files.")


class CsvFormatFactory(FormatFactory):
    """Makes csv formats."""

    def options(self) -> OptionSet:
        """The ``csv.*`` options."""
        return _OPTIONS

    def create(self, values: OptionValues, table: TableSpec) -> FileFormat:
        """The format; refuses column types that csv cannot hold."""
        if values.get(DISABLE_QUOTE) and values.has(QUOTE_CHARACTER):
            raise BindError(
                "invalid-option-value",
                "Format cannot define a quote character and disabled quote character at the same time.",
            )
        if values.has(NULL_LITERAL) and values.has(NULL_LITERALS):
            raise BindError(
                "invalid-option-value",
                f"'{NULL_LITERAL.key}' and '{NULL_LITERALS.key}' say the same thing.",
                hint=f"leave '{NULL_LITERAL.key}' out and name its text in '{NULL_LITERALS.key}', too",
            )
        literal = values.get(NULL_LITERAL)
        iso = values.get(TIMESTAMP_FORMAT) == "ISO-8601"
        for column in table.columns:
            if column.name not in table.partition_keys:
                _check_type(column.type, column.name, nested=False)
        return CsvFormat(
            dialect=CsvDialect(
                delimiter=values.get(FIELD_DELIMITER),
                quote=None if values.get(DISABLE_QUOTE) else values.get(QUOTE_CHARACTER),
                escape=values.get(ESCAPE_CHARACTER),
                comments=values.get(ALLOW_COMMENTS),
            ),
            null_literals=values.get(NULL_LITERALS) if literal is None else (literal,),
            array_delimiter=values.get(ARRAY_DELIMITER),
            ignore_parse_errors=values.get(IGNORE_PARSE_ERRORS),
            header=values.get(HEADER),
            scientific=values.get(SCIENTIFIC),
            texts=TextDialect.CSV_ISO if iso else TextDialect.CSV,
            inferred=table.option("path") if values.get(COLUMNS_INFERRED) else None,
        )


def _check_type(type_: LogicalType, name: str, nested: bool) -> None:
    match type_:
        case MapType() | MultisetType() | RawType():
            raise BindError("unsupported-type", f"Unsupported type '{type_}' for field '{name}'.")
        case ArrayType() | RowType() if nested:
            raise BindError("unsupported-type", f"Only simple types are supported in the nested field '{name}' of csv.")
        case ArrayType(element=element):
            _check_type(element, name, nested=True)
        case RowType(fields=fields):
            for field in fields:
                _check_type(field.type, f"{name}.{field.name}", nested=True)
