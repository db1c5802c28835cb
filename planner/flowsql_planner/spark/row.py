"""The columns of an item of FROM."""

from __future__ import annotations

from flowsql_core.types.logical import Schema
from flowsql_planner.spark import sql
from flowsql_planner.spark.expression import SparkExpressions
from flowsql_planner.spark.quantified import SubqueryPrinter
from flowsql_planner.spark.sql import SqlNode


class Row:
    """Columns c0, c1, ... of a relation under an alias, and expressions over them.

    Args:
        outer: columns of the rows around it.
        subquery: compiles queries in expressions.
    """

    def __init__(self, schema: Schema, alias: str, outer: tuple[SqlNode, ...], subquery: SubqueryPrinter) -> None:
        self._alias = alias
        self.schema = schema
        self.expressions = SparkExpressions(self.column, outer, subquery)

    def column(self, index: int) -> SqlNode:
        """One column."""
        return sql.column(self._alias, f"c{index}")

    def all(self) -> list[SqlNode]:
        """All columns in order."""
        return [self.column(index) for index in range(len(self.schema))]
