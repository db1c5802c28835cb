"""Comparisons with all rows of a query: ``x > ANY (SELECT ...)``; ALL is NOT of the opposite comparison with ANY."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from flowsql_core.expr import Call, Expr
from flowsql_core.types import logical as t
from flowsql_planner.spark import sql
from flowsql_planner.spark.comparison import no_form
from flowsql_planner.spark.sql import SqlNode
from flowsql_planner.spark.types import is_opaque

#: The query of a call over its arguments.
SubqueryPrinter = Callable[[Any, Sequence[SqlNode]], SqlNode]
#: The alias of a query whose rows are compared.
MEMBER: Final = "member"


def some_query(call: Call, make: Callable[[Expr], SqlNode], subquery: SubqueryPrinter) -> SqlNode:
    """Return ``x < SOME (q)`` by the greatest value of q and the counts of its rows and its NULLs."""
    plan, operator = call.option("plan"), call.option("comparison")
    operand, *captured = call.args
    column = plan.schema[0].type
    if t.is_nested(column) or is_opaque(column) or isinstance(column, t.ApproximateType):
        # What Flink answers about a NaN depends on how its planner turned the comparison.
        raise no_form(call)

    def asked(value: Callable[[], SqlNode]) -> SqlNode:
        query = subquery(plan, [make(arg) for arg in captured])
        return sql.exp().Subquery(this=sql.select([value()], sql.derived(query, MEMBER)))

    def member() -> SqlNode:
        return sql.column(MEMBER, "c0")

    def rows() -> SqlNode:
        return sql.function("COUNT", sql.exp().Star())

    def by(name: str) -> SqlNode:
        return sql.binary(operator, make(operand), asked(lambda: sql.function(name, member())))

    empty = sql.binary("=", asked(rows), sql.number(0))
    if operator == "<>":
        true = sql.binary("OR", by("MIN"), by("MAX"))
    else:
        true = by("MAX" if operator in ("<", "<=") else "MIN")
    tests, values = [empty, true], [sql.boolean(False), sql.boolean(True)]
    if call.type.nullable:
        nulls = asked(lambda: sql.binary("<>", rows(), sql.function("COUNT", member())))
        tests.append(sql.binary("OR", sql.is_null(make(operand)), nulls))
        values.append(sql.null("BOOLEAN"))
    return sql.case(tests, values, sql.boolean(False))
