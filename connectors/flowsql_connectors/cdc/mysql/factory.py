"""The factory of ``mysql-cdc`` tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from flowsql_compute.eval.time.machine_zone import machine_zone
from flowsql_connectors.cdc import options as shared
from flowsql_connectors.cdc.mysql import options as own
from flowsql_connectors.cdc.mysql.columns.column_types import AS_BYTES
from flowsql_connectors.cdc.mysql.position import Position
from flowsql_connectors.cdc.options import cdc_settings
from flowsql_connectors.cdc.source import CdcSource
from flowsql_connectors.options import OptionSet, OptionValues
from flowsql_connectors.spi.source import SourceFactory, TableSource
from flowsql_core.errors import ConnectorError
from flowsql_core.graph.specs import ScanSpec, TableSpec
from flowsql_core.types.logical import STRING, LogicalType

#: Metadata columns that tell where a row is from.
METADATA: Final[Mapping[str, LogicalType]] = {
    "table_name": STRING.as_nullable(False),
    "database_name": STRING.as_nullable(False),
}


class MySqlCdcFactory(SourceFactory):
    """Makes scans of tables of MySQL and MariaDB with their changes."""

    identifier = "mysql-cdc"

    def options(self, table: TableSpec) -> OptionSet:
        """The connector's, and those of a table that are refused."""
        return own.mysql_options(table)

    def create_source(self, scan: ScanSpec, configuration: Mapping[str, str]) -> TableSource:
        """A scan; the server is asked when it is enumerated.

        Raises:
            BindError: options do not go together, or there is no such metadata column.
            ConnectorError: the client library is not installed.
        """
        values = own.checked(scan.table)
        try:
            from flowsql_connectors.cdc.mysql.dump import ServerIds
            from flowsql_connectors.cdc.mysql.layout import Wanted
            from flowsql_connectors.cdc.mysql.log import MySqlLog, MySqlSettings
            from flowsql_connectors.cdc.mysql.tables import TablePattern
            from flowsql_connectors.jdbc.address import Address
            from flowsql_connectors.jdbc.database import Login
        except ImportError as error:
            raise ConnectorError(
                "connector-not-installed",
                f"Connector 'mysql-cdc' needs the Python module '{error.name}', which is not installed.",
                hint="pip install 'flowsql[mysql]'",
            ) from error
        secure = values.get(own.USE_SSL) or values.get(own.SSL_MODE) != "DISABLED"
        address = Address(
            "mysql", "", values.get(shared.HOSTNAME), values.get(own.PORT), {"useSSL": "true"} if secure else {}
        )
        login = Login(
            address, values.get(shared.USERNAME), values.get(shared.PASSWORD), values.get(shared.CONNECT_TIMEOUT_MS)
        )
        binary_as = values.get(own.BINARY_AS)
        physical = scan.output[: len(scan.projection)]
        wanted = Wanted(
            physical,
            values.get(own.ZONE) or machine_zone(),
            AS_BYTES if binary_as == "none" else binary_as,
            values.get(own.LEGACY_JSON),
        )
        settings = MySqlSettings(
            TablePattern(values.get(own.DATABASE), values.get(own.TABLE)),
            wanted,
            values.get(own.HEARTBEAT_MS),
            _start(values),
            values.get(own.START_MS) or 0,
            values.get(shared.CHUNK_COLUMN),
            values.get(shared.INCREMENTAL),
            not values.get(shared.BACKFILL_SKIP),
        )
        ids = ServerIds(*(values.get(own.SERVER_ID) or (None, None)))
        return CdcSource(
            scan, cdc_settings(values, values.get(own.MODE)), lambda: MySqlLog(login, ids, settings), METADATA
        )


def _start(values: OptionValues) -> Position:
    """Where 'specific-offset' begins."""
    return Position(
        values.get(own.START_FILE) or "",
        values.get(own.START_PLACE) or 4,
        values.get(own.START_GTIDS),
        skip_events=values.get(own.SKIP_EVENTS),
        skip_rows=values.get(own.SKIP_ROWS),
    )
