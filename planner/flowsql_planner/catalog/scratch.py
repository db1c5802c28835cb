"""Catalogs for statements that are only tried out: what they define is gone with them, whatever keeps the originals."""

from __future__ import annotations

from flowsql_core.catalog import Catalog
from flowsql_core.secrets.placeholders import filled
from flowsql_core.span import Span
from flowsql_planner.catalog.factory import DEFAULT_DATABASE, PATH, create_catalog
from flowsql_planner.catalog.manager import CatalogManager
from flowsql_planner.catalog.memory import scratch_of
from flowsql_planner.catalog.schema import Options


class ScratchCatalogs(CatalogManager):
    """Copies in memory of the catalogs of a session, and of those that CREATE CATALOG opens."""

    def __init__(self, original: CatalogManager) -> None:
        super().__init__()
        self.take_over(original)

    def open_catalog(self, name: str, options: Options, at: Span | None = None) -> tuple[Catalog, str]:
        """A copy of the catalog; a folder that is not there yet is not made."""
        given = {key: filled(value) for key, value in options}
        if given.get("type") == "file" and given.get(PATH):
            from flowsql_planner.catalog.file import FileCatalog

            if not FileCatalog.is_made(given[PATH], given.get(DEFAULT_DATABASE, "default")):
                kept = {key: value for key, value in given.items() if key != PATH} | {"type": "generic_in_memory"}
                return create_catalog(name, tuple(kept.items()), at)
        catalog, default = create_catalog(name, options, at)
        return scratch_of(catalog, default), default
