"""Filters directly above a scan are offered to the source."""

from __future__ import annotations

from dataclasses import replace

from flowsql_core.expr import Expr, conjunction, conjuncts, input_refs, remap_inputs
from flowsql_planner.logical.nodes import Filter, Rel, Scan
from flowsql_planner.optimize.abilities import SourceAbilities
from flowsql_planner.optimize.determinism import is_foldable


def push_filter_into_scan(rel: Rel, abilities: SourceAbilities) -> Rel | None:
    """Filter(Scan, p AND q)  =>  Filter(Scan(filters=[p]), q), p handled by the source.

    What the source only shows (and may use to skip data) stays above as well. Never through a WatermarkAssigner: rows
    that a filter drops still move the watermark.
    """
    match rel:
        case Filter(input=Scan(filters=()) as scan, condition=condition):
            width = len(scan.projection)
            offered: list[Expr] = []
            other: list[Expr] = []
            for part in conjuncts(condition):
                fits = is_foldable(part) and all(index < width for index in input_refs(part)) and input_refs(part)
                (offered if fits else other).append(part)
            if not offered:
                return None
            physical = tuple(remap_inputs(part, lambda index: scan.projection[index]) for part in offered)
            handled = abilities.handled_filters(scan, physical)
            shown = abilities.shows_filters(scan)
            taken = tuple(part for part, done in zip(physical, handled, strict=True) if done or shown)
            if not taken:
                return None
            rest = conjunction(
                tuple(part for part, done in zip(offered, handled, strict=True) if not done) + tuple(other)
            )
            made = replace(scan, filters=taken)
            return made if rest is None else replace(rel, input=made, condition=rest)
    return None
