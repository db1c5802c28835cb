"""Queries that stand as nodes become joins: nothing in them reads the row around them any more."""

from __future__ import annotations

from flowsql_compute.functions.registry import resolve_call
from flowsql_core.expr import Case, Expr, Literal, conjunction, conjuncts, remap_inputs, substitute
from flowsql_core.graph.specs import JoinKind
from flowsql_planner.logical.correlation import is_correlated, outer_calls, replace_outer, slot_of
from flowsql_planner.logical.nodes import Aggregate, Apply, Join, Project, Rel
from flowsql_planner.logical.rewrite import ref, refs, retype_expr, transform_up
from flowsql_planner.optimize.queries.decorrelation import Frame, Grouper, equalities, hoisted, joined, refusal


def decorrelate(root: Rel) -> Rel:
    """Apply(a, q)  =>  Join(a, q', ON what q read of a).

    A row and the rows that the query answered for it meet in the join, and change with each other there.

    Raises:
        PlanError: a query reads the row around it where no join can take its place.
    """
    return transform_up(root, _decorrelated)


def _decorrelated(rel: Rel) -> Rel:
    if not isinstance(rel, Apply):
        return rel
    if not is_correlated(rel.right):
        return joined(rel.left, rel.right, rel.kind, rel.condition, rel.span)
    if rel.kind in (JoinKind.SEMI, JoinKind.ANTI):
        frame = hoisted(rel.right)
        if frame is None:
            raise refusal(rel.right)
        return _semi_join(rel, frame)
    return _join(rel)


def _semi_join(rel: Apply, frame: Frame) -> Join:
    """The conditions that left the query are those of the join."""
    width = len(rel.left.schema)
    columns = rel.left.schema + frame.rel.schema
    parts = list(conjuncts(_moved(rel.condition, rel, frame)))
    for part in frame.conditions:
        shifted = remap_inputs(part, lambda index: index + width)
        parts.append(retype_expr(replace_outer(shifted, lambda call: rel.parameters[slot_of(call)]), columns))
    return joined(rel.left, frame.rel, rel.kind, conjunction(tuple(parts)), rel.span)


def _join(rel: Apply) -> Rel:
    """Answers for all parameters, joined by them: with the columns of the row and the answer, no others."""
    width = len(rel.left.schema)
    right, above = _count_below(rel)
    frame = Grouper(rel.left, rel.parameters).frame(right)
    condition = _moved(rel.condition, rel, frame)
    on = conjunction((*equalities(rel.parameters, frame, width), *conjuncts(condition)))
    made = joined(rel.left, frame.rel, rel.kind, on, rel.span)
    exprs: list[Expr] = [ref(made.schema, index) for index in range(width)]
    if above is None:
        exprs += [ref(made.schema, width + frame.places[index]) for index in range(len(right.schema))]
    else:
        count = ref(made.schema, width + frame.places[0])
        found = resolve_call("IS NULL", (count,))
        zero = Literal(0, count.type.as_nullable(False))
        exprs += [substitute(expr, (Case((found,), (zero,), count, count.type.as_nullable(False)),)) for expr in above]
    return Project(made, tuple(exprs), tuple(column.name for column in rel.schema), rel.span)


def _moved(condition: Expr | None, rel: Apply, frame: Frame) -> Expr | None:
    """The condition of the node over the columns of the row and the frame's."""
    if condition is None:
        return None
    width = len(rel.left.schema)
    columns = rel.left.schema + frame.rel.schema
    moved = remap_inputs(condition, lambda index: index if index < width else width + frame.places[index - width])
    return retype_expr(moved, columns)


def _count_below(rel: Apply) -> tuple[Rel, tuple[Expr, ...] | None]:
    """The query, and what is made of its one count: no group answers 0, as no row does."""
    if rel.kind is not JoinKind.LEFT or rel.condition is not None:
        return rel.right, None
    match rel.right:
        case Aggregate() as counted if _counts(counted):
            return counted, refs(counted.schema)
        case Project(input=Aggregate() as counted, exprs=exprs) if _counts(counted) and not _reads_row(exprs):
            return counted, exprs
    return rel.right, None


def _counts(rel: Aggregate) -> bool:
    if rel.grouping or rel.grouping_sets is not None or len(rel.calls) != 1:
        return False
    return rel.calls[0].function in ("COUNT", "APPROX_COUNT_DISTINCT")


def _reads_row(exprs: tuple[Expr, ...]) -> bool:
    return any(next(outer_calls(expr), None) for expr in exprs)
