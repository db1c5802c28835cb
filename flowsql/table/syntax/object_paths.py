"""Paths of objects as programs write them, and the names in a query that shall mean the same for ever."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, cast

from flowsql.table.syntax.build import ast, path
from flowsql.table.syntax.rewrite import rewritten
from flowsql_core.errors import BindError

if TYPE_CHECKING:
    from flowsql_planner.catalog.manager import CatalogManager

_PART = re.compile(r"\s*(?:`((?:[^`]|``)+)`|([^`.\s]+))\s*")


def split_path(text: str) -> tuple[str, ...]:
    """The one to three names of ``catalog.database.object``; a part with a dot stands in back-ticks.

    Raises:
        BindError: no path.
    """
    parts: list[str] = []
    at = 0
    while isinstance(text, str) and (match := _PART.match(text, at)) is not None:
        parts.append(match[2] if match[1] is None else match[1].replace("``", "`"))
        at = match.end()
        if at == len(text):
            if len(parts) <= 3:
                return tuple(parts)
            break
        if text[at] != ".":
            break
        at += 1
    raise BindError("bad-identifier", f"Invalid path {text!r}.", hint="[[catalog.]database.]name, e.g. 'shop.orders'")


def identifier(text: str) -> ast.Identifier:
    """The path of an object as a tree."""
    return path(*split_path(text))


def pinned(query: ast.Query, catalogs: CatalogManager) -> ast.Query:
    """The query with full paths for its tables: a later USE changes nothing of what it reads."""
    common = {node.name.text for node in query.walk() if isinstance(node, ast.CommonTable)}

    def full(name: ast.Identifier) -> ast.Identifier:
        if (
            isinstance(name, ast.FileName)
            or len(name.parts) >= 3
            or (len(name.parts) == 1 and name.last.text in common)
        ):
            return name
        whole = catalogs.qualify(name.texts).parts
        kept = {position + 3 - len(name.parts): part for position, part in enumerate(name.parts)}
        parts = tuple(kept.get(i) or ast.Name(part, quoted=True, span=name.span) for i, part in enumerate(whole))
        return ast.Identifier(parts, span=name.span)

    def pin(node: ast.Node) -> ast.Node:
        match node:
            case ast.TableRef(name) | ast.ExplicitTable(name):
                return replace(node, name=full(name))
            case ast.TableArgument(ast.Identifier() as table):
                return replace(node, table=full(table))
        return node

    return cast(ast.Query, rewritten(query, pin))
