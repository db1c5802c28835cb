"""``CatalogManager``: all catalogs of a session, what is current, temporary objects, and the resolution of names.

Temporary tables and views shadow permanent ones of the same path. Error texts are Flink's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property

from flowsql_core.catalog import (
    Catalog,
    CatalogDatabase,
    CatalogObject,
    CatalogTable,
    CatalogView,
    ObjectPath,
    TableKeeper,
)
from flowsql_core.errors import BindError, did_you_mean
from flowsql_core.record import record
from flowsql_core.span import Span
from flowsql_planner.catalog.factory import create_catalog
from flowsql_planner.catalog.functions import FunctionManager
from flowsql_planner.catalog.memory import GenericInMemoryCatalog, existing_object, scratch_of
from flowsql_planner.catalog.modules import ModuleManager
from flowsql_planner.catalog.schema import Options
from flowsql_planner.catalog.store import CatalogDescriptor, CatalogStore, MemoryCatalogStore
from flowsql_planner.error_position import errors_at

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

    def __init__(
        self, store: CatalogStore | None = None, catalog: str = DEFAULT_CATALOG, database: str = DEFAULT_DATABASE
    ) -> None:
        self._catalogs: dict[str, Catalog] = {catalog: GenericInMemoryCatalog(catalog, database)}
        self._default_databases: dict[str, str] = {catalog: database}
        self._given_store = store
        self._temporary: dict[ObjectPath, CatalogObject] = {}
        #: What to do with a word about files whose columns were inferred; the first time a session names them.
        self.on_inferred: Callable[[str, str], None] | None = None
        self._told: set[tuple[str, str]] = set()
        self.current_catalog = catalog
        self.current_database = database

    @cached_property
    def store(self) -> CatalogStore:
        """Definitions of the catalogs that CREATE CATALOG made, in this session or (kind ``file``) in others."""
        return self._given_store or MemoryCatalogStore()

    @cached_property
    def functions(self) -> FunctionManager:
        """User functions of the session."""
        return FunctionManager(self)

    @property
    def has_functions(self) -> bool:
        """Whether there may be user functions: one was made here, or a catalog outlives the session."""
        return "functions" in self.__dict__ or self._has_store

    @cached_property
    def modules(self) -> ModuleManager:
        """Modules of system functions."""
        return ModuleManager()

    def modules_used(self) -> tuple[str, ...] | None:
        """Return the names of the modules in use, in order; None while they are those of a new session."""
        return tuple(self.modules.used) if "modules" in self.__dict__ else None

    def tell_inferred(self, name: str, note: str) -> None:
        """Columns were inferred; said once for each name, and again where something else was found."""
        if self.on_inferred is not None and (name, note) not in self._told:
            self._told.add((name, note))
            self.on_inferred(name, note)

    def take_over(self, other: CatalogManager) -> None:
        """Know what another manager knows, and share nothing with it that changes.

        Raises:
            BindError, ConnectorError: a catalog of the store cannot be opened.
        """
        for name in other.catalog_names():
            catalog = other.find_catalog(name)
            assert catalog is not None
            self._catalogs[name] = scratch_of(catalog, other.default_database(name))
            self._default_databases[name] = other.default_database(name)
        if other._has_store:
            for name in other.store.names():
                self.store.put(name, other.descriptor(name))
        self._temporary = dict(other._temporary)
        if "functions" in other.__dict__:
            self.functions.take_over(other.functions)
        if "modules" in other.__dict__:
            self.modules.take_over(other.modules)
        self.current_catalog, self.current_database = other.current_catalog, other.current_database

    # Catalogs

    def catalog_names(self) -> list[str]:
        """Names, sorted."""
        return sorted({*self._catalogs, *(self.store.names() if self._has_store else ())})

    @property
    def _has_store(self) -> bool:
        return self._given_store is not None or "store" in self.__dict__

    def find_catalog(self, name: str) -> Catalog | None:
        """A catalog by name; one that only the store knows is made now."""
        found = self._catalogs.get(name)
        if found is None and self._has_store:
            descriptor = self.store.get(name)
            if descriptor is not None:
                found, self._default_databases[name] = self.open_catalog(name, descriptor.options)
                self._catalogs[name] = found
        return found

    def open_catalog(self, name: str, options: Options, at: Span | None = None) -> tuple[Catalog, str]:
        """A catalog as CREATE CATALOG describes it, and its default database."""
        return create_catalog(name, options, at)

    def catalog(self, name: str, at: Span | None = None) -> Catalog:
        """A catalog by name; BindError when there is none."""
        found = self.find_catalog(name)
        if found is None:
            raise BindError(
                "catalog-not-found",
                f"A catalog with name [{name}] does not exist.",
                at,
                did_you_mean(name, self.catalog_names()),
            )
        return found

    def default_database(self, name: str) -> str:
        """The database that USE CATALOG makes current."""
        return self._default_databases[name]

    def register_catalog(self, name: str, catalog: Catalog, default_database: str, at: Span | None = None) -> None:
        """Add a catalog; BindError when the name is taken."""
        if name in self.catalog_names():
            raise BindError("catalog-exists", f"Catalog {name} already exists.", at)
        self._catalogs[name] = catalog
        self._default_databases[name] = default_database

    def create_catalog(self, name: str, descriptor: CatalogDescriptor, at: Span | None = None) -> None:
        """CREATE CATALOG: make it and keep its definition."""
        if name in self.catalog_names():
            raise BindError("catalog-exists", f"Catalog {name} already exists.", at)
        made, default = self.open_catalog(name, descriptor.options, at)
        with errors_at(at):
            self.store.put(name, descriptor)
        self._catalogs[name], self._default_databases[name] = made, default

    def descriptor(self, name: str, at: Span | None = None) -> CatalogDescriptor:
        """The definition of a catalog that CREATE CATALOG made."""
        found = self.store.get(name)
        if found is None:
            hint = did_you_mean(name, self.store.names())
            raise BindError("catalog-not-found", f"Cannot obtain metadata information from Catalog {name}.", at, hint)
        return found

    def alter_catalog(self, name: str, descriptor: CatalogDescriptor, at: Span | None = None) -> None:
        """Replace a catalog's definition. A catalog in memory keeps its objects; others are opened anew."""
        made, default = self.open_catalog(name, descriptor.options, at)
        old = self._catalogs.get(name)
        if isinstance(made, GenericInMemoryCatalog) and isinstance(old, GenericInMemoryCatalog):
            if old.database(default) is None:
                old.create_database(default, CatalogDatabase())
            made = old
        with errors_at(at):
            self.store.put(name, descriptor)
        self._catalogs[name], self._default_databases[name] = made, default

    def unregister_catalog(self, name: str, if_exists: bool = False, at: Span | None = None) -> None:
        """Forget a catalog and its temporary objects."""
        if name not in self.catalog_names():
            if if_exists:
                return
            hint = did_you_mean(name, self.catalog_names())
            raise BindError("catalog-not-found", f"Catalog {name} does not exist.", at, hint)
        if name == self.current_catalog:
            raise BindError("catalog-in-use", "Cannot drop a catalog which is currently in use.", at)
        self._catalogs.pop(name, None)
        self._default_databases.pop(name, None)
        self.store.remove(name)
        for path in [path for path in self._temporary if path.catalog == name]:
            del self._temporary[path]

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
        store = self.existing_catalog(catalog, at)
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
        store = self.existing_catalog(catalog, at)
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
                raise BindError(
                    "bad-identifier",
                    "Object identifier must consist of 1 to 3 parts.",
                    hint=f"'{'.'.join(other)}' has {len(other)}",
                )

    def lookup(self, path: ObjectPath) -> Resolved | None:
        """What stands at a path; a temporary object first."""
        temporary = self._temporary.get(path)
        if temporary is not None:
            return Resolved(path, temporary, True)
        store = self.find_catalog(path.catalog)
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
                raise BindError("table-exists", f"Temporary table '{quoted(path)}' already exists", at)
            self._temporary[path] = value
            return True
        store = self.existing_catalog(path.catalog, at)
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
        if replace and isinstance(store, TableKeeper) and store.get(path.database, path.name) is not None:
            store.drop(path.database, path.name)
        store.put(path.database, path.name, value)
        return True

    def completed(self, path: ObjectPath, table: CatalogTable) -> CatalogTable:
        """A table that is to be created, as it will be once its catalog keeps it."""
        store = self.find_catalog(path.catalog)
        return store.completed(path.database, path.name, table) if isinstance(store, TableKeeper) else table

    def existing_catalog(self, name: str, at: Span | None = None) -> Catalog:
        """A catalog that a statement changes; BindError when there is none."""
        found = self.find_catalog(name)
        if found is None:
            hint = did_you_mean(name, self.catalog_names())
            raise BindError("catalog-not-found", f"Catalog {name} does not exist.", at, hint)
        return found

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
        if new_name is not None and self._exists(target, temporary):  # also under its old name, as in Flink
            error = existing_object(f"{target.database}.{target.name}", target.catalog)
            raise BindError(error.code, error.message, at)
        if temporary:
            del self._temporary[path]
            self._temporary[target] = changed
            return
        store = self.catalog(path.catalog)
        if target != path and isinstance(store, TableKeeper):
            store.rename(path.database, path.name, target.name)
            if value is not None:
                store.put(target.database, target.name, value)
            return
        details = store.details(path.database, path.name) if target != path else None
        if target != path:
            store.drop(path.database, path.name)
        store.put(target.database, target.name, changed)
        if details is not None:
            store.put_details(target.database, target.name, details)

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
                    "table-not-found", f"Temporary table or view with identifier '{path}' does not exist.", at
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
        store = self.find_catalog(path.catalog)
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
        store = self.find_catalog(catalog)
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
