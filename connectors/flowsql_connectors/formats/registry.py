"""Format name -> factory, imported on use; and the formats that are known by name only."""

from __future__ import annotations

from importlib import import_module
from typing import Final

from flowsql_connectors.formats.format import (
    DecodeContext,
    Decoder,
    FileEncoder,
    FileFormat,
    FormatFactory,
    unknown_format,
)
from flowsql_connectors.options import ConnectorOption, OptionSet, OptionValues, optional
from flowsql_core.errors import NotSupportedYetError
from flowsql_core.graph.specs import TableSpec
from flowsql_core.row import ALL_CHANGES, ChangelogMode
from flowsql_core.types.logical import Schema

_FACTORIES: Final = {
    "csv": "flowsql_connectors.formats.csv:CsvFormatFactory",
    "json": "flowsql_connectors.formats.json:JsonFormatFactory",
    "parquet": "flowsql_connectors.formats.parquet:ParquetFormatFactory",
}

#: Change data capture: planned and explained with all change kinds, not read yet. Options by format.
_CHANGE_FORMATS: Final = {
    "debezium-json": (
        "ignore-parse-errors", "schema-include", "timestamp-format.standard", "map-null-key.mode",
        "map-null-key.literal", "encode.decimal-as-plain-number", "encode.ignore-null-fields",
    ),
    "canal-json": (
        "ignore-parse-errors", "database.include", "table.include", "timestamp-format.standard",
        "map-null-key.mode", "map-null-key.literal", "encode.decimal-as-plain-number", "encode.ignore-null-fields",
    ),
    "maxwell-json": (
        "ignore-parse-errors", "timestamp-format.standard", "map-null-key.mode", "map-null-key.literal",
        "encode.decimal-as-plain-number", "encode.ignore-null-fields",
    ),
    "ogg-json": (
        "ignore-parse-errors", "timestamp-format.standard", "map-null-key.mode", "map-null-key.literal",
        "encode.decimal-as-plain-number", "encode.ignore-null-fields",
    ),
}  # fmt: skip
_NOT_YET: Final = frozenset({"avro", "orc", "raw", "protobuf", "avro-confluent", "debezium-avro-confluent"})


class UnreadableFormat(FileFormat):
    """A change format: says its changelog mode, refuses to read or write."""

    identifier = "unreadable"

    def __init__(self, name: str) -> None:
        self._name = name

    @property
    def changelog_mode(self) -> ChangelogMode:
        """All four kinds."""
        return ALL_CHANGES

    @property
    def refusal(self) -> str:
        """Its name."""
        return f"format '{self._name}'"

    def decoder(self, context: DecodeContext) -> Decoder:
        """Refuses."""
        raise NotSupportedYetError(self.refusal)

    def encoder(self, columns: Schema) -> FileEncoder:
        """Refuses."""
        raise NotSupportedYetError(self.refusal)


class _ChangeFormatFactory(FormatFactory):
    def __init__(self, name: str) -> None:
        self._name = name

    def options(self) -> OptionSet:
        keys = _CHANGE_FORMATS[self._name]
        return OptionSet(
            optional=tuple(ConnectorOption(f"{self._name}.{key}", optional(str), None, "As in Flink.") for key in keys)
        )

    def create(self, values: OptionValues, table: TableSpec) -> FileFormat:
        return UnreadableFormat(self._name)


def format_factory(identifier: str) -> FormatFactory:
    """The factory of a format; BindError in Flink's words for an unknown one."""
    if identifier in _CHANGE_FORMATS:
        return _ChangeFormatFactory(identifier)
    if identifier in _NOT_YET:
        raise NotSupportedYetError(f"format '{identifier}'")
    if identifier not in _FACTORIES:
        raise unknown_format(identifier, [*_FACTORIES, *_CHANGE_FORMATS])
    module, _, name = _FACTORIES[identifier].partition(":")
    factory = getattr(import_module(module), name)()
    assert isinstance(factory, FormatFactory)
    return factory
