"""Queries inside of expressions: EXISTS, IN and scalar ones, with what they read of the row around them.

Only batch mode binds them. They become calls whose arguments are the expressions of the outer row that the query reads;
inside of the query those are ``$OUTER`` calls that count the arguments.
"""

from __future__ import annotations

from flowsql_compute.functions.registry import implicit_cast, resolve_call
from flowsql_core.errors import BindError
from flowsql_core.expr import Call, Expr, InputRef
from flowsql_core.span import Span
from flowsql_core.types.coerce import common_type
from flowsql_core.types.logical import BooleanType, NullType
from flowsql_grammar import ast
from flowsql_planner.bind.environment import ClauseBinder, OuterRow
from flowsql_planner.logical.internal_calls import EXISTS, IN_QUERY, SCALAR
from flowsql_planner.logical.nodes import Project, Rel

#: How a column that is nowhere in the query's own FROM fails: the row around it may have it.
_ELSEWHERE = frozenset({"column-not-found", "table-not-found"})


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
            return Call(EXISTS, captured, BooleanType(nullable=False), (("plan", plan),), node.span)
        case ast.InSubquery(operand, query, negated) if not isinstance(operand, ast.RowConstructor):
            return _in_query(binder, operand, query, negated, node.span)
        case ast.QuantifiedComparison(
            ast.BinaryOperator.EQUAL, operand, ast.Quantifier.SOME | ast.Quantifier.ANY, ast.Query() as query
        ):
            return _in_query(binder, operand, query, False, node.span)
        case ast.Subquery(query):
            plan, captured = _plan(binder, query)
            _check_width(plan, query, "a scalar subquery")
            return Call(SCALAR, captured, plan.schema[0].type.as_nullable(), (("plan", plan),), node.span)
    return None


def _plan(binder: ClauseBinder, query: ast.Query) -> tuple[Rel, tuple[Expr, ...]]:
    nested = binder.nested
    assert nested is not None
    row = OuterRow(binder)
    plan = nested.bind_query(nested.around(row), query)
    return plan, tuple(row.captured)


def _in_query(binder: ClauseBinder, operand: ast.Expression, query: ast.Query, negated: bool, span: Span) -> Expr:
    value = binder.bind(operand)
    plan, captured = _plan(binder, query)
    _check_width(plan, query, "the query of IN")
    column = plan.schema[0]
    common = common_type([value.type, column.type])
    if common is None or isinstance(common, NullType):
        raise BindError(
            "in-types",
            f"Values passed to IN operator must have compatible types: {value.type.as_nullable()} and "
            f"{column.type.as_nullable()}",
            span,
            "cast one of them",
        )
    value = implicit_cast(value, common)
    selected = implicit_cast(InputRef(0, column.type), common)
    if not isinstance(selected, InputRef):
        plan = Project(plan, (selected,), (column.name,), query.span)
    type_ = BooleanType(nullable=value.type.nullable or column.type.nullable)
    made = Call(IN_QUERY, (value, *captured), type_, (("plan", plan),), span)
    return resolve_call("NOT", (made,), (), span) if negated else made


def _check_width(plan: Rel, query: ast.Query, what: str) -> None:
    if len(plan.schema) != 1:
        raise BindError(
            "subquery-width", f"Cannot apply {what} with {len(plan.schema)} columns: it must have one", query.span
        )
