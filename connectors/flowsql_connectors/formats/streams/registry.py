"""Format name -> factory, for the files of DataStreams: formats of their own, then those of tables."""

from __future__ import annotations

from importlib import import_module
from typing import Final

from flowsql_connectors.formats.format import FormatFactory
from flowsql_connectors.formats.registry import format_factory

CSV_SCHEMA: Final = "csv-schema"

_FACTORIES: Final = {
    CSV_SCHEMA: "flowsql_connectors.formats.streams.csv_schema:CsvSchemaFormatFactory",
}


def stream_format_factory(identifier: str) -> FormatFactory:
    """The factory of a format.

    Raises:
        BindError: there is none.
    """
    if identifier not in _FACTORIES:
        return format_factory(identifier)
    module, _, name = _FACTORIES[identifier].partition(":")
    factory = getattr(import_module(module), name)()
    assert isinstance(factory, FormatFactory)
    return factory
