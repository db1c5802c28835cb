"""The ``json`` format: one object a line; its options."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flowsql_connectors.formats.format import (
    DecodeContext,
    Decoder,
    EncodeContext,
    FileFormat,
    FormatFactory,
    MessageDecoder,
    MessageEncoder,
)
from flowsql_connectors.formats.messages.lines import EmptyMessage, LineMessages
from flowsql_connectors.formats.text_values import TextDialect
from flowsql_connectors.options import (
    COLUMNS_INFERRED,
    ConnectorOption,
    OptionSet,
    OptionValues,
    parse_boolean,
    parse_choice,
)
from flowsql_core.errors import BindError, NotSupportedYetError
from flowsql_core.graph.specs import TableSpec
from flowsql_core.record import record
from flowsql_core.types.logical import (
    ArrayType,
    CharacterType,
    LogicalType,
    MapType,
    MultisetType,
    RowType,
    Schema,
)

if TYPE_CHECKING:
    from flowsql_connectors.formats.json_encode import JsonEncoder

FAIL_ON_MISSING = ConnectorOption(
    "json.fail-on-missing-field", parse_boolean, False, "Whether an object must hold every field."
)
JSON_PARSER = ConnectorOption(
    "json.decode.json-parser.enabled", parse_boolean, True, "Which of Flink's two parsers reads; only true."
)


class JsonOptions:
    """Options that all formats made of JSON have, under the name of a format."""

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix
        self.ignore_parse_errors = ConnectorOption(
            f"{prefix}.ignore-parse-errors",
            parse_boolean,
            False,
            "NULL for fields that cannot be read, no row for such lines.",
        )
        self.timestamp_format = ConnectorOption(
            f"{prefix}.timestamp-format.standard",
            parse_choice("SQL", "ISO-8601"),
            "SQL",
            "SQL: with a blank; ISO-8601: with T.",
        )
        self.null_key_mode = ConnectorOption(
            f"{prefix}.map-null-key.mode",
            parse_choice("FAIL", "DROP", "LITERAL"),
            "FAIL",
            "What a NULL map key does when written; FlowSQL makes no maps with such keys, in no mode.",
        )
        self.null_key_literal: ConnectorOption[str] = ConnectorOption(
            f"{prefix}.map-null-key.literal", str, "null", "The key that stands for NULL in mode LITERAL."
        )
        self.plain_decimals = ConnectorOption(
            f"{prefix}.encode.decimal-as-plain-number",
            parse_boolean,
            False,
            "Whether 0.00000001 is not written as 1E-8.",
        )
        self.ignore_nulls = ConnectorOption(
            f"{prefix}.encode.ignore-null-fields",
            parse_boolean,
            False,
            "Whether NULL fields are left out when written.",
        )

    def all(self) -> tuple[ConnectorOption[Any], ...]:
        """Every one of them."""
        return (
            self.ignore_parse_errors,
            self.timestamp_format,
            self.null_key_mode,
            self.null_key_literal,
            self.plain_decimals,
            self.ignore_nulls,
        )

    def format(self, values: OptionValues, table: TableSpec, fail_on_missing: bool = False) -> JsonFormat:
        """The rules that a table's options ask for.

        Raises:
            BindError: the table has a map whose keys are no texts.
        """
        for column in table.columns:
            _check_keys(column.type)
        iso = values.get(self.timestamp_format) == "ISO-8601"
        return JsonFormat(
            fail_on_missing=fail_on_missing,
            ignore_parse_errors=values.get(self.ignore_parse_errors),
            dialect=TextDialect.JSON_ISO if iso else TextDialect.JSON_SQL,
            plain_decimals=values.get(self.plain_decimals),
            ignore_nulls=values.get(self.ignore_nulls),
            prefix=self.prefix,
            inferred=table.option("path") if values.get(COLUMNS_INFERRED) else None,
        )


_JSON = JsonOptions("json")
TIMESTAMP_FORMAT = _JSON.timestamp_format
_OPTIONS = OptionSet(optional=(FAIL_ON_MISSING, *_JSON.all(), JSON_PARSER))


@record
class JsonFormat(FileFormat):
    """A json format with its options; ``prefix``: the name of the format in their keys."""

    fail_on_missing: bool
    ignore_parse_errors: bool
    dialect: TextDialect
    plain_decimals: bool
    ignore_nulls: bool
    prefix: str = "json"
    #: Where the files are whose types a sample told: columns take nothing else, and errors tell how to declare them.
    inferred: str | None = None

    identifier = "json"

    def decoder(self, context: DecodeContext) -> Decoder:
        """A decoder of byte ranges."""
        from flowsql_connectors.formats.json_decode import JsonDecoder

        return JsonDecoder(self, context)

    def encoder(self, columns: Schema) -> JsonEncoder:
        """An encoder of one object a line."""
        from flowsql_connectors.formats.json_encode import JsonEncoder

        return JsonEncoder(self, columns)

    def message_decoder(self, context: DecodeContext) -> MessageDecoder:
        """An object, or an array of them, a message."""
        from flowsql_connectors.formats.messages.objects import ObjectMessages, is_flat

        lines = LineMessages(self.decoder, context, EmptyMessage.NOTHING, newline=" ")
        wanted = tuple(context.columns[index] for index in context.projection)
        # The kernel does not tell what is missing.
        if self.fail_on_missing or context.metadata or not all(is_flat(column.type) for column in wanted):
            return lines
        return ObjectMessages(wanted, self.dialect, lines)

    def message_encoder(self, columns: Schema, context: EncodeContext | None = None) -> MessageEncoder:
        """An object a message."""
        from flowsql_connectors.formats.json_encode import ObjectMessageEncoder

        return ObjectMessageEncoder(self.encoder(columns))


class JsonFormatFactory(FormatFactory):
    """Makes json formats."""

    def options(self) -> OptionSet:
        """The ``json.*`` options."""
        return _OPTIONS

    def create(self, values: OptionValues, table: TableSpec) -> FileFormat:
        """The format."""
        if values.get(FAIL_ON_MISSING) and values.get(_JSON.ignore_parse_errors):
            raise BindError(
                "invalid-option-value",
                "fail-on-missing-field and ignore-parse-errors shouldn't both be true.",
            )
        if not values.get(JSON_PARSER):
            raise NotSupportedYetError(f"'{JSON_PARSER.key}' = 'false'")
        return _JSON.format(values, table, values.get(FAIL_ON_MISSING))


def _check_keys(type_: LogicalType) -> None:
    """Keys of objects are texts."""
    key: LogicalType | None = None
    below: tuple[LogicalType, ...] = ()
    match type_:
        case MapType(value=value):
            key, below = type_.key, (value,)
        case MultisetType(element=element):
            key = element
        case ArrayType(element=element):
            below = (element,)
        case RowType(fields=fields):
            below = tuple(field.type for field in fields)
    if key is not None and not isinstance(key, CharacterType):
        raise BindError(
            "unsupported-type",
            f"JSON format doesn't support non-string as key type of map. The type is: {type_}",
        )
    for part in below:
        _check_keys(part)
