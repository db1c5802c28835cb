"""Scans and lookups of tables of databases."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from flowsql_connectors.jdbc.address import OWN, is_alchemy, is_own, parse_address
from flowsql_connectors.jdbc.database import Database, Dialect, Login, Selection, dialect_of
from flowsql_connectors.jdbc.lookup import DatabaseLookup
from flowsql_connectors.jdbc.native import NativeColumn, matched
from flowsql_connectors.jdbc.options import (
    AUTO_COMMIT,
    DRIVER,
    FETCH,
    FILTERS,
    LOOKUP_RETRIES,
    PASSWORD,
    RETRY_TIMEOUT_MS,
    TABLE,
    URL,
    USER,
    cache_of,
    checked,
    has_spark_driver,
)
from flowsql_connectors.jdbc.parts import Part, PartCode, PartEnumerator, parts_of
from flowsql_connectors.lookup.options import Reload
from flowsql_connectors.lookup.whole_table import reloaded_table
from flowsql_connectors.options import OptionValues
from flowsql_connectors.spi.fetching import FetchingReader
from flowsql_connectors.spi.lookup import LookupContext, LookupTableSource, PartialCache, TableLookup
from flowsql_connectors.spi.source import ReaderContext, SourceReader, SplitEnumerator
from flowsql_core.config import LOCAL_TIME_ZONE
from flowsql_core.expr import Expr
from flowsql_core.graph.specs import ScanSpec


def login_of(values: OptionValues, configuration: Mapping[str, str]) -> Login:
    """Where a table is, and who asks for it in which time zone.

    Raises:
        BindError: the address is none, or the driver another one's.
    """
    address = parse_address(values.get(URL), values.get(DRIVER))
    zone = configuration.get(LOCAL_TIME_ZONE.key, "UTC")
    return Login(address, values.get(USER), values.get(PASSWORD), values.get(RETRY_TIMEOUT_MS), zone)


class JdbcSource(LookupTableSource):
    """A table of a database; of a kind that FlowSQL's own runtime does not know, one that Spark alone reads."""

    def __init__(self, scan: ScanSpec, configuration: Mapping[str, str]) -> None:
        self._scan = scan
        self._configuration = configuration
        self._values = checked(scan.table)
        self._parts: tuple[Part, ...] = ()
        self._is_own = is_own(self._values.get(URL))
        if self._is_own:
            self._login = login_of(self._values, configuration)
            self._parts = parts_of(scan.table, self._values)

    def only_elsewhere(self) -> str | None:
        """FlowSQL's own runtime has readers of a few kinds of databases."""
        if self._is_own:
            return None
        own = ", ".join(f"jdbc:{scheme}" for scheme in OWN)
        return f"a table of the connector 'jdbc' outside of batch mode on Spark, but of {own} and URLs of SQLAlchemy"

    def stays_here(self) -> str | None:
        """Spark reads databases by drivers that it is given."""
        if is_alchemy(self._values.get(URL)):
            return "Spark does not read by dialects of SQLAlchemy"
        if self._is_own and not has_spark_driver(self._configuration):
            return "Spark was given no driver of the database ('spark.jars.packages' or 'spark.jars')"
        return None

    def input_bytes(self) -> int | None:
        """As the database knows it."""
        if not self._is_own:
            return None
        database = self._dialect().connect(self._login)
        try:
            return database.table_bytes(self._values.get(TABLE))
        finally:
            database.close()

    def supports_projection(self) -> bool:
        """The database leaves columns out."""
        return True

    def supports_filters(self, filters: tuple[Expr, ...]) -> tuple[bool, ...]:
        """What the database answers as FlowSQL does."""
        if not self._is_own or self._values.get(FILTERS) == "never":
            return (False,) * len(filters)
        dialect = self._dialect()
        return tuple(map(dialect.takes_over, filters))

    def supports_limit(self) -> bool:
        """The database stops."""
        return self._is_own

    def partial_cache(self) -> PartialCache | None:
        """``lookup.cache`` = PARTIAL."""
        cache = cache_of(self._values)
        return cache if isinstance(cache, PartialCache) else None

    @property
    def concurrent(self) -> bool:
        """Each request has a connection of its own, where there are requests."""
        return not isinstance(cache_of(self._values), Reload)

    def create_lookup(self, context: LookupContext) -> TableLookup:
        """Queries by key, or the table as a scan reads it."""
        cache = cache_of(self._values)
        if isinstance(cache, Reload):
            return reloaded_table(self, self._scan.output, cache, context, self._values.get(LOOKUP_RETRIES))
        return DatabaseLookup(
            self._dialect(),
            self._login,
            self._values.get(TABLE),
            self._scan.output,
            context.keys,
            self._values.get(LOOKUP_RETRIES),
        )

    def create_enumerator(self) -> SplitEnumerator:
        """The parts of ``scan.partition.*``, or the table whole."""
        return PartEnumerator(max(1, len(self._parts)))

    def create_reader(self, context: ReaderContext) -> SourceReader:
        """A reader with a connection of its own."""
        batch_rows = self._values.get(FETCH)
        reading = _Reading(self._dialect(), self._login, self._scan, self._parts, self._values)
        return FetchingReader(
            PartCode(),
            reading.part,
            reading.close,
            self._scan.output,
            batch_rows or None,
            self._scan.limit,
            context,
            "jdbc-reader",
        )

    def _dialect(self) -> Dialect:
        return dialect_of(self._login)


class _Reading:
    """The connection of a reader, which begins in its thread."""

    def __init__(
        self, dialect: Dialect, login: Login, scan: ScanSpec, parts: Sequence[Part], values: OptionValues
    ) -> None:
        self._dialect = dialect
        self._login = login
        self._scan = scan
        self._parts = parts
        self._values = values
        self._database: Database | None = None
        self._native: dict[str, NativeColumn] = {}

    def part(self, index: int) -> Iterator[tuple[Sequence[Any], int]]:
        """Batches of a part."""
        scan, table = self._scan, self._values.get(TABLE)
        if self._database is None:
            self._database = self._dialect.connect(self._login, self._values.get(AUTO_COMMIT))
            self._native = self._database.columns(table)
        places = self._needed()
        needed = tuple(scan.table.columns[place] for place in places)
        native = matched(table, self._native, needed, any_type=self._dialect.any_type)
        wanted = Selection(
            table,
            scan.table.columns,
            dict(zip(places, native, strict=True)),
            scan.projection,
            scan.output,
            scan.filters,
            self._parts[index] if self._parts else None,
            scan.limit,
        )
        for columns in self._database.scan(wanted, self._values.get(FETCH)):
            yield columns, len(columns[0]) if columns else 0

    def close(self) -> None:
        """End transaction and connection."""
        if self._database is not None:
            self._database.close()

    def _needed(self) -> list[int]:
        """The places of the columns that are read or asked about."""
        from flowsql_core.expr import input_refs

        places = {*self._scan.projection, *(part.column for part in self._parts)}
        for filter_ in self._scan.filters:
            places |= input_refs(filter_)
        return sorted(places)
