"""The connector ``sqlite`` of the tests: a database that is asked for keys, several requests side by side."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from flowsql_connectors import registry
from flowsql_connectors.lookup.options import LOOKUP_OPTIONS, cache_of
from flowsql_connectors.options import ConnectorOption, OptionSet
from flowsql_connectors.spi.lookup import FoundRows, LookupContext, LookupTableSource, PartialCache, TableLookup
from flowsql_connectors.spi.source import ReaderContext, SourceFactory, SourceReader, SplitEnumerator, TableSource
from flowsql_core.errors import NotSupportedYetError
from flowsql_core.graph.specs import ScanSpec, TableSpec
from flowsql_core.types.arrow import to_arrow

_PATH = ConnectorOption("path", str, "", "The database.")
_TABLE = ConnectorOption("table", str, "", "The table in it.")
_OPTIONS = OptionSet((_PATH, _TABLE), LOOKUP_OPTIONS)

#: Keys of each request, by the path of the database; and what a request waits for before it answers.
REQUESTS: dict[str, list[list[tuple[Any, ...]]]] = {}
GATES: dict[str, threading.Barrier | threading.Event] = {}


class SqliteLookup(TableLookup):
    """Asks once a request."""

    def __init__(self, scan: ScanSpec, path: str, table: str, context: LookupContext) -> None:
        self._scan, self._path, self._table, self._context = scan, path, table, context

    def find(self, keys: Sequence[Any]) -> FoundRows:
        """Join the keys with the table."""
        rows = list(zip(*(array.to_pylist() for array in keys), strict=True))
        REQUESTS.setdefault(self._path, []).append(rows)
        gate = GATES.get(self._path)
        if gate is not None:
            gate.wait(10)
        output = self._scan.output
        names = [output[key].name for key in self._context.keys]
        values = ", ".join(f"({', '.join('?' * (len(names) + 1))})" for _ in rows)
        columns = ", ".join(f't."{column.name}"' for column in output)
        on = " AND ".join(f't."{name}" = k."{name}"' for name in names)
        listed = ", ".join(f'"{name}"' for name in names)
        query = (
            f"WITH k(position, {listed}) AS (VALUES {values}) SELECT position, {columns} "
            f'FROM k JOIN "{self._table}" AS t ON {on} ORDER BY position, t.rowid'
        )
        parameters = [value for position, row in enumerate(rows) for value in (position, *row)]
        with sqlite3.connect(self._path) as database:
            found = database.execute(query, parameters).fetchall()
        arrays = [
            pa.array([row[1 + place] for row in found], to_arrow(column.type)) for place, column in enumerate(output)
        ]
        return FoundRows(np.array([row[0] for row in found], np.int32), arrays)


class SqliteSource(LookupTableSource):
    """A table of a database."""

    def __init__(self, scan: ScanSpec) -> None:
        self._scan = scan
        self._values = _OPTIONS.check(scan.table)

    @property
    def concurrent(self) -> bool:
        """Each request has a connection of its own."""
        return True

    def supports_projection(self) -> bool:
        """Columns are named in the query."""
        return True

    def partial_cache(self) -> PartialCache | None:
        """``lookup.cache`` = PARTIAL."""
        cache = cache_of(self._values)
        return cache if isinstance(cache, PartialCache) else None

    def create_lookup(self, context: LookupContext) -> TableLookup:
        """Queries."""
        return SqliteLookup(self._scan, self._values.get(_PATH), self._values.get(_TABLE), context)

    def create_enumerator(self) -> SplitEnumerator:
        """No scan."""
        raise NotSupportedYetError("a scan of a sqlite table")

    def create_reader(self, context: ReaderContext) -> SourceReader:
        """No scan."""
        raise NotSupportedYetError("a scan of a sqlite table")


class SqliteFactory(SourceFactory):
    """Makes them."""

    identifier = "sqlite"

    def options(self, table: TableSpec) -> OptionSet:
        """Database, table, caches."""
        return _OPTIONS

    def create_source(self, scan: ScanSpec, configuration: Mapping[str, str]) -> TableSource:
        """A table."""
        return SqliteSource(scan)


def provide() -> None:
    """Let tables name the connector."""
    registry.provide("sqlite", registry.Connector(source=f"{__name__}:{SqliteFactory.__name__}"))
