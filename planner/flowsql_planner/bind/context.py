"""What binding a statement needs to know: catalogs, configuration, and the text it came from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from flowsql_core.catalog import ObjectPath
from flowsql_core.config import RUNTIME_MODE, Configuration, RuntimeMode
from flowsql_core.errors import BindError
from flowsql_core.span import Source, Span
from flowsql_grammar import ast
from flowsql_planner.bind.query.known_views import Asked
from flowsql_planner.bind.sql_text.expand_names import Expansions
from flowsql_planner.catalog.manager import CatalogManager, Resolved
from flowsql_planner.error_position import errors_at
from flowsql_planner.logical.nodes import Rel


@dataclass(slots=True)
class BindContext:
    """One per statement.

    ``source``: the statement's text, which spans point into; None when a program built the tree. ``expanding``: views
    being expanded, outermost first. ``expansions``: while a view is created, what each name of its query stands for.
    ``known``: queries, and bodies of queries, that were bound before, each with its plan, by the ``id`` of the node: a
    chain of methods is bound link by link.
    """

    catalogs: CatalogManager
    config: Configuration
    source: Source | None = None
    expanding: tuple[ObjectPath, ...] = field(default=())
    expansions: Expansions | None = None
    known: Mapping[int, tuple[ast.Node, Rel]] = field(default_factory=dict)
    #: Names of the columns of SELECTs that name two alike, by the ``id`` of the node: who reads them cannot tell which.
    repeated: dict[int, tuple[str, ...]] = field(default_factory=dict)
    #: While a view is created: what was looked up, and plans of other views that were bound for an earlier one.
    asked: Asked | None = None

    @property
    def streaming(self) -> bool:
        """Whether ``execution.runtime-mode`` is not batch."""
        return self.config.get(RUNTIME_MODE) is not RuntimeMode.BATCH

    def plan_of(self, node: ast.Node) -> Rel | None:
        """The plan of a query, or of its body, that was bound before."""
        found = self.known.get(id(node))
        return None if found is None else found[1]

    def qualify(self, name: ast.Identifier) -> ObjectPath:
        """The full path of a name of one to three parts."""
        with errors_at(name.span):
            return self.catalogs.qualify(name.texts)

    def database_path(self, name: ast.Identifier) -> tuple[str, str]:
        """Catalog and database of a name of one or two parts."""
        match name.texts:
            case (database,):
                return self.catalogs.current_catalog, database
            case (catalog, database):
                return catalog, database
        raise BindError(
            "bad-identifier", "database identifier format error", name.span, "write database, or catalog.database"
        )

    def text_of(self, span: Span | None) -> str | None:
        """The SQL between two positions, white space collapsed; None when there is no text."""
        if self.source is None or span is None or span.end <= span.start:
            return None
        return " ".join(self.source.text[span.start : span.end].split()) or None

    def inside(self, path: ObjectPath) -> BindContext:
        """The context of a view's query, a level deeper."""
        asked = None if self.asked is None else Asked()
        return BindContext(self.catalogs, self.config, self.source, (*self.expanding, path), asked=asked)

    def note_function(self, parts: tuple[str, ...]) -> None:
        """Note that the query depends on what a function's name stands for."""
        if self.asked is not None and self.catalogs.has_functions:
            found = self.catalogs.functions.find_user(parts) if len(parts) <= 3 else None
            self.asked.functions.append((parts, found))

    def lookup(self, path: ObjectPath) -> Resolved | None:
        """Return what is at a path of the catalogs, and note that the query depends on it."""
        found = self.catalogs.lookup(path)
        if self.asked is not None:
            self.asked.objects.append((path, None if found is None else found.value))
        return found
