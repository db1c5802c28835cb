"""``FunctionManager``: user functions of a session, temporary and permanent ones. Names are compared in lower case.

Resolution as in Flink: temporary system functions, system functions (not here), temporary functions of the catalog,
functions of the catalog.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from flowsql_core.catalog import Catalog, CatalogFunction, ObjectPath
from flowsql_core.errors import BindError, did_you_mean
from flowsql_core.record import record
from flowsql_core.span import Span

if TYPE_CHECKING:
    from flowsql_core.udf import ScalarUdf


class Catalogs(Protocol):
    """What functions ask of the session's catalogs."""

    def qualify(self, parts: Sequence[str]) -> ObjectPath:
        """The full path of a name of one to three parts."""
        ...

    def find_catalog(self, name: str) -> Catalog | None:
        """A catalog by name."""
        ...

    def catalog(self, name: str, at: Span | None = None) -> Catalog:
        """A catalog by name; BindError when there is none."""
        ...

    def existing_catalog(self, name: str, at: Span | None = None) -> Catalog:
        """As :meth:`catalog`, in the words of statements about objects."""
        ...


@record
class UserFunction:
    """A function that a name stood for. ``name``: as plans show it."""

    name: str
    definition: CatalogFunction


class FunctionManager:
    """The functions that CREATE FUNCTION made."""

    def __init__(self, catalogs: Catalogs) -> None:
        self._catalogs = catalogs
        self._temporary: dict[ObjectPath, CatalogFunction] = {}
        self._system: dict[str, CatalogFunction] = {}
        #: Functions that SQL named, by path, text and name.
        self._loaded: dict[tuple[str, str | None, str], ScalarUdf] = {}

    def take_over(self, other: FunctionManager) -> None:
        """Know the temporary functions of another session."""
        self._temporary, self._system, self._loaded = dict(other._temporary), dict(other._system), dict(other._loaded)

    def qualify(self, parts: Sequence[str]) -> ObjectPath:
        """The full path of a function's name, its last part in lower case."""
        path = self._catalogs.qualify(parts)
        return ObjectPath(path.catalog, path.database, path.name.lower())

    def find_system(self, name: str) -> CatalogFunction | None:
        """A temporary system function: these come before all others."""
        return self._system.get(name.lower())

    def find(self, parts: Sequence[str]) -> CatalogFunction | None:
        """The function of a name, system functions of FlowSQL apart."""
        if len(parts) == 1 and (system := self.find_system(parts[0])) is not None:
            return system
        path = self.qualify(parts)
        return self._temporary.get(path) or self._permanent(path)

    def find_user(self, parts: Sequence[str]) -> UserFunction | None:
        """:meth:`find`, with the name that plans show."""
        found = self.find(parts)
        return None if found is None else UserFunction(parts[-1].lower(), found)

    def load(self, function: UserFunction) -> ScalarUdf:
        """The Python object behind a function; one that SQL named is imported, or run, once a session.

        Raises:
            BindError: it cannot be loaded, or is no function.
        """
        # Imported on use: only a session that calls a user's function needs it.
        from flowsql_core.udf_source import load_path, load_source

        definition = function.definition
        if definition.function is not None:
            registered: ScalarUdf = definition.function
            return registered
        key = (definition.class_name, definition.source, function.name)
        if key not in self._loaded:
            self._loaded[key] = (
                load_path(definition.class_name)
                if definition.source is None
                else load_source(definition.source, function.name)
            )
        return self._loaded[key]

    def is_temporary(self, parts: Sequence[str]) -> bool:
        """Whether a name stands for a temporary function."""
        return (len(parts) == 1 and self.find_system(parts[0]) is not None) or self.qualify(parts) in self._temporary

    def names(self, catalog: str, database: str) -> list[str]:
        """Names that are visible in a database, sorted."""
        store = self._catalogs.find_catalog(catalog)
        found = {*self._system, *(store.functions(database) if store is not None else ())}
        found.update(path.name for path in self._temporary if (path.catalog, path.database) == (catalog, database))
        return sorted(found)

    # Changes

    def create_system(self, name: str, function: CatalogFunction, if_not_exists: bool, at: Span | None) -> None:
        """CREATE TEMPORARY SYSTEM FUNCTION."""
        if name.lower() in self._system:
            if if_not_exists:
                return
            raise BindError(
                "function-exists",
                f"Could not register temporary system function. A function named '{name.lower()}' does already exist.",
                at,
            )
        self._system[name.lower()] = function

    def create(
        self, path: ObjectPath, function: CatalogFunction, temporary: bool, if_not_exists: bool, at: Span | None
    ) -> None:
        """CREATE [TEMPORARY] FUNCTION."""
        if temporary:
            if path in self._temporary:
                if if_not_exists:
                    return
                raise BindError(
                    "function-exists",
                    f"Could not register temporary catalog function. A function '{path}' does already exist.",
                    at,
                )
            self._temporary[path] = function
            return
        store = self._catalogs.existing_catalog(path.catalog, at)
        if store.database(path.database) is None:
            raise BindError(
                "database-not-found",
                f"Database {path.database} does not exist in Catalog {path.catalog}.",
                at,
                did_you_mean(path.database, store.databases()),
            )
        if self._permanent(path) is not None:
            if if_not_exists:
                return
            raise BindError(
                "function-exists",
                f"Function {path.database}.{path.name} already exists in Catalog {path.catalog}.",
                at,
            )
        store.put_function(path.database, path.name, function)

    def alter(self, path: ObjectPath, function: CatalogFunction, if_exists: bool, at: Span | None) -> None:
        """ALTER FUNCTION."""
        if self._permanent(path) is None:
            if if_exists:
                return
            raise self._missing(path, at)
        self._catalogs.catalog(path.catalog).put_function(path.database, path.name, function)

    def drop_system(self, name: str, if_exists: bool, at: Span | None) -> None:
        """DROP TEMPORARY SYSTEM FUNCTION."""
        if self._system.pop(name.lower(), None) is None and not if_exists:
            raise BindError(
                "function-not-found",
                f"Could not drop temporary system function. A function named '{name}' doesn't exist.",
                at,
                did_you_mean(name, self._system),
            )

    def drop(self, path: ObjectPath, temporary: bool, if_exists: bool, at: Span | None) -> None:
        """DROP [TEMPORARY] FUNCTION."""
        if temporary:
            if self._temporary.pop(path, None) is None and not if_exists:
                quoted = ".".join(f"`{part}`" for part in path.parts)
                raise BindError("function-not-found", f"Temporary catalog function {quoted} doesn't exist", at)
            return
        # Its catalog has to exist even IF EXISTS, as in Flink.
        store = self._catalogs.existing_catalog(path.catalog, at)
        if self._permanent(path) is None:
            if if_exists:
                return
            raise self._missing(path, at)
        store.drop_function(path.database, path.name)

    def _permanent(self, path: ObjectPath) -> CatalogFunction | None:
        store = self._catalogs.find_catalog(path.catalog)
        return None if store is None else store.functions(path.database).get(path.name)

    def _missing(self, path: ObjectPath, at: Span | None) -> BindError:
        return BindError(
            "function-not-found",
            f"Function {path.database}.{path.name} does not exist in Catalog {path.catalog}.",
            at,
            did_you_mean(path.name, self.names(path.catalog, path.database)),
        )
