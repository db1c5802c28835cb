"""ORDER BY and LIMIT move below a projection: what is cut off need not be computed."""

from __future__ import annotations

from dataclasses import replace

from flowsql_core.expr import InputRef
from flowsql_planner.logical.nodes import Filter, Project, Rel, Sort
from flowsql_planner.optimize.determinism import is_deterministic


def push_sort_through_project(rel: Rel) -> Rel | None:
    """Sort(Project(x, e), keys)  =>  Project(Sort(x, keys[e]), e), when the keys are plain columns.

    A projection neither drops nor reorders rows, so the same rows are cut off. As in Flink, a LIMIT stays above a
    projection with a filter below it: they are one Calc, and rows that are taken back are looked for as it makes them.
    """
    match rel:
        case Sort(input=Project(input=Filter()), keys=()):
            return None
        case Sort(input=Project() as project) if all(is_deterministic(expr) for expr in project.exprs):
            keys = []
            for key in rel.keys:
                expr = project.exprs[key.index]
                if not isinstance(expr, InputRef):
                    return None
                keys.append(replace(key, index=expr.index))
            return replace(project, input=replace(rel, input=project.input, keys=tuple(keys)))
    return None
