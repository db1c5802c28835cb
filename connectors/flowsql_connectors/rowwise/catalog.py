"""Catalogs in plain Python: :class:`TableCatalog` tells which tables another system has."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar, TypeVar

from flowsql_connectors.options import ConnectorOption, OptionSet, OptionValues
from flowsql_connectors.rowwise.base import failure_text
from flowsql_connectors.spi.catalog import CatalogFactory, ReadOnlyCatalog
from flowsql_core.catalog import Catalog, CatalogDatabase, CatalogObject, CatalogTable, TableColumn
from flowsql_core.errors import BindError, ConnectorError, FlowSqlError
from flowsql_core.record import record
from flowsql_core.secrets.placeholders import filled
from flowsql_core.secrets.plain import hide_plain
from flowsql_core.types.text import parse_type

T = TypeVar("T")


@record
class ListedTable:
    """A table as a catalog tells of it.

    Args:
        columns: names and types, e.g. ``{"id": "INT NOT NULL", "name": "STRING"}``.
        options: of its WITH clause; ``connector`` is one of them. Secrets stay references (``${env:NAME}``).
        primary_key: names of columns.
    """

    columns: Mapping[str, str]
    options: Mapping[str, str]
    primary_key: tuple[str, ...] = ()
    comment: str | None = None


class TableCatalog(ABC):
    """The tables of another system. Statements ask anew each time, so that what was made there since is seen."""

    #: Options of CREATE CATALOG beside ``type``.
    options: ClassVar[OptionSet] = OptionSet()
    #: The database that USE CATALOG makes current.
    default_database: ClassVar[str] = "default"

    def __init__(self, options: CatalogOptions) -> None:
        self.given = options

    def databases(self) -> Sequence[str]:
        """Names of all databases."""
        return (self.default_database,)

    @abstractmethod
    def tables(self, database: str) -> Mapping[str, ListedTable]:
        """Tables of one of :meth:`databases`, by name."""

    def table(self, database: str, name: str) -> ListedTable | None:
        """One table; overridden where asking for one is quicker."""
        return self.tables(database).get(name)


class CatalogOptions:
    """Options of one catalog."""

    def __init__(self, declared: Mapping[str, str]) -> None:
        #: As they are written, with references to secrets: for the options of tables.
        self.declared = dict(declared)
        hide_plain(declared.items())
        self._values = OptionValues({key: filled(text) for key, text in declared.items()})

    def value(self, option: ConnectorOption[T]) -> T:
        """The value of an option, or its default; references are filled in."""
        return self._values.get(option)


class TableCatalogFactory(CatalogFactory):
    """Makes catalogs of one class."""

    identifier = "table-catalog"

    def __init__(self, identifier: str, kind: type[TableCatalog]) -> None:
        self._identifier = identifier
        self._kind = kind

    def options(self) -> OptionSet:
        """Those that the class names."""
        return self._kind.options

    def create_catalog(self, name: str, options: Mapping[str, str]) -> tuple[Catalog, str]:
        """A catalog whose default database is there."""
        made = _ListedCatalog(name, self._identifier, self._kind, options)
        default = self._kind.default_database
        if made.database(default) is None:
            raise BindError("database-not-found", f"Catalog '{name}' has no database '{default}', its default one.")
        return made, default


class _ListedCatalog(ReadOnlyCatalog):
    def __init__(self, name: str, identifier: str, kind: type[TableCatalog], options: Mapping[str, str]) -> None:
        super().__init__(name, identifier)
        self._catalog = self._asked(lambda: kind(CatalogOptions(options)))

    def databases(self) -> list[str]:
        """What the class names, sorted."""
        return self._asked(lambda: sorted(self._catalog.databases()))

    def database(self, name: str) -> CatalogDatabase | None:
        """One of them."""
        return CatalogDatabase() if name in self.databases() else None

    def objects(self, database: str) -> dict[str, CatalogObject]:
        """The tables that the class tells of."""
        if self.database(database) is None:
            raise BindError("database-not-found", f"Database {database} does not exist in Catalog {self.name}.")
        tables = self._asked(lambda: dict(self._catalog.tables(database)))
        return {name: self._table(name, table) for name, table in tables.items()}

    def get(self, database: str, name: str) -> CatalogObject | None:
        """One of them."""
        if self.database(database) is None:
            return None
        found = self._asked(lambda: self._catalog.table(database, name))
        return None if found is None else self._table(name, found)

    def _table(self, name: str, table: ListedTable) -> CatalogTable:
        lacking = [key for key in table.primary_key if key not in table.columns]
        if lacking:
            raise ConnectorError(
                "bad-catalog", f"Table '{name}' of catalog '{self.name}' has no column '{lacking[0]}'."
            )
        columns = []
        for column, text in table.columns.items():
            try:
                type_ = parse_type(text)
            except FlowSqlError as error:
                raise ConnectorError(
                    "bad-catalog", f"Column '{column}' of table '{name}' of catalog '{self.name}': {error.message}"
                ) from error
            columns.append(TableColumn(column, type_.as_nullable(type_.nullable and column not in table.primary_key)))
        return CatalogTable(
            tuple(columns), tuple(table.options.items()), primary_key=table.primary_key, comment=table.comment
        )

    def _asked(self, question: Callable[[], T]) -> T:
        try:
            return question()
        except FlowSqlError:
            raise
        except Exception as error:
            raise ConnectorError("catalog-failed", f"Catalog '{self.name}' failed: {failure_text(error)}") from error
