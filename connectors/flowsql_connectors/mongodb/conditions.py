"""Conditions of a scan as filters of MongoDB, as Flink's connector hands them down."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from flowsql_connectors.mongodb.to_bson import object_id
from flowsql_core.expr import Call, Cast, Expr, InputRef, Literal
from flowsql_core.types import logical as t

_OPERATORS: Final = {"=": "$eq", "<>": "$ne", "<": "$lt", "<=": "$lte", ">": "$gt", ">=": "$gte"}
_TURNED: Final = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
ID: Final = "_id"


def condition(expr: Expr, columns: t.Schema) -> dict[str, Any] | None:
    """The filter of a condition over columns of a table; None where the server would answer otherwise."""
    match expr:
        case Call(function="AND" | "OR", args=args):
            parts = [condition(arg, columns) for arg in args]
            known = [part for part in parts if part is not None]
            return {"$and" if expr.function == "AND" else "$or": known} if len(known) == len(parts) else None
        case Call(function="IS NULL", args=(InputRef(index=index),)):
            return {columns[index].name: {"$eq": None}}
        case Call(function="IS NOT NULL", args=(InputRef(index=index),)):
            return {columns[index].name: {"$ne": None}}
        case Call(function="=" | "<>" | "<" | "<=" | ">" | ">=", args=(left, Literal() as literal)):
            return _compared(left, expr.function, literal, columns)
        case Call(function="=" | "<>" | "<" | "<=" | ">" | ">=", args=(Literal() as literal, right)):
            return _compared(right, _TURNED[expr.function], literal, columns)
        case Call(function="IN", args=(left, *literals)):
            each: Sequence[dict[str, Any] | None] = [
                _compared(left, "=", literal, columns) if isinstance(literal, Literal) else None for literal in literals
            ]
            found = [part for part in each if part is not None]
            return {"$or": found} if len(found) == len(each) else None
    return None


def _compared(operand: Expr, operator: str, literal: Literal, columns: t.Schema) -> dict[str, Any] | None:
    while isinstance(operand, Cast) and operand.implicit and _is_widening(operand):
        operand = operand.operand
    if not isinstance(operand, InputRef) or literal.value is None:
        return None
    column = columns[operand.index]
    value = literal.value
    match literal.type, column.type:
        case t.IntegerType(), t.IntType() | t.BigIntType() | t.DoubleType():
            pass
        case t.DoubleType(), t.DoubleType() if value - value == 0:
            pass
        case t.CharacterType(), t.CharacterType():
            if column.name == ID:
                return _identified(operator, value)
        case _:
            return None
    if operator == "<>":
        # SQL's inequality is not true of NULL.
        return {column.name: {"$nin": [value, None]}}
    return {column.name: {_OPERATORS[operator]: value}}


def _identified(operator: str, text: str) -> dict[str, Any] | None:
    """A text may stand for an ObjectId, whose order is not that of texts."""
    made = object_id(text)
    if made is not text and operator == "=":
        return {ID: {"$in": [text, made]}}
    return {ID: {"$eq": text}} if operator == "=" else None


def _is_widening(cast: Cast) -> bool:
    """Whether a comparison of the values before the cast gives the same answer."""
    from_, to = cast.operand.type, cast.type
    return (isinstance(from_, t.IntegerType) and isinstance(to, t.IntegerType)) or (
        isinstance(from_, t.CharacterType) and isinstance(to, t.CharacterType)
    )
