"""Expressions: names resolved in a scope, functions and types by the registry, literals typed; AST -> typed IR."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING

from flowsql_compute.eval.not_null import declare
from flowsql_compute.functions.registry import function_names, is_aggregate, resolve_call, resolve_case, resolve_cast
from flowsql_compute.functions.signature import family_name, summary
from flowsql_core.errors import BindError, NotSupportedYetError, did_you_mean
from flowsql_core.expr import Call, Case, Expr, InputRef, Literal
from flowsql_core.record import record
from flowsql_core.span import Span
from flowsql_core.types import logical as t
from flowsql_grammar import ast
from flowsql_planner.bind.context import BindContext
from flowsql_planner.bind.data_types import bind_cast_type
from flowsql_planner.bind.environment import Environment
from flowsql_planner.bind.expression.aggregate_calls import AggregateCollector, PendingAggregate, has_mark
from flowsql_planner.bind.expression.call_forms import Options, as_call, json_options
from flowsql_planner.bind.expression.fractions import constant_fractions
from flowsql_planner.bind.expression.group_windows import bind_group_window, is_group_window
from flowsql_planner.bind.expression.literals import bind_literal, bind_number, unit_interval, written_interval
from flowsql_planner.bind.expression.over_calls import bind_over
from flowsql_planner.bind.expression.scope import Scope
from flowsql_planner.bind.expression.subquery import bind_subquery, outer_column
from flowsql_planner.bind.sql_text.expand_names import path_of

if TYPE_CHECKING:
    from flowsql_planner.catalog.functions import UserFunction

_GROUPING_FUNCTIONS = frozenset({"GROUPING", "GROUPING_ID", "GROUP_ID"})
#: Functions that are nothing without OVER.
_OVER_ONLY = frozenset(
    {"ROW_NUMBER", "RANK", "DENSE_RANK", "PERCENT_RANK", "CUME_DIST", "NTILE", "LEAD", "LAG", "NTH_VALUE"}
)
#: Functions that stand without brackets too, where a column of that name is quoted or qualified.
_WITHOUT_BRACKETS = frozenset({"PI"})
_JSON_CONTEXT = (
    "The JSON() function is currently only supported inside JSON_ARRAY() or as the VALUE param of JSON_OBJECT(). "
    'Example: JSON_OBJECT(\'a\', JSON(\'{"key": "value"}\')) or JSON_ARRAY(JSON(\'{"key": "value"}\')).'
)


@record
class ExpressionBinder:
    """Binds expressions of one clause.

    ``clause``: the clause's name for messages (``WHERE``). ``aggregates``: where aggregate calls are collected; None
    where they are not allowed. ``nested``: what queries inside of expressions see; None where none may
    stand. ``outputs``: names of a SELECT list, which go before columns. ``windows``: those of the WINDOW clause.
    """

    context: BindContext
    scope: Scope
    clause: str = "SELECT"
    aggregates: AggregateCollector | None = None
    nested: Environment | None = None
    outputs: tuple[tuple[str, Expr], ...] = ()
    windows: Mapping[str, ast.WindowSpec] = field(default_factory=dict)

    def bind(self, node: ast.Expression | ast.Argument) -> Expr:
        """The typed expression of a written one.

        Raises:
            BindError: a name is unknown or types do not fit.
            NotSupportedYetError: valid Flink SQL that is not executed yet.
        """
        match node:
            case ast.ColumnRef():
                return self._column(node)
            case (
                ast.NumberLiteral()
                | ast.StringLiteral()
                | ast.BinaryLiteral()
                | ast.BooleanLiteral()
                | ast.NullLiteral()
                | ast.DateLiteral()
                | ast.TimeLiteral()
                | ast.TimestampLiteral()
                | ast.IntervalLiteral()
            ):
                return bind_literal(node)
            case ast.BinaryOp():
                return self._binary(node)
            case ast.UnaryOp(ast.UnaryOperator.MINUS | ast.UnaryOperator.PLUS, operand):
                return self._signed(node, operand)
            case ast.FunctionCall():
                return self._function(node)
            case ast.Cast(ast.NumberLiteral() | ast.UnaryOp() as number, ast.IntervalType(qualifier), safe):
                return written_interval(self.bind(number), qualifier, safe, node.span)
            case ast.Cast(operand, type_spec, safe):
                return resolve_cast(self.bind(operand), bind_cast_type(type_spec), safe, node.span)
            case ast.Case():
                return self._case(node)
            case ast.Between():
                return self._between(node)
            case ast.FieldAccess(operand, name):
                return self.field(self.bind(operand), name.text, name.span)
            case ast.IntervalExpression(amount, qualifier, negative):
                made = self.call("*", (self.bind(amount), unit_interval(qualifier, node.span)), (), node.span)
                return self.call("-", (made,), (), node.span) if negative else made
            case ast.JsonObjectAgg() | ast.JsonArrayAgg():
                return self._json_aggregate(node)
        form = as_call(node)
        if form is not None:
            bound = [
                self._json_value(operand) if _takes_json(form.name, place) else self.bind(operand)
                for place, operand in enumerate(form.operands)
            ]
            if isinstance(node, ast.RoundToUnit) and not isinstance(bound[0].type, t.DateTimeType | t.NullType):
                raise _no_moment(node, bound[0])
            made = self.call(form.name, bound, form.options, node.span)
            return self.call("NOT", (made,), (), node.span) if form.negated else made
        if self.nested is not None:
            query = bind_subquery(self, node)
            if query is not None:
                return query
        raise self._refusal(node)

    def condition(self, node: ast.Expression) -> Expr:
        """A predicate, or BindError in Flink's words (``WHERE clause must be a condition``)."""
        bound = self.bind(node)
        if isinstance(bound.type, t.NullType):
            return Literal(None, t.BOOLEAN, node.span)
        if not isinstance(bound.type, t.BooleanType):
            raise BindError(
                "not-a-condition",
                f"{self.clause} clause must be a condition",
                node.span,
                f"this is {bound.type.as_nullable()}, not BOOLEAN",
            )
        return bound

    def call(self, name: str, args: Sequence[Expr], options: Options, span: Span | None) -> Expr:
        """A function of the registry over bound operands."""
        return resolve_call(name, tuple(args), options, span)

    def field(self, operand: Expr, name: str, span: Span) -> Expr:
        """A field of a ROW by name; NULL where the row is NULL."""
        if not isinstance(operand.type, t.RowType):
            raise BindError(
                "not-a-row", f"Column '{name}' not found in any table", span, f"{operand.type} has no fields"
            )
        for index, own in enumerate(operand.type.fields):
            if own.name == name:
                type_ = own.type.as_nullable() if operand.type.nullable else own.type
                whole = operand.span.to(span) if operand.span is not None else span
                return Call("FIELD", (operand,), type_, (("index", index), ("name", name)), whole)
        hint = did_you_mean(name, [own.name for own in operand.type.fields])
        raise BindError("column-not-found", f"Column '{name}' not found in any table", span, hint)

    # Names

    def _column(self, node: ast.ColumnRef) -> Expr:
        path = node.path
        if len(path.parts) == 1 and not path.last.quoted and path.last.text.upper() in _WITHOUT_BRACKETS:
            return self.call(path.last.text.upper(), (), (), node.span)
        if len(path.parts) == 1 and path.last.text in (named := dict(reversed(self.outputs))):
            if self.clause == "QUALIFY":
                self._note_expansion(node, named[path.last.text], 1)
            return named[path.last.text]
        try:
            found, used = self.scope.resolve_path(path.texts, [part.span for part in path.parts])
        except BindError as error:
            if self.nested is None:
                raise
            return outer_column(self, node, error)
        self._note_expansion(node, found, used)
        for part in path.parts[used:]:
            found = self.field(found, part.text, part.span)
        return found

    def _note_expansion(self, node: ast.ColumnRef, found: Expr, used: int) -> None:
        """While a view is created: the name behind its table. ``used``: parts of the path that name ``found``."""
        if self.context.expansions is None or not isinstance(found, InputRef):
            return
        namespace = self.scope.namespace_at(found.index)
        if namespace is not None and namespace.alias is not None:
            names = (namespace.alias, namespace.columns[found.index - namespace.start].name, *node.path.texts[used:])
            self.context.expansions[id(node)] = (ast.ColumnRef(path_of(names, node), span=node.span),)

    # Operators

    def _binary(self, node: ast.BinaryOp) -> Expr:
        """Chains lean to the left and may be long: walk down the left spine without recursion."""
        spine = [node]
        while isinstance(spine[-1].left, ast.BinaryOp):
            spine.append(spine[-1].left)
        made = self.bind(spine[-1].left)
        pending: list[Expr] = []
        for position, part in enumerate(reversed(spine)):
            right = self.bind(part.right)
            operator = part.operator
            if operator in (ast.BinaryOperator.AND, ast.BinaryOperator.OR):
                # a AND b AND c is one call of three operands, as Calcite flattens it.
                pending = pending or [made]
                pending.append(right)
                above = spine[len(spine) - 2 - position] if position + 1 < len(spine) else None
                if above is None or above.operator is not operator:
                    made, pending = self.call(operator.value, pending, (), part.span), []
            else:
                made = self.call(operator.value, (made, right), (), part.span)
        return made

    def _signed(self, node: ast.UnaryOp, operand: ast.Expression) -> Expr:
        if isinstance(operand, ast.NumberLiteral):
            return bind_number(operand, node.operator is ast.UnaryOperator.MINUS, node.span)
        bound = self.bind(operand)
        if isinstance(bound, Literal) and bound.value is not None and isinstance(bound.type, t.NumericType):
            return _signed_number(bound, node)
        if isinstance(bound, Literal) and bound.value is not None and _is_interval(bound.type):
            sign = -1 if node.operator is ast.UnaryOperator.MINUS else 1
            return Literal(sign * bound.value, bound.type, node.span)
        return self.call(node.operator.value, (bound,), (), node.span)

    def _between(self, node: ast.Between) -> Expr:
        operand, low, high = self.bind(node.operand), self.bind(node.low), self.bind(node.high)
        inside = self._within(operand, low, high, node.span)
        if node.symmetric:
            inside = self.call("OR", (inside, self._within(operand, high, low, node.span)), (), node.span)
        return self.call("NOT", (inside,), (), node.span) if node.negated else inside

    def _within(self, operand: Expr, low: Expr, high: Expr, span: Span) -> Expr:
        above = self.call(">=", (operand, low), (), span)
        below = self.call("<=", (operand, high), (), span)
        return self.call("AND", (above, below), (), span)

    def _case(self, node: ast.Case) -> Expr:
        operand = None if node.operand is None else self.bind(node.operand)
        conditions, results = [], []
        for branch in node.branches:
            tests = [self.bind(condition) for condition in branch.conditions]
            if operand is not None:
                tests = [self.call("=", (operand, test), (), branch.span) for test in tests]
            conditions.append(tests[0] if len(tests) == 1 else self.call("OR", tests, (), branch.span))
            results.append(self.bind(branch.result))
        otherwise = Literal(None, t.NULL, node.span) if node.otherwise is None else self.bind(node.otherwise)
        return _decided(resolve_case(tuple(conditions), tuple(results), otherwise, node.span))

    # Calls

    def _json_value(self, node: ast.Expression | ast.Argument) -> Expr:
        """A value that becomes part of a JSON text: only here a text may be JSON already."""
        if isinstance(node, ast.FunctionCall) and node.name.texts[0].upper() == "JSON" and len(node.name.parts) == 1:
            return self.call("JSON", self._arguments(node), (), node.span)
        return self.bind(node)

    def _function(self, node: ast.FunctionCall) -> Expr:
        name = node.name.last.text.upper()
        if node.over is not None:
            if _is_system_function(name) and not is_aggregate(name) and name not in _OVER_ONLY:
                raise BindError("not-an-aggregate", "OVER must be applied to aggregate function", node.span)
            user = self.user_function(node)
            if user is not None:
                # Imported on use, as in ``_user_call``.
                from flowsql_planner.bind.expression.user_calls import over_function

                found = over_function(self.context.catalogs.functions, user, node, self.context.streaming)
                return bind_over(self, name, node, found)
            return bind_over(self, name, node)
        if name in _OVER_ONLY:
            raise BindError("no-over", "OVER clause is necessary for window functions", node.span)
        if node.null_treatment is not None and name != "ARRAY_AGG":
            message = f"Cannot specify IGNORE NULLS or RESPECT NULLS following '{node.name.last.text}'"
            raise BindError("null-treatment", message, node.span)
        if node.match_scope is not None or node.within_distinct:
            raise NotSupportedYetError(f"what stands around the call of {name}", node.span)
        user = self.user_function(node)
        if user is not None:
            return self._user_call(user, node)
        if name in _GROUPING_FUNCTIONS:
            return self._grouping(name, node)
        if is_group_window(name, len(node.args)):
            return bind_group_window(name, self._arguments(node), self.clause, self.context.streaming, node.span)
        if is_aggregate(name):
            return self._aggregate(name, node)
        if name == "JSON":
            raise BindError("json-context", _JSON_CONTEXT, node.span)
        if node.filter is not None or node.within_group or node.order_by:
            raise BindError("not-an-aggregate", f"'{name}' is not an aggregate function", node.span)
        if node.quantifier is not None:
            raise BindError("not-an-aggregate", f"DISTINCT/ALL not allowed with {name} function", node.span)
        options = (("database", self.context.catalogs.current_database),) if name == "CURRENT_DATABASE" else ()
        try:
            return self.call(name, self._arguments(node), options, node.span)
        except BindError as error:
            if error.code == "function-not-found":
                error.message = error.message.replace(f" {name}(", f" {node.name.last.text}(", 1)
            raise

    def _user_call(self, user: UserFunction, node: ast.FunctionCall) -> Expr:
        # Imported on use: only calls of user functions load what Python functions need.
        from flowsql_planner.bind.expression import user_calls

        functions = self.context.catalogs.functions
        if not user_calls.is_user_aggregate(functions, user, node):
            user_calls.refuse_clauses(node)
            return user_calls.bind_user_call(functions, user, self._arguments(node), node)
        collector = self._collector(node.name.last.text, node.span)
        inner = replace(self, aggregates=None, clause=f"{node.name.last.text}(...)")
        condition = None if node.filter is None else replace(inner, clause="FILTER").condition(node.filter)
        return collector.add(user_calls.user_aggregate(functions, user, inner._arguments(node), condition, node))

    def table_call(self, node: ast.FunctionCall) -> Expr | None:
        """The rows that a user's table function makes, as an array; None for a function that is no user's."""
        user = self.user_function(node)
        if user is None:
            return None
        # Imported on use, as in ``_user_call``.
        from flowsql_planner.bind.expression.user_calls import bind_user_call, refuse_clauses

        refuse_clauses(node)
        return bind_user_call(self.context.catalogs.functions, user, self._arguments(node), node, rows=True)

    def user_function(self, node: ast.FunctionCall) -> UserFunction | None:
        """The user's function of a call, found as Flink finds them; None for a built-in one."""
        parts, catalogs = node.name.texts, self.context.catalogs
        self.context.note_function(parts)
        if len(parts) > 1:
            known = catalogs.functions.find_user(parts) if len(parts) <= 3 else None
            if known is None:
                raise BindError(
                    "function-not-found", f"No match found for function signature {node.name.last}(...)", node.name.span
                )
            return known
        if not catalogs.has_functions:
            return None
        if catalogs.functions.find_system(parts[0]) is None and _is_system_function(parts[0].upper()):
            return None
        return catalogs.functions.find_user(parts)

    def _arguments(self, node: ast.FunctionCall) -> list[Expr]:
        bound = []
        for argument in node.args:
            match argument:
                case ast.NamedArgument():
                    raise self._named_argument(node, argument.span)
                case ast.Star():
                    raise BindError("star-argument", f"'*' is no argument of {node.name}", argument.span)
            bound.append(self.bind(argument))
        return bound

    def _named_argument(self, node: ast.FunctionCall, span: Span) -> BindError:
        """Only table functions name their arguments; all others may be overloaded."""
        if self.user_function(node) is None and not _is_system_function(node.name.last.text.upper()):
            shown = ", ".join(self._shown_argument(item) for item in node.args)
            signature = f"{node.name.last}({shown})"
            return BindError("function-not-found", f"No match found for function signature {signature}", node.span)
        return BindError(
            "named-argument",
            "Unsupported function signature. Function must not be overloaded or use varargs.",
            span,
            "write the arguments in their order, without names",
        )

    def _shown_argument(self, argument: ast.Argument) -> str:
        """An argument as messages about signatures show it: ``a => <NUMERIC>``."""
        if isinstance(argument, ast.NamedArgument):
            return f"{argument.name.text} => {self._shown_argument(argument.value)}"
        return f"<{family_name(self.bind(argument).type)}>"

    def _aggregate(self, name: str, node: ast.FunctionCall) -> Expr:
        # Imported here: the declarations of aggregates take time to load, and most expressions need none.
        from flowsql_compute.functions.aggregate import check_literals

        collector = self._collector(name, node.span)
        inner = replace(self, aggregates=None, clause=f"{name}(...)")
        if len(node.args) == 1 and isinstance(node.args[0], ast.Star):
            args: list[Expr] = []
            if name != "COUNT" or node.quantifier is not None:
                raise BindError("star-argument", f"'*' is no argument of {name}", node.args[0].span)
        else:
            args = inner._arguments(node)
            if not args and name == "COUNT":
                raise BindError(
                    "argument-count",
                    "Invalid number of arguments to function 'COUNT'. Was expecting 1 arguments",
                    node.span,
                    "COUNT(*) counts rows",
                )
        if node.within_group:
            message = f"Aggregate expression '{name}' must not contain a WITHIN GROUP clause"
            raise BindError("within-group", message, node.span)
        check_literals(name, args)
        order = tuple((inner.bind(item.expression), item.descending) for item in node.order_by)
        condition = None if node.filter is None else replace(inner, clause="FILTER").condition(node.filter)
        if node.null_treatment is ast.NullTreatment.IGNORE:
            known = self.call("IS NOT NULL", (args[0],), (), node.span)
            condition = known if condition is None else self.call("AND", (known, condition), (), node.span)
        distinct = node.quantifier is ast.SetQuantifier.DISTINCT
        return self._collect(collector, name, args, distinct, condition, order, (), node.span)

    def _json_aggregate(self, node: ast.JsonObjectAgg | ast.JsonArrayAgg) -> Expr:
        name = "JSON_OBJECTAGG" if isinstance(node, ast.JsonObjectAgg) else "JSON_ARRAYAGG"
        collector = self._collector(name, node.span)
        inner = replace(self, aggregates=None, clause=f"{name}(...)")
        if isinstance(node, ast.JsonObjectAgg):
            args = [inner.bind(node.entry.key), inner._as_json(node.entry.value)]
            options = json_options(node.null_clause, (node.entry.format_json,))
            order: tuple[tuple[Expr, bool], ...] = ()
        else:
            args = [inner._as_json(node.element.value)]
            options = json_options(node.null_clause, (node.element.format_json,))
            order = tuple((inner.bind(item.expression), item.descending) for item in node.order_by)
        return self._collect(collector, name, args, False, None, order, options, node.span)

    def _as_json(self, node: ast.Expression) -> Expr:
        """The JSON text of a value that a JSON aggregate takes."""
        return self.call("JSON_STRING", (self.bind(node),), (), node.span)

    def _collect(
        self,
        collector: AggregateCollector,
        name: str,
        args: list[Expr],
        distinct: bool,
        condition: Expr | None,
        order: tuple[tuple[Expr, bool], ...],
        options: Options,
        span: Span,
    ) -> Expr:
        # Imported here: the declarations of aggregates take time to load, and most expressions need none.
        from flowsql_compute.functions.aggregate import resolve_aggregate

        resolved = resolve_aggregate(
            name,
            tuple(arg.type for arg in args),
            distinct,
            span,
            grouped=collector.grouped,
            filtered=condition is not None,
        )
        args = [_cast_if_needed(arg, wanted) for arg, wanted in zip(args, resolved.arg_types, strict=True)]
        if resolved.name == "PERCENTILE":
            fractions = constant_fractions(args[1])
            if fractions is None:
                args[1] = _fraction_column(args[1])
            else:
                options = (("fractions", fractions),)
                del args[1]
        if condition is not None and condition.type.nullable:
            condition = self.call("IS TRUE", (condition,), (), span)
        type_ = resolved.result_type
        made = PendingAggregate(resolved.name, tuple(args), type_, distinct, condition, order, options, span)
        return declare(collector.add(made), resolved.declared_type)

    def _collector(self, name: str, span: Span) -> AggregateCollector:
        if self.aggregates is not None:
            return self.aggregates
        if self.clause.endswith("(...)"):
            raise BindError("nested-aggregate", "Aggregate expressions cannot be nested", span)
        raise BindError(
            "aggregate-not-allowed",
            f"Aggregate expression is illegal in {self.clause} clause",
            span,
            "HAVING filters groups" if self.clause == "WHERE" else None,
        )

    def _grouping(self, name: str, node: ast.FunctionCall) -> Expr:
        collector = self._collector(name, node.span)
        args = replace(self, aggregates=None, clause=f"{name}(...)")._arguments(node)
        if name != "GROUP_ID" and not args:
            raise BindError(
                "argument-count",
                f"Invalid number of arguments to function '{name}'. Was expecting 1 arguments",
                node.span,
            )
        return collector.add(PendingAggregate(name, tuple(args), t.BigIntType(nullable=False), span=node.span))

    # What is valid Flink SQL, and not executed yet

    def _refusal(self, node: ast.Expression | ast.Argument) -> Exception:
        match node:
            case ast.InSubquery():
                return NotSupportedYetError("IN (subquery)", node.span, "write a JOIN")
            case ast.Exists():
                return NotSupportedYetError("EXISTS (subquery)", node.span, "write a JOIN")
            case ast.Unique():
                message = "No match found for function signature UNIQUE"
                return BindError("function-not-found", message, node.span, "compare COUNT(*) with COUNT(DISTINCT ...)")
            case ast.Subquery():
                return NotSupportedYetError("a scalar subquery", node.span, "write a JOIN")
            case ast.QuantifiedComparison(operator, _, quantifier):
                return NotSupportedYetError(f"{operator.value} {quantifier.value} (...)", node.span)
            case ast.CollectionQuery(kind):
                return NotSupportedYetError(f"{kind.value}(subquery)", node.span)
            case ast.Parameter():
                return NotSupportedYetError("a parameter '?'", node.span)
            case ast.Star():
                return BindError("star-in-expression", "'*' is no expression", node.span)
            case ast.DefaultValue():
                message = "No match found for function signature DEFAULT"
                return BindError("default-value", message, node.span, "built-in functions have no default arguments")
        return BindError("bad-expression", "this is no value", node.span)


def _decided(case: Case) -> Expr:
    """The element of a collection that a CASE with written conditions stands for.

    Flink plans the branch alone: an element that is missing is then projected, not part of a CASE.
    """
    chosen: Expr = case.otherwise
    for condition, result in zip(case.conditions, case.results, strict=True):
        if not isinstance(condition, Literal):
            return case
        if condition.value:
            chosen = result
            break
    is_item = isinstance(chosen, Call) and chosen.function == "ITEM" and chosen.type == case.type
    return chosen if is_item else case


def _takes_json(function: str, place: int) -> bool:
    """Whether an operand may be ``JSON(x)``: an element of JSON_ARRAY, a value of JSON_OBJECT."""
    return function == "JSON_ARRAY" or (function == "JSON_OBJECT" and place % 2 == 1)


def _fraction_column(arg: Expr) -> Expr:
    """Fractions of PERCENTILE that rows hold: that of a group's first row counts."""
    inner = arg.type.element if isinstance(arg.type, t.ArrayType) else arg.type
    if arg.type.nullable or inner.nullable:
        raise BindError(
            "percentile-null",
            "Invalid input arguments. The percentage of PERCENTILE must not be nullable.",
            arg.span,
            "COALESCE(fraction, 0.5) is never NULL",
        )
    double = t.DOUBLE.as_nullable(False)
    wanted = t.ArrayType(element=double, nullable=False) if isinstance(arg.type, t.ArrayType) else double
    return resolve_cast(arg, wanted, False, arg.span)


def _signed_number(bound: Literal, node: ast.UnaryOp) -> Literal:
    """A sign in front of a number makes another number, whose type its value decides."""
    value = bound.value if node.operator is ast.UnaryOperator.PLUS else -bound.value
    type_ = bound.type
    if isinstance(type_, t.IntegerType):
        if value not in range(-(2**63), 2**63):
            raise BindError("literal-out-of-range", f"Numeric literal '{value}' out of range", node.span)
        fits = value in range(-(2**31), 2**31)
        type_ = t.IntType(nullable=False) if fits else t.BigIntType(nullable=False)
    return Literal(value, type_, node.span)


def _no_moment(node: ast.RoundToUnit, operand: Expr) -> BindError:
    """Only a date or time has units to be rounded to."""
    name = node.direction.value
    return BindError(
        "argument-types",
        f"Cannot apply '{name}' to arguments of type '{name}(<{summary(operand.type)}>, "
        f"<INTERVAL {node.unit.value}>)'. Supported form(s): '{name}(<NUMERIC>)'\n'{name}(<DATETIME_INTERVAL>)'\n"
        f"'{name}(<DATE> TO <TIME_UNIT>)'\n'{name}(<TIME> TO <TIME_UNIT>)'\n'{name}(<TIMESTAMP> TO <TIME_UNIT>)'",
        node.span,
    )


def _is_interval(type_: t.LogicalType) -> bool:
    return isinstance(type_, t.YearMonthIntervalType | t.DayTimeIntervalType)


def _cast_if_needed(arg: Expr, wanted: t.LogicalType) -> Expr:
    if t.without_attribute(arg.type).same(t.without_attribute(wanted)):
        return arg
    return resolve_cast(arg, wanted.as_nullable(arg.type.nullable), False, arg.span)


def refuse_aggregate(bound: Expr, clause: str, span: Span | None) -> None:
    """BindError if an aggregate stands in an expression of a clause that forbids them."""
    if has_mark(bound):
        raise BindError("aggregate-not-allowed", f"Aggregate expression is illegal in {clause} clause", span)


def _is_system_function(name: str) -> bool:
    # Imported on use: only errors, OVER and the names of user functions ask.
    from flowsql_compute.functions.flink_names import FLINK_FUNCTIONS

    return name in FLINK_FUNCTIONS or name in function_names()
