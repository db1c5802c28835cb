"""Factories of ``jdbc`` tables."""

from __future__ import annotations

from collections.abc import Mapping

from flowsql_connectors.jdbc.address import DRIVERS, is_alchemy, scheme_of
from flowsql_connectors.jdbc.options import (
    COLUMN,
    DRIVER,
    FETCH,
    JDBC_OPTIONS,
    LOWER,
    NUMBER,
    PASSWORD,
    TABLE,
    UPPER,
    URL,
    USER,
    checked,
)
from flowsql_connectors.options import OptionSet
from flowsql_connectors.spi.sink import SinkFactory, TableSink
from flowsql_connectors.spi.source import SourceFactory, TableSource
from flowsql_core.graph.spark import SparkReader
from flowsql_core.graph.specs import ScanSpec, SinkSpec, TableSpec


class JdbcSourceFactory(SourceFactory):
    """Makes scans and lookups of tables of databases."""

    identifier = "jdbc"

    def options(self, table: TableSpec) -> OptionSet:
        """Those of scans, lookups and sinks."""
        return JDBC_OPTIONS

    def create_source(self, scan: ScanSpec, configuration: Mapping[str, str]) -> TableSource:
        """A scan.

        Raises:
            BindError: the address is none, or options contradict each other.
        """
        from flowsql_connectors.jdbc.source import JdbcSource

        return JdbcSource(scan, configuration)

    def spark_reader(self, table: TableSpec) -> SparkReader | None:
        """Spark's own reader of databases; URLs of SQLAlchemy are not for Java."""
        values = checked(table)
        url = values.get(URL)
        if is_alchemy(url):
            return None
        given = {
            "url": url,
            "dbtable": values.get(TABLE),
            "driver": values.get(DRIVER) or next(iter(DRIVERS.get(scheme_of(url), ())), None),
            "user": values.get(USER),
            "password": values.get(PASSWORD),
            "fetchsize": values.get(FETCH) or None,
            "partitionColumn": values.get(COLUMN),
            "numPartitions": values.get(NUMBER),
            "lowerBound": values.get(LOWER),
            "upperBound": values.get(UPPER),
            # Timestamps of databases have no zone, as those of SQL.
            "preferTimestampNTZ": "true",
        }
        options = tuple((key, str(value)) for key, value in given.items() if value is not None)
        column, lower, upper = values.get(COLUMN), values.get(LOWER), values.get(UPPER)
        # Spark takes bounds for the places of cuts alone.
        bounds = (column, lower, upper) if column is not None and lower is not None and upper is not None else None
        return SparkReader("jdbc", options, values.get(TABLE), bounds=bounds)


class JdbcSinkFactory(SinkFactory):
    """Makes sinks into tables of databases."""

    identifier = "jdbc"

    def options(self, table: TableSpec) -> OptionSet:
        """Those of scans, lookups and sinks."""
        return JDBC_OPTIONS

    def create_sink(self, sink: SinkSpec, configuration: Mapping[str, str]) -> TableSink:
        """A sink.

        Raises:
            BindError: the address is none, or of a database that is not written.
        """
        from flowsql_connectors.jdbc.sink import JdbcSink

        return JdbcSink(sink, configuration)
