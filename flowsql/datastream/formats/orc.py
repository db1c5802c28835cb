"""The orc format of DataStream connectors: files of rows are written."""

from __future__ import annotations

from flowsql.common.configuration import Configuration
from flowsql.common.serialization import BulkWriterFactory, RowDataBulkWriterFactory
from flowsql.datastream.formats.row_type import columns_of_type, options_of
from flowsql.table.types import RowType
from flowsql_connectors.formats.columnar.orc import OrcFormatFactory

__all__ = ["OrcBulkWriters"]


class OrcBulkWriters:
    """Writes rows into orc files."""

    @staticmethod
    def for_row_type(
        row_type: RowType,
        writer_properties: Configuration | None = None,
        hadoop_config: Configuration | None = None,
    ) -> BulkWriterFactory:
        """For ``FileSink.for_bulk_format``.

        Args:
            row_type: of the files' rows.
            writer_properties: ``orc.*`` options, as the orc format of tables takes them.
            hadoop_config: further such options; those of ``writer_properties`` count first.

        Raises:
            ValueError: an option that the format does not have.
        """
        columns_of_type(row_type)
        factory = OrcFormatFactory()
        options = {**options_of(hadoop_config, factory, "orc"), **options_of(writer_properties, factory, "orc")}
        return RowDataBulkWriterFactory({"format": "orc", **options}, row_type)
