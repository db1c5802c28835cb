"""The ``avro-confluent`` format and its options."""

from __future__ import annotations

from typing import Final

import orjson

from flowsql_connectors.formats.avro.confluent.client import RegistryAddress
from flowsql_connectors.formats.avro.confluent.declared import check_declared
from flowsql_connectors.formats.avro.confluent.options import RegistryOptions
from flowsql_connectors.formats.avro.derived import derived_schema
from flowsql_connectors.formats.avro.schema import parse_schema
from flowsql_connectors.formats.format import (
    DecodeContext,
    EncodeContext,
    FileFormat,
    FormatFactory,
    MessageDecoder,
    MessageEncoder,
)
from flowsql_connectors.options import OptionSet, OptionValues
from flowsql_core.errors import BindError
from flowsql_core.graph.specs import TableSpec
from flowsql_core.record import record
from flowsql_core.types.logical import Schema

IDENTIFIER: Final = "avro-confluent"
_OPTIONS: Final = RegistryOptions(IDENTIFIER)


@record
class ConfluentFormat(FileFormat):
    """Avro with a schema registry."""

    address: RegistryAddress
    subject: str | None
    schema: str | None

    identifier = IDENTIFIER

    def message_decoder(self, context: DecodeContext) -> MessageDecoder:
        """A decoder of messages of any schema that the registry knows."""
        from flowsql_connectors.formats.avro.confluent.client import SchemaRegistry
        from flowsql_connectors.formats.avro.confluent.messages import RegistryDecoder
        from flowsql_connectors.formats.avro.files import row_of
        from flowsql_connectors.formats.avro.resolved import ReaderRules, rules_of

        rules = ReaderRules({}, {}) if self.schema is None else rules_of(parse_schema(self.schema))
        wanted = row_of(tuple(context.columns[index] for index in context.projection))
        return RegistryDecoder(SchemaRegistry(self.address), wanted, rules)

    def message_encoder(self, columns: Schema, context: EncodeContext | None = None) -> MessageEncoder:
        """An encoder of messages in one schema.

        Raises:
            BindError: nobody names a subject; the schema has a type that is not written (fixed).
        """
        from flowsql_connectors.formats.avro.confluent.client import SchemaRegistry
        from flowsql_connectors.formats.avro.confluent.messages import RegistryEncoder
        from flowsql_connectors.formats.avro.files import row_of

        name = subject_of(_OPTIONS, self.subject, None if context is None else context.subject)
        schema = orjson.dumps(derived_schema(columns, legacy=True)) if self.schema is None else self.schema.encode()
        return RegistryEncoder(SchemaRegistry(self.address), name, schema, row_of(columns))


class ConfluentFormatFactory(FormatFactory):
    """Makes avro-confluent formats."""

    def options(self) -> OptionSet:
        """The ``avro-confluent.*`` options."""
        return _OPTIONS.all()

    def create(self, values: OptionValues, table: TableSpec) -> FileFormat:
        """The format.

        Raises:
            ConnectorError: the explicit schema is none.
            BindError: it is not the one of the columns, or Avro has no type for one of them.
        """
        schema = values.get(_OPTIONS.schema)
        if schema is not None:
            said = f"Schema provided for '{IDENTIFIER}' format does not match the table schema"
            check_declared(schema, table.columns, said)
        derived_schema(table.columns, legacy=True)
        return ConfluentFormat(_OPTIONS.address(values), values.get(_OPTIONS.subject), schema)


def subject_of(options: RegistryOptions, own: str | None, usual: str | None) -> str:
    """The subject of a table: its own, or the connector's usual one.

    Raises:
        BindError: there is none.
    """
    found = own or usual
    if found is None:
        raise BindError(
            "missing-option", f"Option '{options.subject.key}' is required for serialization with '{options.prefix}'."
        )
    return found
