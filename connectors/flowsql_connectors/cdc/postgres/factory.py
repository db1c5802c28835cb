"""Factory of ``postgres-cdc`` tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from flowsql_connectors.cdc.postgres.options import postgres_options
from flowsql_connectors.cdc.source import CdcSource
from flowsql_connectors.options import OptionSet
from flowsql_connectors.spi.source import SourceFactory, TableSource
from flowsql_core.errors import ConnectorError
from flowsql_core.graph.specs import ScanSpec, TableSpec
from flowsql_core.types.logical import STRING, LogicalType

#: Of each row the table that it is of.
METADATA: Final[Mapping[str, LogicalType]] = {
    "table_name": STRING.as_nullable(False),
    "schema_name": STRING.as_nullable(False),
    "database_name": STRING.as_nullable(False),
}


class PostgresCdcFactory(SourceFactory):
    """Makes scans of tables of PostgreSQL and of what changes in them."""

    identifier = "postgres-cdc"

    def options(self, table: TableSpec) -> OptionSet:
        """Flink CDC's options, and those of ``debezium.*`` that mean something."""
        return postgres_options(table)

    def create_source(self, scan: ScanSpec, configuration: Mapping[str, str]) -> TableSource:
        """A scan.

        Raises:
            BindError: options contradict each other.
            ConnectorError: the client libraries are not installed.
        """
        try:
            from flowsql_connectors.cdc.postgres.log import PostgresLog
            from flowsql_connectors.cdc.postgres.settings import postgres_settings
        except ImportError as error:
            raise ConnectorError(
                "connector-not-installed",
                f"Connector '{self.identifier}' needs the Python module '{error.name}', which is not installed.",
                hint="pip install 'flowsql[postgres-cdc]'",
            ) from error
        settings = postgres_settings(scan.table)
        return CdcSource(scan, settings.scan, lambda: PostgresLog(settings, scan), METADATA)
