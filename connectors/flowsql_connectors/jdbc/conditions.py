"""Conditions of a scan as SQL of the database, as far as it answers them as FlowSQL does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from flowsql_connectors.jdbc.database import Dialect
from flowsql_core.expr import Call, Cast, Expr, InputRef, Literal
from flowsql_core.types import logical as t

_TURNED: Final = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}

#: The SQL that gives a column of the table by its place.
ColumnText = Callable[[int], str]


def condition(expr: Expr, column: ColumnText, dialect: Dialect) -> str | None:
    """The SQL of a condition over columns of a table; None where the database cannot take it over."""
    match expr:
        case InputRef(index=index, type=t.BooleanType()):
            return column(index) if not dialect.any_type else None
        case Call(function="AND" | "OR", args=args):
            parts = [condition(arg, column, dialect) for arg in args]
            known = [part for part in parts if part is not None]
            return "(" + f" {expr.function} ".join(known) + ")" if len(known) == len(parts) else None
        case Call(function="NOT", args=(arg,)):
            inner = condition(arg, column, dialect)
            return None if inner is None else f"NOT ({inner})"
        case Call(function="IS NULL" | "IS NOT NULL", args=(InputRef(index=index),)):
            return f"{column(index)} {expr.function}"
        case Call(function="=" | "<>" | "<" | "<=" | ">" | ">=" | "LIKE", args=(left, Literal() as literal)):
            return _compared(left, expr.function, literal, column, dialect)
        case Call(function="=" | "<>" | "<" | "<=" | ">" | ">=", args=(Literal() as literal, right)):
            return _compared(right, _TURNED[expr.function], literal, column, dialect)
        case Call(function="IN", args=(left, *literals)):
            each = [
                _compared(left, "=", literal, column, dialect) if isinstance(literal, Literal) else None
                for literal in literals
            ]
            known = [part for part in each if part is not None]
            return "(" + " OR ".join(known) + ")" if len(known) == len(each) else None
    return None


def _compared(operand: Expr, operator: str, literal: Literal, column: ColumnText, dialect: Dialect) -> str | None:
    while isinstance(operand, Cast) and operand.implicit and _is_widening(operand):
        operand = operand.operand
    if not isinstance(operand, InputRef) or literal.value is None:
        return None
    return dialect.compared(column(operand.index), operator, literal.value, literal.type)


def _is_widening(cast: Cast) -> bool:
    """Whether a comparison of the values before the cast gives the same answer."""
    exact = t.IntegerType | t.DecimalType
    from_, to = cast.operand.type, cast.type
    return (isinstance(from_, exact) and isinstance(to, exact)) or (
        isinstance(from_, t.ApproximateType) and isinstance(to, t.DoubleType)
    )
