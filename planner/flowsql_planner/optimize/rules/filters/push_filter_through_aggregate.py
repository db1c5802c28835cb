"""Conditions on grouping columns decide about whole groups: they may be asked before grouping."""

from __future__ import annotations

from dataclasses import replace

from flowsql_core.expr import conjunction, conjuncts, input_refs, remap_inputs
from flowsql_planner.logical.nodes import Aggregate, Filter, Rel
from flowsql_planner.logical.rewrite import retype_expr
from flowsql_planner.optimize.determinism import is_deterministic


def push_filter_through_aggregate(rel: Rel) -> Rel | None:
    """Filter(Aggregate(x, keys), p(keys) AND q)  =>  Filter(Aggregate(Filter(x, p), keys), q).

    All rows of a group share its keys, so a group is kept or dropped as a whole, retractions included. Not for a
    global aggregate (it has a row for no input) and not for grouping sets (they NULL the keys).
    """
    match rel:
        case Filter(input=Aggregate(grouping_sets=None) as aggregate, condition=condition) if aggregate.grouping:
            grouping = aggregate.grouping
            down, stay = [], []
            for part in conjuncts(condition):
                used = input_refs(part)
                if used and all(index < len(grouping) for index in used) and is_deterministic(part):
                    moved = remap_inputs(part, lambda index: grouping[index])
                    down.append(retype_expr(moved, aggregate.input.schema))
                else:
                    stay.append(part)
            below = conjunction(tuple(down))
            if below is None:
                return None
            made = replace(aggregate, input=Filter(aggregate.input, below, rel.span))
            above = conjunction(tuple(stay))
            return made if above is None else replace(rel, input=made, condition=above)
    return None
