"""Joins as Spark SQL: inner ones in one FROM, others one by one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final, Protocol

from flowsql_core.errors import NotSupportedYetError
from flowsql_core.expr import Expr, conjunction
from flowsql_core.graph.specs import JoinKind
from flowsql_planner.logical.internal_calls import query_calls
from flowsql_planner.logical.nodes import Filter, Join, Rel
from flowsql_planner.spark import sql
from flowsql_planner.spark.around_spark import lift_join_expressions, split_condition
from flowsql_planner.spark.expression import SparkExpressions
from flowsql_planner.spark.inner_joins import InnerJoins, Place, by_hash_of_floats, inner_joins
from flowsql_planner.spark.row import Row
from flowsql_planner.spark.sql import SqlNode

_JOINS: Final = {
    JoinKind.INNER: ("", "INNER"),
    JoinKind.LEFT: ("LEFT", ""),
    JoinKind.RIGHT: ("RIGHT", ""),
    JoinKind.FULL: ("FULL", ""),
    JoinKind.SEMI: ("LEFT", "SEMI"),
    JoinKind.ANTI: ("LEFT", "ANTI"),
}


class Relations(Protocol):
    """What compiles the inputs of a join."""

    def relation(self, rel: Rel, outer: tuple[SqlNode, ...]) -> SqlNode:
        """A query whose columns are those of the relation, called c0, c1, ..."""
        ...

    def source(self, rel: Rel, outer: tuple[SqlNode, ...]) -> tuple[SqlNode, Row]:
        """A relation as an item of FROM, and its columns."""
        ...

    def has_form(self, expr: Expr) -> bool:
        """Whether Spark answers an expression over any row exactly."""
        ...

    def subquery(self, plan: Any, captured: Sequence[SqlNode]) -> SqlNode:
        """A query inside of an expression."""
        ...


def join_query(relations: Relations, rel: Join, outer: tuple[SqlNode, ...]) -> SqlNode:
    """The query of a join.

    Raises:
        NotSupportedYetError: a condition that reads both sides and has no exact form, of an outer join; keys that Spark
            compares in another way.
    """
    if by_hash_of_floats(rel):
        raise NotSupportedYetError("a hash join by keys of FLOAT or DOUBLE on Spark", rel.span)
    lifted = lift_join_expressions(rel, relations.has_form)
    if lifted is not None:
        return relations.relation(lifted, outer)
    plain, strange = split_condition(rel.condition, relations.has_form)
    if strange and rel.kind is JoinKind.INNER:
        on = conjunction(strange)
        assert on is not None
        return relations.relation(Filter(replace(rel, condition=conjunction(plain)), on, rel.span), outer)
    several = inner_joins(rel, relations.has_form)
    if several is not None:
        return _inner_joins(relations, several, outer)
    left, left_row = relations.source(rel.left, outer)
    right, right_row = relations.source(rel.right, outer)
    width = len(rel.left.schema)

    def column(index: int) -> SqlNode:
        return left_row.column(index) if index < width else right_row.column(index - width)

    row = SparkExpressions(column, outer, relations.subquery)
    items = left_row.all()
    if rel.kind not in (JoinKind.SEMI, JoinKind.ANTI):
        items += right_row.all()
    side, kind = _JOINS[rel.kind]
    if rel.condition is None:
        condition = sql.boolean(True)
    else:
        condition = (row.make if any(query_calls(rel.condition)) else row.condition)(rel.condition)
    if rel.condition is None and rel.kind is JoinKind.INNER:
        kind = "CROSS"
    join = sql.exp().Join(this=right, side=side or None, kind=kind or None)
    if kind != "CROSS":
        join.set("on", condition)
    made = sql.select(items, left)
    made.append("joins", join)
    return made


def _inner_joins(relations: Relations, joins: InnerJoins, outer: tuple[SqlNode, ...]) -> SqlNode:
    """``SELECT ... FROM a INNER JOIN b INNER JOIN c WHERE ...``."""
    sources, rows = zip(*(relations.source(part, outer) for part in joins.inputs), strict=True)

    def column(place: Place) -> SqlNode:
        return rows[place[0]].column(place[1])

    made = sql.select([column(place) for place in joins.columns], sources[0])
    for source in sources[1:]:
        made.append("joins", sql.exp().Join(this=source, kind="INNER"))

    def met(condition: Expr, places: Sequence[Place]) -> SqlNode:
        row = SparkExpressions(lambda index: column(places[index]), outer, relations.subquery)
        return row.condition(condition)

    for condition, places in joins.conditions:
        made = made.where(met(condition, places), copy=False)
    return made
