"""MultiJoin -> MultiJoinNode: its shared key, and what each condition asks beside it."""

from __future__ import annotations

from flowsql_core.config import parse_duration_ms
from flowsql_core.expr import Call, Expr, InputRef, Literal, conjunction, conjuncts
from flowsql_core.types.logical import Column
from flowsql_planner.logical.common_join_key import CommonKey, common_join_key, equalities
from flowsql_planner.logical.nodes import MultiJoin
from flowsql_planner.logical.rewrite import retype_expr
from flowsql_planner.physical.group_aggregate import exchange
from flowsql_planner.physical.materialize_time import materialize_time
from flowsql_planner.physical.nodes import MultiJoinNode, Physical
from flowsql_planner.physical.nodes.joins.multi import JoinedInput


def plan_multi_join(rel: MultiJoin, inputs: tuple[Physical, ...]) -> Physical:
    """Joins of planned inputs at once."""
    plain = tuple(materialize_time(child) for child in inputs)
    columns = tuple(column for child in plain for column in child.schema)
    schema = tuple(
        Column(made.name, column.type.as_nullable(made.type.nullable))
        for made, column in zip(rel.schema, columns, strict=True)
    )
    conditions = tuple(None if part is None else retype_expr(part, columns) for part in rel.conditions)
    widths = [len(child.schema) for child in plain]
    keys = common_join_key(conditions, widths)
    joined = [
        JoinedInput(
            rel.kinds[place - 1],
            conditions[place - 1],
            _beside_key(conditions[place - 1], keys, widths, place),
            frozenset(key.linked[place - 1] for key in keys),
            _equal(conditions[place - 1], keys, widths, place),
        )
        for place in range(1, len(plain))
    ]
    return MultiJoinNode(
        inputs=tuple(exchange(child, tuple(key.columns[i] for key in keys)) for i, child in enumerate(plain)),
        schema=schema,
        joined=tuple(joined),
        upsert=tuple(tuple(sorted(tuple(sorted(key)) for key in child.upsert_keys())) for child in plain),
        ttls_ms=tuple(None if ttl is None else parse_duration_ms(ttl) for ttl in rel.ttls),
        hinted_ttls=rel.ttls if any(rel.ttls) else None,
        span=rel.span,
    )


def _beside_key(condition: Expr | None, keys: tuple[CommonKey, ...], widths: list[int], place: int) -> Expr | None:
    """What a condition asks beside the shared key: rows are looked up by that."""
    said = set()
    for key in keys:
        linked = key.linked[place - 1]
        said.add((sum(widths[:linked]) + key.columns[linked], sum(widths[:place]) + key.columns[place]))
    return conjunction(tuple(part for part in conjuncts(condition) if not _is_one_of(part, said)))


def _is_one_of(part: Expr, said: set[tuple[int, int]]) -> bool:
    match part:
        case Call(function="=", args=(InputRef(index=a), InputRef(index=b))):
            return (min(a, b), max(a, b)) in said
        case Literal(value=True):
            return True
        case _:
            return False


def _equal(
    condition: Expr | None, keys: tuple[CommonKey, ...], widths: list[int], place: int
) -> tuple[tuple[int, int], ...]:
    """Columns that must be equal beside the shared key: of all inputs before, and of this one."""
    said = {(key.linked[place - 1], key.columns[key.linked[place - 1]], key.columns[place]) for key in keys}
    found = (
        (sum(widths[: one.input]) + one.column, one.other)
        for one in equalities(condition, widths, place)
        if (one.input, one.column, one.other) not in said
    )
    return tuple(dict.fromkeys(found))
