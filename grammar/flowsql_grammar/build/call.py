"""Calls: their arguments, what follows them, windows and frames."""

from __future__ import annotations

from dataclasses import replace

from flowsql_core.errors import ParseError
from flowsql_core.record import record
from flowsql_core.span import Span
from flowsql_grammar import ast
from flowsql_grammar.build.query import order_items
from flowsql_grammar.lexer import Token
from flowsql_grammar.reserved import COLUMN_WORDS


@record
class WithinClause:
    """What stands behind WITHIN: an order, or expressions to be distinct in."""

    group: tuple[ast.OrderItem, ...] = ()
    distinct: tuple[ast.Expression, ...] = ()


class CallBuilder:
    """Methods of the rules of calls."""

    def function_call(
        self, span: Span, name: ast.Identifier, args: tuple[ast.Argument, ...]
    ) -> ast.FunctionCall | ast.Descriptor:
        """A call without more; DESCRIPTOR is one by its looks."""
        if len(name.parts) == 1 and not name.last.quoted and name.last.text.upper() == "DESCRIPTOR":
            columns = []
            for arg in args:
                if not isinstance(arg, ast.ColumnRef):
                    raise ParseError("bad-descriptor", "SQL parse failed. DESCRIPTOR takes column names.", arg.span)
                columns.append(ast.DescriptorColumn(arg.path, span=arg.span))
            return ast.Descriptor(tuple(columns), span=span)
        return ast.FunctionCall(name, args, span=span)

    def keyword_call(self, span: Span, token: Token, args: tuple[ast.Argument, ...]) -> ast.FunctionCall:
        """A call of a function whose name has special syntax too."""
        name = ast.Identifier((ast.Name(token.text, span=token.span),), span=token.span)
        return ast.FunctionCall(name, args, span=span)

    def quantified_call(
        self, span: Span, name: ast.Identifier, quantifier: str, args: tuple[ast.Argument, ...]
    ) -> ast.FunctionCall:
        """``f(DISTINCT x)``."""
        return ast.FunctionCall(name, args, ast.SetQuantifier(quantifier), span=span)

    def ordered_call(
        self, span: Span, name: ast.Identifier, args: tuple[ast.Argument, ...], order_by: tuple[ast.OrderItem, ...]
    ) -> ast.FunctionCall:
        """``f(x ORDER BY y)``."""
        return ast.FunctionCall(name, args, order_by=order_by, span=span)

    def null_treated_call(
        self,
        span: Span,
        name: ast.Identifier,
        args: tuple[ast.Argument, ...],
        nulls: ast.NullTreatment,
        order_by: tuple[ast.OrderItem, ...] = (),
    ) -> ast.FunctionCall:
        """``ARRAY_AGG(x IGNORE NULLS)``, which no other function has."""
        if name.last.quoted or name.last.text.upper() != "ARRAY_AGG":
            raise ParseError(
                "syntax",
                f"SQL parse failed. {nulls.value} stands between the parentheses of ARRAY_AGG only.",
                span,
                f"write {name.last.text}(...) {nulls.value}",
            )
        return ast.FunctionCall(name, args, order_by=order_by, null_treatment=nulls, span=span)

    def quantified_null_treated_call(
        self,
        span: Span,
        name: ast.Identifier,
        quantifier: str,
        args: tuple[ast.Argument, ...],
        nulls: ast.NullTreatment,
    ) -> ast.FunctionCall:
        """``ARRAY_AGG(DISTINCT x IGNORE NULLS)``."""
        made = self.null_treated_call(span, name, args, nulls)
        return replace(made, quantifier=ast.SetQuantifier(quantifier))

    def qualified_call(
        self,
        span: Span,
        call: ast.FunctionCall,
        nulls: ast.NullTreatment | None,
        within: WithinClause | None,
        condition: ast.Expression | None,
        over: ast.WindowSpec | ast.Name | None,
    ) -> ast.FunctionCall:
        """A call with what follows it."""
        if nulls is None and within is None and condition is None and over is None:
            return call
        if not isinstance(call, ast.FunctionCall):
            raise ParseError("bad-descriptor", "SQL parse failed. DESCRIPTOR is no function to aggregate with.", span)
        within = within or WithinClause()
        return replace(
            call,
            null_treatment=nulls or call.null_treatment,
            within_group=within.group,
            within_distinct=within.distinct,
            filter=condition,
            over=over,
            span=span,
        )

    def scoped_call(
        self,
        span: Span,
        scope: str,
        call: ast.FunctionCall,
        nulls: ast.NullTreatment | None,
        within: WithinClause | None,
        condition: ast.Expression | None,
        over: ast.WindowSpec | ast.Name | None,
    ) -> ast.FunctionCall:
        """``RUNNING f(x)``, ``FINAL f(x)``."""
        made = self.qualified_call(span, call, nulls, within, condition, over)
        if not isinstance(made, ast.FunctionCall):
            raise ParseError("bad-descriptor", "SQL parse failed. DESCRIPTOR is no function to aggregate with.", span)
        return replace(made, match_scope=ast.MatchScope(scope), span=span)

    def niladic(self, span: Span, token: Token) -> ast.FunctionCall | ast.ColumnRef:
        """CURRENT_DATE and the like; USER and the like are no functions of Flink, so that they are columns."""
        name = ast.Identifier((ast.Name(token.text, span=span),), span=span)
        if token.text.upper() in COLUMN_WORDS:
            return ast.ColumnRef(name, span=span)
        return ast.FunctionCall(name, niladic=True, span=span)

    def within_group(self, span: Span, items: tuple[ast.OrderItem, ...]) -> WithinClause:
        """``WITHIN GROUP (ORDER BY x)``."""
        return WithinClause(group=items)

    def within_distinct(self, span: Span, items: tuple[ast.Expression, ...]) -> WithinClause:
        """``WITHIN DISTINCT (x)``."""
        return WithinClause(distinct=items)

    def ignore_nulls(self, span: Span, token: Token) -> ast.NullTreatment:
        """IGNORE NULLS."""
        return ast.NullTreatment.IGNORE

    def respect_nulls(self, span: Span, token: Token) -> ast.NullTreatment:
        """RESPECT NULLS."""
        return ast.NullTreatment.RESPECT

    def star(self, span: Span) -> ast.Star:
        """``*`` as an argument."""
        return ast.Star(span=span)

    def qualified_star(self, span: Span, *names: ast.Name) -> ast.Star:
        """``t.*`` as an argument."""
        return ast.Star(ast.Identifier(names, span=names[0].span.to(names[-1].span)), span=span)

    def named_argument(self, span: Span, name: ast.Name, value: ast.Argument) -> ast.NamedArgument:
        """``name => value``."""
        return ast.NamedArgument(name, value, span=span)

    def model_argument(self, span: Span, name: ast.Identifier) -> ast.ModelArgument:
        """``MODEL m``."""
        return ast.ModelArgument(name, span=span)

    def table_argument(
        self,
        span: Span,
        table: ast.Identifier,
        partition_by: tuple[ast.Expression, ...] | None,
        order_by: tuple[ast.OrderItem, ...] | None,
    ) -> ast.TableArgument:
        """``TABLE t PARTITION BY a ORDER BY b``."""
        return ast.TableArgument(table, partition_by or (), order_by or (), span=span)

    def partitioned_query(
        self,
        span: Span,
        query: ast.Query,
        partition_by: tuple[ast.Expression, ...],
        order_by: tuple[ast.OrderItem, ...] | None,
    ) -> ast.TableArgument:
        """``(SELECT ...) PARTITION BY a``."""
        return ast.TableArgument(query, partition_by, order_by or (), span=span)

    def query_argument(self, span: Span, query: ast.Query) -> ast.Subquery | ast.TableArgument:
        """A query without brackets; ``TABLE t ORDER BY x`` is a table argument again."""
        if isinstance(query.body, ast.ExplicitTable) and not query.ctes and query.limit is None and not query.offset:
            return ast.TableArgument(query.body.name, (), order_items(query.order_by), span=span)
        return ast.Subquery(query, span=span)

    def arg_partition_one(self, span: Span, name: ast.Name) -> tuple[ast.Expression, ...]:
        """``PARTITION BY a``."""
        return (ast.ColumnRef(ast.Identifier((name,), span=name.span), span=name.span),)

    def arg_partition_many(self, span: Span, names: tuple[ast.Name, ...]) -> tuple[ast.Expression, ...]:
        """``PARTITION BY (a, b)``."""
        return tuple(ast.ColumnRef(ast.Identifier((n,), span=n.span), span=n.span) for n in names)

    def arg_order_one(self, span: Span, item: ast.OrderItem) -> tuple[ast.OrderItem, ...]:
        """``ORDER BY a``, or ``ORDER BY (a, b)``, which reads as a row."""
        return order_items((item,))

    def arg_order_many(
        self, span: Span, first: ast.OrderItem, others: tuple[ast.OrderItem, ...]
    ) -> tuple[ast.OrderItem, ...]:
        """``ORDER BY (a DESC, b)``."""
        return (first, *others)

    # Windows

    def window_spec(
        self,
        span: Span,
        base: ast.Name | None,
        partition_by: tuple[ast.Expression, ...] | None,
        order_by: tuple[ast.OrderItem, ...] | None,
        frame: ast.Frame | None,
        allow_partial: bool | None,
    ) -> ast.WindowSpec:
        """``(PARTITION BY ... ORDER BY ... frame)``."""
        return ast.WindowSpec(base, partition_by or (), order_by or (), frame, allow_partial, span=span)

    def frame_from(self, span: Span, unit: str, start: ast.FrameBound) -> ast.Frame:
        """``ROWS start``."""
        return ast.Frame(ast.FrameUnit(unit), start, span=span)

    def frame_between(self, span: Span, unit: str, start: ast.FrameBound, end: ast.FrameBound) -> ast.Frame:
        """``ROWS BETWEEN start AND end``."""
        return ast.Frame(ast.FrameUnit(unit), start, end, span=span)

    def unbounded_preceding(self, span: Span) -> ast.FrameBound:
        """UNBOUNDED PRECEDING."""
        return ast.FrameBound(ast.BoundKind.UNBOUNDED_PRECEDING, span=span)

    def unbounded_following(self, span: Span) -> ast.FrameBound:
        """UNBOUNDED FOLLOWING."""
        return ast.FrameBound(ast.BoundKind.UNBOUNDED_FOLLOWING, span=span)

    def current_row(self, span: Span) -> ast.FrameBound:
        """CURRENT ROW."""
        return ast.FrameBound(ast.BoundKind.CURRENT_ROW, span=span)

    def preceding(self, span: Span, offset: ast.Expression) -> ast.FrameBound:
        """``n PRECEDING``."""
        return ast.FrameBound(ast.BoundKind.PRECEDING, offset, span=span)

    def following(self, span: Span, offset: ast.Expression) -> ast.FrameBound:
        """``n FOLLOWING``."""
        return ast.FrameBound(ast.BoundKind.FOLLOWING, offset, span=span)
