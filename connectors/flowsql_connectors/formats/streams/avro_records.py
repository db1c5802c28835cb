"""Avro container files of a schema that a program gives: generic records."""

from __future__ import annotations

from typing import Final

from flowsql_connectors.formats.avro.factory import CODEC
from flowsql_connectors.formats.avro.files import AvroDecoder, AvroEncoder
from flowsql_connectors.formats.avro.generic import columns_of_schema
from flowsql_connectors.formats.avro.schema import parse_schema
from flowsql_connectors.formats.format import DecodeContext, Decoder, FileEncoder, FileFormat, FormatFactory
from flowsql_connectors.options import ConnectorOption, OptionSet, OptionValues
from flowsql_core.graph.specs import TableSpec
from flowsql_core.record import record
from flowsql_core.types.logical import Schema

SCHEMA = ConnectorOption("avro.schema", str, "", "The schema of records, as JSON.")
_OPTIONS: Final = OptionSet(required=(SCHEMA,), optional=(CODEC,))


@record
class AvroRecords(FileFormat):
    """Container files; ``schema``: of the records, as JSON."""

    schema: str
    codec: str

    identifier = "avro-records"

    @property
    def grows_by_lines(self) -> bool:
        """Blocks have no lines."""
        return False

    def decoder(self, context: DecodeContext) -> Decoder:
        """A decoder of blocks."""
        schema = parse_schema(self.schema)
        columns = columns_of_schema(schema)
        return AvroDecoder(tuple(columns[index] for index in context.projection), context.batch_rows, schema)

    def encoder(self, columns: Schema) -> FileEncoder:
        """An encoder of container files."""
        return AvroEncoder(columns_of_schema(parse_schema(self.schema)), self.schema.encode(), self.codec, generic=True)


class AvroRecordsFactory(FormatFactory):
    """Makes :class:`AvroRecords`."""

    def options(self) -> OptionSet:
        """The schema, and how blocks are compressed."""
        return _OPTIONS

    def create(self, values: OptionValues, table: TableSpec) -> FileFormat:
        """The format; blocks are not compressed unless told so, as in Flink."""
        return AvroRecords(values.get(SCHEMA), values.get(CODEC) or "null")
