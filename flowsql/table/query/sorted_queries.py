"""Queries that sort: what a later method of Table may write into their SELECT without losing the order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import cast

from flowsql.table.query.projection import item_name
from flowsql.table.syntax.build import api_nodes, ast, column, select
from flowsql.table.syntax.rewrite import rewritten
from flowsql_core.errors import NotSupportedYetError

#: The name of the input of a query that sorts: its keys are qualified, so that no output column hides them.
SORTED = "sorted"
#: Begins the names of sort keys that are computed beside the columns.
_KEY = "sort_key_"
#: Nodes of all expressions of a sorted SELECT, beside ten a column, from which on they are computed below it.
_LARGE = 500


def settled(query: ast.Query) -> tuple[ast.Query, ast.Select]:
    """A sorted query and its body, into which ``inside`` may write more.

    That writes expressions anew wherever they are used, so that columns over columns over columns would grow without
    end: where they are large they are computed below, and the keys of the order beside them.
    """
    body = query.body
    assert isinstance(body, ast.Select)
    names = [item_name(item) for item in body.items]
    if None in names or sum(1 for item in body.items for _ in item.walk()) <= _LARGE + 10 * len(names):
        return query, body
    keys = [f"{_KEY}{place}" for place in range(len(query.order_by))]
    hidden = [ast.SelectItem(item.expression, ast.Name(key)) for item, key in zip(query.order_by, keys, strict=True)]
    below = ast.DerivedTable(
        ast.Query(replace(body, items=(*body.items, *hidden))), alias=ast.TableAlias(ast.Name(SORTED))
    )
    upper = select(below, [ast.SelectItem(column(SORTED, name)) for name in names if name is not None])
    order = [replace(item, expression=column(SORTED, key)) for item, key in zip(query.order_by, keys, strict=True)]
    return replace(query, body=upper, order_by=tuple(order)), upper


def inside(expression: ast.Expression, body: ast.Select) -> ast.Expression:
    """An expression over the columns of a SELECT as one over those of its FROM."""
    meanings = {name: item.expression for item in body.items if (name := item_name(item)) is not None}

    def meant(node: ast.Node) -> ast.Node:
        if not isinstance(node, ast.ColumnRef) or len(node.path.parts) != 1:
            return node
        found = meanings.get(node.path.last.text, node)
        if any(_is_random(part) for part in found.walk()):
            raise NotSupportedYetError(
                "a column over a random one of a sorted table", node.span, "sort behind it: order_by(...) last"
            )
        return found

    return cast(ast.Expression, rewritten(expression, meant, lambda part: isinstance(part, ast.Query)))


def inlined(item: ast.SelectItem, body: ast.Select) -> ast.SelectItem:
    """A column over those of a SELECT as one over those of its FROM; it keeps its name."""
    made = inside(item.expression, body)
    name = item_name(item)
    same = isinstance(made, ast.ColumnRef) and made.path.last.text == name
    alias = item.alias or (None if same or name is None else ast.Name(name, quoted=True, span=item.span))
    return replace(item, expression=made, alias=alias)


def _is_random(node: ast.Node) -> bool:
    """Whether a call gives another value each time, so that it must not be written twice."""
    if not isinstance(node, ast.FunctionCall):
        return False
    name = node.name.last
    if isinstance(name, api_nodes.InlineFunction):
        return not getattr(name.function, "deterministic", True)
    return name.text.upper() in ("RAND", "RAND_INTEGER", "UUID")


def qualified(item: ast.OrderItem, names: Sequence[str]) -> ast.OrderItem:
    """A sort key whose columns say that they are the input's, which has these."""

    def qualify(node: ast.Node) -> ast.Node:
        if not isinstance(node, ast.ColumnRef) or node.path.parts[0].text not in names:
            return node
        parts = (ast.Name(SORTED, span=node.span), *node.path.parts)
        return ast.ColumnRef(ast.Identifier(parts, span=node.span), span=node.span)

    made = rewritten(item, qualify, lambda part: isinstance(part, ast.Query))
    assert isinstance(made, ast.OrderItem)
    return made
