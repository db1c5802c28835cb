"""The parquet format of DataStream connectors: files are written; the other names are refused where they are used."""

from __future__ import annotations

from typing import Any, Final

from flowsql.common.configuration import Configuration
from flowsql.common.refused import refused_name
from flowsql.common.serialization import BulkWriterFactory, RowDataBulkWriterFactory
from flowsql.table.types import RowType
from flowsql_connectors.formats.parquet import UTC_TIMEZONE, ParquetFormatFactory

_NAMES: Final = frozenset({"AvroParquetReaders", "AvroParquetWriters", "ParquetColumnarRowInputFormat"})

__all__ = sorted({*_NAMES, "ParquetBulkWriters"})


def __getattr__(name: str) -> Any:
    hint = "read or write a table and cross over with to_data_stream and from_data_stream"
    return refused_name(__name__, name, _NAMES, "the parquet format of DataStream connectors", hint)


class ParquetBulkWriters:
    """Writes rows into parquet files."""

    @staticmethod
    def for_row_type(
        row_type: RowType, hadoop_config: Configuration | None = None, utc_timestamp: bool = False
    ) -> BulkWriterFactory:
        """For ``FileSink.for_bulk_format``.

        Args:
            row_type: of the files' rows.
            hadoop_config: ``parquet.*`` options, as the parquet format of tables takes them.
            utc_timestamp: whether a TIMESTAMP is stored as if it was in UTC, not in the machine's zone.

        Raises:
            ValueError: an option that the format does not have.
        """
        if not isinstance(row_type, RowType):
            raise TypeError("row_type must be an instance of RowType")
        options = {} if hadoop_config is None else hadoop_config.to_dict()
        known = {option.key for option in ParquetFormatFactory().options().optional}
        for key in options.keys() - known:
            raise ValueError(f"'{key}' is no option of parquet files; there are {', '.join(sorted(known))}")
        utc = {UTC_TIMEZONE.key: "true" if utc_timestamp else "false"}
        return RowDataBulkWriterFactory({"format": "parquet", **options, **utc}, row_type)
