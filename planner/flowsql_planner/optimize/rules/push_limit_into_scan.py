"""A LIMIT directly above a scan lets the source stop early."""

from __future__ import annotations

from dataclasses import replace

from flowsql_planner.logical.nodes import Rel, Scan, Sort
from flowsql_planner.optimize.abilities import SourceAbilities


def push_limit_into_scan(rel: Rel, abilities: SourceAbilities) -> Rel | None:
    """Limit(Scan, offset, n)  =>  Limit(Scan(limit=offset + n), offset, n).

    A hint: several readers may still read more, so the Limit stays.
    """
    match rel:
        case Sort(input=Scan(limit=None) as scan, keys=(), fetch=int() as fetch) if abilities.supports_limit(scan):
            return replace(rel, input=replace(scan, limit=rel.offset + fetch))
    return None
