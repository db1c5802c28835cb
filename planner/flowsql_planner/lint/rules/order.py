"""Orders that mean nothing, and limits that take any rows."""

from __future__ import annotations

from collections.abc import Iterator

from flowsql_grammar import ast
from flowsql_planner.lint.model import Hit, Rule, Subject


def ignored_order(subject: Subject) -> Iterator[Hit]:
    """ORDER BY in queries inside of others, where nothing is cut off."""
    outermost = {id(query) for query in _outermost(subject)}
    # The elements of an array stand in some order.
    outermost |= {id(each.query) for each in subject.written(ast.CollectionQuery)}
    for query in subject.written(ast.Query):
        if query.order_by and query.limit is None and query.offset is None and id(query) not in outermost:
            place = query.order_by[0].span.to(query.order_by[-1].span)
            yield Hit(place, "ORDER BY of a query inside of another one, without LIMIT, orders nothing.")


def limit_without_order(subject: Subject) -> Iterator[Hit]:
    """LIMIT of a query whose rows go on, that does not say which rows."""
    shown = {id(each.query) for each in subject.written(ast.QueryStatement)}
    shown |= {id(each.query) for each in subject.written(ast.Exists)}
    for query in subject.written(ast.Query):
        if query.limit is None or query.order_by or id(query) in shown or not isinstance(query.body, ast.Select):
            continue
        if not _gives_one_row(query.body):
            yield Hit(subject.place(query.limit.span, query.span), "LIMIT without ORDER BY takes any rows.")


def _outermost(subject: Subject) -> Iterator[ast.Query]:
    for node in subject.statement.walk():
        if isinstance(node, ast.QueryStatement | ast.Insert | ast.CreateView | ast.CreateTable) and node.query:
            yield node.query


def _gives_one_row(select: ast.Select) -> bool:
    return select.from_ is None


RULES = (
    Rule(
        "ignored-order",
        "ORDER BY without LIMIT in a query inside of another one.",
        "a query has an order only where its rows leave: inside of another one it is dropped",
        "move ORDER BY to the outer query, or add the LIMIT that it was meant for",
        ignored_order,
    ),
    Rule(
        "limit-without-order",
        "LIMIT without ORDER BY in an INSERT, a view or a query inside of another one.",
        "which rows come first depends on files, tasks and their pace: the next run may take others",
        "say which rows: ORDER BY ... LIMIT n",
        limit_without_order,
    ),
)
