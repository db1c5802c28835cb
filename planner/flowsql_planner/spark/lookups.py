"""Lookups of a bounded query: Spark joins with the whole table, which does not change while a statement runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from flowsql_core.errors import NotSupportedYetError
from flowsql_core.expr import Call, Expr
from flowsql_planner.logical.nodes import Filter, Join, Project, Rel, Scan, TemporalJoin, WatermarkAssigner
from flowsql_planner.logical.rewrite import refs
from flowsql_planner.spark.around_spark import answer_scan
from flowsql_planner.spark.own_reading import is_in_spark


def lookup_as_join(rel: TemporalJoin, stage: Callable[[Rel, bool], Any]) -> Join:
    """The join that gives the answer of a lookup.

    Args:
        stage: plans a relation for FlowSQL's own runtime, whose refusals (a table that cannot be looked up, a condition
            without an equality) count here, too.

    Raises:
        BindError: see :func:`~flowsql_planner.physical.joins.lookup_join.plan_lookup_join`.
        NotSupportedYetError: likewise; or versions by row time, which Flink has not in batch mode; or a hint that asks
            for missing rows once more.
    """
    local = "FlowSQL's own runtime looks rows up one batch at a time: 'execution.batch.engine' = 'local'"
    if rel.version_time is not None:
        raise NotSupportedYetError("a join with versions by row time in batch mode", rel.span)
    if any(key == "LOOKUP.max-attempts" for key, _ in rel.hints):
        raise NotSupportedYetError("a lookup that asks for missing rows once more, on Spark", rel.span, local)
    if not _is_in_spark(rel.right):
        stage(replace(rel, left=_with_clock(rel)), False)
    return Join(rel.left, rel.right, rel.kind, rel.condition, rel.schema, (), rel.span)


def _is_in_spark(rel: Rel) -> bool:
    while isinstance(rel, Project | Filter | WatermarkAssigner):
        rel = rel.input
    return isinstance(rel, Scan) and is_in_spark(rel)


def _with_clock(rel: TemporalJoin) -> Rel:
    """Rows with the columns of the left input, whose processing time is the clock's."""
    schema = rel.left.schema
    rows = answer_scan(schema)
    columns: list[Expr] = list(refs(rows.schema))
    clock = schema[rel.period].type
    columns[rel.period] = Call("PROCTIME", (), clock)
    return Project(rows, tuple(columns), tuple(f"c{index}" for index in range(len(schema))), rel.span)
