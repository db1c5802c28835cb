"""MATCH_RECOGNIZE."""

from __future__ import annotations

from flowsql_core.errors import ParseError
from flowsql_core.span import Span
from flowsql_grammar import ast
from flowsql_grammar.lexer import Token


class MatchBuilder:
    """Methods of the rules of MATCH_RECOGNIZE."""

    def match_recognize(
        self,
        span: Span,
        partition_by: tuple[ast.Expression, ...] | None,
        order_by: tuple[ast.OrderItem, ...] | None,
        measures: tuple[ast.Measure, ...] | None,
        rows_per_match: str | None,
        after_match: ast.AfterMatch | None,
        strict_start: bool,
        pattern: ast.Pattern,
        strict_end: bool,
        within: ast.IntervalLiteral | None,
        subsets: tuple[ast.SubsetDefinition, ...] | None,
        definitions: tuple[ast.PatternDefinition, ...],
    ) -> dict[str, object]:
        """The clauses; ``matched`` puts them on a relation."""
        return {
            "pattern": pattern,
            "definitions": definitions,
            "partition_by": partition_by or (),
            "order_by": order_by or (),
            "measures": measures or (),
            "rows_per_match": ast.RowsPerMatch(rows_per_match) if rows_per_match else None,
            "after_match": after_match,
            "strict_start": strict_start,
            "strict_end": strict_end,
            "within": within,
            "subsets": subsets or (),
        }

    def measure(self, span: Span, expression: ast.Expression, name: ast.Name) -> ast.Measure:
        """``expression AS name``."""
        return ast.Measure(expression, name, span=span)

    def skip_plain(self, span: Span, words: str) -> ast.AfterMatch:
        """PAST LAST ROW, TO NEXT ROW."""
        return ast.AfterMatch(ast.SkipKind("SKIP " + words), span=span)

    def skip_to_first(self, span: Span, variable: ast.Name) -> ast.AfterMatch:
        """TO FIRST variable."""
        return ast.AfterMatch(ast.SkipKind.TO_FIRST, variable, span=span)

    def skip_to_last(self, span: Span, variable: ast.Name) -> ast.AfterMatch:
        """TO [LAST] variable."""
        return ast.AfterMatch(ast.SkipKind.TO_LAST, variable, span=span)

    def pattern_variable(self, span: Span, name: ast.Name) -> ast.PatternVariable:
        """A variable."""
        return ast.PatternVariable(name, span=span)

    def sequence(self, span: Span, left: ast.Pattern, right: ast.Pattern) -> ast.PatternSequence:
        """Parts side by side, flat: a bracketed sequence at the start means the same."""
        parts = left.parts if isinstance(left, ast.PatternSequence) else (left,)
        return ast.PatternSequence((*parts, right), span=span)

    def alternation(self, span: Span, left: ast.Pattern, right: ast.Pattern) -> ast.PatternAlternation:
        """``a | b``, flat."""
        choices = left.choices if isinstance(left, ast.PatternAlternation) else (left,)
        return ast.PatternAlternation((*choices, right), span=span)

    def exclusion(self, span: Span, inner: ast.Pattern) -> ast.PatternExclusion:
        """``{- a -}``."""
        return ast.PatternExclusion(inner, span=span)

    def permute(self, span: Span, parts: tuple[ast.Pattern, ...]) -> ast.PatternPermute:
        """``PERMUTE(a, b)``."""
        return ast.PatternPermute(parts, span=span)

    def repeat_star(self, span: Span, inner: ast.Pattern, reluctant: bool) -> ast.PatternRepeat:
        """``a*``."""
        return ast.PatternRepeat(inner, 0, None, reluctant, span=span)

    def repeat_plus(self, span: Span, inner: ast.Pattern, reluctant: bool) -> ast.PatternRepeat:
        """``a+``."""
        return ast.PatternRepeat(inner, 1, None, reluctant, span=span)

    def repeat_optional(self, span: Span, inner: ast.Pattern, reluctant: bool) -> ast.PatternRepeat:
        """``a?``."""
        return ast.PatternRepeat(inner, 0, 1, reluctant, span=span)

    def repeat_exactly(self, span: Span, inner: ast.Pattern, count: Token) -> ast.PatternRepeat:
        """``a{n}``."""
        return ast.PatternRepeat(inner, int(count.text), int(count.text), span=span)

    def repeat_at_least(self, span: Span, inner: ast.Pattern, low: Token, reluctant: bool) -> ast.PatternRepeat:
        """``a{n,}``."""
        return ast.PatternRepeat(inner, int(low.text), None, reluctant, span=span)

    def repeat_at_most(self, span: Span, inner: ast.Pattern, high: Token, reluctant: bool) -> ast.PatternRepeat:
        """``a{,m}``."""
        return ast.PatternRepeat(inner, None, int(high.text), reluctant, span=span)

    def repeat_between(
        self, span: Span, inner: ast.Pattern, low: Token, high: Token, reluctant: bool
    ) -> ast.PatternRepeat:
        """``a{n,m}``."""
        if int(low.text) > int(high.text):
            raise ParseError(
                "bad-quantifier",
                f"SQL parse failed. The quantifier {{{low.text},{high.text}}} has its bounds the wrong way round.",
                low.span.to(high.span),
            )
        return ast.PatternRepeat(inner, int(low.text), int(high.text), reluctant, span=span)

    def subset(self, span: Span, name: ast.Name, variables: tuple[ast.Name, ...]) -> ast.SubsetDefinition:
        """``name = (A, B)``."""
        return ast.SubsetDefinition(name, variables, span=span)

    def definition(self, span: Span, name: ast.Name, condition: ast.Expression) -> ast.PatternDefinition:
        """``name AS condition``."""
        return ast.PatternDefinition(name, condition, span=span)
