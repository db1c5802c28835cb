"""Comparisons as Spark SQL, with Flink's answers: NaN, and numbers of more digits than a DECIMAL has."""

from __future__ import annotations

from typing import Final

from flowsql_core.errors import NotSupportedYetError
from flowsql_core.expr import Call, Expr, Literal
from flowsql_core.types import logical as t
from flowsql_planner.logical.internal_calls import QUERY_CALLS
from flowsql_planner.spark import sql
from flowsql_planner.spark.sql import SqlNode
from flowsql_planner.spark.types import Digits

#: Comparisons with their sides exchanged.
_TURNED: Final = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


def no_form(call: Call) -> NotSupportedYetError:
    """Return the refusal of a function that Spark cannot answer exactly."""
    what = QUERY_CALLS.get(call.function, f"{call.function} over these types")
    return NotSupportedYetError(f"{what} on Spark", call.span)


def may_be_nan(expr: Expr) -> bool:
    """True if values of an expression may be NaN."""
    return isinstance(expr.type, t.ApproximateType) and not isinstance(expr, Literal)


def compared(operator: str, a: SqlNode, b: SqlNode, a_nan: bool, b_nan: bool) -> SqlNode:
    """Return the comparison as Java makes it.

    There NaN is equal to nothing and neither less nor greater; Spark sorts it after everything.
    """
    plain = sql.binary(operator, a, b)
    tests = [sql.function("ISNAN", node.copy()) for node, strange in ((a, a_nan), (b, b_nan)) if strange]
    if not tests:
        return plain
    test = tests[0] if len(tests) == 1 else sql.binary("OR", tests[0], tests[1])
    unequal = sql.boolean(operator == "<>")
    known = sql.case([sql.binary("OR", sql.is_null(a.copy()), sql.is_null(b.copy()))], [sql.null("BOOLEAN")], unequal)
    return sql.case([test], [known], plain)


def fit_together(first: Digits, second: Digits) -> bool:
    """True if one DECIMAL holds every value of two types."""
    return max(first.scale, second.scale) + max(first.whole, second.whole) <= t.MAX_PRECISION


def compared_by_parts(operator: str, left: SqlNode, first: Digits, right: SqlNode, second: Digits) -> SqlNode:
    """Compare exact numbers that do not fit together in one DECIMAL.

    The number with the longer fraction is cut down to the other's digits (towards minus infinity). What was cut off
    decides only where both are then equal.
    """
    if first.scale < second.scale:
        return compared_by_parts(_TURNED[operator], right, second, left, first)
    scale, whole = second.scale, first.whole + 1
    long = sql.cast(left, f"DECIMAL({first.precision}, {first.scale})")
    short = f"DECIMAL({max(whole, second.whole) + scale}, {scale})"
    cut = sql.cast(sql.function("FLOOR", long, sql.number(scale)), short)
    other = sql.cast(right, short)
    if operator in ("<", ">="):
        return sql.binary(operator, cut, other)
    up = sql.cast(sql.function("CEIL", long.copy(), sql.number(scale)), short)
    exact = sql.binary("=", cut.copy(), up)
    equal = sql.binary("AND", sql.binary("=", cut, other), exact)
    if operator == "=":
        return equal
    if operator == "<>":
        return sql.negation(equal)
    not_greater = sql.binary("OR", sql.binary("<", cut.copy(), other.copy()), equal)
    return not_greater if operator == "<=" else sql.negation(not_greater)
