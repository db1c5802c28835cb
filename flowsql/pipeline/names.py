"""What a statement of a pipeline reads by name: tables and views, and functions."""

from __future__ import annotations

from collections.abc import Iterator

from flowsql_grammar import ast


def tables_read(node: ast.Node, hidden: frozenset[str] = frozenset()) -> Iterator[ast.Identifier]:
    """Names of tables and views in a tree, in the order of the text; names of WITH (``hidden``) stand for none."""
    if isinstance(node, ast.Query):
        hidden |= {common.name.text for common in node.ctes}
    name = None
    if isinstance(node, ast.TableRef | ast.ExplicitTable):
        name = node.name
    elif isinstance(node, ast.TableLike):
        name = node.source
    elif isinstance(node, ast.TableArgument) and isinstance(node.table, ast.Identifier):
        name = node.table
    if name is not None and not (len(name.parts) == 1 and name.texts[0] in hidden):
        yield name
    for child in node.children():
        yield from tables_read(child, hidden)


def functions_called(node: ast.Node) -> frozenset[str]:
    """Last names of all functions that are called, in small letters."""
    return frozenset(part.name.last.text.lower() for part in node.walk() if isinstance(part, ast.FunctionCall))
