"""Statements that write and delete rows, executed with many rows at once."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import sqlalchemy as sa
from sqlalchemy.types import NullType

from flowsql_connectors.jdbc.alchemy.expressions import expression, table_of
from flowsql_connectors.jdbc.alchemy.kinds import UPSERTS
from flowsql_connectors.jdbc.database import Target
from flowsql_core.types import logical as t


def parameter(at: int) -> str:
    """The name of the parameter of a declared column."""
    return f"flowsql_p{at}"


def _given(at: int) -> Any:
    return sa.bindparam(parameter(at), type_=NullType())


def deleting(target: Target, kind: str) -> Any:
    """Deletes the row of a key."""
    table = table_of(target.table, (there.name for there in target.native))
    return sa.delete(table).where(*_met(target, table, kind))


def writing(target: Target, types: Mapping[str, Any], kind: str) -> list[Any]:
    """Statements that write a row, one behind another: insert it where there is no key, else insert or replace by key.

    Args:
        types: of the columns of the table, as SQLAlchemy reflected them.
    """
    names = [there.name for there in target.native]
    table = table_of(target.table, names)
    values = {name: _given(at) for at, name in enumerate(names)}
    if not target.keys:
        return [sa.insert(table).values(values)]
    keys = [names[at] for at in target.keys]
    others = [name for at, name in enumerate(names) if at not in target.keys]
    words = UPSERTS.get(kind)
    if words == "mysql" and any("%" in name for name in others):
        # SQLAlchemy escapes these twice within VALUES().
        words = None
    match words:
        case "mysql":
            insert = import_module("sqlalchemy.dialects.mysql").insert(table).values(values)
            # A column of the key stands for itself where there is no other.
            return [insert.on_duplicate_key_update({name: insert.inserted[name] for name in others or keys[:1]})]
        case None:
            return _by_steps(target, table, types, others, kind)
        case _:
            insert = import_module(f"sqlalchemy.dialects.{words}").insert(table).values(values)
            if not others:
                return [insert.on_conflict_do_nothing(index_elements=keys)]
            updates = {name: insert.excluded[name] for name in others}
            return [insert.on_conflict_do_update(index_elements=keys, set_=updates)]


def _by_steps(target: Target, table: Any, types: Mapping[str, Any], others: list[str], kind: str) -> list[Any]:
    """An UPDATE, and an INSERT where no row has the key."""
    names = [there.name for there in target.native]
    met = _met(target, table, kind)
    new = [_typed(at, types[name]) for at, name in enumerate(names)]
    missing = ~sa.exists(sa.select(sa.literal_column("1")).select_from(table).where(*met))
    steps: list[Any] = [sa.insert(table).from_select(names, sa.select(*new).where(missing))]
    if others:
        steps.insert(0, sa.update(table).where(*met).values({name: _given(names.index(name)) for name in others}))
    return steps


def _typed(at: int, type_: Any) -> Any:
    """A parameter that is no part of VALUES, which would say its type. A text is none that a cast would cut."""
    untyped = isinstance(type_, NullType | sa.String)
    return _given(at) if untyped else sa.cast(_given(at), type_)


def _met(target: Target, table: Any, kind: str) -> list[Any]:
    found = []
    for at in target.keys:
        native = target.native[at]
        column = table.c[native.name]
        found.append((expression(column, native, t.STRING, kind) if native.type is None else column) == _given(at))
    return found
