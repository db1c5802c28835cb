"""A projection that passes its input on goes, new names or not."""

from __future__ import annotations

from dataclasses import replace

from flowsql_core.types.logical import Column
from flowsql_planner.logical.nodes import Project, Rel, Values
from flowsql_planner.logical.rewrite import is_trivial


def remove_trivial_project(rel: Rel) -> Rel | None:
    """Project(x, all columns of x in order)  =>  x; rows of VALUES take the names.

    Names of an answer are kept aside by the front door; inside a plan columns are known by position.
    """
    if not isinstance(rel, Project) or not is_trivial(rel):
        return None
    # A NULL is a cast: such rows are no VALUES in Flink's plans, and keep their names.
    if isinstance(rel.input, Values) and all(cell.value is not None for row in rel.input.rows for cell in row):
        named = zip(rel.names, rel.input.schema, strict=True)
        return replace(rel.input, schema=tuple(Column(name, column.type) for name, column in named))
    return rel.input
