"""Queries: set operations, SELECT and its clauses, hints."""

from __future__ import annotations

from typing import TypeAlias

from flowsql_core.errors import ParseError
from flowsql_core.span import Span
from flowsql_grammar import ast

_Limit: TypeAlias = "tuple[ast.NumberLiteral | ast.Parameter | None, ast.NumberLiteral | ast.Parameter | None]"

_Clauses: TypeAlias = (
    "tuple[ast.Relation | None, ast.Expression | None, ast.GroupBy | None, ast.Expression | None,"
    " tuple[ast.NamedWindow, ...], ast.Expression | None]"
)


def order_items(items: tuple[ast.OrderItem, ...]) -> tuple[ast.OrderItem, ...]:
    """Sort keys of a table argument, where ``(a, b)`` is a list and no row."""
    flat: list[ast.OrderItem] = []
    for item in items:
        row = item.expression
        if isinstance(row, ast.RowConstructor) and not row.explicit:
            flat += [ast.OrderItem(part, span=part.span) for part in row.items[:-1]]
            last = row.items[-1]
            flat.append(ast.OrderItem(last, item.descending, item.nulls, span=last.span))
        else:
            flat.append(item)
    return tuple(flat)


def body_of(query: ast.QueryBody) -> ast.QueryBody:
    """A bracketed query without WITH, ORDER BY and LIMIT is its body."""
    while isinstance(query, ast.Query):
        if query.ctes or query.order_by or query.limit is not None or query.offset is not None:
            return query
        query = query.body
    return query


class QueryBuilder:
    """Methods of the rules of queries and relations."""

    def q_np(
        self,
        span: Span,
        body: ast.QueryBody,
        order_by: tuple[ast.OrderItem, ...] | None,
        limit: _Limit | None,
    ) -> ast.Query:
        """A body with its tail."""
        offset, count = limit or (None, None)
        return ast.Query(body_of(body), (), order_by or (), offset, count, span=span)

    def q_par_limit(self, span: Span, body: ast.Query, limit: _Limit) -> ast.Query:
        """``(query) LIMIT n``."""
        return self.q_np(span, body, None, limit)

    def with_query(
        self,
        span: Span,
        recursive: bool,
        ctes: tuple[ast.CommonTable, ...],
        body: ast.QueryBody,
        order_by: tuple[ast.OrderItem, ...] | None,
        limit: _Limit | None,
    ) -> ast.Query:
        """``WITH ... body``."""
        offset, count = limit or (None, None)
        return ast.Query(body_of(body), ctes, order_by or (), offset, count, recursive, span=span)

    def cte(
        self, span: Span, name: ast.Name, columns: tuple[ast.Name, ...] | None, query: ast.Query
    ) -> ast.CommonTable:
        """One common table."""
        return ast.CommonTable(name, query, columns or (), span=span)

    def set_operation(
        self, span: Span, left: ast.QueryBody, word: str, quantifier: str | None, right: ast.QueryBody
    ) -> ast.SetOperation:
        """UNION, INTERSECT, EXCEPT."""
        return ast.SetOperation(
            ast.SetOperator(word), body_of(left), body_of(right), all=quantifier == "ALL", span=span
        )

    def values(self, span: Span, rows: tuple[ast.Expression, ...]) -> ast.Values:
        """VALUES; what is no row is a row of one."""
        return ast.Values(
            tuple(row.items if isinstance(row, ast.RowConstructor) else (row,) for row in rows), span=span
        )

    def explicit_table(self, span: Span, name: ast.Identifier) -> ast.ExplicitTable:
        """``TABLE t``."""
        return ast.ExplicitTable(name, span=span)

    def order_by(self, span: Span, items: tuple[ast.OrderItem, ...]) -> tuple[ast.OrderItem, ...]:
        """The sort keys."""
        return items

    def order_item(self, span: Span, expression: ast.Expression, descending: bool, nulls: str | None) -> ast.OrderItem:
        """A sort key."""
        return ast.OrderItem(expression, descending, ast.NullOrder(nulls) if nulls else None, span=span)

    def limit(self, span: Span, count: ast.NumberLiteral | ast.Parameter) -> _Limit:
        """``LIMIT n``."""
        return None, count

    def limit_all(self, span: Span) -> _Limit:
        """``LIMIT ALL``."""
        return None, None

    def limit_offset(
        self, span: Span, count: ast.NumberLiteral | ast.Parameter, offset: ast.NumberLiteral | ast.Parameter
    ) -> _Limit:
        """``LIMIT n OFFSET m``."""
        return offset, count

    def offset(self, span: Span, offset: ast.NumberLiteral | ast.Parameter) -> _Limit:
        """``OFFSET m``."""
        return offset, None

    def offset_fetch(
        self, span: Span, offset: ast.NumberLiteral | ast.Parameter, count: ast.NumberLiteral | ast.Parameter
    ) -> _Limit:
        """``OFFSET m ROWS FETCH NEXT n ROWS ONLY``."""
        return offset, count

    def select(
        self,
        span: Span,
        hints: tuple[ast.Hint, ...] | None,
        stream: bool,
        quantifier: str | None,
        items: tuple[ast.SelectItem, ...],
        clauses: _Clauses | None,
    ) -> ast.Select:
        """SELECT; STREAM says nothing that is not so anyway."""
        return ast.Select(
            items,
            *(clauses or (None, None, None, None, (), None)),
            ast.SetQuantifier(quantifier) if quantifier else None,
            hints or (),
            span=span,
        )

    def from_clauses(
        self,
        span: Span,
        from_: ast.Relation,
        where: ast.Expression | None,
        group_by: ast.GroupBy | None,
        having: ast.Expression | None,
        windows: tuple[ast.NamedWindow, ...] | None,
        qualify: ast.Expression | None,
    ) -> _Clauses:
        """FROM and what needs it: none of these stands without FROM."""
        return from_, where, group_by, having, windows or (), qualify

    def select_item(self, span: Span, expression: ast.Expression, alias: ast.Name | None) -> ast.SelectItem:
        """An expression with its alias."""
        return ast.SelectItem(expression, alias, span=span)

    def star_item(self, span: Span) -> ast.SelectItem:
        """``*``."""
        return ast.SelectItem(ast.Star(span=span), span=span)

    def qualified_star_item(self, span: Span, *names: ast.Name) -> ast.SelectItem:
        """``t.*``."""
        return ast.SelectItem(
            ast.Star(ast.Identifier(names, span=names[0].span.to(names[-1].span)), span=span), span=span
        )

    def group_by(self, span: Span, quantifier: str | None, elements: tuple[ast.GroupingElement, ...]) -> ast.GroupBy:
        """GROUP BY."""
        return ast.GroupBy(elements, ast.SetQuantifier(quantifier) if quantifier else None, span=span)

    def grouping_expr(self, span: Span, expression: ast.Expression) -> ast.Expression | ast.GroupingSet:
        """A key, or ``(a, b)``, which is a set of keys and no row."""
        if isinstance(expression, ast.RowConstructor) and not expression.explicit:
            return ast.GroupingSet(expression.items, span=span)
        return expression

    def empty_grouping(self, span: Span) -> ast.GroupingSet:
        """``()``."""
        return ast.GroupingSet((), span=span)

    def grouping_sets(self, span: Span, elements: tuple[ast.GroupingElement, ...]) -> ast.GroupingSets:
        """GROUPING SETS."""
        return ast.GroupingSets(elements, span=span)

    def rollup(self, span: Span, elements: tuple[ast.Expression, ...]) -> ast.Rollup:
        """ROLLUP."""
        return ast.Rollup(tuple(self.grouping_expr(e.span, e) for e in elements), span=span)

    def cube(self, span: Span, elements: tuple[ast.Expression, ...]) -> ast.Cube:
        """CUBE."""
        return ast.Cube(tuple(self.grouping_expr(e.span, e) for e in elements), span=span)

    def named_window(self, span: Span, name: ast.Name, spec: ast.WindowSpec) -> ast.NamedWindow:
        """``w AS (...)``."""
        return ast.NamedWindow(name, spec, span=span)

    def hint(self, span: Span, name: ast.Name, arguments: tuple[ast.HintArgument, ...] | None) -> ast.Hint:
        """A hint."""
        if len({(argument.key is None, argument.is_name) for argument in arguments or ()}) > 1:
            raise ParseError("bad-hint", f"SQL parse failed. Hint '{name}' mixes options, names and values.", span)
        return ast.Hint(name, arguments or (), span=span)

    def hint_name(self, span: Span, name: ast.Name) -> ast.HintArgument:
        """A name as an argument."""
        return ast.HintArgument(None, name.text, is_name=True, span=span)

    def hint_value(self, span: Span, value: ast.Expression) -> ast.HintArgument:
        """A literal as an argument."""
        match value:
            case ast.StringLiteral(text) | ast.NumberLiteral(text):
                return ast.HintArgument(None, text, span=span)
        raise ParseError("bad-hint", "SQL parse failed. A hint takes names, strings and numbers.", span)

    def hint_pair(self, span: Span, key: str | ast.Name, value: str) -> ast.HintArgument:
        """``'k' = 'v'``."""
        return ast.HintArgument(str(key), value, span=span)
