"""``GenericInMemoryCatalog``: databases, tables and views in dictionaries, gone with the session."""

from __future__ import annotations

from flowsql_connectors.spi.catalog import ReadOnlyCatalog
from flowsql_core.catalog import Catalog, CatalogDatabase, CatalogFunction, CatalogObject, CatalogTable, TableDetails
from flowsql_core.errors import BindError


class GenericInMemoryCatalog:
    """A catalog of type ``generic_in_memory``; a fresh one holds its empty default database."""

    def __init__(self, name: str, default_database: str = "default") -> None:
        self.name = name
        self.default_database = default_database
        self._databases: dict[str, CatalogDatabase] = {default_database: CatalogDatabase()}
        self._objects: dict[str, dict[str, CatalogObject]] = {default_database: {}}
        self._details: dict[tuple[str, str], TableDetails] = {}
        self._functions: dict[str, dict[str, CatalogFunction]] = {default_database: {}}

    def databases(self) -> list[str]:
        """Names, sorted."""
        return sorted(self._databases)

    def database(self, name: str) -> CatalogDatabase | None:
        """One database."""
        return self._databases.get(name)

    def create_database(self, name: str, database: CatalogDatabase) -> None:
        """Add a database."""
        if name in self._databases:
            raise BindError("database-exists", f"Database {name} already exists in Catalog {self.name}.")
        self._databases[name] = database
        self._objects[name] = {}
        self._functions[name] = {}

    def alter_database(self, name: str, database: CatalogDatabase) -> None:
        """Replace a database's comment and properties."""
        self._objects_of(name)
        self._databases[name] = database

    def drop_database(self, name: str) -> None:
        """Remove an empty database."""
        if self._objects_of(name):
            raise BindError(
                "database-not-empty",
                f"Database {name} in catalog {self.name} is not empty.",
                hint="DROP DATABASE ... CASCADE drops what is in it",
            )
        del self._databases[name]
        del self._objects[name]
        del self._functions[name]

    def objects(self, database: str) -> dict[str, CatalogObject]:
        """Tables and views by name."""
        return dict(self._objects_of(database))

    def get(self, database: str, name: str) -> CatalogObject | None:
        """One table or view; None too when the database is missing."""
        return self._objects.get(database, {}).get(name)

    def put(self, database: str, name: str, value: CatalogObject) -> None:
        """Add or replace a table or view."""
        self._objects_of(database)[name] = value

    def drop(self, database: str, name: str) -> None:
        """Remove a table or view."""
        removed = self._objects_of(database).pop(name, None)
        if removed is None:
            raise missing_object(f"{database}.{name}", self.name)
        self._details.pop((database, name), None)

    def details(self, database: str, name: str) -> TableDetails:
        """Partitions and statistics of a table."""
        return self._details.get((database, name), TableDetails())

    def put_details(self, database: str, name: str, details: TableDetails) -> None:
        """Replace them."""
        self._details[database, name] = details

    def functions(self, database: str) -> dict[str, CatalogFunction]:
        """User functions by name."""
        return dict(self._functions.get(database, {}))

    def put_function(self, database: str, name: str, function: CatalogFunction) -> None:
        """Add or replace a function."""
        self._objects_of(database)
        self._functions[database][name] = function

    def drop_function(self, database: str, name: str) -> None:
        """Remove a function."""
        del self._functions[database][name]

    def _objects_of(self, database: str) -> dict[str, CatalogObject]:
        if database not in self._objects:
            raise BindError("database-not-found", f"Database {database} does not exist in Catalog {self.name}.")
        return self._objects[database]


def scratch_of(catalog: Catalog, default_database: str) -> Catalog:
    """What a catalog holds, in memory: changes of the copy stay there. One that nothing changes stands for itself."""
    if isinstance(catalog, ReadOnlyCatalog):
        return catalog
    made = GenericInMemoryCatalog(catalog.name, default_database)
    for name in catalog.databases():
        database = catalog.database(name)
        if database is None:
            continue
        if made.database(name) is None:
            made.create_database(name, database)
        else:
            made.alter_database(name, database)
        for each, value in catalog.objects(name).items():
            made.put(name, each, value)
            made.put_details(name, each, catalog.details(name, each))
        for each, function in catalog.functions(name).items():
            made.put_function(name, each, function)
    return made


def existing_object(name: str, catalog: str) -> BindError:
    """Flink's TableAlreadyExistException."""
    return BindError("table-exists", f"Table (or view) {name} already exists in Catalog {catalog}.")


def missing_object(name: str, catalog: str) -> BindError:
    """Flink's TableNotExistException."""
    return BindError("table-not-found", f"Table (or view) {name} does not exist in Catalog {catalog}.")


def is_view(value: CatalogObject) -> bool:
    """Whether a catalog object is a view."""
    return not isinstance(value, CatalogTable)
