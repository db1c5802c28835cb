"""``jdbc``: tables of databases, read in batch mode on Spark by its own reader, in parts where a column says how.

Options are those of Flink's JDBC connector that its bounded scan has.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from flowsql_connectors.options import ConnectorOption, OptionSet, optional, parse_natural, parse_positive
from flowsql_connectors.spi.source import ReaderContext, SourceFactory, SourceReader, SplitEnumerator, TableSource
from flowsql_core.errors import BindError, InternalError
from flowsql_core.graph.spark import SparkReader
from flowsql_core.graph.specs import ScanSpec, TableSpec

_URL = ConnectorOption("url", str, "", "The address of the database, jdbc:postgresql://host:port/name.")
_TABLE = ConnectorOption("table-name", str, "", "The table there; schema.table where it is in no default schema.")
_DRIVER = ConnectorOption("driver", optional(str), None, "The class of the driver; by default the one of the address.")
_USER = ConnectorOption("username", optional(str), None, "Who asks.")
_PASSWORD = ConnectorOption("password", optional(str), None, "The password of 'username'.")
_FETCH = ConnectorOption("scan.fetch-size", parse_natural, 0, "Rows a round trip; 0: as the driver does it.")
_COLUMN = ConnectorOption("scan.partition.column", optional(str), None, "A column of numbers, dates or timestamps.")
_NUMBER = ConnectorOption("scan.partition.num", optional(parse_positive), None, "Parts that are read side by side.")
_LOWER = ConnectorOption("scan.partition.lower-bound", optional(str), None, "The least value of the first part.")
_UPPER = ConnectorOption("scan.partition.upper-bound", optional(str), None, "The greatest value of the last part.")
#: Drivers by the word behind ``jdbc:``. Java itself sees none of jars that a session is given.
_DRIVERS: Final = {
    "postgresql": "org.postgresql.Driver",
    "mysql": "com.mysql.cj.jdbc.Driver",
    "mariadb": "org.mariadb.jdbc.Driver",
    "oracle": "oracle.jdbc.OracleDriver",
    "sqlserver": "com.microsoft.sqlserver.jdbc.SQLServerDriver",
    "db2": "com.ibm.db2.jcc.DB2Driver",
    "derby": "org.apache.derby.iapi.jdbc.AutoloadedDriver",
    "sqlite": "org.sqlite.JDBC",
    "duckdb": "org.duckdb.DuckDBDriver",
    "h2": "org.h2.Driver",
}
_PARTITION: Final = (_COLUMN, _NUMBER, _LOWER, _UPPER)
_OPTIONS = OptionSet(required=(_URL, _TABLE), optional=(_DRIVER, _USER, _PASSWORD, _FETCH, *_PARTITION))


class JdbcSource(TableSource):
    """A table that only Spark reads."""

    def supports_projection(self) -> bool:
        """The database leaves columns out."""
        return True

    def only_elsewhere(self) -> str | None:
        """FlowSQL's own runtime has no reader yet."""
        return "a table of the connector 'jdbc' outside of batch mode on Spark"

    def create_enumerator(self) -> SplitEnumerator:
        """Nobody asks."""
        raise InternalError("a jdbc table in FlowSQL's own runtime")

    def create_reader(self, context: ReaderContext) -> SourceReader:
        """Nobody asks."""
        raise InternalError("a jdbc table in FlowSQL's own runtime")


class JdbcSourceFactory(SourceFactory):
    """Makes scans of tables of databases."""

    identifier = "jdbc"

    def options(self, table: TableSpec) -> OptionSet:
        """Those of a bounded scan."""
        return _OPTIONS

    def create_source(self, scan: ScanSpec, configuration: Mapping[str, str]) -> TableSource:
        """A scan.

        Raises:
            BindError: some of ``scan.partition.*`` alone.
        """
        values = _OPTIONS.check(scan.table)
        missing = [option.key for option in _PARTITION if not values.has(option)]
        if missing and len(missing) < len(_PARTITION):
            raise BindError(
                "missing-option",
                "Either all or none of the following options should be provided:\n"
                + "\n".join(option.key for option in _PARTITION),
                hint=f"add '{missing[0]}' to the WITH clause of {scan.table.name}",
            )
        return JdbcSource()

    def spark_reader(self, table: TableSpec) -> SparkReader | None:
        """Spark's own reader of databases."""
        values = _OPTIONS.check(table)
        given = {
            "url": values.get(_URL),
            "dbtable": values.get(_TABLE),
            "driver": values.get(_DRIVER) or _driver_of(values.get(_URL)),
            "user": values.get(_USER),
            "password": values.get(_PASSWORD),
            "fetchsize": values.get(_FETCH) or None,
            "partitionColumn": values.get(_COLUMN),
            "numPartitions": values.get(_NUMBER),
            "lowerBound": values.get(_LOWER),
            "upperBound": values.get(_UPPER),
            # Timestamps of databases have no zone, as those of SQL.
            "preferTimestampNTZ": "true",
        }
        options = tuple((key, str(value)) for key, value in given.items() if value is not None)
        return SparkReader("jdbc", options, values.get(_TABLE))


def _driver_of(url: str) -> str | None:
    scheme, _, rest = url.partition(":")
    return _DRIVERS.get(rest.partition(":")[0]) if scheme == "jdbc" else None
