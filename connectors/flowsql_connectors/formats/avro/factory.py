"""The ``avro`` format: container files, and records as messages; its options."""

from __future__ import annotations

from flowsql_connectors.formats.avro.container import CODECS
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
from flowsql_connectors.options import (
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
from flowsql_core.types.logical import Schema

CODEC: ConnectorOption[str | None] = ConnectorOption(
    "avro.codec", optional(parse_choice(*CODECS)), None, f"Of files: how blocks are compressed: {', '.join(CODECS)}."
)
ENCODING = ConnectorOption(
    "avro.encoding", parse_choice("binary", "json"), "binary", "Of messages: Avro's binary encoding or its JSON one."
)
LEGACY_TIMESTAMPS = ConnectorOption(
    "avro.timestamp_mapping.legacy",
    parse_boolean,
    True,
    "Whether TIMESTAMP is what Avro calls timestamp, an instant; else it is a local-timestamp.",
)
_OPTIONS = OptionSet(optional=(CODEC, ENCODING, LEGACY_TIMESTAMPS))


@record
class AvroFormat(FileFormat):
    """An avro format with its options; ``codec`` is None unless the table gives one."""

    codec: str | None
    encoding: str
    legacy: bool

    identifier = "avro"

    def decoder(self, context: DecodeContext) -> Decoder:
        """A decoder of blocks."""
        from flowsql_connectors.formats.avro.derived import derived_schema
        from flowsql_connectors.formats.avro.files import AvroDecoder

        self._only_binary()
        # What Avro cannot hold at all is refused before a file is opened, as in Flink.
        derived_schema(context.columns, self.legacy)
        return AvroDecoder(tuple(context.columns[index] for index in context.projection), context.batch_rows)

    def encoder(self, columns: Schema) -> FileEncoder:
        """An encoder of container files."""
        import orjson

        from flowsql_connectors.formats.avro.derived import derived_schema
        from flowsql_connectors.formats.avro.files import AvroEncoder

        self._only_binary()
        return AvroEncoder(columns, orjson.dumps(derived_schema(columns, self.legacy)), self.codec or "snappy")

    def message_decoder(self, context: DecodeContext) -> MessageDecoder:
        """A decoder of records."""
        from flowsql_connectors.formats.avro.messages import AvroMessageDecoder

        self._no_codec()
        if self.encoding == "json":
            from flowsql_connectors.formats.avro.json_messages import AvroJsonDecoder

            return AvroJsonDecoder(context, self.legacy)
        return AvroMessageDecoder(context, self.legacy)

    def message_encoder(self, columns: Schema, context: EncodeContext | None = None) -> MessageEncoder:
        """An encoder of records."""
        from flowsql_connectors.formats.avro.messages import AvroMessageEncoder

        self._no_codec()
        if self.encoding == "json":
            from flowsql_connectors.formats.avro.json_messages import AvroJsonEncoder

            return AvroJsonEncoder(columns, self.legacy)
        return AvroMessageEncoder(columns, self.legacy)

    def _only_binary(self) -> None:
        if self.encoding != "binary":
            raise BindError(
                "invalid-option-value",
                f"'{ENCODING.key}' = '{self.encoding}' is for messages: container files are binary.",
            )

    def _no_codec(self) -> None:
        if self.codec is not None:
            raise BindError(
                "invalid-option-value", f"'{CODEC.key}' is for files: messages are not compressed one by one."
            )


class AvroFormatFactory(FormatFactory):
    """Makes avro formats."""

    def options(self) -> OptionSet:
        """The ``avro.*`` options."""
        return _OPTIONS

    def create(self, values: OptionValues, table: TableSpec) -> FileFormat:
        """The format."""
        return AvroFormat(values.get(CODEC), values.get(ENCODING), values.get(LEGACY_TIMESTAMPS))
