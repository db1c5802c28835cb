"""Format name -> factory, imported on use; and the formats that are known by name only."""

from __future__ import annotations

from importlib import import_module
from typing import Final

from flowsql_connectors.formats.format import FormatFactory, unknown_format
from flowsql_core.errors import NotSupportedYetError

_FACTORIES: Final = {
    "canal-json": "flowsql_connectors.formats.change.factory:canal",
    "csv": "flowsql_connectors.formats.csv:CsvFormatFactory",
    "debezium-json": "flowsql_connectors.formats.change.factory:debezium",
    "json": "flowsql_connectors.formats.json:JsonFormatFactory",
    "maxwell-json": "flowsql_connectors.formats.change.factory:maxwell",
    "ogg-json": "flowsql_connectors.formats.change.factory:ogg",
    "parquet": "flowsql_connectors.formats.parquet:ParquetFormatFactory",
    "raw": "flowsql_connectors.formats.raw:RawFormatFactory",
}

_NOT_YET: Final = frozenset({"avro", "orc", "protobuf", "avro-confluent", "debezium-avro-confluent"})


def identifiers() -> list[str]:
    """Every format that ``'format' = '...'`` may name, sorted."""
    return sorted(_FACTORIES)


def format_factory(identifier: str) -> FormatFactory:
    """The factory of a format; BindError in Flink's words for an unknown one."""
    if identifier in _NOT_YET:
        raise NotSupportedYetError(f"format '{identifier}'")
    if identifier not in _FACTORIES:
        raise unknown_format(identifier, list(_FACTORIES))
    module, _, name = _FACTORIES[identifier].partition(":")
    factory = getattr(import_module(module), name)()
    assert isinstance(factory, FormatFactory)
    return factory
