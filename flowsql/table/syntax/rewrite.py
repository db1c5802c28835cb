"""Trees changed: their nodes rewritten or put at another place in the text."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, cast

from flowsql.table.syntax.build import ast
from flowsql_core.span import Span

N = TypeVar("N", bound="ast.Node")


def placed(node: N, span: Span) -> N:
    """The tree with every node at a place."""
    from flowsql_core.interpreter.large_stack import with_room
    from flowsql_planner.bind.sql_text.respan import respan

    return with_room(lambda: respan(node, span))


def moved(node: N, by: int) -> N:
    """The tree with every place further on in a longer text."""
    return cast(N, rewritten(node, lambda part: with_span(part, Span(part.span.start + by, part.span.end + by))))


def with_span(node: ast.Node, span: Span) -> ast.Node:
    """The node at another place."""
    return rebuilt(node, {name: getattr(node, name) for name in type(node).layout.fields}, span)


def rebuilt(node: ast.Node, fields: dict[str, object], span: Span) -> ast.Node:
    """A node of the same class with other fields."""
    details = {name: getattr(node, name) for name in type(node).layout.details}
    make: Callable[..., ast.Node] = type(node)
    return make(**(fields | details | {"span": span}))


def rewritten(
    node: ast.Node, change: Callable[[ast.Node], ast.Node], skip: Callable[[ast.Node], bool] = lambda node: False
) -> ast.Node:
    """The tree with ``change`` applied to every node, those below first; trees that ``skip`` knows stay as they are.

    What nothing changes stays the same object.
    """
    from flowsql_core.interpreter.large_stack import with_room

    return with_room(lambda: _rewritten(node, change, skip))


def _rewritten(node: ast.Node, change: Callable[[ast.Node], ast.Node], skip: Callable[[ast.Node], bool]) -> ast.Node:
    if skip(node):
        return node
    fields = {name: getattr(node, name) for name in type(node).layout.fields}
    new = {name: _rewritten_value(value, change, skip) for name, value in fields.items()}
    if any(new[name] is not fields[name] for name in fields):
        node = rebuilt(node, new, node.span)
    return change(node)


def _rewritten_value(value: object, change: Callable[[ast.Node], ast.Node], skip: Callable[[ast.Node], bool]) -> object:
    if isinstance(value, ast.Node):
        return _rewritten(value, change, skip)
    if isinstance(value, tuple):
        made = tuple(_rewritten_value(item, change, skip) for item in value)
        return made if any(a is not b for a, b in zip(made, value, strict=True)) else value
    return value
