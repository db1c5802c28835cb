"""Two projections on top of each other are one."""

from __future__ import annotations

from dataclasses import replace

from flowsql_core.expr import substitute
from flowsql_planner.logical.nodes import Project, Rel
from flowsql_planner.physical.calc import may_merge


def merge_projects(rel: Rel) -> Rel | None:
    """Project(Project(x, e), f)  =>  Project(x, f[e]).

    Stateless; not where a non-deterministic expression would be evaluated twice.
    """
    match rel:
        case Project(input=Project() as below) if may_merge(rel.exprs, below.exprs):
            return replace(rel, input=below.input, exprs=tuple(substitute(expr, below.exprs) for expr in rel.exprs))
    return None
