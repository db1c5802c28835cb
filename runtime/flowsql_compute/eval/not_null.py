"""Values that are declared NOT NULL and are NULL all the same, and what Flink's generated code makes of them."""

from __future__ import annotations

import datetime
from typing import Any, Final

import pyarrow as pa

from flowsql_compute.eval.literal import literal_scalar
from flowsql_core.arrow import compute as pc
from flowsql_core.expr import Call, Case, Cast, Expr, InputRef, Literal, transform, walk
from flowsql_core.types import logical as t


def declare(expr: Expr, target: t.LogicalType) -> Expr:
    """The expression as of ``target``, where that is its type but for NOT NULL: nobody asks whether it is NULL."""
    if not expr.type.nullable or target.nullable:
        return expr
    return Cast(expr, target, implicit=True, span=expr.span)


def only_declares(expr: Expr) -> bool:
    """Whether a cast says no more than that a value is NOT NULL."""
    if not isinstance(expr, Cast) or expr.safe:
        return False
    return expr.operand.type.nullable and not expr.type.nullable and expr.operand.type.same(expr.type)


def undeclared(expr: Expr) -> Expr:
    """An expression without casts that only declare a value NOT NULL.

    As in Flink's generated code a NULL goes on being one within the expression, but nobody asks whether it is. What
    becomes of it at the end: ``without_nulls``.
    """
    if not any(map(only_declares, walk(expr))):
        return expr

    def answered(node: Expr) -> Expr:
        match node:
            case Call(function="IS NULL" | "IS NOT NULL" as asked, args=(held,)) if not held.type.nullable:
                return Literal(asked == "IS NOT NULL", node.type, node.span)
        return node

    def plain(node: Expr) -> Expr:
        return node.operand if isinstance(node, Cast) and only_declares(node) else node

    return transform(transform(expr, answered), plain)


#: Functions that Flink calls only where no argument is NULL; where one is, the result is the default of its type.
_ASKING_NO_NULL: Final = frozenset(
    {
        "+", "-", "*", "/", "%", "MOD", "ABS", "SIGN", "ROUND", "TRUNCATE", "FLOOR", "CEIL", "POWER", "SQRT", "EXP",
        "LN", "LOG10", "LOG2", "LOG", "SIN", "COS", "TAN", "COT", "ASIN", "ACOS", "ATAN", "ATAN2", "SINH", "COSH",
        "TANH", "DEGREES", "RADIANS", "BIN", "HEX", "=", "<>", "<", "<=", ">", ">=", "IN", "AND", "OR", "NOT", "||",
        "UPPER", "LOWER", "CHAR_LENGTH", "SUBSTRING", "TRIM", "POSITION", "LIKE", "GREATEST", "LEAST",
    }
)  # fmt: skip


def may_hold_default(expr: Expr) -> bool:
    """True if a projected expression of a type NOT NULL gets its type's default where it is NULL within."""
    if expr.type.nullable:
        return False
    match expr:
        case Cast(safe=False) | Case():
            return True
        case Call(function=function):
            return function in _ASKING_NO_NULL or any(map(only_declares, walk(expr)))
    return False


def missing_default(expr: Expr) -> pa.Scalar | None:
    """What a projected ``array[i]`` or ``map[key]`` of NOT NULL elements holds where there is no such element.

    Flink keeps such a value for never NULL and writes its type's default (-1, FALSE, an empty text); inside of other
    expressions it is NULL.
    """
    if not is_item_for_sure(expr):
        return None
    match expr.type:
        case t.CharType(length=length):
            # A constant one passes through a cast, which pads.
            value: Any = "" if any(isinstance(node, InputRef) for node in walk(expr)) else " " * length
        case t.VarCharType():
            value = ""
        case t.BooleanType():
            value = False
        case t.TimeType():
            value = 0
        case t.IntegerType() | t.ApproximateType() | t.DateType() | t.DayTimeIntervalType() | t.YearMonthIntervalType():
            value = -1
        case _:
            return None
    return literal_scalar(Literal(value, expr.type))


def is_item_for_sure(expr: Expr) -> bool:
    """Whether this is an element whose type says NOT NULL, which it is where there is no such element."""
    if not isinstance(expr, Call) or expr.function != "ITEM" or expr.args[1] == Literal(None, expr.args[1].type):
        return False
    match expr.args[0].type:
        case t.ArrayType(element=element):
            return not element.nullable
        case t.MapType(value=value):
            return not value.nullable
    return False


def without_nulls(array: pa.Array, dst: t.LogicalType) -> pa.Array:
    """A column that is declared NOT NULL, with what Flink's generated code leaves for a NULL of such a type.

    Flink has no default of decimals, times, timestamps and bytes: they stay NULL, which a sink then refuses.
    """
    if not array.null_count:
        return array
    match dst:
        case t.IntegerType() | t.ApproximateType():
            default: object = -1
        case t.BooleanType():
            default = False
        case t.CharacterType():
            default = ""
        case t.DateType():
            default = datetime.date(1969, 12, 31)
        case _:
            return array
    return pc.fill_null(array, pa.scalar(default, array.type))
