"""Queries inside of expressions become nodes of the plan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from flowsql_core.errors import PlanError
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
    input_refs,
    remap_inputs,
    with_children,
)
from flowsql_core.graph.specs import JoinKind
from flowsql_core.span import Span
from flowsql_core.types.logical import BOOLEAN
from flowsql_planner.logical.correlation import is_correlated
from flowsql_planner.logical.internal_calls import EXISTS, QUERY_CALLS, SCALAR, query_calls
from flowsql_planner.logical.nodes import Aggregate, Filter, Join, Project, Rel
from flowsql_planner.logical.rewrite import make_join, refs
from flowsql_planner.optimize.queries.decorrelation import hoisted
from flowsql_planner.optimize.queries.subquery_forms import Attached, Wanted, attach, bare_exists, has_rows, semi_join

#: Kinds of joins whose right side may have fewer rows without another answer to the left ones.
_FILTERS_RIGHT: Final = (JoinKind.INNER, JoinKind.LEFT)


def lift_subqueries(rel: Rel) -> Rel | None:
    """Filter(x, a IN (q))  =>  Apply(SEMI, x, q, ON a = c); Project(x, (q))  =>  Project(Apply(LEFT, x, q), c).

    As in Flink, a filter whose queries are all joined by AND asks semi and anti joins; elsewhere a query's answer is
    joined to the row, and the expression reads it. A row's answer changes with the tables of the query.
    """
    match rel:
        case Filter(condition=condition) if _asks(condition):
            return _lift_filter(rel)
        case Project(exprs=exprs) if any(map(_asks, exprs)):
            made = Attached(rel.input)
            lifted = tuple(_lifted(made, expr, Wanted.VALUE) for expr in exprs)
            return replace(rel, input=made.rel, exprs=lifted)
        case Join(condition=condition) if condition is not None and _asks(condition):
            return _lift_join(rel)
    return None


def _asks(expr: Expr) -> bool:
    return next(query_calls(expr), None) is not None


def _lift_filter(rel: Filter) -> Rel:
    parts = [plain_condition(part) for part in conjuncts(rel.condition)]
    source = rel.input
    if all(map(may_be_semi_join, parts)):
        staying: list[Expr] = []
        for part in parts:
            call, negated = _query_of(part)
            if call is None or call.function == SCALAR:
                staying.append(part)
            elif call.function == EXISTS and has_rows(call.option("plan")):
                staying.append(Literal(not negated, BOOLEAN.as_nullable(False), call.span))
            else:
                source = semi_join(source, call, negated)
        parts = staying
    return _attached_filter(source, parts, rel.input, rel.span)


def _attached_filter(source: Rel, parts: Sequence[Expr], like: Rel, span: Span | None) -> Rel:
    """A filter whose queries are joined to the rows, with the columns of ``like``."""
    made = Attached(source)
    lifted = [_lifted(made, part, Wanted.FILTER) for part in parts]
    kept = conjunction(tuple(part for part in lifted if part != Literal(True, part.type)))
    above = made.rel if kept is None else Filter(made.rel, kept, span)
    width = len(like.schema)
    if len(above.schema) == width:
        return above
    return Project(above, refs(above.schema)[:width], tuple(column.name for column in like.schema), span)


def may_be_semi_join(part: Expr) -> bool:
    """Whether a condition of a filter has no query, scalar ones, or is one that a semi or anti join answers."""
    call, _ = _query_of(part)
    if call is None or call.function == SCALAR:
        return all(inner.function == SCALAR for inner in query_calls(part))
    if call.function == EXISTS:
        plan = call.option("plan")
        return has_rows(plan) or hoisted(bare_exists(plan)) is not None
    return call.function != "$SOME" and not any(map(_asks, call.args)) and hoisted(call.option("plan")) is not None


def _query_of(part: Expr) -> tuple[Call | None, bool]:
    """The query that a condition is, or is the opposite of."""
    match part:
        case Call(function="NOT", args=(Call() as inner,)) if inner.function in QUERY_CALLS:
            return inner, True
        case Call() if part.function in QUERY_CALLS:
            return part, False
    return None, False


def plain_condition(part: Expr) -> Expr:
    """A condition of a filter in its plain form, where Flink has one: ``q IS TRUE`` is q, a count above 0 is EXISTS."""
    match part:
        case Call(function="IS TRUE", args=(inner,)) if _asks(inner):
            return plain_condition(inner)
        case Case(conditions=(condition,), results=(Literal(value=True),), otherwise=Literal(value=False)) if _asks(
            condition
        ):
            return plain_condition(condition)
        case Call(function=name, args=(left, right)):
            if name in ("<", "<="):
                left, right, name = right, left, {"<": ">", "<=": ">="}[name]
            least = _written(right)
            if (name, least) in ((">", 0), (">=", 1)) and isinstance(left, Call) and left.function == SCALAR:
                counted = _counted(left.option("plan"))
                if counted is not None:
                    type_ = BOOLEAN.as_nullable(False)
                    return Call(EXISTS, left.args, type_, (("plan", counted),), left.span)
    return part


def _written(expr: Expr) -> object:
    while isinstance(expr, Cast):
        expr = expr.operand
    return expr.value if isinstance(expr, Literal) else None


def _counted(plan: Rel) -> Rel | None:
    """The rows that a query counts, if that is all it does."""
    match plan:
        case Project(input=Aggregate() as below, exprs=(InputRef(),)):
            return _counted(below)
        case Aggregate(input=source, grouping=(), grouping_sets=None, window=None, calls=(call,)):
            return source if call.function == "COUNT" and not call.args and call.filter_index is None else None
    return None


def _lifted(made: Attached, expr: Expr, wanted: Wanted) -> Expr:
    """An expression over the rows and the answers of its queries, which are put beside them."""
    if not _asks(expr):
        return expr
    call, negated = _query_of(expr)
    if call is not None and not (negated and call.function == SCALAR):
        args = tuple(_lifted(made, arg, Wanted.VALUE) for arg in call.args)
        return attach(made, replace(call, args=args), wanted, negated)
    match expr:
        case Call(function="AND" | "OR") if wanted is not Wanted.VALUE:
            inner = Wanted.TRUTH
        case Call(function="IS TRUE" | "IS NOT TRUE"):
            inner = Wanted.IS_TRUE
        case Case(conditions=conditions):
            tests = [_lifted(made, condition, Wanted.TRUTH) for condition in conditions]
            rest = [_lifted(made, child, Wanted.VALUE) for child in children(expr)[len(conditions) :]]
            return with_children(expr, (*tests, *rest))
        case _:
            inner = Wanted.VALUE
    return with_children(expr, tuple(_lifted(made, child, inner) for child in children(expr)))


def _lift_join(rel: Join) -> Rel:
    """Queries of ON: beside the right side where they read nothing of the left one; else above an inner join."""
    width = len(rel.left.schema)
    parts = conjuncts(rel.condition)
    right: list[Expr] = []
    above: list[Expr] = []
    stay: list[Expr] = []
    for part in parts:
        if not _asks(part):
            stay.append(part)
        elif _reads_right_alone(part, width) and rel.kind in _FILTERS_RIGHT:
            right.append(remap_inputs(part, lambda index: index - width))
        elif all(call.function == SCALAR and not call.args for call in query_calls(part)):
            stay.append(part)
        elif rel.kind is JoinKind.INNER:
            above.append(part)
        else:
            raise PlanError(
                "subquery-in-on",
                "A query in ON of an outer join cannot depend on the side whose rows are all kept",
                next(query_calls(part)).span or rel.span,
                "compute it in a subquery of FROM",
            )
    if right:
        filtered = _attached_filter(rel.right, right, rel.right, rel.span)
        return make_join(rel, rel.left, filtered, conjunction((*stay, *above)))
    if above:
        on_pairs = conjunction(tuple(above))
        assert on_pairs is not None
        return Filter(make_join(rel, rel.left, rel.right, conjunction(tuple(stay))), on_pairs, rel.span)
    made = Attached(rel.right)
    condition = conjunction(tuple(_beside_right(made, part, width) for part in stay))
    joined = make_join(rel, rel.left, made.rel, condition)
    kept = refs(joined.schema)[: width + len(rel.right.schema)]
    return Project(joined, kept, tuple(column.name for column in rel.schema), rel.span)


def _reads_right_alone(part: Expr, width: int) -> bool:
    return all(index >= width for index in input_refs(part)) and any(
        call.function != SCALAR or call.args or is_correlated(call.option("plan")) for call in query_calls(part)
    )


def _beside_right(made: Attached, part: Expr, width: int) -> Expr:
    """A condition of a join whose scalar queries stand beside its right side."""
    calls: Sequence[Call] = list(query_calls(part))
    if not calls:
        return part

    def lifted(expr: Expr) -> Expr:
        if isinstance(expr, Call) and expr in calls:
            return remap_inputs(attach(made, expr, Wanted.VALUE), lambda index: index + width)
        below = children(expr)
        return with_children(expr, tuple(map(lifted, below))) if below else expr

    return lifted(part)
