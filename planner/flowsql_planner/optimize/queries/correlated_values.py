"""Correlated queries over VALUES, for which Flink has no plan: refused, as no join takes the place of the query.

IN and EXISTS in a WHERE become semi joins; those need no VALUES inside of them. All other queries that read the row
around them, and LATERAL, need a statement without any VALUES.

Source: Flink 2.3 ("unexpected correlate variable $cor0 in the plan"), Calcite's ``RelDecorrelator``.
"""

from __future__ import annotations

from collections.abc import Iterator

from flowsql_core.errors import PlanError
from flowsql_core.expr import Call, conjuncts, input_refs
from flowsql_planner.logical.correlation import first_outer_call, is_correlated
from flowsql_planner.logical.internal_calls import EXISTS, SCALAR, query_calls
from flowsql_planner.logical.nodes import Apply, Filter, Project, Rel, Sort, Values, expressions
from flowsql_planner.logical.rewrite import walk
from flowsql_planner.optimize.queries.lift_subqueries import may_be_semi_join, plain_condition
from flowsql_planner.optimize.queries.subquery_forms import has_rows


def refuse_correlated_values(root: Rel) -> Rel:
    """Return the plan as it is, if each of its queries has a join.

    Raises:
        PlanError: with the column that a query reads of the row around it.
    """
    for plan, semi in _correlated(root):
        if _has_values(plan) if semi else _has_values_anywhere(root):
            raise _refusal(plan)
    return root


def _correlated(root: Rel) -> Iterator[tuple[Rel, bool]]:
    """The queries of a plan that read the row around them, those inside of queries too; True for semi joins."""
    for rel in walk(root):
        if isinstance(rel, Apply) and is_correlated(_query(rel)):
            yield rel.right, False
        for expr in expressions(rel):
            parts = conjuncts(expr) if isinstance(rel, Filter) else (expr,)
            calls = [call for part in parts for call in query_calls(part)]
            if not calls:
                continue
            semi = isinstance(rel, Filter) and all(may_be_semi_join(plain_condition(part)) for part in parts)
            for call in calls:
                plan: Rel = call.option("plan")
                yield from _correlated(plan)
                if is_correlated(plan) and not _needs_no_join(call):
                    yield plan, semi and call.function != SCALAR


def _query(rel: Apply) -> Rel:
    """The query of LATERAL without the condition of its join, which the binder asks inside of it."""
    right = rel.right
    if isinstance(right, Filter) and right.span and rel.span and right.span.start < rel.span.start:
        return right.input
    return right


def _needs_no_join(call: Call) -> bool:
    """True if a query's answer follows without its rows: one row of no table, a row always, or never one."""
    plan: Rel = call.option("plan")
    if call.function == EXISTS and has_rows(plan):
        return True
    return _is_empty(plan) or (call.function == SCALAR and _is_expression(plan))


def _is_empty(plan: Rel) -> bool:
    while isinstance(plan, Project):
        plan = plan.input
    return isinstance(plan, Sort) and plan.fetch == 0


def _is_expression(plan: Rel) -> bool:
    """True for SELECT without FROM, or from one row of VALUES of which it reads nothing."""
    match plan:
        case Project(input=Values(rows=(_,))) as project:
            return not any(map(input_refs, project.exprs))
    return False


def _has_values(plan: Rel) -> bool:
    return any(isinstance(rel, Values) for rel in walk(plan))


def _has_values_anywhere(root: Rel) -> bool:
    """True if a plan or a query in it holds VALUES."""
    for rel in walk(root):
        if isinstance(rel, Values):
            return True
        for expr in expressions(rel):
            if any(map(_asks_values, query_calls(expr))):
                return True
    return False


def _asks_values(call: Call) -> bool:
    plan: Rel = call.option("plan")
    return not (call.function == SCALAR and _is_expression(plan)) and _has_values_anywhere(plan)


def _refusal(plan: Rel) -> PlanError:
    found = first_outer_call(plan)
    return PlanError(
        "correlated-values",
        "A query over VALUES cannot read a column of the row around it: unexpected correlate variable",
        (None if found is None else found.span) or getattr(plan, "span", None),
        "write a JOIN, or read the rows from a table",
    )
