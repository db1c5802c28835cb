"""Conditions that NULL makes false whatever the row says."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from flowsql_core.expr import Call
from flowsql_grammar import ast
from flowsql_planner.lint.model import Hit, Rule, Subject
from flowsql_planner.logical.internal_calls import IN_QUERY, query_calls
from flowsql_planner.logical.nodes import expressions

_OPERATORS: Final = frozenset({"=", "<>", "<", "<=", ">", ">="})


def null_comparison(subject: Subject) -> Iterator[Hit]:
    """Comparisons with the literal NULL."""
    for node in subject.written(ast.BinaryOp):
        if node.operator.value in _OPERATORS and (_is_null(node.left) or _is_null(node.right)):
            wanted = "IS NULL" if node.operator is ast.BinaryOperator.EQUAL else "IS NOT NULL"
            message = f"'{subject.text(node.span)}' is never true: nothing equals NULL, and nothing differs from it."
            yield Hit(node.span, message, f"write {wanted}" if node.operator.value in ("=", "<>") else None)


def _is_null(node: ast.Node) -> bool:
    while isinstance(node, ast.Cast):
        node = node.operand
    return isinstance(node, ast.NullLiteral)


def not_in_nullable(subject: Subject) -> Iterator[Hit]:
    """NOT IN over a query whose column may be NULL."""
    negated = {each.span: each.query for each in subject.written(ast.InSubquery) if each.negated}
    for each in subject.written(ast.UnaryOp):
        if each.operator is ast.UnaryOperator.NOT and isinstance(each.operand, ast.InSubquery):
            negated[each.operand.span] = each.operand.query
    found = [call for rel in subject.logical() for expr in expressions(rel) for call in query_calls(expr)]
    for call in found:
        if call.function == IN_QUERY and call.span in negated and _may_be_null(call, negated[call.span]):
            column = call.option("plan").schema[0].name
            yield Hit(
                subject.place(call.span), f"NOT IN is never true once '{column}' of its query is NULL in one row."
            )


def _may_be_null(call: Call, query: ast.Query) -> bool:
    """Whether the query may give NULL; one that asks IS NOT NULL of anything is taken at its word."""
    if not call.option("plan").schema[0].type.nullable:
        return False
    tests = (each for each in query.walk() if isinstance(each, ast.IsPredicate))
    return not any(test.negated and test.test is ast.IsTest.NULL for test in tests)


RULES = (
    Rule(
        "null-comparison",
        "A comparison with the literal NULL.",
        "NULL is unknown: comparing with it gives neither TRUE nor FALSE, and WHERE lets no row through",
        "write IS NULL, IS NOT NULL or IS NOT DISTINCT FROM",
        null_comparison,
    ),
    Rule(
        "not-in-nullable",
        "NOT IN over a query whose column may be NULL.",
        "one NULL makes all answers unknown, so that no row passes; and to find out, one task compares every row with "
        "every other",
        "write NOT EXISTS (SELECT 1 FROM ... WHERE a = b), or add WHERE ... IS NOT NULL to the query",
        not_in_nullable,
    ),
)
