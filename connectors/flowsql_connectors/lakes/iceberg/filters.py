"""Filters of a scan as pyiceberg's expressions: files and row groups that hold no wanted row are not read.

The planner keeps every filter above the scan: no answer hangs on what is left out here. FLOAT and DOUBLE are not
judged: statistics say nothing of NaN.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

from pyiceberg.expressions import (
    AlwaysTrue,
    And,
    BooleanExpression,
    EqualTo,
    GreaterThan,
    GreaterThanOrEqual,
    IsNull,
    LessThan,
    LessThanOrEqual,
    NotEqualTo,
    NotNull,
    Or,
    Reference,
)

from flowsql_connectors.conditions import condition
from flowsql_core.expr import Expr
from flowsql_core.record import record
from flowsql_core.types import logical as t

_OPERATORS = {
    "=": EqualTo,
    "<>": NotEqualTo,
    "<": LessThan,
    "<=": LessThanOrEqual,
    ">": GreaterThan,
    ">=": GreaterThanOrEqual,
}
_NANOS_OF_MICRO = 1000
_MICROSECONDS = 6


def row_filter(filters: Sequence[Expr], columns: Sequence[t.Column | None], names: Sequence[str]) -> BooleanExpression:
    """What pyiceberg can judge of the filters.

    Args:
        filters: over ``columns``.
        columns: as declared; None where the table has another type, so that values may compare otherwise.
        names: of the table's columns that they stand for.
    """
    maker = _Maker(tuple(columns), tuple(names))
    known = [part for each in filters if (part := condition(each, maker)) is not None]
    return reduce(And, known) if known else AlwaysTrue()


@record
class _Maker:
    columns: tuple[t.Column | None, ...]
    names: tuple[str, ...]

    def column(self, index: int) -> BooleanExpression:
        return EqualTo(Reference(self.names[index]), True)  # type: ignore[call-arg, arg-type]

    def is_null(self, index: int) -> BooleanExpression:
        return IsNull(Reference(self.names[index]))  # type: ignore[call-arg]

    def is_not_null(self, index: int) -> BooleanExpression:
        return NotNull(Reference(self.names[index]))  # type: ignore[call-arg]

    def compared(self, index: int, operator: str, value: Any, type_: t.LogicalType) -> BooleanExpression | None:
        made, column = _OPERATORS.get(operator), self.columns[index]
        literal = None if column is None else _literal(value, column.type)
        return None if made is None or literal is None else made(self.names[index], literal)

    def every(self, parts: Sequence[BooleanExpression]) -> BooleanExpression:
        return reduce(And, parts)

    def some(self, parts: Sequence[BooleanExpression]) -> BooleanExpression:
        return reduce(Or, parts)

    def negated(self, part: BooleanExpression) -> None:
        """What is unknown in SQL is false there: its opposite would be true."""
        return


def _literal(value: Any, type_: t.LogicalType) -> Any:
    """A constant as pyiceberg takes it beside a column of a type; None where the two would be compared otherwise."""
    match type_:
        case t.BooleanType() if isinstance(value, bool):
            return value
        case t.IntegerType() | t.DateType() if isinstance(value, int) and not isinstance(value, bool):
            return value
        case t.VarCharType() if isinstance(value, str):
            return value
        case t.TimestampType(precision=precision) | t.TimestampLtzType(precision=precision):
            # Of fewer digits some were cut off when the rows were read.
            exact = precision >= _MICROSECONDS and isinstance(value, int) and not value % _NANOS_OF_MICRO
            return value // _NANOS_OF_MICRO if exact else None
    return None
