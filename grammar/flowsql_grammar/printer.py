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
        # What it is, by the module it stands in: the other nodes of these modules are parts.
        match type(node).__module__.rpartition(".")[2]:
            case "statement" | "session" | "inspection" | "ddl":
                return printer.statement(cast(ast.Statement, node))
            case "type":
                return printer.type(cast(ast.TypeSpec, node))
            case "query":
                return printer.query(cast(ast.Query, node))
            case _:
                return printer.expression(cast(ast.Expression, node))
    except RecursionError:
        raise ParseError("nested-too-deeply", "The statement is nested too deeply to be printed.", node.span) from None
