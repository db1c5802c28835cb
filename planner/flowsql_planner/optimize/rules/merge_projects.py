"""Projections on top of each other are one."""

from __future__ import annotations

from dataclasses import replace

from flowsql_core.expr import substitute
from flowsql_planner.logical.nodes import Project, Rel
from flowsql_planner.optimize.determinism import is_deterministic
from flowsql_planner.physical.calc import may_merge


def merge_projects(rel: Rel) -> Rel | None:
    """Project(Project(x, e), f)  =>  Project(x, f[e]).

    Stateless; not where a non-deterministic expression would be evaluated twice, nor where the expressions would grow
    without measure. A chain of projections becomes one from its lowest up, so that what is substituted stays small.
    """
    if not isinstance(rel, Project) or not isinstance(rel.input, Project):
        return None
    chain: list[Project] = [rel, rel.input]
    while isinstance(chain[-1].input, Project) and all(is_deterministic(expr) for expr in chain[-1].exprs):
        chain.append(chain[-1].input)
    merged = chain.pop()
    count = len(chain)
    for above in reversed(chain):
        if may_merge(above.exprs, merged.exprs):
            exprs = tuple(substitute(expr, merged.exprs) for expr in above.exprs)
            merged = replace(above, input=merged.input, exprs=exprs)
        else:
            merged = replace(above, input=merged)
            count -= 1
    return merged if count else None
