"""Join -> Join, WindowJoin or IntervalJoin, by what its condition says about windows and row times."""

from __future__ import annotations

from dataclasses import replace

from flowsql_core.errors import PlanError
from flowsql_core.expr import Call, Expr, InputRef, conjunction, conjuncts
from flowsql_core.graph.specs import WindowSpec
from flowsql_core.types.logical import LogicalType
from flowsql_planner.logical.nodes import Join
from flowsql_planner.logical.rewrite import retype_expr
from flowsql_planner.physical.context import PlanContext
from flowsql_planner.physical.equi_condition import EquiCondition, split_condition
from flowsql_planner.physical.group_aggregate import exchange, hinted_ttl_ms
from flowsql_planner.physical.joins.interval_join import plan_interval_join
from flowsql_planner.physical.materialize_time import materialize_time
from flowsql_planner.physical.nodes import JoinNode, Physical, UniqueKeySpec, WindowJoin
from flowsql_planner.traits.keys import Keys
from flowsql_planner.traits.window import WindowColumns


def plan_join(rel: Join, left: Physical, right: Physical, context: PlanContext) -> Physical:
    """A join of two planned inputs."""
    width = len(left.schema)
    equi = split_condition(rel.condition, width)
    windowed = _window_join(rel, left, right, equi)
    if windowed is not None:
        return windowed
    interval = plan_interval_join(rel, left, right, equi)
    if interval is not None:
        return interval
    left, right = materialize_time(left), materialize_time(right)
    condition = None if rel.condition is None else retype_expr(rel.condition, left.schema + right.schema)
    rest = tuple(retype_expr(part, left.schema + right.schema) for part in equi.rest)
    left_keys, right_keys = left.upsert_keys(), right.upsert_keys()
    return JoinNode(
        inputs=(exchange(left, equi.left), exchange(right, equi.right)),
        schema=tuple(replace(c, type=_plain_like(c.type, i, left, right)) for i, c in enumerate(rel.schema)),
        kind=rel.kind,
        left_keys=equi.left,
        right_keys=equi.right,
        null_safe=equi.null_safe,
        condition=condition,
        rest=conjunction(rest),
        left_upsert_keys=_tuples(left_keys),
        right_upsert_keys=_tuples(right_keys),
        left_spec=_unique_spec(left_keys, equi.left),
        right_spec=_unique_spec(right_keys, equi.right),
        mini_batch=context.mini_batch is not None,
        left_ttl_ms=hinted_ttl_ms(rel.hints, "STATE_TTL.LEFT"),
        right_ttl_ms=hinted_ttl_ms(rel.hints, "STATE_TTL.RIGHT"),
        span=rel.span,
    )


def _plain_like(type_: LogicalType, index: int, left: Physical, right: Physical) -> LogicalType:
    columns = left.schema + right.schema
    return columns[index].type.as_nullable(type_.nullable) if index < len(columns) else type_


def _tuples(keys: Keys) -> tuple[tuple[int, ...], ...]:
    return tuple(sorted(tuple(sorted(key)) for key in keys))


def _unique_spec(keys: Keys, join_keys: tuple[int, ...]) -> UniqueKeySpec:
    if not keys:
        return UniqueKeySpec.NONE
    return UniqueKeySpec.IN_JOIN_KEY if any(key <= set(join_keys) for key in keys) else UniqueKeySpec.HAS


def _window_join(rel: Join, left: Physical, right: Physical, equi: EquiCondition) -> Physical | None:
    """Equal start and end of windows of the same kind and size on both sides."""
    windows, others = left.window_columns(), right.window_columns()
    if windows is None or others is None or windows.window != others.window:
        return None
    starts = _positions(equi, windows.starts, others.starts)
    ends = _positions(equi, windows.ends, others.ends)
    times = _positions(equi, windows.times, others.times)
    if not starts or not ends:
        return None
    if windows.window.processing_time:
        raise PlanError(
            "window-join-time",
            "Processing time Window Join is not supported yet.",
            rel.span,
            "join windows of a row time; Flink has no other ones either",
        )
    keys = equi.without(frozenset(starts) | frozenset(ends) | frozenset(times))
    condition = conjunction(_key_equalities(equi, keys, rel, len(left.schema)) + equi.rest)
    return WindowJoin(
        inputs=(exchange(left, keys.left), exchange(right, keys.right)),
        schema=rel.schema,
        kind=rel.kind,
        left_window=_attached(windows, equi.left, starts, ends),
        right_window=_attached(others, equi.right, starts, ends),
        left_keys=keys.left,
        right_keys=keys.right,
        null_safe=keys.null_safe,
        condition=condition,
        rest=conjunction(equi.rest),
        span=rel.span,
    )


def _key_equalities(equi: EquiCondition, keys: EquiCondition, rel: Join, width: int) -> tuple[Expr, ...]:
    wanted = set(zip(keys.left, keys.right, strict=True))
    parts = []
    for part in conjuncts(rel.condition):
        if isinstance(part, Call) and len(part.args) == 2:
            a, b = part.args
            if isinstance(a, InputRef) and isinstance(b, InputRef) and part not in equi.rest:
                pair = (min(a.index, b.index), max(a.index, b.index) - width)
                if pair in wanted:
                    parts.append(part)
    return tuple(parts)


def _positions(equi: EquiCondition, left: frozenset[int], right: frozenset[int]) -> tuple[int, ...]:
    return tuple(i for i in range(len(equi.left)) if equi.left[i] in left and equi.right[i] in right)


def _attached(
    windows: WindowColumns, side: tuple[int, ...], starts: tuple[int, ...], ends: tuple[int, ...]
) -> WindowSpec:
    return windows.attached(side[starts[0]], side[ends[0]])
