"""Format name -> factory, imported on use.

Packages offer formats under the entry point group ``flowsql.formats``: the identifier leads to a ``FormatFactory``.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

from flowsql_connectors.formats.format import FormatFactory, unknown_format
from flowsql_core.errors import BindError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoints

ENTRY_POINT_GROUP: Final = "flowsql.formats"

_FACTORIES: Final = {
    "avro": "flowsql_connectors.formats.avro.factory:AvroFormatFactory",
    "avro-confluent": "flowsql_connectors.formats.avro.confluent.factory:ConfluentFormatFactory",
    "canal-json": "flowsql_connectors.formats.change.factory:canal",
    "changelog-csv": "flowsql_connectors.formats.messages.changelog_csv:ChangelogCsvFormatFactory",
    "csv": "flowsql_connectors.formats.csv:CsvFormatFactory",
    "debezium-avro-confluent": "flowsql_connectors.formats.avro.confluent.debezium:DebeziumAvroFormatFactory",
    "debezium-json": "flowsql_connectors.formats.change.factory:debezium",
    "json": "flowsql_connectors.formats.json:JsonFormatFactory",
    "maxwell-json": "flowsql_connectors.formats.change.factory:maxwell",
    "ogg-json": "flowsql_connectors.formats.change.factory:ogg",
    "orc": "flowsql_connectors.formats.columnar.orc:OrcFormatFactory",
    "parquet": "flowsql_connectors.formats.parquet:ParquetFormatFactory",
    "protobuf": "flowsql_connectors.formats.protobuf.factory:ProtobufFormatFactory",
    "raw": "flowsql_connectors.formats.raw:RawFormatFactory",
}


def identifiers() -> list[str]:
    """Every format that ``'format' = '...'`` may name, sorted."""
    return sorted({*_FACTORIES, *(point.name for point in _offered())})


def format_factory(identifier: str) -> FormatFactory:
    """The factory of a format; BindError in Flink's words for an unknown one."""
    if identifier not in _FACTORIES:
        return _of_a_package(identifier)
    module, _, name = _FACTORIES[identifier].partition(":")
    factory = getattr(import_module(module), name)()
    assert isinstance(factory, FormatFactory)
    return factory


def _of_a_package(identifier: str) -> FormatFactory:
    point = next((point for point in _offered() if point.name == identifier), None)
    if point is None:
        raise unknown_format(identifier, identifiers())
    kind = point.load()
    if not (isinstance(kind, type) and issubclass(kind, FormatFactory)):
        raise BindError("bad-format", f"Entry point '{point.value}' is no FormatFactory.")
    return kind()


def _offered() -> EntryPoints:
    """Formats of other packages. Looked for when a name is not built in: the search is slow."""
    from importlib.metadata import entry_points

    return entry_points(group=ENTRY_POINT_GROUP)
