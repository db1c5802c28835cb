"""The ``protobuf`` format and its options."""

from __future__ import annotations

from collections.abc import Mapping

from flowsql_connectors.formats.format import (
    DecodeContext,
    EncodeContext,
    FileFormat,
    FormatFactory,
    MessageDecoder,
    MessageEncoder,
)
from flowsql_connectors.formats.protobuf.descriptors import DESCRIPTOR_FILES
from flowsql_connectors.options import ConnectorOption, OptionSet, OptionValues, optional, parse_boolean
from flowsql_core.graph.specs import TableSpec
from flowsql_core.record import record
from flowsql_core.types.logical import Field, RowType, Schema

MESSAGE_CLASS: ConnectorOption[str] = ConnectorOption(
    "protobuf.message-class-name", str, "", "The type of the messages, as .proto, Java or Python call it."
)
FILES: ConnectorOption[str | None] = ConnectorOption(
    DESCRIPTOR_FILES.key, optional(str), None, "FlowSQL: instead of the session's option of this name."
)
IGNORE_ERRORS = ConnectorOption(
    "protobuf.ignore-parse-errors", parse_boolean, False, "Whether messages that cannot be read are left out."
)
READ_DEFAULTS = ConnectorOption(
    "protobuf.read-default-values",
    parse_boolean,
    False,
    "Whether fields that are not there have their defaults instead of NULL; scalars of proto3 always have.",
)
NULL_LITERAL: ConnectorOption[str] = ConnectorOption(
    "protobuf.write-null-string-literal", str, "", "What is written for NULL texts in arrays and maps."
)
_OPTIONS = OptionSet(required=(MESSAGE_CLASS,), optional=(FILES, IGNORE_ERRORS, READ_DEFAULTS, NULL_LITERAL))


@record
class ProtobufFormat(FileFormat):
    """A protobuf format with its options; ``files``: None where the session says which."""

    message_class: str
    files: str | None
    ignore_errors: bool
    read_defaults: bool
    null_literal: str

    identifier = "protobuf"

    def check(self, columns: Schema, configuration: Mapping[str, str]) -> None:
        """All columns are fields of the type of messages."""
        from flowsql_connectors.formats.protobuf.descriptors import message_type
        from flowsql_connectors.formats.protobuf.places import places_of

        files = _files(self.files, configuration.get(DESCRIPTOR_FILES.key))
        places_of(message_type(self.message_class, files), _row(columns))

    def message_decoder(self, context: DecodeContext) -> MessageDecoder:
        """A decoder of messages of the type."""
        from flowsql_connectors.formats.protobuf.decode import ProtobufDecoder
        from flowsql_connectors.formats.protobuf.descriptors import message_type

        files = _files(self.files, context.configuration.get(DESCRIPTOR_FILES.key))
        wanted = _row(tuple(context.columns[index] for index in context.projection))
        return ProtobufDecoder(
            message_type(self.message_class, files), wanted, self.read_defaults, self.ignore_errors, context.lose
        )

    def message_encoder(self, columns: Schema, context: EncodeContext | None = None) -> MessageEncoder:
        """An encoder of messages of the type."""
        from flowsql_connectors.formats.protobuf.descriptors import message_type
        from flowsql_connectors.formats.protobuf.encode import ProtobufEncoder

        files = _files(self.files, None if context is None else context.configuration.get(DESCRIPTOR_FILES.key))
        return ProtobufEncoder(message_type(self.message_class, files), _row(columns), self.null_literal)


class ProtobufFormatFactory(FormatFactory):
    """Makes protobuf formats."""

    def options(self) -> OptionSet:
        """The ``protobuf.*`` options."""
        return _OPTIONS

    def create(self, values: OptionValues, table: TableSpec) -> FileFormat:
        """The format."""
        return ProtobufFormat(
            values.get(MESSAGE_CLASS),
            values.get(FILES),
            values.get(IGNORE_ERRORS),
            values.get(READ_DEFAULTS),
            values.get(NULL_LITERAL),
        )


def _files(own: str | None, of_session: str | None) -> str:
    return own if own is not None else of_session or DESCRIPTOR_FILES.default


def _row(columns: Schema) -> RowType:
    return RowType(fields=tuple(Field(column.name, column.type) for column in columns), nullable=False)
