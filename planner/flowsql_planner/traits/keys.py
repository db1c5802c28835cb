"""Upsert keys: sets of columns that identify a row of the table that a changelog describes.

Each physical node says which ones its output has (``Physical.upsert_keys``). Source: Flink's ``FlinkRelMdUniqueKeys``
and ``FlinkRelMdUpsertKeys``.
"""

from __future__ import annotations

from collections.abc import Sequence

from flowsql_core.expr import Cast, Expr, InputRef
from flowsql_core.types.logical import LogicalType
from flowsql_planner.traits.injective_casts import is_injective

#: Minimal or larger keys; the empty set of columns is a key of a table of one row.
Keys = frozenset[frozenset[int]]
NO_KEYS: Keys = frozenset()


def through_projection(below: Keys, projections: Sequence[Expr]) -> Keys:
    """The keys of what a projection makes of rows with some keys: those whose columns all go on."""
    places: dict[int, list[int]] = {}
    for out, expr in enumerate(projections):
        while isinstance(expr, Cast) and _keeps_apart(expr):
            expr = expr.operand
        if isinstance(expr, InputRef):
            places.setdefault(expr.index, []).append(out)
    if not places:
        # As in Flink, also of a table of one row.
        return NO_KEYS
    keys: set[frozenset[int]] = set()
    for key in below:
        if all(column in places for column in key):
            keys.add(frozenset(places[column][0] for column in key))
    return frozenset(keys)


def _keeps_apart(cast: Cast) -> bool:
    """A cast that loses nothing, and may change nullability or the time attribute mark: unequal stays unequal."""
    return _plain(cast.operand.type) == _plain(cast.type) or is_injective(cast.operand.type, cast.type)


def _plain(type_: LogicalType) -> str:
    return type_.as_nullable().text().removesuffix(" *ROWTIME*").removesuffix(" *PROCTIME*")


def smallest(keys: Keys) -> tuple[int, ...] | None:
    """One key of the fewest columns, sorted; None without keys."""
    if not keys:
        return None
    return min((tuple(sorted(key)) for key in keys), key=lambda key: (len(key), key))
