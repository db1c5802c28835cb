"""``CatalogManager``: all catalogs of a session, what is current, temporary objects, and the resolution of names.

Temporary tables and views shadow permanent ones of the same path. Error texts are Flink's.
"""

from __future__ import annotations

from collections.abc import Sequence

from flowsql_core.catalog import (
    Catalog,
    CatalogDatabase,
    CatalogObject,
    CatalogTable,
    CatalogView,
    ObjectPath,
)
from flowsql_core.errors import BindError, did_you_mean
from flowsql_core.record import record
from flowsql_core.span import Span
from flowsql_planner.catalog.memory import GenericInMemoryCatalog, existing_object

DEFAULT_CATALOG = "default_catalog"
DEFAULT_DATABASE = "default_database"


@record
class Resolved:
    """An object that a name stood for."""

    path: ObjectPath
    value: CatalogObject
    temporary: bool


class CatalogManager:
    """The catalogs of one session. Not thread-safe: a session executes one statement at a time."""

    def __init__(self) -> None:
        self._catalogs: dict[str, Catalog] = {
            DEFAULT_CATALOG: GenericInMemoryCatalog(DEFAULT_CATALOG, DEFAULT_DATABASE)
        }
        self._default_databases: dict[str, str] = {DEFAULT_CATALOG: DEFAULT_DATABASE}
        self._catalog_options: dict[str, tuple[tuple[str, str], ...]] = {DEFAULT_CATALOG: ()}
        self._temporary: dict[ObjectPath, CatalogObject] = {}
        self.current_catalog = DEFAULT_CATALOG
        self.current_database = DEFAULT_DATABASE

    # Catalogs

    def catalog_names(self) -> list[str]:
        """Names, sorted."""
        return sorted(self._catalogs)

    def catalog(self, name: str, at: Span | None = None) -> Catalog:
        """A catalog by name; BindError when there is none."""
        found = self._catalogs.get(name)
        if found is None:
            raise BindError(
                "catalog-not-found",
                f"A catalog with name [{name}] does not exist.",
                at,
                did_you_mean(name, self._catalogs),
            )
        return found

    def register_catalog(
        self,
        name: str,
        catalog: Catalog,
        default_database: str,
        options: tuple[tuple[str, str], ...] = (),
        at: Span | None = None,
    ) -> None:
        """Add a catalog; BindError when the name is taken."""
        if name in self._catalogs:
            raise BindError("catalog-exists", f"Catalog {name} already exists.", at)
        self._catalogs[name] = catalog
        self._default_databases[name] = default_database
        self._catalog_options[name] = options

    def unregister_catalog(self, name: str, if_exists: bool = False, at: Span | None = None) -> None:
        """Forget a catalog and its temporary objects."""
        if name not in self._catalogs:
            if if_exists:
                return
            raise BindError("catalog-not-found", f"Catalog {name} does not exist.", at)
        if name == self.current_catalog:
            raise BindError("catalog-in-use", "Cannot drop a catalog which is currently in use.", at)
        del self._catalogs[name], self._default_databases[name], self._catalog_options[name]
        for path in [path for path in self._temporary if path.catalog == name]:
            del self._temporary[path]

    def catalog_options(self, name: str) -> tuple[tuple[str, str], ...]:
        """Options that the catalog was created with."""
        return self._catalog_options[name]

    def use_catalog(self, name: str, at: Span | None = None) -> None:
        """Make a catalog current, and its default database."""
        self.catalog(name, at)
        self.current_catalog = name
        self.current_database = self._default_databases[name]

    def use_database(self, catalog: str, name: str, at: Span | None = None) -> None:
        """Make a database current, and its catalog."""
        self.require_database(catalog, name, at)
        self.current_catalog, self.current_database = catalog, name

    # Databases

    def require_database(self, catalog: str, name: str, at: Span | None = None) -> CatalogDatabase:
        """A database, or BindError in Flink's words."""
        store = self.catalog(catalog, at)
        found = store.database(name)
        if found is None:
            raise BindError(
                "database-not-found",
                f"A database with name [{name}] does not exist in the catalog: [{catalog}].",
                at,
                did_you_mean(name, store.databases()),
            )
        return found

    def create_database(
        self, catalog: str, name: str, database: CatalogDatabase, if_not_exists: bool = False, at: Span | None = None
    ) -> None:
        """Add a database to a catalog."""
        store = self.catalog(catalog, at)
        if store.database(name) is not None:
            if if_not_exists:
                return
            raise BindError("database-exists", f"Database {name} already exists in Catalog {catalog}.", at)
        store.create_database(name, database)

    def alter_database(self, catalog: str, name: str, database: CatalogDatabase, at: Span | None = None) -> None:
        """Replace comment and properties of a database."""
        self.require_database(catalog, name, at)
        self.catalog(catalog, at).alter_database(name, database)

    def drop_database(
        self, catalog: str, name: str, if_exists: bool = False, cascade: bool = False, at: Span | None = None
    ) -> None:
        """Remove a database; ``cascade`` removes its tables and views first."""
        if (catalog, name) == (self.current_catalog, self.current_database):
            raise BindError("database-in-use", "Cannot drop a database which is currently in use.", at)
        store = self.catalog(catalog, at)
        if store.database(name) is None:
            if if_exists:
                return
            raise BindError("database-not-found", f"Database {name} does not exist in Catalog {catalog}.", at)
        objects = store.objects(name)
        if objects and not cascade:
            raise BindError(
                "database-not-empty",
                f"Database {name} in catalog {catalog} is not empty.",
                at,
                "DROP DATABASE ... CASCADE drops its tables and views too",
            )
        for object_name in objects:
            store.drop(name, object_name)
        store.drop_database(name)

    # Tables and views

    def qualify(self, parts: Sequence[str]) -> ObjectPath:
        """The full path of a name of one to three parts."""
        match tuple(parts):
            case (name,):
                return ObjectPath(self.current_catalog, self.current_database, name)
            case (database, name):
                return ObjectPath(self.current_catalog, database, name)
            case (catalog, database, name):
                return ObjectPath(catalog, database, name)
            case other:
                raise BindError("bad-identifier", f"'{'.'.join(other)}' has more than three parts.")

    def lookup(self, path: ObjectPath) -> Resolved | None:
        """What stands at a path; a temporary object first."""
        temporary = self._temporary.get(path)
        if temporary is not None:
            return Resolved(path, temporary, True)
        store = self._catalogs.get(path.catalog)
        value = None if store is None else store.get(path.database, path.name)
        return None if value is None else Resolved(path, value, False)

    def create(
        self,
        path: ObjectPath,
        value: CatalogObject,
        *,
        temporary: bool = False,
        if_not_exists: bool = False,
        replace: bool = False,
        at: Span | None = None,
    ) -> bool:
        """Add a table or view. False when it exists already and ``if_not_exists`` lets that pass."""
        if temporary:
            if path in self._temporary and not replace:
                if if_not_exists:
                    return False
                kind = "view" if isinstance(value, CatalogView) else "table"
                raise BindError("table-exists", f"Temporary {kind} '{quoted(path)}' already exists", at)
            self.catalog(path.catalog, at)
            self._temporary[path] = value
            return True
        store = self.catalog(path.catalog, at)
        if store.database(path.database) is None:
            raise BindError(
                "database-not-found",
                f"Database {path.database} does not exist in Catalog {path.catalog}.",
                at,
                did_you_mean(path.database, store.databases()),
            )
        if store.get(path.database, path.name) is not None and not replace:
            if if_not_exists:
                return False
            error = existing_object(f"{path.database}.{path.name}", path.catalog)
            raise BindError(error.code, error.message, at)
        store.put(path.database, path.name, value)
        return True

    def alter(
        self,
        path: ObjectPath,
        value: CatalogObject | None,
        new_name: str | None = None,
        temporary: bool = False,
        at: Span | None = None,
    ) -> None:
        """Replace what stands at a path and/or rename it."""
        found = self._temporary.get(path) if temporary else self.catalog(path.catalog).get(path.database, path.name)
        if found is None:
            raise BindError("table-not-found", f"Table with identifier '{path}' does not exist.", at)
        changed = found if value is None else value
        target = path if new_name is None else ObjectPath(path.catalog, path.database, new_name)
        if target != path and self._exists(target, temporary):
            error = existing_object(f"{target.database}.{target.name}", target.catalog)
            raise BindError(error.code, error.message, at)
        if temporary:
            del self._temporary[path]
            self._temporary[target] = changed
            return
        store = self.catalog(path.catalog)
        if target != path:
            store.drop(path.database, path.name)
        store.put(target.database, target.name, changed)

    def drop(
        self,
        path: ObjectPath,
        kind: type[CatalogTable] | type[CatalogView],
        *,
        temporary: bool = False,
        if_exists: bool = False,
        at: Span | None = None,
    ) -> None:
        """Remove a table (or view): the temporary one if ``temporary``, else the permanent one."""
        word = "View" if kind is CatalogView else "Table"
        shadow = self._temporary.get(path)
        if temporary:
            if isinstance(shadow, kind):
                del self._temporary[path]
            elif not if_exists:
                raise BindError(
                    "table-not-found", f"Temporary {word.lower()} with identifier '{path}' does not exist.", at
                )
            return
        if isinstance(shadow, kind):
            raise BindError(
                "temporary-shadows",
                f"Temporary {word.lower()} with identifier '{quoted(path)}' exists. Drop it first before removing the "
                f"permanent {word.lower()}.",
                at,
                f"DROP TEMPORARY {word.upper()} drops it",
            )
        store = self._catalogs.get(path.catalog)
        found = None if store is None else store.get(path.database, path.name)
        if store is not None and isinstance(found, kind):
            store.drop(path.database, path.name)
        elif not if_exists:
            raise BindError(
                "table-not-found",
                f"{word} with identifier '{path}' does not exist.",
                at,
                self._drop_hint(path, found),
            )

    def _drop_hint(self, path: ObjectPath, found: CatalogObject | None) -> str | None:
        if found is not None:
            return "it is a table: DROP TABLE" if isinstance(found, CatalogTable) else "it is a view: DROP VIEW"
        return did_you_mean(path.name, self.object_names(path.catalog, path.database))

    def object_names(self, catalog: str, database: str, kind: type[CatalogView] | None = None) -> list[str]:
        """Names of tables and views (or of views alone) of a database, temporary ones with them, sorted."""
        store = self._catalogs.get(catalog)
        objects: dict[str, CatalogObject] = {}
        if store is not None and store.database(database) is not None:
            objects.update(store.objects(database))
        for path, value in self._temporary.items():
            if (path.catalog, path.database) == (catalog, database):
                objects[path.name] = value
        return sorted(name for name, value in objects.items() if kind is None or isinstance(value, kind))

    def _exists(self, path: ObjectPath, temporary: bool) -> bool:
        if temporary:
            return path in self._temporary
        return self.catalog(path.catalog).get(path.database, path.name) is not None


def quoted(path: ObjectPath) -> str:
    """A path with each part in back-ticks, as Flink's messages and SHOW CREATE print it."""
    return ".".join("`" + part.replace("`", "``") + "`" for part in path.parts)
