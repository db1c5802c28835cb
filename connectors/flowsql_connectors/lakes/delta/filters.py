"""Filters of a scan as predicates of deltalake, by which it leaves out files. The planner keeps every filter above.

Numbers of floating point are not judged (statistics say nothing of NaN), nor are timestamps, of which the library
compares constants of another unit.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from decimal import Decimal
from typing import Any, Final

from flowsql_connectors.conditions import condition
from flowsql_core.expr import Expr
from flowsql_core.record import record
from flowsql_core.types import logical as t

_EPOCH_DAY: Final = date(1970, 1, 1).toordinal()


def predicate(filters: Sequence[Expr], columns: Sequence[t.Column | None], names: Sequence[str]) -> str | None:
    """What the library can judge of the filters; None: nothing.

    Args:
        filters: over ``columns``.
        columns: as declared; None where the table has another type, so that values may compare otherwise.
        names: of the table's columns that they stand for.
    """
    maker = _Maker(tuple(columns), tuple(names))
    known = [part for each in filters if (part := condition(each, maker)) is not None]
    return " AND ".join(known) if known else None


@record
class _Maker:
    columns: tuple[t.Column | None, ...]
    names: tuple[str, ...]

    def _name(self, index: int) -> str:
        return '"' + self.names[index].replace('"', '""') + '"'

    def column(self, index: int) -> str | None:
        return f"{self._name(index)} = true"

    def is_null(self, index: int) -> str:
        return f"{self._name(index)} IS NULL"

    def is_not_null(self, index: int) -> str:
        return f"{self._name(index)} IS NOT NULL"

    def compared(self, index: int, operator: str, value: Any, type_: t.LogicalType) -> str | None:
        column = self.columns[index]
        literal = None if column is None or operator == "LIKE" else _literal(value, column.type)
        return None if literal is None else f"{self._name(index)} {operator} {literal}"

    def every(self, parts: Sequence[str]) -> str:
        return "(" + " AND ".join(parts) + ")"

    def some(self, parts: Sequence[str]) -> str:
        return "(" + " OR ".join(parts) + ")"

    def negated(self, part: str) -> None:
        """What is unknown in SQL may be passed over there."""
        return


def _literal(value: Any, type_: t.LogicalType) -> str | None:
    match type_:
        case t.IntegerType() if isinstance(value, int) and not isinstance(value, bool):
            return str(value)
        case t.VarCharType() if isinstance(value, str):
            return "'" + value.replace("'", "''") + "'"
        case t.DateType() if isinstance(value, int):
            return f"DATE '{date.fromordinal(value + _EPOCH_DAY).isoformat()}'"
        case t.DecimalType(precision=precision, scale=scale) if isinstance(value, Decimal):
            exponent = value.as_tuple().exponent
            exact = isinstance(exponent, int) and -exponent <= scale
            return f"CAST('{value:f}' AS DECIMAL({precision}, {scale}))" if exact else None
    return None
