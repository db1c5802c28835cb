"""MATCH_RECOGNIZE as an operator."""

from __future__ import annotations

from dataclasses import replace

from flowsql_core.errors import NotSupportedYetError, PlanError
from flowsql_core.expr import Call, InputRef, walk
from flowsql_core.graph.match_specs import MatchTime, PatternExpression
from flowsql_core.python_call import calls_python
from flowsql_core.types.logical import Schema, is_proctime, is_time_attribute, without_attribute
from flowsql_planner.logical.nodes import Match
from flowsql_planner.physical.group_aggregate import exchange
from flowsql_planner.physical.nodes import MatchNode, Physical
from flowsql_planner.physical.order import order_keys


def plan_match(rel: Match, source: Physical, streaming: bool) -> Physical:
    """The operator above an exchange by the partition's columns.

    Raises:
        PlanError: the order was a time attribute, and is none behind a join.
        NotSupportedYetError: an order or a function that the operator lacks.
    """
    order = order_keys(rel.order, source.schema, rel.span)
    if streaming and not is_time_attribute(source.schema[order[0][0]].type):
        message = "You must specify either rowtime or proctime for order by as the first one."
        raise PlanError("match-order", message, rel.span, "behind a join or an aggregate a time is a plain timestamp")
    row_time = not is_proctime(source.schema[order[0][0]].type)
    if not row_time and len(order) > 1:
        raise NotSupportedYetError("MATCH_RECOGNIZE ordered by a processing time and more", rel.span)
    node = MatchNode(
        inputs=(exchange(source, rel.partition),),
        schema=_plain_measures(rel),
        partition=rel.partition,
        order=order,
        row_time=row_time,
        variables=rel.variables,
        computed=rel.computed,
        measures=rel.measures,
        skip=rel.skip,
        skip_variable=rel.skip_variable,
        within_ms=rel.within_ms,
        empty=rel.empty,
        span=rel.span,
    )
    for expr in node.expressions():
        if calls_python(expr):
            raise NotSupportedYetError("a Python function in MATCH_RECOGNIZE", rel.span)
        if any(isinstance(part, Call) and part.function == "CURRENT_WATERMARK" for part in walk(expr)):
            raise NotSupportedYetError("CURRENT_WATERMARK in MATCH_RECOGNIZE", rel.span)
    return node


def _plain_measures(rel: Match) -> Schema:
    """The columns of matches: of the measures only the times of the match itself stay time attributes."""
    keys = len(rel.partition)
    measures = zip(rel.schema[keys:], rel.measures, strict=True)
    return (
        *rel.schema[:keys],
        *(
            column if _is_match_time(measure) else replace(column, type=without_attribute(column.type))
            for column, measure in measures
        ),
    )


def _is_match_time(measure: PatternExpression) -> bool:
    match measure.expression:
        case InputRef(index=index):
            return measure.reads[index] is MatchTime.ROW_TIME
        case Call(function="PROCTIME"):
            return True
    return False
