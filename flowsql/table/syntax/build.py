"""The grammar as the Table API uses it: nodes, loaded with the first expression, and small trees of them.

Importing ``flowsql.table`` loads no grammar, so that a worker can unpickle a user's functions from a program that
imports ``col``.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from flowsql.table.syntax import api_nodes as api_nodes
    from flowsql_grammar import ast as ast
else:

    class _Late:
        """A module that is imported when one of its names is first asked for."""

        def __init__(self, name: str) -> None:
            self._name = name

        def __getattr__(self, attribute: str) -> Any:
            value = getattr(importlib.import_module(self._name), attribute)
            setattr(self, attribute, value)
            return value

    ast = _Late("flowsql_grammar.ast")
    api_nodes = _Late("flowsql.table.syntax.api_nodes")


def path(*parts: str) -> ast.Identifier:
    """A path of names as they are: nothing in it is a keyword."""
    return ast.Identifier(tuple(ast.Name(part, quoted=True) for part in parts))


def column(*parts: str) -> ast.ColumnRef:
    """A column by its name, or by its table's and its own."""
    return ast.ColumnRef(path(*parts))


def call(function: str, args: Sequence[ast.Argument] = ()) -> ast.FunctionCall:
    """A call of a built-in function."""
    return ast.FunctionCall(ast.Identifier((ast.Name(function),)), tuple(args))


def called(node: ast.Node, function: str) -> bool:
    """Whether a node is a call of the function of that name, which is one word."""
    return isinstance(node, ast.FunctionCall) and node.name.texts == (function,)


def chain(operator: ast.BinaryOperator, operands: Sequence[ast.Expression]) -> ast.Expression:
    """``a AND b AND c``."""
    made = operands[0]
    for operand in operands[1:]:
        made = ast.BinaryOp(operator, made, operand)
    return made


def items(expressions: Iterable[ast.Expression]) -> tuple[ast.SelectItem, ...]:
    """Select items without aliases."""
    return tuple(ast.SelectItem(expression) for expression in expressions)


def select(
    from_: ast.Relation, what: Sequence[ast.SelectItem] | None = None, where: ast.Expression | None = None
) -> ast.Select:
    """``SELECT what FROM from_ WHERE where``; all columns for None."""
    return ast.Select(tuple(what) if what is not None else (ast.SelectItem(ast.Star()),), from_, where)


def shown(node: ast.Node) -> str:
    """A piece of a query as SQL text, for messages."""
    from flowsql_grammar import print_sql

    match node:
        case ast.SelectItem(expression, alias):
            return shown(expression) if alias is None else f"{shown(expression)} AS {alias.text}"
        case ast.OrderItem(expression, descending):
            return f"{shown(expression)} {'DESC' if descending else 'ASC'}"
        case ast.Name(text):
            return text
    return print_sql(node)  # type: ignore[arg-type]
