"""Join in batch mode: by hash where there are keys, else each row with each; hints and options choose otherwise."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from flowsql_core.errors import PlanError
from flowsql_core.expr import conjunction
from flowsql_core.graph.specs import JoinKind
from flowsql_core.types.logical import Column, LogicalType
from flowsql_planner.logical.nodes import Join
from flowsql_planner.logical.rewrite import retype_expr
from flowsql_planner.physical.bounded.sortable import sortable
from flowsql_planner.physical.context import PlanContext
from flowsql_planner.physical.equi_condition import split_condition
from flowsql_planner.physical.group_aggregate import exchange
from flowsql_planner.physical.materialize_time import materialize_time
from flowsql_planner.physical.nodes import Exchange, Physical
from flowsql_planner.physical.nodes.base import estimate_rows
from flowsql_planner.physical.nodes.bounded import BoundedJoin, JoinAlgorithm
from flowsql_planner.physical.options import DISABLED_OPERATORS, BatchOperator

#: Hints of a join; the binder writes the side that they name behind them: ``BROADCAST.LEFT``.
_HINTS: Final = ("BROADCAST", "SHUFFLE_HASH", "SHUFFLE_MERGE", "NEST_LOOP")
#: Kinds that keep rows of an input that have no partner: those rows must be in one place only.
_KEEPS_LEFT: Final = frozenset({JoinKind.LEFT, JoinKind.FULL})
_KEEPS_RIGHT: Final = frozenset({JoinKind.RIGHT, JoinKind.FULL})
_LEFT_ONLY: Final = frozenset({JoinKind.SEMI, JoinKind.ANTI})


def plan_bounded_join(rel: Join, left: Physical, right: Physical, context: PlanContext) -> Physical:
    """A join of two planned inputs.

    Raises:
        PlanError: options leave no operator.

    Source: Flink, ``BatchPhysicalHashJoinRule``, ``BatchPhysicalNestedLoopJoinRule``, ``BatchPhysicalJoinRuleBase``.
    """
    equi = split_condition(rel.condition, len(left.schema))
    left, right = materialize_time(left), materialize_time(right)
    both = left.schema + right.schema
    hint, hinted_left = _hint(rel)
    disabled = context.configuration.get(DISABLED_OPERATORS)
    algorithm, hint = _algorithm(rel, [left.schema[key].type for key in equi.left], hint, disabled)
    nested = algorithm is JoinAlgorithm.NESTED_LOOP
    build_left = _builds_left(rel.kind, left, right, hinted_left if hint else None, nested)
    keeps_build = rel.kind in (_KEEPS_LEFT if build_left else _KEEPS_RIGHT)
    broadcast = not keeps_build and (nested or hint == "BROADCAST")
    sides = [exchange(left, equi.left), exchange(right, equi.right)]
    inputs: list[Physical] = list(sides)
    if broadcast:
        built = 0 if build_left else 1
        inputs[built] = Exchange(
            inputs=(sides[built].inputs[0],), schema=sides[built].schema, keys=(), broadcast=True, span=rel.span
        )
        inputs[1 - built] = sides[1 - built].inputs[0]
    return BoundedJoin(
        inputs=tuple(inputs),
        schema=tuple(Column(c.name, _plain(c.type, i, both)) for i, c in enumerate(rel.schema)),
        kind=rel.kind,
        left_keys=equi.left,
        right_keys=equi.right,
        null_safe=equi.null_safe,
        condition=None if rel.condition is None else retype_expr(rel.condition, both),
        rest=conjunction(tuple(retype_expr(part, both) for part in equi.rest)),
        algorithm=algorithm,
        build_left=build_left,
        broadcast=broadcast,
        hash_demanded=hint is not None or BatchOperator.NESTED_LOOP_JOIN in disabled,
        span=rel.span,
    )


def _algorithm(
    rel: Join, keys: Sequence[LogicalType], hint: str | None, disabled: frozenset[BatchOperator]
) -> tuple[JoinAlgorithm, str | None]:
    """How to join, and the hint where that follows it (``BROADCAST`` also where nothing else is left).

    Raises:
        PlanError: all ways are disabled.
    """
    ways: dict[str, tuple[BatchOperator, JoinAlgorithm]] = {}
    if keys:
        ways["SHUFFLE_HASH"] = BatchOperator.SHUFFLE_HASH_JOIN, JoinAlgorithm.HASH
        ways["BROADCAST"] = BatchOperator.BROADCAST_HASH_JOIN, JoinAlgorithm.HASH
        if all(map(sortable, keys)):
            ways["SHUFFLE_MERGE"] = BatchOperator.SORT_MERGE_JOIN, JoinAlgorithm.SORT_MERGE
    ways["NEST_LOOP"] = BatchOperator.NESTED_LOOP_JOIN, JoinAlgorithm.NESTED_LOOP
    open_ = {name: algorithm for name, (operator, algorithm) in ways.items() if operator not in disabled}
    if not open_ or (rel.kind is JoinKind.FULL and list(open_) == ["BROADCAST"]):
        names = ", ".join(sorted(operator.value for operator in disabled))
        raise PlanError(
            "no-operator",
            f"Cannot generate a valid execution plan: a join has no operator without {names}.",
            rel.span,
            f"take one out of '{DISABLED_OPERATORS.key}'",
        )
    if hint in open_ and not (rel.kind is JoinKind.FULL and hint == "NEST_LOOP" and len(open_) > 1):
        return open_[hint], hint
    first = next(name for name in open_ if not (name == "BROADCAST" and rel.kind is JoinKind.FULL))
    return open_[first], "BROADCAST" if first == "BROADCAST" else None


def _plain(type_: LogicalType, index: int, columns: tuple[Column, ...]) -> LogicalType:
    """The type of an output column, which is no time attribute."""
    return columns[index].type.as_nullable(type_.nullable) if index < len(columns) else type_


def _builds_left(kind: JoinKind, left: Physical, right: Physical, hinted_left: bool | None, nested: bool) -> bool:
    """Whether the left input is taken whole: the one that is hinted, else the smaller one as far as that is known."""
    if kind in _LEFT_ONLY:
        return False
    if nested and kind in (JoinKind.LEFT, JoinKind.RIGHT):
        return kind is JoinKind.RIGHT
    if hinted_left is not None:
        return hinted_left
    if kind is JoinKind.LEFT:
        return False
    if kind is JoinKind.RIGHT:
        return True
    return estimate_rows(left) < estimate_rows(right)


def _hint(rel: Join) -> tuple[str | None, bool | None]:
    """The hint of a join, and whether it names the left side."""
    for key, _ in rel.hints:
        name, _, side = key.partition(".")
        if name in _HINTS:
            return name, side == "LEFT"
    return None, None
