"""Filters above UNNEST go to the rows that are taken apart, or to the elements that come out."""

from __future__ import annotations

from dataclasses import replace

from flowsql_core.expr import Expr, conjunction, conjuncts, input_refs, remap_inputs
from flowsql_planner.logical.nodes import Correlate, Filter, Rel
from flowsql_planner.logical.rewrite import make_correlate, retype_expr
from flowsql_planner.optimize.determinism import is_deterministic


def push_filter_through_correlate(rel: Rel) -> Rel | None:
    """Filter(Correlate(x, c), p(x) AND q(element) AND r(x, element))  =>  Filter(Correlate(Filter(x, p), c, q), r).

    All rows that a row makes have its columns and its kind, so they pass or fail together with it. Conditions on
    elements stay above an outer one: there a row beside NULLs may fail them.
    """
    match rel:
        case Filter(input=Correlate() as correlate, condition=condition):
            width = len(correlate.input.schema)
            below: list[Expr] = []
            inside: list[Expr] = []
            stay: list[Expr] = []
            for part in conjuncts(condition):
                used = input_refs(part)
                if not used or not is_deterministic(part):
                    stay.append(part)
                elif all(index < width for index in used):
                    below.append(retype_expr(part, correlate.input.schema))
                elif all(index >= width for index in used) and not correlate.outer:
                    inside.append(retype_expr(remap_inputs(part, lambda index: index - width), correlate.added))
                else:
                    stay.append(part)
            if not (below or inside):
                return None
            on_rows = conjunction(tuple(below))
            source = correlate.input if on_rows is None else Filter(correlate.input, on_rows)
            made = make_correlate(correlate, source, correlate.collection)
            made = replace(made, condition=conjunction((*conjuncts(correlate.condition), *inside)))
            above = conjunction(tuple(stay))
            return made if above is None else replace(rel, input=made, condition=above)
    return None
