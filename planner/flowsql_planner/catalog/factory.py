"""From ``CREATE CATALOG ... WITH (...)`` to a catalog: its type is looked up, its options are checked as Flink does."""

from __future__ import annotations

from flowsql_connectors import registry
from flowsql_connectors.spi.catalog import CatalogFactory
from flowsql_core.catalog import Catalog
from flowsql_core.errors import BindError, did_you_mean
from flowsql_core.secrets.placeholders import filled
from flowsql_core.secrets.shown import shown_value
from flowsql_core.span import Span
from flowsql_planner.catalog.memory import GenericInMemoryCatalog
from flowsql_planner.catalog.schema import Options
from flowsql_planner.error_position import errors_at

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
        with errors_at(at):
            factory = registry.catalog_factory(kind)
        if factory is not None:
            return _of_connector(name, kind, factory, given, options, at)
        known = sorted((*_SUPPORTED, *registry.catalog_types()))
        raise _unable(
            name,
            f"Could not find any factory for identifier '{kind}' that implements a catalog.\nAvailable factory "
            f"identifiers are: {', '.join(known)}",
            options,
            at,
            did_you_mean(kind, known),
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


def _of_connector(
    name: str, kind: str, factory: CatalogFactory, given: dict[str, str], options: Options, at: Span | None
) -> tuple[Catalog, str]:
    known = factory.options()
    missing = sorted(option.key for option in known.required if not given.get(option.key))
    if missing:
        reason = f"One or more required options are missing.\nMissing required options are: {', '.join(missing)}"
        raise _unable(name, reason, options, at)
    every = {option.key: option for option in (*known.required, *known.optional)}
    unknown = sorted(key for key in given if key not in every and key not in ("type", "property-version"))
    if unknown:
        reason = (
            f"Unsupported options found for '{kind}'.\nUnsupported options: {', '.join(unknown)}\nSupported options: "
            f"{', '.join(sorted((*every, 'property-version')))}"
        )
        raise _unable(name, reason, options, at, did_you_mean(unknown[0], every))
    with errors_at(at):
        for key, text in given.items():
            if key in every:
                every[key].read(text)
        return factory.create_catalog(name, dict(options))


def _unable(name: str, reason: str, options: Options, at: Span | None, hint: str | None = None) -> BindError:
    shown = ", ".join(f"'{key}'='{shown_value(key, value)}'" for key, value in sorted(options))
    return BindError(
        "catalog-options", f"Unable to create catalog '{name}'.\nCatalog options are: {shown}\n{reason}", at, hint
    )
