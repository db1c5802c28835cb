"""Stored text (views, computed columns) bound elsewhere: its tree takes the place of the name that brought it in."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from flowsql_core.span import Span
from flowsql_grammar import ast

N = TypeVar("N", bound=ast.Node)


def respan(node: N, span: Span) -> N:
    """The same tree with every node at ``span``, so that errors in it point at the name in the statement's own text."""
    layout = type(node).layout
    values: dict[str, object] = {name: _respan_value(getattr(node, name), span) for name in layout.fields}
    values |= {name: getattr(node, name) for name in layout.details}
    values["span"] = span
    make: Callable[..., N] = type(node)
    return make(**values)


def _respan_value(value: object, span: Span) -> object:
    if isinstance(value, ast.Node):
        return respan(value, span)
    if isinstance(value, tuple):
        return tuple(_respan_value(item, span) for item in value)
    return value
