"""Constant expressions are evaluated once, while planning."""

from __future__ import annotations

from dataclasses import replace

from flowsql_core.eval.context import EvalContext
from flowsql_core.expr import Call, Case, Cast, Expr, Literal, children, conjunction, conjuncts, transform, walk
from flowsql_core.types.logical import BooleanType
from flowsql_planner.logical.nodes import Filter, Join, Project, Rel, WatermarkAssigner
from flowsql_planner.logical.rewrite import transform_up
from flowsql_planner.optimize.determinism import is_foldable


def fold_constants(root: Rel, context: EvalContext) -> Rel:
    """Every constant sub-expression of the plan  =>  its value.

    What would fail stays and fails when (and only if) a row evaluates it. Nothing that reads a clock is folded: in
    streaming such functions are asked row by row.
    """
    return transform_up(root, lambda rel: _folded(rel, context))


def _folded(rel: Rel, context: EvalContext) -> Rel:
    match rel:
        case Project(exprs=exprs):
            made = tuple(_fold(expr, context) for expr in exprs)
            return rel if made == exprs else replace(rel, exprs=made)
        case Filter(condition=condition):
            folded = _condition(condition, context)
            return rel if folded == condition else replace(rel, condition=folded)
        case Join(condition=condition) if condition is not None:
            folded = _condition(condition, context)
            return rel if folded == condition else replace(rel, condition=folded)
        case WatermarkAssigner(expression=expression):
            folded = _fold(expression, context)
            return rel if folded == expression else replace(rel, expression=folded)
        case _:
            return rel


def _condition(condition: Expr, context: EvalContext) -> Expr:
    """AND and OR lose the operands that decide nothing; one that decides all is the answer."""
    parts = tuple(_fold(part, context) for part in conjuncts(condition))
    if any(isinstance(part, Literal) and not part.value for part in parts):
        return Literal(False, BooleanType(nullable=False))
    kept = tuple(part for part in parts if not isinstance(part, Literal))
    made = conjunction(kept)
    return Literal(True, BooleanType(nullable=False)) if made is None else made


def _fold(expr: Expr, context: EvalContext) -> Expr:
    """Foldable parts of an expression replaced, bottom-up."""
    if not any(_constant(node) for node in walk(expr)):
        return expr
    # Imported on use: a plan without constant expressions does not load the kernels.
    from flowsql_core.eval.compile import fold

    return transform(expr, lambda node: fold(node, context) if _constant(node) else node)


def _constant(node: Expr) -> bool:
    """A function, cast or CASE whose operands are all constants, and which has one value for the whole job."""
    return (
        isinstance(node, Call | Cast | Case)
        and bool(children(node))
        and all(isinstance(child, Literal) for child in children(node))
        and is_foldable(node)
    )
