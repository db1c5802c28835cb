"""The ``raw`` format: each line is the value of the only column, as bytes; its options."""

from __future__ import annotations

import codecs

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
from flowsql_connectors.options import ConnectorOption, OptionSet, OptionValues, parse_choice
from flowsql_core.errors import BindError
from flowsql_core.graph.specs import TableSpec
from flowsql_core.record import record
from flowsql_core.types.logical import (
    BinaryStringType,
    BooleanType,
    CharacterType,
    DoubleType,
    FloatType,
    IntegerType,
    LogicalType,
    Schema,
)


def _charset(text: str) -> str:
    try:
        codecs.lookup(text)
    except LookupError as error:
        raise ValueError(f"Unsupported 'raw.charset' name: {text}.") from error
    return text


CHARSET = ConnectorOption("raw.charset", _charset, "UTF-8", "Character set of texts.")
ENDIANNESS = ConnectorOption(
    "raw.endianness", parse_choice("big-endian", "little-endian"), "big-endian", "Order of the bytes of numbers."
)
_OPTIONS = OptionSet(optional=(CHARSET, ENDIANNESS))


@record
class RawFormat(FileFormat):
    """A raw format with its options."""

    charset: str
    little_endian: bool

    identifier = "raw"

    def decoder(self, context: DecodeContext) -> Decoder:
        """A decoder of byte ranges."""
        from flowsql_connectors.formats.raw_lines import RawDecoder

        return RawDecoder(self, context)

    def encoder(self, columns: Schema) -> FileEncoder:
        """An encoder of one value a line."""
        from flowsql_connectors.formats.raw_lines import RawEncoder

        return RawEncoder(self, columns)

    def message_decoder(self, context: DecodeContext) -> MessageDecoder:
        """A value a message."""
        from flowsql_connectors.formats.messages.raw import RawMessages

        return RawMessages(self, context)

    def message_encoder(self, columns: Schema, context: EncodeContext | None = None) -> MessageEncoder:
        """A value a message."""
        from flowsql_connectors.formats.messages.raw import RawMessageEncoder

        return RawMessageEncoder(self.encoder(columns))


class RawFormatFactory(FormatFactory):
    """Makes raw formats."""

    def options(self) -> OptionSet:
        """The ``raw.*`` options."""
        return _OPTIONS

    def create(self, values: OptionValues, table: TableSpec) -> FileFormat:
        """The format.

        Raises:
            BindError: the table has other columns than one of a type that has a form in bytes.
        """
        if len(table.columns) != 1:
            columns = ", ".join(f"`{column.name}` {column.type}" for column in table.columns)
            raise BindError(
                "unsupported-type",
                "The 'raw' format only supports single physical column. However the defined schema contains multiple "
                f"physical columns: [{columns}]",
                hint="declare one column of STRING or BYTES and take it apart in the query",
            )
        if not _has_bytes(table.columns[0].type):
            raise BindError(
                "unsupported-type",
                f"The 'raw' format doesn't supports '{table.columns[0].type.as_nullable()}' as column type.",
            )
        return RawFormat(values.get(CHARSET), values.get(ENDIANNESS) == "little-endian")


def _has_bytes(type_: LogicalType) -> bool:
    return isinstance(type_, CharacterType | BinaryStringType | BooleanType | IntegerType | FloatType | DoubleType)
