"""Filters move below projections, so that they meet scans, joins and aggregates."""

from __future__ import annotations

from dataclasses import replace

from flowsql_core.expr import input_refs, substitute
from flowsql_planner.logical.nodes import Filter, Project, Rel
from flowsql_planner.optimize.determinism import is_deterministic
from flowsql_planner.optimize.growth import grows_too_much


def push_filter_through_project(rel: Rel) -> Rel | None:
    """Filter(Project(x, e), p)  =>  Project(Filter(x, p[e]), e).

    Stateless on both sides, so safe for every changelog. A column that is drawn anew at each evaluation stays a column.
    """
    match rel:
        case Filter(input=Project() as project, condition=condition):
            if not all(is_deterministic(project.exprs[index]) for index in input_refs(condition)):
                return None
            if grows_too_much((condition,), project.exprs):
                return None
            below = replace(rel, input=project.input, condition=substitute(condition, project.exprs))
            return replace(project, input=below)
    return None
