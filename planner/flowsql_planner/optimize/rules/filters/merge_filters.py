"""Two filters on top of each other are one."""

from __future__ import annotations

from dataclasses import replace

from flowsql_core.expr import conjunction, conjuncts
from flowsql_planner.logical.nodes import Filter, Rel


def merge_filters(rel: Rel) -> Rel | None:
    """Filter(Filter(x, p), q)  =>  Filter(x, p AND q).

    Safe for every changelog: both see the same columns, and neither has state.
    """
    match rel:
        case Filter(input=Filter(input=source, condition=below), condition=above):
            merged = conjunction(tuple(dict.fromkeys((*conjuncts(below), *conjuncts(above)))))
            assert merged is not None
            return replace(rel, input=source, condition=merged)
    return None
