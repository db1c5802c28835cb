"""Tables beside and below one another: operands of joins, of UNION and its kin."""

from __future__ import annotations

from flowsql.table.syntax.build import ast, select
from flowsql_core.errors import BindError
from flowsql_core.span import Span
from flowsql_core.types.coerce import common_type
from flowsql_core.types.logical import Schema


def without_condition(kind: ast.JoinKind) -> tuple[ast.JoinKind, ast.Expression | None]:
    """A join of everything with everything."""
    return (ast.JoinKind.CROSS, None) if kind is ast.JoinKind.INNER else (kind, ast.BooleanLiteral(True))


def bare(table: ast.TableRef) -> ast.Query:
    """All of a table."""
    return ast.Query(select(table))


def body_of(query: ast.Query) -> ast.QueryBody:
    """A query as an operand of UNION: without brackets where it is nothing but a body."""
    if query.ctes or query.order_by or query.limit is not None or query.offset is not None:
        return query
    return query.body


def check_columns(left: Schema, right: Schema, operator: ast.SetOperator, at: Span) -> None:
    """Refuse operands of UNION and its kin whose columns do not go together, in the words of Flink's Table API."""
    what = "minus" if operator is ast.SetOperator.EXCEPT else operator.name.lower()
    if len(left) != len(right):
        sizes = f"{len(left)} and {len(right)}"
        message = f"The {what} operation on two tables of different column sizes: {sizes} is not supported"
        raise BindError("set-operation-width", message, at)
    for place, (ours, theirs) in enumerate(zip(left, right, strict=True)):
        if common_type([ours.type, theirs.type]) is None:
            message = (
                f"Incompatible types for {what} operation. Could not find a common type at position {place} for "
                f"'{ours.type}' and '{theirs.type}'."
            )
            raise BindError("set-operation-types", message, at, "cast one of them")
