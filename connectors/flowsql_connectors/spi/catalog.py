"""Catalog side: tables that are elsewhere, and appear by themselves."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar, NoReturn

from flowsql_core.catalog import Catalog, CatalogDatabase, CatalogFunction, CatalogObject, TableDetails
from flowsql_core.errors import BindError

if TYPE_CHECKING:
    from flowsql_connectors.options import OptionSet


class CatalogFactory(ABC):
    """Makes catalogs of one type."""

    identifier: ClassVar[str]

    @abstractmethod
    def options(self) -> OptionSet:
        """What the WITH clause must and may hold, ``type`` apart."""

    @abstractmethod
    def create_catalog(self, name: str, options: Mapping[str, str]) -> tuple[Catalog, str]:
        """A catalog and the name of its default database.

        Args:
            options: known and readable ones, as they were written: tables keep the placeholders for secrets, and the
                catalog fills them in where it needs their values (``flowsql_core.secrets.placeholders.filled``).

        Raises:
            BindError, ConnectorError: there is nothing, or it cannot be reached.
        """


class ReadOnlyCatalog(ABC):
    """A catalog of what another system holds: it shows tables and makes none. Nothing in it changes by SQL, so that
    copies are not needed to try statements out."""

    def __init__(self, name: str, kind: str) -> None:
        self.name = name
        self._kind = kind

    @abstractmethod
    def databases(self) -> list[str]:
        """Names, sorted."""

    @abstractmethod
    def database(self, name: str) -> CatalogDatabase | None:
        """One database."""

    @abstractmethod
    def objects(self, database: str) -> dict[str, CatalogObject]:
        """Tables by name."""

    @abstractmethod
    def get(self, database: str, name: str) -> CatalogObject | None:
        """One table."""

    def details(self, database: str, name: str) -> TableDetails:
        """Nothing is known beside the definition."""
        return TableDetails()

    def functions(self, database: str) -> dict[str, CatalogFunction]:
        """None."""
        return {}

    def create_database(self, name: str, database: CatalogDatabase) -> None:
        """Refused."""
        self._refuse(f"no database '{name}' is made")

    def alter_database(self, name: str, database: CatalogDatabase) -> None:
        """Refused."""
        self._refuse(f"database '{name}' is not changed")

    def drop_database(self, name: str) -> None:
        """Refused."""
        self._refuse(f"database '{name}' is not dropped")

    def put(self, database: str, name: str, value: CatalogObject) -> None:
        """Refused."""
        self._refuse(f"no table '{database}.{name}' is made or changed")

    def drop(self, database: str, name: str) -> None:
        """Refused."""
        self._refuse(f"table '{database}.{name}' is not dropped")

    def put_details(self, database: str, name: str, details: TableDetails) -> None:
        """Refused."""
        self._refuse(f"partitions and statistics of '{database}.{name}' are not kept")

    def put_function(self, database: str, name: str, function: CatalogFunction) -> None:
        """Refused."""
        self._refuse(f"no function '{database}.{name}' is made")

    def drop_function(self, database: str, name: str) -> None:
        """Refused."""
        self._refuse(f"there is no function '{database}.{name}'")

    def _refuse(self, what: str) -> NoReturn:
        raise BindError(
            "catalog-read-only",
            f"Catalog '{self.name}' of type '{self._kind}' shows what is elsewhere: {what} through it.",
            hint="CREATE TEMPORARY TABLE, or a catalog that keeps tables, e.g. default_catalog",
        )
