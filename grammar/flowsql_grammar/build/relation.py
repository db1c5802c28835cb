"""Relations: tables, functions, joins, and clauses behind them."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeAlias

from flowsql_core.errors import ParseError
from flowsql_core.span import Span
from flowsql_grammar import ast
from flowsql_grammar.lexer import Token


class RelationBuilder:
    """Methods of the rules of relations."""

    def table_ref(
        self,
        span: Span,
        name: ast.Identifier,
        hints: tuple[ast.Hint, ...] | None,
        period: ast.Expression | None,
    ) -> ast.TableRef:
        """A table by name."""
        return ast.TableRef(name, hints or (), period, span=span)

    def implicit_table_function(
        self, span: Span, name: ast.Identifier, args: tuple[ast.Argument, ...]
    ) -> ast.TableFunction:
        """``f(x)`` in FROM."""
        return ast.TableFunction(ast.FunctionCall(name, args, span=span), span=span)

    def table_function(self, span: Span, call: ast.FunctionCall, lateral: bool = False) -> ast.TableFunction:
        """``TABLE(f(x))``."""
        if not isinstance(call, ast.FunctionCall):
            raise ParseError("bad-descriptor", "SQL parse failed. DESCRIPTOR is no table function.", span)
        return ast.TableFunction(call, lateral, span=span)

    def lateral_table_function(self, span: Span, call: ast.FunctionCall) -> ast.TableFunction:
        """``LATERAL TABLE(f(x))``."""
        return self.table_function(span, call, lateral=True)

    def derived_table(self, span: Span, query: ast.Query) -> ast.DerivedTable:
        """``(query)``."""
        return ast.DerivedTable(query, span=span)

    def lateral_derived_table(self, span: Span, query: ast.Query) -> ast.DerivedTable:
        """``LATERAL (query)``."""
        return ast.DerivedTable(query, lateral=True, span=span)

    def unnest(self, span: Span, operands: tuple[ast.Expression, ...], ordinality: bool) -> ast.Unnest:
        """UNNEST."""
        return ast.Unnest(operands, ordinality, span=span)

    def lateral_unnest(self, span: Span, operands: tuple[ast.Expression, ...], ordinality: bool) -> ast.Unnest:
        """``LATERAL UNNEST``."""
        return ast.Unnest(operands, ordinality, lateral=True, span=span)

    def nested_join(self, span: Span, relation: ast.Relation) -> ast.Join:
        """A join in brackets; commas and single tables do not stand there."""
        inner: ast.Relation = relation
        if not isinstance(relation, ast.Join):
            raise ParseError("syntax", "SQL parse failed. Expected query or join.", span)
        while isinstance(inner, ast.Join):
            if inner.kind is ast.JoinKind.COMMA:
                raise ParseError("syntax", "SQL parse failed. A comma joins tables at the top of FROM only.", span)
            inner = inner.left
        return relation

    def table_alias(self, span: Span, name: ast.Name, columns: tuple[ast.Name, ...] | None) -> ast.TableAlias:
        """An alias with its columns."""
        return ast.TableAlias(name, columns or (), span=span)

    def aliased(self, span: Span, relation: ast.Relation, alias: ast.TableAlias | None) -> ast.Relation:
        """A relation under its alias."""
        if alias is None:
            return relation
        if isinstance(relation, ast.Join | ast.Sample):
            raise ParseError("syntax", "SQL parse failed. A join in brackets takes no alias.", alias.span)
        return replace(relation, alias=alias, span=span)

    def comma_join(self, span: Span, left: ast.Relation, right: ast.Relation) -> ast.Join:
        """``a, b``."""
        return ast.Join(left, right, ast.JoinKind.COMMA, span=span)

    def join(
        self,
        span: Span,
        left: ast.Relation,
        natural: bool,
        words: str,
        right: ast.Relation,
    ) -> ast.Join:
        """A join without a condition."""
        return ast.Join(left, right, _join_kind(words), natural, span=span)

    def join_on(
        self, span: Span, left: ast.Relation, natural: bool, words: str, right: ast.Relation, on: ast.Expression
    ) -> ast.Join:
        """``JOIN ... ON``."""
        return ast.Join(left, right, _join_kind(words), natural, on, span=span)

    def join_using(
        self,
        span: Span,
        left: ast.Relation,
        natural: bool,
        words: str,
        right: ast.Relation,
        using: tuple[ast.Name, ...],
    ) -> ast.Join:
        """``JOIN ... USING``."""
        return ast.Join(left, right, _join_kind(words), natural, None, using, span=span)

    def extended_table(
        self,
        span: Span,
        name: ast.Identifier,
        hints: tuple[ast.Hint, ...] | None,
        extended: tuple[ast.ExtendedColumn, ...],
        period: ast.Expression | None,
    ) -> ast.TableRef:
        """``t EXTEND (a INT)``."""
        return ast.TableRef(name, hints or (), period, extended=extended, span=span)

    def extended_column(
        self, span: Span, name: ast.Identifier, type_: ast.TypeSpec, not_null: bool
    ) -> ast.ExtendedColumn:
        """A column of EXTEND."""
        return ast.ExtendedColumn(name, type_, not_null, span=span)

    # Clauses behind a relation

    def matched(self, span: Span, relation: ast.Relation, clauses: dict[str, object]) -> ast.MatchRecognize:
        """MATCH_RECOGNIZE over a relation."""
        return ast.MatchRecognize(input=relation, span=span, **clauses)  # type: ignore[arg-type]

    def matched_as(
        self,
        span: Span,
        relation: ast.Relation,
        named: ast.TableAlias,
        clauses: dict[str, object],
        alias: ast.TableAlias | None,
    ) -> ast.Relation:
        """``t AS k MATCH_RECOGNIZE (...)``. As in Flink: of a table or a query, AS is written, no column is."""
        plain = isinstance(relation, ast.TableRef | ast.DerivedTable) and not named.columns
        if not plain or named.span.start == named.name.span.start:
            message = "SQL parse failed. In front of MATCH_RECOGNIZE stands a table or a query, and AS with one name."
            raise ParseError("syntax", message, named.span)
        inner = self.aliased(relation.span.to(named.span), relation, named)
        return self.aliased(span, self.matched(span, inner, clauses), alias)

    def pivoted(self, span: Span, relation: ast.Relation, clause: _Pivot) -> ast.Pivot:
        """PIVOT over a relation."""
        return ast.Pivot(relation, *clause, span=span)

    def unpivoted(self, span: Span, relation: ast.Relation, clause: _Unpivot) -> ast.Unpivot:
        """UNPIVOT over a relation."""
        return ast.Unpivot(relation, *clause, span=span)

    def pivoted_unpivoted(self, span: Span, relation: ast.Relation, inner: _Pivot, outer: _Unpivot) -> ast.Unpivot:
        """Both, one behind the other."""
        return self.unpivoted(span, self.pivoted(span, relation, inner), outer)

    def pivot(
        self,
        span: Span,
        aggregates: tuple[ast.PivotItem, ...],
        columns: tuple[ast.Name, ...],
        values: tuple[ast.PivotItem, ...],
    ) -> _Pivot:
        """PIVOT."""
        return aggregates, columns, values

    def pivot_aggregate(self, span: Span, call: ast.Expression, alias: ast.Name | None) -> ast.PivotItem:
        """``SUM(a) AS s``."""
        return ast.PivotItem(call, alias, span=span)

    def pivot_value(self, span: Span, value: ast.Expression, alias: ast.Name | None) -> ast.PivotItem:
        """``'x' AS x``."""
        return ast.PivotItem(value, alias, span=span)

    def unpivot(
        self,
        span: Span,
        nulls: str | None,
        measures: tuple[ast.Name, ...],
        axes: tuple[ast.Name, ...],
        items: tuple[ast.UnpivotItem, ...],
    ) -> _Unpivot:
        """UNPIVOT."""
        return measures, axes, items, ast.UnpivotNulls(nulls) if nulls else None

    def unpivot_value(self, span: Span, columns: tuple[ast.Name, ...], label: ast.Expression | None) -> ast.UnpivotItem:
        """``(a, b) AS 'x'``."""
        return ast.UnpivotItem(columns, label, span=span)

    def one_name(self, span: Span, name: ast.Name) -> tuple[ast.Name, ...]:
        """A name where several may stand."""
        return (name,)

    def sampled(self, span: Span, relation: ast.Relation, alias: ast.TableAlias | None, clause: _Sample) -> ast.Sample:
        """TABLESAMPLE over a relation."""
        return ast.Sample(self.aliased(relation.span, relation, alias), *clause, span=span)

    def sample(self, span: Span, method: str, amount: ast.NumberLiteral, seed: int | None) -> _Sample:
        """``TABLESAMPLE method(percent)``."""
        return ast.SampleMethod(method), amount.text, seed

    def substitute(self, span: Span, name: str) -> _Sample:
        """``TABLESAMPLE SUBSTITUTE('name')``."""
        return ast.SampleMethod.SUBSTITUTE, name, None

    def seed(self, span: Span, token: Token) -> int:
        """The seed of REPEATABLE."""
        return int(token.text)

    def negative_seed(self, span: Span, token: Token) -> int:
        """A negative one."""
        return -int(token.text)


_Pivot: TypeAlias = "tuple[tuple[ast.PivotItem, ...], tuple[ast.Name, ...], tuple[ast.PivotItem, ...]]"
_Unpivot: TypeAlias = (
    "tuple[tuple[ast.Name, ...], tuple[ast.Name, ...], tuple[ast.UnpivotItem, ...], ast.UnpivotNulls | None]"
)
_Sample: TypeAlias = "tuple[ast.SampleMethod, str, int | None]"


def _join_kind(words: str) -> ast.JoinKind:
    first = words.split()[0]
    return ast.JoinKind.INNER if first == "JOIN" else ast.JoinKind(first)
