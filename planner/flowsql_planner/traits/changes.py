"""The words of changelog inference: kinds of modification of a table, and how updates are encoded on an edge."""

from __future__ import annotations

import enum

from flowsql_core.row import ChangelogMode, RowKind


class Modify(enum.Enum):
    """A kind of modification of a table."""

    INSERT = "insert"
    UPDATE = "update"
    DELETE = "delete"


Modifies = frozenset[Modify]
INSERTS: Modifies = frozenset({Modify.INSERT})
ALL: Modifies = frozenset(Modify)


class Updates(enum.Enum):
    """How updates are encoded on an edge."""

    NONE = "none"
    AFTER = "only after"
    BEFORE_AND_AFTER = "before and after"


def modifies_of(mode: ChangelogMode) -> Modifies:
    """Modifications that a changelog mode can carry."""
    kinds = {Modify.INSERT} if mode.contains(RowKind.INSERT) else set()
    if mode.contains(RowKind.UPDATE_AFTER) or mode.contains(RowKind.UPDATE_BEFORE):
        kinds.add(Modify.UPDATE)
    if mode.contains(RowKind.DELETE):
        kinds.add(Modify.DELETE)
    return frozenset(kinds)


def updates_of(mode: ChangelogMode) -> Updates:
    """How a changelog mode encodes updates."""
    if not mode.contains(RowKind.UPDATE_AFTER):
        return Updates.NONE
    return Updates.BEFORE_AND_AFTER if mode.contains(RowKind.UPDATE_BEFORE) else Updates.AFTER


def mode_of(modifies: Modifies, updates: Updates, key_only_deletes: bool = False) -> ChangelogMode:
    """The changelog mode of an edge."""
    kinds = set()
    if Modify.INSERT in modifies:
        kinds.add(RowKind.INSERT)
    if Modify.DELETE in modifies:
        kinds.add(RowKind.DELETE)
    if Modify.UPDATE in modifies and updates is not Updates.NONE:
        kinds.add(RowKind.UPDATE_AFTER)
        if updates is Updates.BEFORE_AND_AFTER:
            kinds.add(RowKind.UPDATE_BEFORE)
    return ChangelogMode(frozenset(kinds), key_only_deletes and Modify.DELETE in modifies)


def where_updated(modifies: Modifies, updates: Updates) -> Updates:
    """``updates`` on an edge that carries updates, NONE on any other."""
    return updates if Modify.UPDATE in modifies else Updates.NONE
