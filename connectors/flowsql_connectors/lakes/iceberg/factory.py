"""Factories of ``iceberg`` tables."""

from __future__ import annotations

from collections.abc import Mapping

from flowsql_connectors.lakes.iceberg.options import (
    AS_OF_MS,
    BRANCH,
    CATALOG_OPTIONS,
    DEFAULT_DATABASE,
    END_SNAPSHOT,
    END_TAG,
    SNAPSHOT,
    START_MS,
    START_SNAPSHOT,
    START_TAG,
    STRATEGY,
    STREAMING,
    TAG,
    check_uri,
    table_options,
)
from flowsql_connectors.lakes.installed import require
from flowsql_connectors.options import OptionSet, OptionValues
from flowsql_connectors.spi.catalog import CatalogFactory
from flowsql_connectors.spi.sink import SinkFactory, TableSink
from flowsql_connectors.spi.source import InferredTable, SourceFactory, TableSource
from flowsql_core.catalog import Catalog
from flowsql_core.errors import BindError
from flowsql_core.graph.specs import ScanSpec, SinkSpec, TableSpec
from flowsql_core.secrets.placeholders import filled


class IcebergSourceFactory(SourceFactory):
    """Makes scans of Iceberg tables."""

    identifier = "iceberg"

    def options(self, table: TableSpec) -> OptionSet:
        """Those of the catalog, of scans and of sinks, and properties of the table."""
        return table_options(table)

    def create_source(self, scan: ScanSpec, configuration: Mapping[str, str]) -> TableSource:
        """A scan.

        Raises:
            BindError: options contradict each other.
        """
        require("iceberg", "pyiceberg")
        from flowsql_connectors.lakes.iceberg.source import IcebergSource

        values = table_options(scan.table).check(scan.table)
        _check_reads(values)
        return IcebergSource(scan, values)

    def as_of(self, table: TableSpec, moment_ms: int) -> tuple[tuple[str, str], ...]:
        """``as-of-timestamp``."""
        return ((AS_OF_MS.key, str(moment_ms)),)

    def inferred(self, table: TableSpec, configuration: Mapping[str, str]) -> InferredTable:
        """The columns of the Iceberg table."""
        require("iceberg", "pyiceberg")
        from flowsql_connectors.lakes.iceberg.connection import address_of
        from flowsql_connectors.lakes.iceberg.described import partition_keys
        from flowsql_connectors.lakes.iceberg.types import to_columns

        table_options(table).check(table)
        address = address_of(table)
        found = address.load()
        columns = to_columns(found.schema(), address.shown)
        return InferredTable(columns, table.options, partition_keys(found), f"Iceberg table '{address.shown}'")


class IcebergSinkFactory(SinkFactory):
    """Makes sinks into Iceberg tables."""

    identifier = "iceberg"

    def supports_overwrite(self) -> bool:
        """Partitions, or a whole table, are replaced with one snapshot."""
        return True

    def options(self, table: TableSpec) -> OptionSet:
        """Those of the catalog, of scans and of sinks, and properties of the table."""
        return table_options(table)

    def create_sink(self, sink: SinkSpec, configuration: Mapping[str, str]) -> TableSink:
        """A sink; INSERT OVERWRITE only in batch mode."""
        require("iceberg", "pyiceberg")
        from flowsql_connectors.lakes.iceberg.sink import IcebergSink

        return IcebergSink(sink, table_options(sink.table).check(sink.table), configuration)


class IcebergCatalogFactory(CatalogFactory):
    """Makes catalogs over those of pyiceberg."""

    identifier = "iceberg"

    def options(self) -> OptionSet:
        """Where the catalog is, who asks, how files are reached."""
        return CATALOG_OPTIONS

    def create_catalog(self, name: str, options: Mapping[str, str]) -> tuple[Catalog, str]:
        """A catalog that answered."""
        require("iceberg", "pyiceberg")
        from flowsql_connectors.lakes.iceberg.catalog import CONNECTION, IcebergCatalog

        check_uri(options)
        default = filled(options.get(DEFAULT_DATABASE.key, DEFAULT_DATABASE.default))
        kept = {option.key for option in CONNECTION}
        catalog = IcebergCatalog(name, tuple((key, text) for key, text in options.items() if key in kept), default)
        catalog.databases()
        return catalog, default


def _check_reads(values: OptionValues) -> None:
    """Refuse what names several things to read, or none."""
    named = [option.key for option in (SNAPSHOT, AS_OF_MS, BRANCH, TAG) if values.has(option)]
    if len(named) > 1:
        raise _contradiction(f"'{named[0]}' and '{named[1]}' each say what is read: give one of them.")
    ranged = [o.key for o in (START_SNAPSHOT, START_MS, START_TAG, END_SNAPSHOT, END_TAG) if values.has(o)]
    if not values.get(STREAMING):
        if named and ranged:
            raise _contradiction(f"'{named[0]}' and '{ranged[0]}' each say what is read: give one of them.")
        for one, other in ((START_SNAPSHOT, START_TAG), (END_SNAPSHOT, END_TAG)):
            if values.has(one) and values.has(other):
                raise _contradiction(f"'{one.key}' and '{other.key}' say the same: give one of them.")
        alone = next((o.key for o in (STRATEGY, START_MS) if values.has(o)), None)
        if alone is not None:
            raise _contradiction(f"'{alone}' is of streaming reads alone.", f"'{STREAMING.key}' = 'true' makes it one")
        return
    ends = next((o.key for o in (SNAPSHOT, AS_OF_MS, TAG, START_TAG, END_SNAPSHOT, END_TAG) if values.has(o)), None)
    if ends is not None:
        raise _contradiction(f"'{ends}' is of reads that end: with '{STREAMING.key}' = 'true' a table is followed.")
    needs = {"INCREMENTAL_FROM_SNAPSHOT_ID": START_SNAPSHOT, "INCREMENTAL_FROM_SNAPSHOT_TIMESTAMP": START_MS}
    strategy = values.get(STRATEGY)
    for wanted, option in needs.items():
        if strategy == wanted and not values.has(option):
            raise _contradiction(f"'{STRATEGY.key}' = '{strategy}' needs '{option.key}'.")
        if strategy != wanted and values.has(option):
            raise _contradiction(f"'{option.key}' is read with '{STRATEGY.key}' = '{wanted}' alone.")


def _contradiction(message: str, hint: str | None = None) -> BindError:
    return BindError("lake-options", message, hint=hint)
