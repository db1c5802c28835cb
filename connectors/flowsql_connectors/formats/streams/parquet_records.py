"""Parquet files of DataStreams: the ``parquet`` format of tables, with what only its readers and writers there say."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from flowsql_connectors.formats.format import FileFormat, FormatFactory
from flowsql_connectors.formats.parquet import ParquetFormat, ParquetFormatFactory
from flowsql_connectors.options import ConnectorOption, OptionSet, OptionValues, optional, parse_boolean
from flowsql_core.graph.specs import TableSpec

ANY_CASE = ConnectorOption(
    "parquet.any-case", parse_boolean, False, "Whether names of columns are found in any case of letters."
)
OWN_UNITS = ConnectorOption(
    "parquet.own-units", parse_boolean, False, "Whether each INT64 timestamp has the unit of its column's precision."
)

AVRO_SCHEMA: ConnectorOption[str | None] = ConnectorOption(
    "parquet.avro.schema", optional(str), None, "The schema of records, as JSON, which files tell readers of Avro."
)

_OWN: Final = OptionSet(optional=(ANY_CASE, OWN_UNITS, AVRO_SCHEMA))


class ParquetRecordsFactory(FormatFactory):
    """Makes parquet formats."""

    def options(self) -> OptionSet:
        """The ``parquet.*`` options."""
        return ParquetFormatFactory().options().merged(_OWN)

    def create(self, values: OptionValues, table: TableSpec) -> FileFormat:
        """The format."""
        made = ParquetFormatFactory().create(values, table)
        assert isinstance(made, ParquetFormat)
        unit = "own" if values.get(OWN_UNITS) else made.timestamp_unit
        return replace(made, any_case=values.get(ANY_CASE), timestamp_unit=unit, avro_schema=values.get(AVRO_SCHEMA))
