"""Databases that are asked by SQL text: what their dialects spell, and how a scan becomes a query."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from flowsql_connectors.conditions import condition
from flowsql_connectors.jdbc.database import Database, Dialect, Selection
from flowsql_connectors.jdbc.native import NativeColumn
from flowsql_connectors.jdbc.parts import Part
from flowsql_core.expr import Expr
from flowsql_core.record import record
from flowsql_core.types import logical as t
from flowsql_core.types.logical import LogicalType, Schema

#: The SQL that gives a column of the table by its place.
ColumnText = Callable[[int], str]


class SqlDialect(Dialect):
    """SQL of one kind of database."""

    def takes_over(self, filter_: Expr) -> bool:
        """Comparisons with constants, IS NULL, IN, LIKE, and what AND, OR and NOT make of them."""
        return self.condition(filter_, lambda place: f"c{place}") is not None

    def condition(self, filter_: Expr, column: ColumnText) -> str | None:
        """The SQL of a condition over columns of a table; None where the database cannot take it over."""
        return condition(filter_, _SqlText(column, self))

    def select(self, wanted: Selection) -> str:
        """The query of a scan."""
        declared, native = wanted.declared, wanted.native

        def text(place: int) -> str:
            return self.expression(native[place], declared[place].type)

        conditions = [self.condition(filter_, text) or "TRUE" for filter_ in wanted.filters]
        if wanted.part is not None:
            column = text(wanted.part.column)
            conditions += self._within(wanted.part, column, declared[wanted.part.column].type)
        # Of a query that wants no column, rows count all the same.
        columns = [self.read(native[place], declared[place].type) for place in wanted.projection] or ["1"]
        query = f"SELECT {', '.join(columns)} FROM {self.table(wanted.table)} AS t"
        if conditions:
            query += " WHERE " + " AND ".join(conditions)
        if wanted.limit is not None:
            query += f" LIMIT {wanted.limit}"
        return query

    def _within(self, part: Part, column: str, type_: LogicalType) -> list[str]:
        end = f"{column} {'<=' if part.last else '<'} {self.number(part.end, type_)}"
        return [f"{column} >= {self.number(part.first, type_)}", end]

    def quote(self, name: str) -> str:
        """An identifier."""
        return '"' + name.replace('"', '""') + '"'

    def table(self, name: str) -> str:
        """A table, maybe behind its schema and a dot."""
        return ".".join(map(self.quote, name.split(".")))

    @abstractmethod
    def expression(self, native: NativeColumn, type_: LogicalType, table: str = "") -> str:
        """The SQL that gives a column's value as a declared type: rounded, widened.

        Args:
            table: alias of the table with a dot behind it, if any.
        """

    def read(self, native: NativeColumn, type_: LogicalType, table: str = "") -> str:
        """:meth:`expression` in the form in which it travels."""
        return self.expression(native, type_, table)

    @abstractmethod
    def compared(self, column: str, operator: str, literal: Any, type_: LogicalType) -> str | None:
        """A comparison (``=``, ``<>``, ``<``, ``<=``, ``>``, ``>=``, ``LIKE``) of a column with a constant that is not
        NULL; None where the database's answer may be another one."""

    @abstractmethod
    def number(self, value: int, type_: LogicalType) -> str:
        """A bound of a part of a scan as SQL: an integer; days of a DATE; microseconds of a TIMESTAMP."""


class SqlDatabase(Database):
    """A connection that answers queries of :class:`SqlDialect`."""

    _dialect: SqlDialect

    def scan(self, wanted: Selection, batch_rows: int) -> Iterator[Sequence[Any]]:
        """By one query."""
        return self.read(self._dialect.select(wanted), wanted.output, batch_rows)

    @abstractmethod
    def read(self, query: str, columns: Schema, batch_rows: int) -> Iterator[Sequence[Any]]:
        """The rows of a query as batches of Arrow arrays in the types of ``columns``.

        Args:
            batch_rows: most rows of a batch, where the client library counts rows.
        """


@record
class _SqlText:
    text: ColumnText
    dialect: SqlDialect

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
