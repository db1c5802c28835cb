"""Change formats and their options."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from flowsql_connectors.formats.change.styles import CANAL, DEBEZIUM, MAXWELL, OGG, ChangeStyle
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
from flowsql_connectors.formats.json import JsonFormat, JsonOptions
from flowsql_connectors.formats.messages.lines import EmptyMessage, LineMessageEncoder, LineMessages
from flowsql_connectors.options import ConnectorOption, OptionSet, OptionValues, optional, parse_boolean
from flowsql_core.errors import BindError
from flowsql_core.graph.specs import TableSpec
from flowsql_core.record import record
from flowsql_core.row import ALL_CHANGES, ChangelogMode
from flowsql_core.types.logical import LogicalType, Schema


@record
class ChangeFormat(FileFormat):
    """A change format with its options.

    ``schema_include``: each event is the payload of an object that holds its schema, too. ``patterns``: fields whose
    texts must match as a whole; other lines belong to other tables.
    """

    style: ChangeStyle
    json: JsonFormat
    schema_include: bool = False
    patterns: tuple[tuple[str, re.Pattern[str]], ...] = ()

    @property
    def identifier(self) -> str:  # type: ignore[override]
        """That of its style."""
        return self.style.identifier

    @property
    def changelog_mode(self) -> ChangelogMode:
        """All four kinds."""
        return ALL_CHANGES

    def metadata_columns(self) -> Mapping[str, LogicalType]:
        """What events tell of themselves."""
        return {key: field.type for key, field in self.style.metadata.items()}

    def decoder(self, context: DecodeContext) -> Decoder:
        """A decoder of byte ranges."""
        from flowsql_connectors.formats.change.decode import ChangeDecoder

        return ChangeDecoder(self, context)

    def encoder(self, columns: Schema) -> FileEncoder:
        """An encoder of one event a change.

        Raises:
            BindError: Flink writes no schemas.
        """
        from flowsql_connectors.formats.change.encode import ChangeEncoder

        if self.schema_include:
            raise BindError(
                "invalid-option-value",
                f"{self.style.name} JSON serialization doesn't support '{self.identifier}.schema-include' option been "
                "set to true.",
                hint=f"leave '{self.identifier}.schema-include' out of tables that are written",
            )
        return ChangeEncoder(self, columns)

    def message_decoder(self, context: DecodeContext) -> MessageDecoder:
        """An event a message; those without bytes are tombstones."""
        return LineMessages(self.decoder, context, EmptyMessage.NOTHING, newline=" ")

    def message_encoder(self, columns: Schema, context: EncodeContext | None = None) -> MessageEncoder:
        """An event a message."""
        return LineMessageEncoder(self.encoder(columns))


class ChangeFormatFactory(FormatFactory):
    """Makes formats of one style."""

    def __init__(self, style: ChangeStyle) -> None:
        self._style = style
        self._json = JsonOptions(style.identifier)
        self._schema_include = ConnectorOption(
            f"{style.identifier}.schema-include", parse_boolean, False, "Whether events stand beside their schema."
        )
        self._patterns = {
            field: _pattern_option(f"{style.identifier}.{field}.include", field) for field in ("database", "table")
        }

    def options(self) -> OptionSet:
        """Those of json, and the style's own."""
        own: list[ConnectorOption[Any]] = []
        if self._style.has_schema:
            own.append(self._schema_include)
        if self._style.has_database:
            own += self._patterns.values()
        return OptionSet(optional=(*self._json.all(), *own))

    def create(self, values: OptionValues, table: TableSpec) -> FileFormat:
        """The format."""
        patterns = []
        if self._style.has_database:
            for field, option in self._patterns.items():
                if (pattern := values.get(option)) is not None:
                    patterns.append((field, pattern))
        return ChangeFormat(
            self._style,
            self._json.format(values, table),
            self._style.has_schema and values.get(self._schema_include),
            tuple(patterns),
        )


def _pattern_option(key: str, field: str) -> ConnectorOption[re.Pattern[str] | None]:
    return ConnectorOption(key, optional(_pattern), None, f"Read only events whose {field} matches as a whole.")


def _pattern(text: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except re.error as error:
        raise ValueError(f"expected a regular expression: {error}") from error


def debezium() -> ChangeFormatFactory:
    """``debezium-json``."""
    return ChangeFormatFactory(DEBEZIUM)


def canal() -> ChangeFormatFactory:
    """``canal-json``."""
    return ChangeFormatFactory(CANAL)


def maxwell() -> ChangeFormatFactory:
    """``maxwell-json``."""
    return ChangeFormatFactory(MAXWELL)


def ogg() -> ChangeFormatFactory:
    """``ogg-json``."""
    return ChangeFormatFactory(OGG)
