"""Expressions: operators, predicates, CASE, casts, constructors and access."""

from __future__ import annotations

from flowsql_core.errors import ParseError
from flowsql_core.span import Span
from flowsql_grammar import ast
from flowsql_grammar.lexer import Token

_BINARY = {operator.value: operator for operator in ast.BinaryOperator}
_UNARY = {operator.value: operator for operator in ast.UnaryOperator}
_WORD_OPERATORS = {"MEMBER": "MEMBER OF", "SUBMULTISET": "SUBMULTISET OF"}


class ExpressionBuilder:
    """Methods of the rules of expressions."""

    def column_ref(self, span: Span, path: ast.Identifier) -> ast.ColumnRef:
        """A path."""
        return ast.ColumnRef(path, span=span)

    def parameter(self, span: Span) -> ast.Parameter:
        """``?``."""
        return ast.Parameter(span=span)

    def default_value(self, span: Span) -> ast.DefaultValue:
        """DEFAULT; whether it may stand there is checked once the statement is whole."""
        return ast.DefaultValue(span=span)

    def binary(self, span: Span, left: ast.Expression, token: Token, right: ast.Expression) -> ast.BinaryOp:
        """Two operands and an operator."""
        return ast.BinaryOp(_BINARY[token.text.upper()], left, right, span=span)

    def word_operator(self, span: Span, left: ast.Expression, words: str, right: ast.Expression) -> ast.BinaryOp:
        """MEMBER OF, OVERLAPS and the like."""
        return ast.BinaryOp(_BINARY[_WORD_OPERATORS.get(words, words)], left, right, span=span)

    def multiset_op(
        self, span: Span, left: ast.Expression, word: str, quantifier: str | None, right: ast.Expression
    ) -> ast.BinaryOp:
        """``MULTISET UNION``; ALL is what stands for no word."""
        suffix = " DISTINCT" if quantifier == "DISTINCT" else ""
        return ast.BinaryOp(_BINARY[f"MULTISET {word}{suffix}"], left, right, span=span)

    def unary(self, span: Span, token: Token, operand: ast.Expression) -> ast.UnaryOp:
        """An operator in front."""
        return ast.UnaryOp(_UNARY[token.text.upper()], operand, span=span)

    def quantified_list(
        self, span: Span, left: ast.Expression, token: Token, word: str, values: tuple[ast.Expression, ...]
    ) -> ast.QuantifiedComparison:
        """``= ANY (1, 2)``."""
        return ast.QuantifiedComparison(_BINARY[token.text], left, ast.Quantifier(word), values, span=span)

    def quantified_query(
        self, span: Span, left: ast.Expression, token: Token, word: str, query: ast.Query
    ) -> ast.QuantifiedComparison:
        """``= ANY (SELECT ...)``."""
        return ast.QuantifiedComparison(_BINARY[token.text], left, ast.Quantifier(word), query, span=span)

    def is_test(self, span: Span, operand: ast.Expression, negated: bool, words: str) -> ast.IsPredicate:
        """``IS NULL`` and the like."""
        test = ast.IsTest.JSON if words == "JSON" else ast.IsTest(words)
        return ast.IsPredicate(operand, test, negated, span=span)

    def is_distinct(self, span: Span, left: ast.Expression, negated: bool, right: ast.Expression) -> ast.IsDistinctFrom:
        """``IS DISTINCT FROM``."""
        return ast.IsDistinctFrom(left, right, negated, span=span)

    def between(
        self,
        span: Span,
        operand: ast.Expression,
        negated: bool,
        symmetric: str,
        low: ast.Expression,
        high: ast.Expression,
    ) -> ast.Between:
        """``BETWEEN a AND b``."""
        return ast.Between(operand, low, high, negated, symmetric == "SYMMETRIC", span=span)

    def in_list(
        self, span: Span, operand: ast.Expression, negated: bool, values: tuple[ast.Expression, ...]
    ) -> ast.InList | ast.InSubquery:
        """``IN (1, 2)``."""
        return ast.InList(operand, values, negated, span=span)

    def in_query(self, span: Span, operand: ast.Expression, negated: bool, query: ast.Query) -> ast.InSubquery:
        """``IN (SELECT ...)``."""
        return ast.InSubquery(operand, query, negated, span=span)

    def like(
        self,
        span: Span,
        operand: ast.Expression,
        negated: bool,
        kind: str,
        pattern: ast.Expression,
        escape: ast.Expression | None,
    ) -> ast.Like:
        """``LIKE p ESCAPE e``."""
        return ast.Like(operand, pattern, ast.LikeKind(kind), escape, negated, span=span)

    def item_access(self, span: Span, operand: ast.Expression, index: ast.Expression) -> ast.ItemAccess:
        """``a[1]``."""
        return ast.ItemAccess(operand, index, span=span)

    def field_access(self, span: Span, operand: ast.Expression, name: ast.Name) -> ast.FieldAccess:
        """``f(x).a``."""
        return ast.FieldAccess(operand, name, span=span)

    def implicit_row(self, span: Span, first: ast.Expression, others: tuple[ast.Expression, ...]) -> ast.RowConstructor:
        """``(a, b)``."""
        return ast.RowConstructor((first, *others), explicit=False, span=span)

    def row(self, span: Span, items: tuple[ast.Expression, ...]) -> ast.RowConstructor:
        """``ROW(a, b)``."""
        return ast.RowConstructor(items, span=span)

    def array(self, span: Span, items: tuple[ast.Expression, ...]) -> ast.ArrayConstructor:
        """``ARRAY[...]``."""
        return ast.ArrayConstructor(items, span=span)

    def multiset(self, span: Span, items: tuple[ast.Expression, ...]) -> ast.MultisetConstructor:
        """``MULTISET[...]``."""
        return ast.MultisetConstructor(items, span=span)

    def map(self, span: Span, items: tuple[ast.Expression, ...]) -> ast.MapConstructor:
        """``MAP[...]``."""
        if len(items) % 2:
            raise ParseError(
                "odd-map", "SQL parse failed. Map constructor must have an even number of arguments.", span
            )
        return ast.MapConstructor(tuple(zip(items[::2], items[1::2], strict=True)), span=span)

    def array_query(self, span: Span, query: ast.Query) -> ast.CollectionQuery:
        """``ARRAY(SELECT ...)``."""
        return ast.CollectionQuery(ast.CollectionKind.ARRAY, query, span=span)

    def map_query(self, span: Span, query: ast.Query) -> ast.CollectionQuery:
        """``MAP(SELECT ...)``."""
        return ast.CollectionQuery(ast.CollectionKind.MAP, query, span=span)

    def multiset_query(self, span: Span, query: ast.Query) -> ast.CollectionQuery:
        """``MULTISET(SELECT ...)``."""
        return ast.CollectionQuery(ast.CollectionKind.MULTISET, query, span=span)

    def subquery(self, span: Span, query: ast.Query) -> ast.Subquery:
        """A query in brackets."""
        return ast.Subquery(query, span=span)

    def exists(self, span: Span, query: ast.Query) -> ast.Exists:
        """EXISTS."""
        return ast.Exists(query, span=span)

    def unique(self, span: Span, query: ast.Query) -> ast.Unique:
        """UNIQUE."""
        return ast.Unique(query, span=span)

    def case(
        self,
        span: Span,
        operand: ast.Expression | None,
        branches: tuple[ast.When, ...],
        otherwise: ast.Expression | None,
    ) -> ast.Case:
        """CASE."""
        return ast.Case(operand, branches, otherwise, span=span)

    def when(self, span: Span, conditions: tuple[ast.Expression, ...], result: ast.Expression) -> ast.When:
        """A branch of CASE."""
        return ast.When(conditions, result, span=span)

    def cast(self, span: Span, operand: ast.Expression, type_: ast.TypeSpec) -> ast.Cast:
        """CAST."""
        return ast.Cast(operand, type_, span=span)

    def try_cast(self, span: Span, operand: ast.Expression, type_: ast.TypeSpec) -> ast.Cast:
        """TRY_CAST."""
        return ast.Cast(operand, type_, safe=True, span=span)
