"""A view's query with every name expanded, so that it means the same in whatever database it is used.

The binder notes, while it binds the query, what each name stood for (``BindContext.expansions``); here the tree is
rebuilt with that.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, cast

from flowsql_grammar import ast

N = TypeVar("N", bound=ast.Node)

#: What a node becomes, by its identity: a node, or several (a star).
Expansions = dict[int, tuple[ast.Node, ...]]


def expand(node: N, expansions: Expansions) -> N:
    """The tree with its names replaced."""
    return cast(N, _node(node, expansions)[0])


def _node(node: ast.Node, expansions: Expansions) -> tuple[ast.Node, ...]:
    found = expansions.get(id(node))
    if found is not None:
        return found
    layout = type(node).layout
    values: dict[str, object] = {name: _value(getattr(node, name), expansions) for name in layout.fields}
    values |= {name: getattr(node, name) for name in layout.details}
    make: Callable[..., ast.Node] = type(node)
    return (make(**values),)


def _value(value: object, expansions: Expansions) -> object:
    if isinstance(value, ast.Node):
        return _node(value, expansions)[0]
    if isinstance(value, tuple):
        out: list[object] = []
        for item in value:
            out.extend(_node(item, expansions) if isinstance(item, ast.Node) else [_value(item, expansions)])
        return tuple(out)
    return value


def path_of(names: tuple[str, ...], span_of: ast.Node) -> ast.Identifier:
    """A path of quoted names."""
    return ast.Identifier(tuple(ast.Name(name, span=span_of.span, quoted=True) for name in names), span=span_of.span)
