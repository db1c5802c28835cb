"""Constants as Spark SQL writes them."""

from __future__ import annotations

from typing import Any, Final

from flowsql_core.errors import NotSupportedYetError
from flowsql_core.expr import Literal
from flowsql_core.types import logical as t
from flowsql_planner.logical.expression_text import literal_text
from flowsql_planner.spark import sql
from flowsql_planner.spark.sql import SqlNode
from flowsql_planner.spark.types import spark_type

#: Literals of these years have a four-digit form in both systems.
_FIRST_DAY, _LAST_DAY = -719_162, 2_932_896
INT_LIMIT: Final = 2**31


def literal(node: Literal) -> SqlNode:
    """A constant with its type.

    Raises:
        NotSupportedYetError: a value that Spark cannot write.
    """
    value, type_ = node.value, t.without_attribute(node.type)
    text = spark_type(type_, node.span)
    if value is None:
        return sql.null(text)
    match type_:
        case t.BooleanType():
            return sql.boolean(bool(value))
        case t.CharacterType():
            return sql.string(value)
        case t.BinaryStringType():
            return sql.binary_value(value)
        case t.IntegerType() | t.TimeType() | t.DayTimeIntervalType() | t.YearMonthIntervalType():
            return _whole(int(value), text)
        case t.DecimalType() | t.ApproximateType():
            return sql.cast(sql.exp().Literal.string(_digits(value, type_)), text)
        case t.DateType() if _FIRST_DAY <= value <= _LAST_DAY:
            return sql.cast(sql.string(literal_text(value, type_)), text)
        case t.TimestampType(precision=digits) | t.TimestampLtzType(precision=digits) if digits > 6:
            return _whole(value, text)
        case t.TimestampType() if _FIRST_DAY <= value // 86_400_000_000_000 <= _LAST_DAY:
            return sql.cast(sql.string(literal_text(value, type_)), text)
        case t.TimestampLtzType():
            return sql.function("TIMESTAMP_MICROS", _whole(value // 1000, "BIGINT"))
    raise NotSupportedYetError(f"the constant {literal_text(value, type_)} on Spark", node.span)


def _digits(value: Any, type_: t.LogicalType) -> str:
    return (
        f"{value:f}"
        if isinstance(type_, t.DecimalType)
        else repr(value).replace("inf", "Infinity").replace("nan", "NaN")
    )


def _whole(value: int, type_text: str) -> SqlNode:
    if -INT_LIMIT < value < INT_LIMIT:
        made = sql.number(value)
        return made if type_text == "INT" else sql.cast(made, type_text)
    return sql.cast(sql.exp().Literal.string(str(value)), type_text)
