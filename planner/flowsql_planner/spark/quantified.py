"""Comparisons with all rows of a query: ``x > ANY (SELECT ...)``; ALL is NOT of the opposite comparison with ANY."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from flowsql_core.expr import Call, Expr
from flowsql_core.types import logical as t
from flowsql_planner.spark import sql
from flowsql_planner.spark.comparison import compared, may_be_nan, no_form
from flowsql_planner.spark.sql import SqlNode
from flowsql_planner.spark.types import is_opaque, spark_type

#: The query of a call over its arguments.
SubqueryPrinter = Callable[[Any, Sequence[SqlNode]], SqlNode]
#: The alias of a query whose rows are compared.
MEMBER: Final = "member"


def some_query(call: Call, make: Callable[[Expr], SqlNode], subquery: SubqueryPrinter) -> SqlNode:
    """Return ``x < SOME (q)`` by the greatest value of q and the counts of its rows and its NULLs."""
    plan, operator = call.option("plan"), call.option("comparison")
    operand, *captured = call.args
    column = plan.schema[0].type
    approximate = isinstance(column, t.ApproximateType)
    if t.is_nested(column) or is_opaque(column) or (approximate and operator == "<>"):
        raise no_form(call)

    def asked(value: Callable[[], SqlNode]) -> SqlNode:
        query = subquery(plan, [make(arg) for arg in captured])
        return sql.exp().Subquery(this=sql.select([value()], sql.derived(query, MEMBER)))

    def member() -> SqlNode:
        return sql.column(MEMBER, "c0")

    def extreme(name: str) -> SqlNode:
        made = sql.function(name, member())
        if approximate:
            strange = sql.function("MAX", sql.cast(sql.function("ISNAN", member()), "INT"))
            message = "ANY or ALL over NaN depends on the order of the rows and is not supported yet on Spark"
            failure = sql.cast(sql.failing(message), spark_type(column))
            made = sql.case([sql.binary("=", strange, sql.number(1))], [failure], made)
        return made

    def rows() -> SqlNode:
        return sql.function("COUNT", sql.exp().Star())

    def by(name: str) -> SqlNode:
        found = asked(lambda: extreme(name))
        return compared(operator, make(operand), found, may_be_nan(operand), b_nan=False)

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
