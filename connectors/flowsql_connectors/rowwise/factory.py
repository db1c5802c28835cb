"""Factories of tables of a :class:`RowSource`."""

from __future__ import annotations

from collections.abc import Mapping

from flowsql_connectors.lookup.options import FULL_CACHE_OPTIONS, LOOKUP_OPTIONS, PARTIAL_CACHE_OPTIONS
from flowsql_connectors.options import OptionSet
from flowsql_connectors.rowwise.base import RowSource
from flowsql_connectors.rowwise.lookup import RowLookupSource
from flowsql_connectors.rowwise.source import RowTableSource
from flowsql_connectors.spi.source import SourceFactory, TableSource
from flowsql_core.errors import BindError
from flowsql_core.graph.specs import ScanSpec, TableSpec


class RowSourceFactory(SourceFactory):
    """Makes sources of one class."""

    identifier = "row-source"

    def __init__(self, kind: type[RowSource]) -> None:
        self._kind = kind

    def options(self, table: TableSpec) -> OptionSet:
        """Those that the class names, and where it can be looked up those of a cache."""
        own = self._kind.options
        by_key, whole = self._kind.looks_up(), self._kind.read_whole()
        if by_key:
            return own.merged(OptionSet(optional=LOOKUP_OPTIONS if whole else PARTIAL_CACHE_OPTIONS))
        return own.merged(OptionSet(optional=FULL_CACHE_OPTIONS)) if whole else own

    def create_source(self, scan: ScanSpec, configuration: Mapping[str, str]) -> TableSource:
        """A source of a table.

        Raises:
            BindError: the class has no such metadata.
        """
        for key in scan.metadata:
            if key not in self._kind.metadata:
                known = ", ".join(self._kind.metadata)
                raise BindError(
                    "no-such-metadata",
                    f"The connector '{scan.table.option('connector')}' has no metadata column '{key}'.",
                    hint=f"it has {known}" if known else None,
                )
        if self._kind.looks_up() or self._kind.read_whole():
            return RowLookupSource(self._kind, scan, self.options(scan.table))
        return RowTableSource(self._kind, scan, self.options(scan.table))
