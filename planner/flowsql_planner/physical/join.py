"""Join -> Join, WindowJoin or IntervalJoin, by what its condition says about windows and row times."""

from __future__ import annotations

from dataclasses import replace

from flowsql_core.expr import Call, Expr, InputRef, Literal, conjunction, conjuncts
from flowsql_core.graph.specs import WindowSpec
from flowsql_core.record import record
from flowsql_core.types.logical import DayTimeIntervalType, LogicalType, Schema, is_proctime, is_time_attribute
from flowsql_planner.logical.nodes import Join
from flowsql_planner.logical.rewrite import retype_expr
from flowsql_planner.physical.context import PlanContext
from flowsql_planner.physical.group_aggregate import exchange, hinted_ttl_ms
from flowsql_planner.physical.materialize_time import materialize_time
from flowsql_planner.physical.nodes import IntervalJoin, JoinNode, Physical, UniqueKeySpec, WindowJoin
from flowsql_planner.traits.keys import Keys
from flowsql_planner.traits.window import WindowColumns


@record
class EquiCondition:
    """A join condition taken apart. Keys count within their side; ``rest`` runs over both."""

    left: tuple[int, ...]
    right: tuple[int, ...]
    null_safe: tuple[bool, ...]
    rest: tuple[Expr, ...]

    def without(self, positions: frozenset[int]) -> EquiCondition:
        """The same without the keys at some positions."""
        kept = [i for i in range(len(self.left)) if i not in positions]
        return EquiCondition(
            tuple(self.left[i] for i in kept),
            tuple(self.right[i] for i in kept),
            tuple(self.null_safe[i] for i in kept),
            self.rest,
        )


def split_condition(condition: Expr | None, width: int) -> EquiCondition:
    """Equalities between a column of the left and one of the right side, and what is left over."""
    left: list[int] = []
    right: list[int] = []
    null_safe: list[bool] = []
    rest: list[Expr] = []
    for part in conjuncts(condition):
        match part:
            case Call(function="=" | "IS NOT DISTINCT FROM" as name, args=(InputRef(index=a), InputRef(index=b))) if (
                a < width
            ) != (b < width):
                key = (min(a, b), max(a, b) - width)
                if key not in zip(left, right, strict=True):
                    left.append(key[0])
                    right.append(key[1])
                    null_safe.append(name != "=")
            case Literal(value=True):
                pass
            case _:
                rest.append(part)
    return EquiCondition(tuple(left), tuple(right), tuple(null_safe), tuple(rest))


def plan_join(rel: Join, left: Physical, right: Physical, context: PlanContext) -> Physical:
    """A join of two planned inputs."""
    width = len(left.schema)
    equi = split_condition(rel.condition, width)
    windowed = _window_join(rel, left, right, equi)
    if windowed is not None:
        return windowed
    interval = _interval_join(rel, left, right, equi)
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


@record
class _Bound:
    """``left time + shift`` compared with ``right time``: left >= right + ms (lower) or left <= right + ms (upper)."""

    lower: bool
    left: int
    right: int
    ms: int


def _interval_join(rel: Join, left: Physical, right: Physical, equi: EquiCondition) -> Physical | None:
    """A lower and an upper bound of the distance of two row times (or processing times)."""
    width = len(left.schema)
    columns = left.schema + right.schema
    if rel.condition is None:
        return None
    bounds: list[_Bound] = []
    for position in range(len(equi.left)):
        a, b = left.schema[equi.left[position]].type, right.schema[equi.right[position]].type
        if is_time_attribute(a) and is_time_attribute(b):
            bounds += [_Bound(lower, equi.left[position], equi.right[position], 0) for lower in (True, False)]
    for part in equi.rest:
        bound = _bound(part, width, columns)
        if bound is not None:
            bounds.append(bound)
    lowers = [bound for bound in bounds if bound.lower]
    uppers = [bound for bound in bounds if not bound.lower]
    if not lowers or not uppers:
        return None
    pair = (lowers[0].left, lowers[0].right)
    if any((bound.left, bound.right) != pair for bound in bounds):
        return None
    return IntervalJoin(
        inputs=(exchange(left, equi.left), exchange(right, equi.right)),
        schema=rel.schema,
        kind=rel.kind,
        left_keys=equi.left,
        right_keys=equi.right,
        condition=rel.condition,
        left_time=pair[0],
        right_time=pair[1],
        lower_ms=max(bound.ms for bound in lowers),
        upper_ms=min(bound.ms for bound in uppers),
        row_time=not is_proctime(left.schema[pair[0]].type),
        span=rel.span,
    )


_FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


def _bound(part: Expr, width: int, columns: Schema) -> _Bound | None:
    if not isinstance(part, Call) or part.function not in _FLIPPED:
        return None
    a, b = _shifted_time(part.args[0], columns), _shifted_time(part.args[1], columns)
    if a is None or b is None or (a[0] < width) == (b[0] < width):
        return None
    name = part.function
    if a[0] >= width:
        a, b, name = b, a, _FLIPPED[name]
    strict = 1 if name in ("<", ">") else 0
    distance = b[1] - a[1]
    if name in (">", ">="):
        return _Bound(True, a[0], b[0] - width, distance + strict)
    return _Bound(False, a[0], b[0] - width, distance - strict)


def _shifted_time(expr: Expr, columns: Schema) -> tuple[int, int] | None:
    """(column, milliseconds) of ``time``, ``time + interval`` or ``time - interval`` over a time attribute."""
    match expr:
        case InputRef(index=index) if is_time_attribute(columns[index].type):
            return index, 0
        case Call(function="+" | "-" as sign, args=(inner, Literal(value=int() as amount, type=DayTimeIntervalType()))):
            found = _shifted_time(inner, columns)
            return None if found is None else (found[0], found[1] + (amount if sign == "+" else -amount))
        case _:
            return None
