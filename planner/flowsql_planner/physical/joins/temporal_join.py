"""TemporalJoin -> TemporalJoin of versions by row time, or LookupJoin."""

from __future__ import annotations

from dataclasses import replace

from flowsql_core.errors import BindError, PlanError
from flowsql_core.expr import conjunction
from flowsql_core.span import Span
from flowsql_core.types.logical import is_proctime, without_attribute
from flowsql_planner.logical.nodes import TemporalJoin
from flowsql_planner.physical.context import PlanContext
from flowsql_planner.physical.equi_condition import EquiCondition, split_condition
from flowsql_planner.physical.group_aggregate import exchange, hinted_ttl_ms
from flowsql_planner.physical.joins.lookup_join import plan_lookup_join
from flowsql_planner.physical.nodes import (
    Calc,
    ChangelogNormalize,
    Exchange,
    Physical,
    TableSourceScan,
    TemporalJoinNode,
    WatermarkAssignerNode,
)


def plan_temporal_join(rel: TemporalJoin, left: Physical, right: Physical, context: PlanContext) -> Physical:
    """A join with the versions of the right input, or with what it holds at the moment.

    Raises:
        BindError: the right input has no key among the join keys, or no row time of the left one's type.
    """
    if is_proctime(left.schema[rel.period].type):
        return plan_lookup_join(rel, left, right, context)
    equi = split_condition(rel.condition, len(left.schema))
    key = _version_key(rel, right, equi)
    time = _version_time(rel, left, right)
    right = _versions(right, rel.span)
    return TemporalJoinNode(
        inputs=(exchange(left, equi.left), exchange(right, equi.right)),
        schema=(
            *rel.schema[: len(left.schema)],
            *(replace(column, type=without_attribute(column.type)) for column in rel.schema[len(left.schema) :]),
        ),
        kind=rel.kind,
        left_keys=equi.left,
        right_keys=equi.right,
        null_safe=equi.null_safe,
        condition=rel.condition,
        rest=conjunction(equi.rest),
        left_time=rel.period,
        right_time=time,
        version_key=key,
        ttl_ms=hinted_ttl_ms(rel.hints, "STATE_TTL.LEFT"),
        span=rel.span,
    )


def _version_key(rel: TemporalJoin, right: Physical, equi: EquiCondition) -> tuple[int, ...]:
    if not equi.left:
        raise _refused("Currently the join key in Temporal Table Join can not be empty.", rel.span)
    keys = [tuple(sorted(key)) for key in right.upsert_keys() if key <= set(equi.right)]
    if not keys:
        raise _refused(
            "Temporal Table Join requires primary key in versioned table, but no primary key can be found.",
            rel.span,
            "declare a PRIMARY KEY and join by all of its columns",
        )
    return min(keys, key=lambda key: (len(key), key))


def _version_time(rel: TemporalJoin, left: Physical, right: Physical) -> int:
    if rel.version_time is None:
        raise _refused(
            "Event-Time Temporal Table Join requires both primary key and row time attribute in versioned table, "
            "but no row time attribute can be found.",
            rel.span,
            "declare a WATERMARK for the time from which on a version is valid",
        )
    own, other = left.schema[rel.period].type, right.schema[rel.version_time].type
    if type(own) is not type(other):
        raise _refused(
            "Event-Time Temporal Table Join requires same rowtime type in left table and versioned table, but the "
            f"rowtime types are {own.as_nullable()} and {other.as_nullable()}.",
            rel.span,
        )
    return rel.version_time


def _versions(right: Physical, span: Span | None) -> Physical:
    """The changes of a table as they come: each is a version, so nothing of them may be folded or left out.

    Source: Flink, ``EventTimeTemporalJoinRewriteRule``.

    Raises:
        PlanError: a condition drops some of the table's changes.
    """
    chain: list[Physical] = []
    node = right
    while isinstance(node, Calc | WatermarkAssignerNode):
        chain.append(node)
        node = node.inputs[0]
    if not isinstance(node, TableSourceScan | ChangelogNormalize):
        return right
    for part in chain:
        if isinstance(part, Calc) and part.condition is not None:
            message = (
                "Filter is not allowed for right changelog input of event time temporal join, it will corrupt the "
                "versioning of data."
            )
            hint = "join the table itself, and write the condition behind the join"
            raise PlanError("temporal-join", message, part.span or span, hint)
    if not isinstance(node, ChangelogNormalize):
        return right
    exchange = node.inputs[0]
    assert isinstance(exchange, Exchange)
    made = exchange.inputs[0]
    for part in reversed(chain):
        made = replace(part, inputs=(made,))
    return made


def _refused(message: str, span: Span | None, hint: str | None = None) -> BindError:
    return BindError("temporal-join", message, span, hint)
