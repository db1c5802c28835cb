"""From ``CREATE CATALOG ... WITH (...)`` to a catalog: its type is looked up, its options are checked as Flink does."""

from __future__ import annotations

from flowsql_core.catalog import Catalog
from flowsql_core.errors import BindError, did_you_mean
from flowsql_core.secrets.placeholders import filled
from flowsql_core.span import Span
from flowsql_planner.catalog.memory import GenericInMemoryCatalog
from flowsql_planner.catalog.schema import Options

DEFAULT_DATABASE = "default-database"
PATH = "path"
_SUPPORTED = {
    "file": (DEFAULT_DATABASE, PATH, "property-version"),
    "generic_in_memory": (DEFAULT_DATABASE, "property-version"),
}


def create_catalog(name: str, options: Options, at: Span | None = None) -> tuple[Catalog, str]:
    """A new catalog and the name of its default database.

    Raises:
        BindError: no such type, or options that the type does not know (Flink's words).
    """
    given = {key: filled(value) for key, value in options}
    kind = given.get("type")
    if kind is None:
        raise _unable(
            name, "Catalog options do not contain an option key 'type' for discovering a catalog.", options, at
        )
    if kind not in _SUPPORTED:
        raise _unable(
            name,
            f"Could not find any factory for identifier '{kind}' that implements a catalog.\nAvailable factory "
            f"identifiers are: {', '.join(_SUPPORTED)}",
            options,
            at,
            did_you_mean(kind, _SUPPORTED),
        )
    unknown = sorted(key for key in given if key != "type" and key not in _SUPPORTED[kind])
    if unknown:
        raise _unable(
            name,
            f"Unsupported options found for '{kind}'.\nUnsupported options: {', '.join(unknown)}\nSupported options: "
            f"{', '.join(_SUPPORTED[kind])}",
            options,
            at,
            did_you_mean(unknown[0], _SUPPORTED[kind]),
        )
    database = given.get(DEFAULT_DATABASE, "default")
    if not database:
        raise _unable(name, "defaultDatabase cannot be null or empty", options, at)
    if kind == "generic_in_memory":
        return GenericInMemoryCatalog(name, database), database
    if not given.get(PATH):
        raise _unable(
            name,
            "One or more required options are missing.\nMissing required options are: path",
            options,
            at,
            "'path' is the folder that holds the catalog's objects",
        )
    # Imported on use: most sessions have no catalog of files.
    from flowsql_planner.catalog.file import FileCatalog

    return FileCatalog(name, given[PATH], database), database


def _unable(name: str, reason: str, options: Options, at: Span | None, hint: str | None = None) -> BindError:
    shown = ", ".join(f"'{key}'='{value}'" for key, value in sorted(options))
    return BindError(
        "catalog-options", f"Unable to create catalog '{name}'.\nCatalog options are: {shown}\n{reason}", at, hint
    )
