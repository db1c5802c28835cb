"""Expressions: operators, calls, special syntax, JSON."""

from __future__ import annotations

from dataclasses import replace

from flowsql_core.errors import ParseError
from flowsql_core.record import record
from flowsql_core.span import Span
from flowsql_grammar import ast
from flowsql_grammar.build.query import order_items
from flowsql_grammar.lexer import Token

_BINARY = {operator.value: operator for operator in ast.BinaryOperator}
_UNARY = {operator.value: operator for operator in ast.UnaryOperator}
_WORD_OPERATORS = {"MEMBER": "MEMBER OF", "SUBMULTISET": "SUBMULTISET OF"}


@record
class WithinClause:
    """What stands behind WITHIN: an order, or expressions to be distinct in."""

    group: tuple[ast.OrderItem, ...] = ()
    distinct: tuple[ast.Expression, ...] = ()


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

    # Calls

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
        self,
        span: Span,
        name: ast.Identifier,
        args: tuple[ast.Argument, ...],
        order_by: tuple[ast.OrderItem, ...],
    ) -> ast.FunctionCall:
        """``f(x ORDER BY y)``."""
        return ast.FunctionCall(name, args, order_by=order_by, span=span)

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
            null_treatment=nulls,
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

    def niladic(self, span: Span, token: Token) -> ast.FunctionCall:
        """CURRENT_DATE and the like."""
        name = ast.Identifier((ast.Name(token.text, span=span),), span=span)
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
