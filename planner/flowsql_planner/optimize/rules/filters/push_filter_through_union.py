"""Filters move below UNION ALL."""

from __future__ import annotations

from dataclasses import replace

from flowsql_planner.logical.nodes import Filter, Rel, Union
from flowsql_planner.logical.rewrite import retype_expr
from flowsql_planner.optimize.determinism import is_deterministic


def push_filter_through_union(rel: Rel) -> Rel | None:
    """Filter(Union(a, b), p)  =>  Union(Filter(a, p), Filter(b, p)).

    A union passes each change on as it is, so safe for every changelog.
    """
    match rel:
        case Filter(input=Union() as union, condition=condition) if is_deterministic(condition):
            inputs = tuple(
                replace(rel, input=child, condition=retype_expr(condition, child.schema)) for child in union.inputs
            )
            return replace(union, inputs=inputs)
    return None
