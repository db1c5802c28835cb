"""Names of output columns: ``EXPR$0`` for what has none."""

from __future__ import annotations

from flowsql_grammar import ast


def unnamed(position: int) -> str:
    """The name of an output column without one; ``position`` counts from 0."""
    return f"EXPR${position}"


def column_alias(item: ast.SelectItem) -> str | None:
    """The alias of a select item, or the last name of its path; None for other expressions."""
    if item.alias is not None:
        return item.alias.text
    if isinstance(item.expression, ast.ColumnRef):
        return item.expression.path.last.text
    return None
