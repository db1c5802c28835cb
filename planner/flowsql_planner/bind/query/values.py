"""VALUES: rows of constants, one type a column over all rows."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from flowsql_compute.functions.registry import resolve_cast
from flowsql_core.errors import BindError, NotSupportedYetError
from flowsql_core.expr import Cast, Expr, Literal
from flowsql_core.span import Span
from flowsql_core.types import logical as t
from flowsql_core.types.coerce import common_type, mixes_dates
from flowsql_grammar import ast
from flowsql_planner.bind.context import BindContext
from flowsql_planner.bind.expression.binder import ExpressionBinder
from flowsql_planner.bind.expression.scope import Scope
from flowsql_planner.bind.output_names import unnamed
from flowsql_planner.logical.nodes import Project, Rel, Union, Values


def one_row(span: Span | None = None) -> Values:
    """The input of a SELECT without FROM: one row, one column that nobody reads (Flink's ``{ 0 }``)."""
    zero = t.IntType(nullable=False)
    return Values(((Literal(0, zero),),), (t.Column("ZERO", zero),), span)


def bind_values(context: BindContext, node: ast.Values) -> Rel:
    """Rows of literals as one Values node; other rows as projections over a row each, in a Union."""
    binder = ExpressionBinder(context, Scope(), "VALUES")
    rows = [[_item(binder, item) for item in row] for row in node.rows]
    width = len(rows[0])
    for row, written in zip(rows, node.rows, strict=True):
        if len(row) != width:
            raise BindError(
                "values-width",
                "Values passed to VALUES operator must have compatible types",
                written[0].span if written else node.span,
                f"the first row has {width} columns, this one {len(row)}",
            )
    types = [_column_type([row[i] for row in rows], i, node) for i in range(width)]
    schema = tuple(t.Column(unnamed(i), type_) for i, type_ in enumerate(types))
    fitted = [tuple(fit(item, type_) for item, type_ in zip(row, types, strict=True)) for row in rows]
    literals = [tuple(item for item in row if isinstance(item, Literal)) for row in fitted]
    if all(len(constant) == width for constant in literals):
        return Values(tuple(literals), schema, node.span)
    names = tuple(column.name for column in schema)
    parts: list[Rel] = [Project(one_row(node.span), row, names, node.span) for row in fitted]
    return parts[0] if len(parts) == 1 else Union(tuple(parts), schema, node.span)


def fit(expr: Expr, wanted: t.LogicalType) -> Expr:
    """The expression in the column's type: a literal is rewritten where its value stays the same, else cast."""
    if expr.type == wanted:
        return expr
    if wanted.nullable and expr.type.same(wanted):
        return Literal(expr.value, wanted, expr.span) if isinstance(expr, Literal) else expr
    if isinstance(expr, Literal):
        rewritten = _rewrite(expr, wanted)
        if rewritten is not None:
            return rewritten
    return resolve_cast(expr, wanted.as_nullable(expr.type.nullable), False, expr.span)


def as_literal(expr: Expr) -> Expr:
    """``CAST(NULL AS t)`` and casts of literals that keep the value are literals themselves."""
    if isinstance(expr, Cast) and isinstance(expr.operand, Literal):
        if expr.operand.value is None:
            return Literal(None, expr.type.as_nullable(), expr.span)
        rewritten = _rewrite(expr.operand, expr.type)
        if rewritten is not None:
            return rewritten
    return expr


def _item(binder: ExpressionBinder, item: ast.Expression | ast.DefaultValue) -> Expr:
    if isinstance(item, ast.DefaultValue):
        raise NotSupportedYetError("DEFAULT in VALUES", item.span)
    bound = binder.bind(item)
    if isinstance(bound.type, t.NullType):
        raise BindError("illegal-null", "Illegal use of 'NULL'", item.span, "cast it: CAST(NULL AS INT)")
    return as_literal(bound)


def _column_type(items: Sequence[Expr], index: int, node: ast.Values) -> t.LogicalType:
    # Thousands of rows have a handful of types.
    types = list(dict.fromkeys(item.type for item in items))
    found = common_type(types, in_order=True)
    if found is None or mixes_dates(types):
        shown = ", ".join(dict.fromkeys(str(item.type.as_nullable()) for item in items))
        raise BindError(
            "values-types",
            "Values passed to VALUES operator must have compatible types",
            items[0].span or node.span,
            f"column {index + 1} has the types {shown}",
        )
    return found


def _rewrite(literal: Literal, wanted: t.LogicalType) -> Literal | None:
    """The literal in another type if that is the same value, written otherwise; None where a real cast is needed."""
    value, have = literal.value, literal.type
    if value is None:
        return Literal(None, wanted.as_nullable(), literal.span)
    type_ = wanted.as_nullable(False) if not have.nullable else wanted
    match have, wanted:
        case t.CharType(length=have_length) | t.VarCharType(length=have_length), t.VarCharType(length=length):
            return Literal(value, type_, literal.span) if have_length <= length else None
        case t.IntegerType(), t.IntegerType():
            limit = 2 ** (wanted.bits - 1)
            return Literal(value, type_, literal.span) if -limit <= value < limit else None
        case (t.IntegerType() | t.DecimalType(), t.DecimalType(precision=precision, scale=scale)):
            exact = Decimal(value)
            unscaled = exact.scaleb(scale)
            if unscaled != unscaled.to_integral_value() or abs(int(unscaled)) >= 10**precision:
                return None
            return Literal(Decimal(int(unscaled)).scaleb(-scale), type_, literal.span)
        case (t.IntegerType(), t.DoubleType()):
            return Literal(float(value), type_, literal.span) if abs(value) < 2**53 else None
        case (t.TimestampType(precision=low), t.TimestampType(precision=high)) if low <= high:
            return Literal(value, type_, literal.span)
        case (t.TimestampLtzType(precision=low), t.TimestampLtzType(precision=high)) if low <= high:
            return Literal(value, type_, literal.span)
    return None
