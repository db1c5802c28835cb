"""Constant expressions are evaluated once, while planning."""

from __future__ import annotations

from dataclasses import replace

from flowsql_compute.eval.context import EvalContext
from flowsql_compute.eval.planner_facts import decided, division_to_refuse, is_settled, simplified
from flowsql_core.errors import ExecutionError
from flowsql_core.expr import (
    Call,
    Case,
    Cast,
    Expr,
    InputRef,
    Literal,
    children,
    conjunction,
    conjuncts,
    substitute,
    transform,
    walk,
)
from flowsql_core.types.logical import ApproximateType, BigIntType, BooleanType, DateType, FloatType
from flowsql_planner.logical.nodes import Correlate, Filter, Join, Project, Rel, TemporalJoin, Values, WatermarkAssigner
from flowsql_planner.logical.rewrite import make_correlate, transform_up
from flowsql_planner.optimize.case_types import as_chosen
from flowsql_planner.optimize.determinism import is_foldable


def fold_constants(root: Rel, context: EvalContext) -> Rel:
    """Every constant sub-expression of the plan  =>  its value.

    What would fail stays and fails when (and only if) a row evaluates it. Nothing that reads a clock is folded: in
    streaming such functions are asked row by row.
    """
    return transform_up(root, lambda rel: _folded(rel, context))


def _folded(rel: Rel, context: EvalContext) -> Rel:
    match rel:
        case Project(input=Values() as values) if any(_asks_the_literal(expr) for expr in rel.exprs):
            return _rows_folded(rel, values, context) or _expressions_folded(rel, context)
        case Project(input=Project(input=Values()) as names) if _only_names(names) and any(
            _asks_the_literal(expr) for expr in rel.exprs
        ):
            exprs = tuple(substitute(expr, names.exprs) for expr in rel.exprs)
            return _folded(replace(rel, input=names.input, exprs=exprs), context)
        case Project(input=Values(rows=(row,))) if any(_divides_doubles(expr) for expr in rel.exprs):
            # Flink takes the only row's literals for the columns.
            return _expressions_folded(replace(rel, exprs=tuple(substitute(e, row) for e in rel.exprs)), context)
        case Project(input=Project(input=Values(rows=(_,))) as names) if _only_names(names) and any(
            _divides_doubles(expr) for expr in rel.exprs
        ):
            exprs = tuple(substitute(expr, names.exprs) for expr in rel.exprs)
            return _folded(replace(rel, input=names.input, exprs=exprs), context)
        case Project():
            return _expressions_folded(rel, context)
        case Filter(condition=condition):
            folded = _condition(condition, context)
            return rel if folded == condition else replace(rel, condition=folded)
        case Join(condition=condition) | TemporalJoin(condition=condition) if condition is not None:
            folded = _condition(condition, context)
            return rel if folded == condition else replace(rel, condition=folded)
        case Correlate(input=source, collection=collection):
            folded = _fold(collection, context)
            return rel if folded == collection else make_correlate(rel, source, folded)
        case WatermarkAssigner(expression=expression):
            folded = _fold(expression, context)
            return rel if folded == expression else replace(rel, expression=folded)
        case _:
            return rel


def _expressions_folded(rel: Project, context: EvalContext) -> Rel:
    made = tuple(_fold(expr, context) for expr in rel.exprs)
    return rel if made == rel.exprs else replace(rel, exprs=made)


def _rows_folded(rel: Project, values: Values, context: EvalContext) -> Values | None:
    """Flink makes a projection of its own for each row of such a list, and folds each; None where one has to run.

    A list of nothing but literals is one node there, whose columns have one type.
    """
    if not any(item.value is None for row in values.rows for item in row):
        return None
    rows = []
    for row in values.rows:
        items = tuple(replace(item, type=item.type.as_nullable(item.value is None)) for item in row)
        made = [_fold(substitute(expr, items), context) for expr in rel.exprs]
        if not all(isinstance(item, Literal) for item in made):
            return None
        rows.append(
            tuple(
                Literal(item.value, expr.type, item.span)
                for item, expr in zip(made, rel.exprs, strict=True)
                if isinstance(item, Literal)
            )
        )
    return Values(tuple(rows), rel.schema, rel.span)


def _asks_the_literal(expr: Expr) -> bool:
    """Whether the answer for a literal may differ from the one for a column that has its value."""
    return any(
        (isinstance(node, Call) and node.function == "TYPEOF")
        or (
            isinstance(node, Cast)
            and isinstance(node.type, BigIntType)
            and isinstance(node.operand.type, ApproximateType)
        )
        for node in walk(expr)
    )


def _divides_doubles(expr: Expr) -> bool:
    return any(
        isinstance(node, Call) and node.function == "/" and isinstance(node.type, ApproximateType)
        for node in walk(expr)
    )


def _asking_what_is_chosen(node: Expr, context: EvalContext) -> Expr:
    match node:
        case Call(function="TYPEOF", args=(operand, *more)):
            return replace(node, args=(as_chosen(operand, context), *more))
        case _:
            return node


def _only_names(rel: Project) -> bool:
    return all(isinstance(expr, InputRef) for expr in rel.exprs)


def _condition(condition: Expr, context: EvalContext) -> Expr:
    """AND and OR lose the operands that decide nothing; one that decides all is the answer."""
    parts = tuple(_fold(part, context) for part in conjuncts(condition))
    if any(isinstance(part, Literal) and not part.value for part in parts):
        return Literal(False, BooleanType(nullable=False))
    kept = tuple(part for part in parts if not isinstance(part, Literal))
    made = conjunction(kept)
    return Literal(True, BooleanType(nullable=False)) if made is None else made


def _fold(expr: Expr, context: EvalContext) -> Expr:
    """Foldable parts of an expression replaced, bottom-up.

    Raises:
        ExecutionError: a constant is divided by a constant zero.
    """
    if any(isinstance(node, Call) and node.function == "TYPEOF" for node in walk(expr)):
        expr = transform(expr, lambda node: _asking_what_is_chosen(node, context))
    if any(_chosen(node) is not None for node in walk(expr)):
        expr = transform(expr, lambda node: _chosen(node) or node)
    if not any(_constant(node) for node in walk(expr)):
        return expr
    # Imported on use: a plan without constant expressions does not load the kernels.
    from flowsql_compute.eval.compile import fold
    from flowsql_compute.eval.literal import constant_float

    folded: list[Expr] = []
    computed: list[Expr] = []

    def change(node: Expr) -> Expr:
        chosen = _chosen(node)
        if chosen is not None or not _constant(node):
            return chosen or node
        made = fold(node, context)
        if isinstance(made.type, FloatType) and not _is_written(node, folded, computed):
            computed.append(made)
        folded.append(made)
        return made

    def finished(node: Expr) -> Expr:
        if isinstance(node, Literal) and isinstance(node.value, float) and any(node is one for one in computed):
            return replace(node, value=constant_float(node.value))
        return node

    made = transform(expr, change)
    refused = division_to_refuse(made)
    if refused is not None:
        raise ExecutionError("division-by-zero", "Division by zero", refused.span)
    if computed:
        made = transform(made, finished)
    return transform(made, _four_digit_year) if any(_is_far(node) for node in walk(made)) else made


def _is_written(node: Expr, folded: list[Expr], computed: list[Expr]) -> bool:
    """Whether a constant is a number as it is written in the query, cast to FLOAT."""
    if not isinstance(node, Cast) or not isinstance(node.operand, Literal) or isinstance(node.operand.value, str):
        return False
    if isinstance(node.operand.type, FloatType):
        # A cast that changes NULL or NOT NULL alone.
        return not any(node.operand is one for one in computed)
    return not any(node.operand is one for one in folded)


def _is_far(node: Expr) -> bool:
    return isinstance(node, Literal) and isinstance(node.type, DateType) and (node.value or 0) >= _YEAR_10000


def _four_digit_year(node: Expr) -> Expr:
    """A folded DATE as Flink writes it into its plan: of a year with more digits, the last four."""
    if not isinstance(node, Literal) or not _is_far(node):
        return node
    from flowsql_compute.eval.time.civil import civil_date, civil_days

    year, month, day = civil_date(node.value)
    return replace(node, value=civil_days(year % 10_000, month, day)) if year % 10_000 else node


#: Epoch days of 1 January 10000.
_YEAR_10000 = 2_932_897


def _chosen(node: Expr) -> Expr | None:
    """What a node is without looking at rows: what the planner knows of it, a CASE of equal branches any of them."""
    if isinstance(node, Case) and not node.is_if and all(branch == node.otherwise for branch in node.results):
        same = node.otherwise
        return same if same.type == node.type else Cast(same, node.type, implicit=True)
    return decided(node) or simplified(node)


def _constant(node: Expr) -> bool:
    """A function, cast or CASE whose operands are all constants, and which has one value for the whole job."""
    return (
        isinstance(node, Call | Cast | Case)
        and bool(children(node))
        and all(map(is_settled, children(node)))
        and is_foldable(node)
    )
