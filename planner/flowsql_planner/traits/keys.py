"""Unique and upsert keys of physical nodes: column sets that identify a row of the table that a changelog describes.

Source: Flink's ``FlinkRelMdUniqueKeys`` and ``FlinkRelMdUpsertKeys``.
"""

from __future__ import annotations

from flowsql_core.expr import Cast, InputRef
from flowsql_core.graph.specs import JoinKind
from flowsql_core.types.logical import LogicalType
from flowsql_planner.physical.nodes import (
    Calc,
    ChangelogNormalize,
    DropUpdateBefore,
    Exchange,
    GroupAggregate,
    JoinNode,
    Limit,
    MiniBatchAssigner,
    Physical,
    SinkNode,
    SortLimit,
    SortNode,
    TableSourceScan,
    TemporalSort,
    WatermarkAssignerNode,
    WindowAggregate,
    WindowJoin,
)

Keys = frozenset[frozenset[int]]
_NONE: Keys = frozenset()


def derive_upsert_keys(node: Physical) -> Keys:
    """Minimal-or-larger upsert keys of a node's output; the empty set of columns is a key of a one-row table."""
    match node:
        case TableSourceScan(table=table, projection=projection):
            if not table.primary_key:
                return _NONE
            position = {table.columns[index].name: out for out, index in enumerate(projection)}
            if any(name not in position for name in table.primary_key):
                return _NONE
            return frozenset({frozenset(position[name] for name in table.primary_key)})
        case Calc():
            return _through_calc(derive_upsert_keys(node.inputs[0]), node)
        case (
            WatermarkAssignerNode()
            | MiniBatchAssigner()
            | DropUpdateBefore()
            | ChangelogNormalize()
            | Limit()
            | SortLimit()
            | TemporalSort()
            | SortNode()
            | SinkNode()
        ):
            return derive_upsert_keys(node.inputs[0])
        case Exchange(keys=keys):
            # Behind a shuffle only keys that hold the shuffle's columns still keep the order of their changes.
            wanted = frozenset(keys)
            below = derive_upsert_keys(node.inputs[0])
            return frozenset(key for key in below if wanted <= key) if keys else below
        case GroupAggregate(grouping=grouping):
            return frozenset({frozenset(range(len(grouping)))})
        case WindowAggregate(grouping=grouping, calls=calls, properties=properties):
            base = len(grouping) + len(calls)
            groups = frozenset(range(len(grouping)))
            # Flink: the grouping together with any one of the window's columns.
            return frozenset(groups | {base + i} for i in range(len(properties)))
        case JoinNode():
            return _of_join(node)
        case WindowJoin():
            return _NONE
        case _:
            return _NONE


def _through_calc(below: Keys, calc: Calc) -> Keys:
    places: dict[int, list[int]] = {}
    for out, expr in enumerate(calc.projections):
        if isinstance(expr, Cast) and _widens(expr):
            expr = expr.operand
        if isinstance(expr, InputRef):
            places.setdefault(expr.index, []).append(out)
    keys: set[frozenset[int]] = set()
    for key in below:
        if all(column in places for column in key):
            keys.add(frozenset(places[column][0] for column in key))
    return frozenset(keys)


def _widens(cast: Cast) -> bool:
    """A cast that only changes nullability or the time attribute mark: equal stays equal, unequal unequal."""
    return _plain(cast.operand.type) == _plain(cast.type)


def _plain(type_: LogicalType) -> str:
    return type_.as_nullable().text().removesuffix(" *ROWTIME*").removesuffix(" *PROCTIME*")


def _of_join(node: JoinNode) -> Keys:
    left = derive_upsert_keys(node.inputs[0])
    right = derive_upsert_keys(node.inputs[1])
    left_keys, right_keys = frozenset(node.left_keys), frozenset(node.right_keys)
    if node.kind in (JoinKind.SEMI, JoinKind.ANTI):
        return frozenset(key for key in left if left_keys <= key)
    width = len(node.inputs[0].schema)
    left_unique = any(key <= left_keys for key in left)
    right_unique = any(key <= right_keys for key in right)
    keys: set[frozenset[int]] = set()
    shifted = {frozenset(column + width for column in key) for key in right}
    if right_unique and node.kind in (JoinKind.INNER, JoinKind.LEFT):
        keys |= left
    if left_unique and node.kind in (JoinKind.INNER, JoinKind.RIGHT):
        keys |= shifted
    # A pair of keys identifies a pair of rows; padded sides are NULL as a whole.
    keys |= {a | b for a in left for b in shifted}
    # Only keys that hold the join key of one side keep the order of changes through the shuffles.
    moved = frozenset(column + width for column in right_keys)
    return frozenset(key for key in keys if left_keys <= key or moved <= key)


def smallest(keys: Keys) -> tuple[int, ...] | None:
    """One key of the fewest columns, sorted; None without keys."""
    if not keys:
        return None
    return min((tuple(sorted(key)) for key in keys), key=lambda key: (len(key), key))
