"""What Flink's validator names before it binds a view's query, so that every column has a qualifier to be stored with.

Items of FROM without an alias are called ``EXPR$0``, ``EXPR$1``, ...; ``TABLE t`` is the query that reads it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TypeVar, cast

from flowsql_grammar import ast
from flowsql_planner.bind.output_names import unnamed

N = TypeVar("N", bound=ast.Node)


def with_names(query: ast.Query) -> ast.Query:
    """The query with an alias for every derived table and table function; outer ones are numbered first."""
    return _named(query, itertools.count())


def _named(node: N, numbers: Iterator[int]) -> N:
    changed = _step(node, numbers)
    layout = type(changed).layout
    values: dict[str, object] = {name: _value(getattr(changed, name), numbers) for name in layout.fields}
    values |= {name: getattr(changed, name) for name in layout.details}
    make: Callable[..., ast.Node] = type(changed)
    return cast(N, make(**values))


def _value(value: object, numbers: Iterator[int]) -> object:
    if isinstance(value, ast.Node):
        return _named(value, numbers)
    return tuple(_value(item, numbers) for item in value) if isinstance(value, tuple) else value


def _step(node: ast.Node, numbers: Iterator[int]) -> ast.Node:
    match node:
        case ast.DerivedTable(query=query, alias=None) if not _names_itself(query):
            return replace(node, alias=_alias(node, numbers))
        case ast.TableFunction(alias=None):
            return replace(node, alias=_alias(node, numbers))
        case ast.TableArgument(table=ast.Identifier() as name):
            return replace(node, table=ast.Query(_all_of(name), span=name.span))
        case ast.Query(body=ast.ExplicitTable(name)):
            return replace(node, body=_all_of(name))
    return node


def _alias(node: ast.Node, numbers: Iterator[int]) -> ast.TableAlias:
    name = ast.Name(unnamed(next(numbers)), span=node.span, quoted=True)
    return ast.TableAlias(name, span=node.span)


def _names_itself(query: ast.Query) -> bool:
    """VALUES of one column: its alias would name the column too."""
    return isinstance(query.body, ast.Values) and len(query.body.rows[0]) == 1


def _all_of(name: ast.Identifier) -> ast.Select:
    star = ast.SelectItem(ast.Star(span=name.span), span=name.span)
    return ast.Select((star,), ast.TableRef(name, span=name.span), span=name.span)
