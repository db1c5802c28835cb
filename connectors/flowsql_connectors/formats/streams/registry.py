"""Format name -> factory, for the files of DataStreams: formats of their own, then those of tables."""

from __future__ import annotations

from importlib import import_module
from typing import Final

from flowsql_connectors.formats.format import FormatFactory
from flowsql_connectors.formats.registry import format_factory

AVRO_RECORDS: Final = "avro-records"
CSV_SCHEMA: Final = "csv-schema"
PARQUET_RECORDS: Final = "parquet-records"

_FACTORIES: Final = {
    AVRO_RECORDS: "flowsql_connectors.formats.streams.avro_records:AvroRecordsFactory",
    CSV_SCHEMA: "flowsql_connectors.formats.streams.csv_schema:CsvSchemaFormatFactory",
    PARQUET_RECORDS: "flowsql_connectors.formats.streams.parquet_records:ParquetRecordsFactory",
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
