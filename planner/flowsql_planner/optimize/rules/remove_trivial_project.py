"""A projection that passes its input on goes, new names or not."""

from __future__ import annotations

from flowsql_planner.logical.nodes import Project, Rel
from flowsql_planner.logical.rewrite import is_trivial


def remove_trivial_project(rel: Rel) -> Rel | None:
    """Project(x, all columns of x in order)  =>  x.

    Names of an answer are kept aside by the front door; inside a plan columns are known by position.
    """
    return rel.input if isinstance(rel, Project) and is_trivial(rel) else None
