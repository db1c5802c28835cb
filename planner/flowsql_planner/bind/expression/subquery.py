"""Queries inside of expressions: EXISTS, IN, ANY/ALL and scalar ones, with what they read of the row around them.

They become calls whose arguments are the expressions of the outer row that the query reads; inside of the query those
are ``$OUTER`` calls that count the arguments.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from flowsql_compute.functions.registry import implicit_cast, resolve_call
from flowsql_core.errors import BindError
from flowsql_core.expr import Call, Expr, InputRef, Literal
from flowsql_core.span import Span
from flowsql_core.types.coerce import common_type
from flowsql_core.types.logical import BooleanType, DateTimeType, NullType
from flowsql_grammar import ast
from flowsql_planner.bind.environment import ClauseBinder, OuterRow
from flowsql_planner.logical.internal_calls import EXISTS, IN_QUERY, SCALAR, SOME_QUERY
from flowsql_planner.logical.nodes import Project, Rel, Sort
from flowsql_planner.logical.rewrite import refs

#: How a column that is nowhere in the query's own FROM fails: the row around it may have it.
_ELSEWHERE: Final = frozenset({"column-not-found", "table-not-found"})
#: ``x > ALL (q)`` is ``NOT x <= SOME (q)``.
_OPPOSITE: Final = {"=": "<>", "<>": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}


def outer_column(binder: ClauseBinder, node: ast.ColumnRef, error: BindError) -> Expr:
    """The column of the row around the query, when the query itself has none of that name; else ``error`` is raised."""
    nested = binder.nested
    if nested is None or nested.outer is None or error.code not in _ELSEWHERE:
        raise error
    try:
        return nested.outer.column(node)
    except BindError:
        raise error from None


def bind_subquery(binder: ClauseBinder, node: ast.Expression | ast.Argument) -> Expr | None:
    """The call that stands for a query inside of an expression; None for other expressions.

    Raises:
        BindError: the query has the wrong number of columns, or types that do not compare.
    """
    match node:
        case ast.Exists(query):
            plan, captured = _plan(binder, query)
            if isinstance(plan, Sort) and plan.fetch == 0:
                return Literal(False, BooleanType(nullable=False), node.span)
            return Call(EXISTS, captured, BooleanType(nullable=False), (("plan", plan),), node.span)
        case ast.InSubquery(operand, query, negated):
            return _in_query(binder, operand, query, negated, node.span)
        case ast.QuantifiedComparison(operator, operand, quantifier, ast.Query() as query):
            return _quantified(binder, operator.value, operand, quantifier, query, node.span)
        case ast.QuantifiedComparison(operator, operand, quantifier, tuple() as values):
            return _listed(binder, operator.value, operand, quantifier, values, node.span)
        case ast.Subquery(query):
            plan, captured = _plan(binder, query)
            _check_width(plan, query, 1, "a scalar subquery")
            return Call(SCALAR, captured, plan.schema[0].type.as_nullable(), (("plan", plan),), node.span)
    return None


def _plan(binder: ClauseBinder, query: ast.Query) -> tuple[Rel, tuple[Expr, ...]]:
    nested = binder.nested
    assert nested is not None
    row = OuterRow(binder)
    plan = nested.bind_query(nested.around(row), query)
    return plan, tuple(row.captured)


def _in_query(binder: ClauseBinder, operand: ast.Expression, query: ast.Query, negated: bool, span: Span) -> Expr:
    """``x IN (q)``, ``(x, y) IN (q)``: the operands, then what the query reads of the row."""
    items = operand.items if isinstance(operand, ast.RowConstructor) else (operand,)
    values = [binder.bind(item) for item in items]
    plan, captured = _plan(binder, query)
    _check_width(plan, query, len(values), "the query of IN")
    values, plan = _compared(values, plan, "IN operator", span)
    nullable = any(value.type.nullable for value in values) or any(column.type.nullable for column in plan.schema)
    made = Call(IN_QUERY, (*values, *captured), BooleanType(nullable=nullable), (("plan", plan),), span)
    return resolve_call("NOT", (made,), (), span) if negated else made


def _quantified(
    binder: ClauseBinder,
    operator: str,
    operand: ast.Expression,
    quantifier: ast.Quantifier,
    query: ast.Query,
    span: Span,
) -> Expr:
    """``x > SOME (q)``; ``x = ANY (q)`` is IN, and ALL is what no row contradicts."""
    every = quantifier is ast.Quantifier.ALL
    if operator not in _OPPOSITE:
        raise BindError("quantified-operator", f"'{operator} {quantifier.value}' is no comparison", span)
    if every:
        operator = _OPPOSITE[operator]
    if operator == "=":
        return _in_query(binder, operand, query, every, span)
    value = binder.bind(operand)
    plan, captured = _plan(binder, query)
    _check_width(plan, query, 1, f"the query of {quantifier.value}")
    (value,), plan = _compared([value], plan, f"{quantifier.value} operator", span)
    nullable = value.type.nullable or plan.schema[0].type.nullable
    options = (("plan", plan), ("comparison", operator))
    made = Call(SOME_QUERY, (value, *captured), BooleanType(nullable=nullable), options, span)
    return resolve_call("NOT", (made,), (), span) if every else made


def _listed(
    binder: ClauseBinder,
    operator: str,
    operand: ast.Expression,
    quantifier: ast.Quantifier,
    values: Sequence[ast.Expression],
    span: Span,
) -> Expr:
    """``x > ANY (1, 2)``: one of the comparisons; with ALL each of them."""
    bound = binder.bind(operand)
    compared = tuple(resolve_call(operator, (bound, binder.bind(value)), (), span) for value in values)
    if len(compared) == 1:
        return compared[0]
    return resolve_call("AND" if quantifier is ast.Quantifier.ALL else "OR", compared, (), span)


def _compared(values: Sequence[Expr], plan: Rel, what: str, span: Span) -> tuple[list[Expr], Rel]:
    """Operands and the query's columns in their common types, pair by pair."""
    operands, selected = [], []
    for value, column in zip(values, refs(plan.schema), strict=True):
        common = common_type([value.type, column.type], in_order=not isinstance(value.type, DateTimeType))
        if common is None or isinstance(common, NullType):
            raise BindError(
                "in-types",
                f"Values passed to {what} must have compatible types: {value.type.as_nullable()} and "
                f"{column.type.as_nullable()}",
                span,
                "cast one of them",
            )
        operands.append(implicit_cast(value, common))
        selected.append(implicit_cast(column, common))
    if all(isinstance(column, InputRef) for column in selected):
        return operands, plan
    return operands, Project(plan, tuple(selected), tuple(column.name for column in plan.schema))


def _check_width(plan: Rel, query: ast.Query, width: int, what: str) -> None:
    if len(plan.schema) != width:
        must = "one" if width == 1 else str(width)
        raise BindError(
            "subquery-width", f"Cannot apply {what} with {len(plan.schema)} columns: it must have {must}", query.span
        )
