"""Conditions of a scan as SQL of the database."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from flowsql_connectors.conditions import condition as made_of
from flowsql_connectors.jdbc.database import Dialect
from flowsql_core.expr import Expr
from flowsql_core.record import record
from flowsql_core.types import logical as t

#: The SQL that gives a column of the table by its place.
ColumnText = Callable[[int], str]


def condition(expr: Expr, column: ColumnText, dialect: Dialect) -> str | None:
    """The SQL of a condition over columns of a table; None where the database cannot take it over."""
    return made_of(expr, _SqlText(column, dialect))


@record
class _SqlText:
    text: ColumnText
    dialect: Dialect

    def column(self, index: int) -> str | None:
        return None if self.dialect.any_type else self.text(index)

    def is_null(self, index: int) -> str:
        return f"{self.text(index)} IS NULL"

    def is_not_null(self, index: int) -> str:
        return f"{self.text(index)} IS NOT NULL"

    def compared(self, index: int, operator: str, value: Any, type_: t.LogicalType) -> str | None:
        return self.dialect.compared(self.text(index), operator, value, type_)

    def every(self, parts: Sequence[str]) -> str:
        return "(" + " AND ".join(parts) + ")"

    def some(self, parts: Sequence[str]) -> str:
        return "(" + " OR ".join(parts) + ")"

    def negated(self, part: str) -> str:
        return f"NOT ({part})"
