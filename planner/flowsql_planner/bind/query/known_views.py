"""Plans of views kept from one CREATE VIEW to the next: a chain of n views is bound in n steps, not n * n / 2.

CREATE VIEW needs no more of the views it reads than their columns, and that their queries can still be bound. Both
follow from an earlier binding as long as every name in the view's query, and in those of the views below, still means
the same object. Queries that run are always bound whole: their plans point into their own text.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

from flowsql_core.catalog import CatalogObject, CatalogView, ObjectPath
from flowsql_core.config import Configuration
from flowsql_planner.catalog.manager import CatalogManager
from flowsql_planner.logical.nodes import Rel

#: Views whose plans are kept; the plans are forgotten together beyond that.
_MOST = 4096


@dataclass(slots=True, eq=False)
class Asked:
    """What the binding of a view's query has looked up, and what it found."""

    objects: list[tuple[ObjectPath, CatalogObject | None]] = field(default_factory=list)
    functions: list[tuple[tuple[str, ...], object]] = field(default_factory=list)
    views: list[KnownView] = field(default_factory=list)
    #: The query read what can change without a statement, such as the columns of a file.
    is_volatile: bool = False


@dataclass(slots=True, eq=False)
class KnownView:
    """The plan of a view, and under which conditions it is still valid."""

    path: ObjectPath
    view: CatalogView
    settings: Hashable
    asked: Asked
    rel: Rel
    #: Connectors have agreed to read all its tables.
    is_readable: bool = False


_KNOWN: WeakKeyDictionary[CatalogManager, dict[ObjectPath, KnownView]] = WeakKeyDictionary()


def known_view(
    catalogs: CatalogManager, config: Configuration, path: ObjectPath, view: CatalogView
) -> KnownView | None:
    """Return the plan of a view from an earlier binding; None if there is none, or if it may have changed."""
    found = _KNOWN.get(catalogs, {}).get(path)
    if found is None or found.view is not view or found.settings != _settings(catalogs, config):
        return None
    open_ = [found]
    seen: set[int] = set()
    while open_:
        entry = open_.pop()
        if id(entry) in seen:
            continue
        seen.add(id(entry))
        asked = entry.asked
        if any(_object(catalogs, place) is not value for place, value in asked.objects):
            return None
        if any(catalogs.functions.find_user(parts) is not value for parts, value in asked.functions):
            return None
        open_.extend(asked.views)
    return found


def remember_view(
    catalogs: CatalogManager, config: Configuration, path: ObjectPath, view: CatalogView, asked: Asked, rel: Rel
) -> KnownView:
    """Keep the plan of a view that was just bound, unless it can change without a statement."""
    made = KnownView(path, view, _settings(catalogs, config), asked, rel)
    if not asked.is_volatile:
        entries = _KNOWN.setdefault(catalogs, {})
        if len(entries) >= _MOST:
            entries.clear()
        entries[path] = made
    return made


def _object(catalogs: CatalogManager, path: ObjectPath) -> Any:
    found = catalogs.lookup(path)
    return None if found is None else found.value


def _settings(catalogs: CatalogManager, config: Configuration) -> Hashable:
    current = (catalogs.current_catalog, catalogs.current_database)
    return (tuple(config.items()), current, catalogs.modules_used(), catalogs.has_functions)
