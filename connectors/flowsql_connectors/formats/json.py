"""The ``json`` format: one object a line; its options."""

from __future__ import annotations

from flowsql_connectors.formats.format import DecodeContext, Decoder, FileEncoder, FileFormat, FormatFactory
from flowsql_connectors.formats.text_values import TextDialect
from flowsql_connectors.options import ConnectorOption, OptionSet, OptionValues, parse_boolean, parse_choice
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

FAIL_ON_MISSING = ConnectorOption(
    "json.fail-on-missing-field", parse_boolean, False, "Whether an object must hold every field."
)
IGNORE_PARSE_ERRORS = ConnectorOption(
    "json.ignore-parse-errors", parse_boolean, False, "NULL for fields that cannot be read, no row for such lines."
)
TIMESTAMP_FORMAT = ConnectorOption(
    "json.timestamp-format.standard", parse_choice("SQL", "ISO-8601"), "SQL", "SQL: with a blank; ISO-8601: with T."
)
NULL_KEY_MODE = ConnectorOption(
    "json.map-null-key.mode", parse_choice("FAIL", "DROP", "LITERAL"), "FAIL", "What a NULL map key does when written."
)
NULL_KEY_LITERAL: ConnectorOption[str] = ConnectorOption(
    "json.map-null-key.literal", str, "null", "The key that stands for NULL in mode LITERAL."
)
PLAIN_DECIMALS = ConnectorOption(
    "json.encode.decimal-as-plain-number", parse_boolean, False, "Whether 0.00000001 is not written as 1E-8."
)
IGNORE_NULLS = ConnectorOption(
    "json.encode.ignore-null-fields", parse_boolean, False, "Whether NULL fields are left out when written."
)
JSON_PARSER = ConnectorOption(
    "json.decode.json-parser.enabled", parse_boolean, True, "Which of Flink's two parsers reads; only true."
)

_OPTIONS = OptionSet(
    optional=(
        FAIL_ON_MISSING,
        IGNORE_PARSE_ERRORS,
        TIMESTAMP_FORMAT,
        NULL_KEY_MODE,
        NULL_KEY_LITERAL,
        PLAIN_DECIMALS,
        IGNORE_NULLS,
        JSON_PARSER,
    )
)


@record
class JsonFormat(FileFormat):
    """A json format with its options."""

    fail_on_missing: bool
    ignore_parse_errors: bool
    dialect: TextDialect
    plain_decimals: bool
    ignore_nulls: bool

    identifier = "json"

    def decoder(self, context: DecodeContext) -> Decoder:
        """A decoder of byte ranges."""
        from flowsql_connectors.formats.json_decode import JsonDecoder

        return JsonDecoder(self, context)

    def encoder(self, columns: Schema) -> FileEncoder:
        """An encoder of one object a line."""
        from flowsql_connectors.formats.json_encode import JsonEncoder

        return JsonEncoder(self, columns)


class JsonFormatFactory(FormatFactory):
    """Makes json formats."""

    def options(self) -> OptionSet:
        """The ``json.*`` options."""
        return _OPTIONS

    def create(self, values: OptionValues, table: TableSpec) -> FileFormat:
        """The format."""
        if values.get(FAIL_ON_MISSING) and values.get(IGNORE_PARSE_ERRORS):
            raise BindError(
                "invalid-option-value",
                "fail-on-missing-field and ignore-parse-errors shouldn't both be true.",
            )
        if not values.get(JSON_PARSER):
            raise NotSupportedYetError(f"'{JSON_PARSER.key}' = 'false'")
        if values.get(NULL_KEY_MODE) != "FAIL":
            # Maps have no NULL keys here, so no mode but the default could ever be told from it.
            raise NotSupportedYetError(f"'{NULL_KEY_MODE.key}' = '{values.get(NULL_KEY_MODE)}'")
        for column in table.columns:
            _check_keys(column.type)
        iso = values.get(TIMESTAMP_FORMAT) == "ISO-8601"
        return JsonFormat(
            fail_on_missing=values.get(FAIL_ON_MISSING),
            ignore_parse_errors=values.get(IGNORE_PARSE_ERRORS),
            dialect=TextDialect.JSON_ISO if iso else TextDialect.JSON_SQL,
            plain_decimals=values.get(PLAIN_DECIMALS),
            ignore_nulls=values.get(IGNORE_NULLS),
        )


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
