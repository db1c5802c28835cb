"""The factory of scans and lookups of ``redis`` tables."""

from __future__ import annotations

from collections.abc import Mapping

from flowsql_connectors.options import OptionSet
from flowsql_connectors.redis.options import options_of
from flowsql_connectors.spi.source import SourceFactory, TableSource
from flowsql_core.graph.specs import ScanSpec, TableSpec


class RedisSourceFactory(SourceFactory):
    """Makes scans and lookups."""

    identifier = "redis"

    def options(self, table: TableSpec) -> OptionSet:
        """Those of scans, lookups, sinks and the format."""
        return options_of(table)

    def create_source(self, scan: ScanSpec, configuration: Mapping[str, str]) -> TableSource:
        """A scan.

        Raises:
            BindError: options contradict each other.
        """
        from flowsql_connectors.redis.source import RedisSource

        return RedisSource(scan, configuration)

    def with_referenced(self, table: TableSpec, referenced: TableSpec) -> TableSpec:
        """The table with the folder of its dead-letter table as an option instead of that table's name."""
        from flowsql_connectors.messages.bad_messages import with_letter_table

        return with_letter_table(table, referenced)
