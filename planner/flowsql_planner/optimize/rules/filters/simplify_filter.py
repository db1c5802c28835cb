"""Conditions lose the parts that are always TRUE."""

from __future__ import annotations

from dataclasses import replace

from flowsql_core.expr import Literal, conjunction, conjuncts
from flowsql_planner.logical.nodes import Filter, Rel


def simplify_filter(rel: Rel) -> Rel | None:
    """Filter(x, TRUE AND p)  =>  Filter(x, p); Filter(x, TRUE)  =>  x."""
    if not isinstance(rel, Filter):
        return None
    parts = conjuncts(rel.condition)
    kept = tuple(part for part in parts if not (isinstance(part, Literal) and part.value is True))
    if len(kept) == len(parts):
        return None
    condition = conjunction(kept)
    return rel.input if condition is None else replace(rel, condition=condition)
