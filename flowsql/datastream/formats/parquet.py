"""The parquet format of DataStream connectors: files of rows, and of generic records of Avro."""

from __future__ import annotations

from typing import Final

from flowsql.common.configuration import Configuration
from flowsql.common.serialization import BulkWriterFactory, RowDataBulkWriterFactory
from flowsql.datastream.connectors.file_system import BulkFormat, FileRecords, StreamFormat
from flowsql.datastream.formats.avro import AvroSchema, generic_records, generic_writer
from flowsql.datastream.formats.row_type import columns_of_type, options_of
from flowsql.table.types import RowType
from flowsql_connectors.filesystem.stream_options import BATCH_ROWS
from flowsql_connectors.formats.parquet import COMPRESSION, INT64_TIMESTAMP, UTC_TIMEZONE, ParquetFormatFactory
from flowsql_connectors.formats.streams.parquet_records import ANY_CASE, AVRO_SCHEMA, OWN_UNITS
from flowsql_connectors.formats.streams.registry import PARQUET_RECORDS

__all__ = ["AvroParquetReaders", "AvroParquetWriters", "ParquetBulkWriters", "ParquetColumnarRowInputFormat"]

#: Files of Avro's records: moments as INT64 in the units that their schema says, as Avro's own writer has them.
_OF_AVRO: Final = {
    "format": PARQUET_RECORDS,
    UTC_TIMEZONE.key: "true",
    INT64_TIMESTAMP.key: "true",
    OWN_UNITS.key: "true",
    COMPRESSION.key: "UNCOMPRESSED",
}


class AvroParquetReaders:
    """Reads parquet files as records of an Avro schema."""

    @staticmethod
    def for_generic_record(schema: AvroSchema) -> StreamFormat:
        """For ``FileSource.for_record_stream_format``: a dict a row, with the fields of the schema.

        Raises:
            NotSupportedYetError: the schema is no record, or holds what no column does.
        """
        return StreamFormat(records=generic_records(_OF_AVRO, schema))


class AvroParquetWriters:
    """Writes records of an Avro schema into parquet files."""

    @staticmethod
    def for_generic_record(schema: AvroSchema) -> BulkWriterFactory:
        """For ``FileSink.for_bulk_format``: dicts with the fields of the schema.

        Raises:
            NotSupportedYetError: the schema is no record, or holds what no column does.
        """
        return generic_writer({**_OF_AVRO, AVRO_SCHEMA.key: schema.text}, schema)


class ParquetColumnarRowInputFormat(BulkFormat):
    """Reads the rows of parquet files: for ``FileSource.for_bulk_file_format``.

    Args:
        row_type: the columns, found by name; one that a file lacks is None. Nested ones are read, too.
        hadoop_config: ``parquet.*`` options, as the parquet format of tables takes them.
        batch_size: rows of a batch at most.
        is_utc_timestamp: whether a TIMESTAMP is stored as if it was in UTC, not in the machine's zone.
        is_case_sensitive: whether names are compared with their case of letters.

    Raises:
        ValueError: an option that the format does not have.
    """

    def __init__(
        self,
        row_type: RowType,
        hadoop_config: Configuration | None = None,
        batch_size: int = 2048,
        is_utc_timestamp: bool = False,
        is_case_sensitive: bool = True,
    ) -> None:
        if batch_size <= 0:
            raise ValueError(f"batch_size must be above 0, not {batch_size}")
        options = {
            "format": PARQUET_RECORDS,
            **options_of(hadoop_config, ParquetFormatFactory(), "parquet"),
            UTC_TIMEZONE.key: "true" if is_utc_timestamp else "false",
            ANY_CASE.key: "false" if is_case_sensitive else "true",
            BATCH_ROWS.key: str(batch_size),
        }
        super().__init__(FileRecords.of_rows(options, columns_of_type(row_type), splittable=True))


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
        columns_of_type(row_type)
        options = options_of(hadoop_config, ParquetFormatFactory(), "parquet")
        utc = {UTC_TIMEZONE.key: "true" if utc_timestamp else "false"}
        return RowDataBulkWriterFactory({"format": "parquet", **options, **utc}, row_type)
