"""Tree to SQL text. What it prints parses to an equal tree."""

from __future__ import annotations

from typing import cast

from flowsql_core.errors import ParseError
from flowsql_grammar import ast


def print_sql(node: ast.Statement | ast.Query | ast.Expression | ast.TypeSpec) -> str:
    """SQL text of a statement, query, expression or type, on one line.

    Raises:
        ParseError: the tree is nested too deeply; a parsed one never is.
    """
    # Most processes read SQL and print none.
    from flowsql_grammar.printing.statement import StatementPrinter

    printer = StatementPrinter()
    try:
        match node:
            case ast.Query():
                return printer.query(node)
            case (
                ast.BasicType()
                | ast.IntervalType()
                | ast.ArrayType()
                | ast.MultisetType()
                | ast.MapType()
                | ast.RowType()
                | ast.StructuredType()
                | ast.RawType()
                | ast.UserType()
            ):
                return printer.type(node)
            case _ if isinstance(node, _STATEMENTS):
                return printer.statement(cast(ast.Statement, node))
            case _:
                return printer.expression(cast(ast.Expression, node))
    except RecursionError:
        raise ParseError("nested-too-deeply", "The statement is nested too deeply to be printed.", node.span) from None


_STATEMENTS = ast.Statement.__args__
