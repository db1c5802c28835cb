"""Special syntax as plain calls: which function of the registry ``EXTRACT(DAY FROM x)`` or ``x LIKE y`` means.

Purely syntactic: operands stay syntax, nothing is typed here. What stands between operands (units, sides, ON ERROR)
becomes options of the call.
"""

from __future__ import annotations

from typing import Any, Final, cast

from flowsql_core.errors import BindError, NotSupportedYetError
from flowsql_core.record import record
from flowsql_grammar import ast
from flowsql_planner.bind.data_types import bind_cast_type

Options = tuple[tuple[str, Any], ...]


@record
class CallForm:
    """A call of ``name`` on operands; ``negated`` puts NOT around it."""

    name: str
    operands: tuple[ast.Expression, ...]
    options: Options = ()
    negated: bool = False


def as_call(node: ast.Expression | ast.Argument) -> CallForm | None:
    """The call that an expression's syntax stands for; None for expressions that are no such syntax."""
    match node:
        case ast.UnaryOp(operator, operand):
            return CallForm(_UNARY[operator], (operand,))
        case ast.IsPredicate(operand, test, negated):
            return CallForm(_is_name(test, negated), (operand,))
        case ast.IsDistinctFrom(left, right, negated):
            return CallForm("IS NOT DISTINCT FROM" if negated else "IS DISTINCT FROM", (left, right))
        case ast.InList(operand, values, negated):
            return CallForm("IN", (operand, *values), negated=negated)
        case ast.Like(operand, pattern, kind, escape, negated):
            operands = (operand, pattern) if escape is None else (operand, pattern, escape)
            return CallForm(kind.value, operands, negated=negated)
        case ast.ItemAccess(operand, index):
            return CallForm("ITEM", (operand, index))
        case ast.RowConstructor(items):
            return CallForm("ROW", items)
        case ast.ArrayConstructor(items):
            return CallForm("ARRAY", items)
        case ast.MultisetConstructor(items):
            return CallForm("MULTISET", items)
        case ast.MapConstructor(entries):
            return CallForm("MAP", tuple(item for entry in entries for item in entry))
        case ast.Extract(unit, operand):
            return CallForm("EXTRACT", (operand,), (("unit", unit.value),))
        case ast.RoundToUnit(direction, operand, unit, week_start):
            if week_start is not None:
                raise NotSupportedYetError(f"{direction.value}(... TO WEEK({week_start}))", node.span)
            return CallForm(direction.value, (operand,), (("unit", unit.value),))
        case ast.TimestampAdd(unit, amount, moment):
            return CallForm("TIMESTAMPADD", (amount, moment), (("unit", unit.value),))
        case ast.TimestampDiff(unit, start, end):
            return CallForm("TIMESTAMPDIFF", (start, end), (("unit", unit.value),))
        case ast.Trim(operand, side, characters):
            return CallForm("TRIM", _present(operand, characters), (("side", side.value),))
        case ast.Position(needle, haystack, start):
            return CallForm("POSITION", _present(needle, haystack, start))
        case ast.Overlay(operand, replacement, start, length):
            return CallForm("OVERLAY", _present(operand, replacement, start, length))
        case ast.Substring(operand, start, length):
            return CallForm("SUBSTRING", _present(operand, start, length))
        case ast.TranslateUsing():
            raise NotSupportedYetError(f"{node.function}(... USING ...)", node.span)
        case ast.ConvertTo():
            raise NotSupportedYetError(f"CONVERT({node.type}, ...)", node.span, "write CAST(value AS type)")
        case ast.IntervalDifference():
            return _difference(node)
        case ast.SequenceValue():
            raise NotSupportedYetError(f"{'CURRENT' if node.current else 'NEXT'} VALUE FOR", node.span)
        case ast.NewObject():
            raise NotSupportedYetError("NEW", node.span)
        case ast.EscapedFunction(call):
            return _escaped(call)
    return _as_json_call(node)


#: Functions by their names in JDBC.
_JDBC: Final = {
    **{name: name for name in (
        "ABS", "ACOS", "ASIN", "ATAN", "ATAN2", "COS", "COT", "DAYOFMONTH", "DAYOFWEEK", "DAYOFYEAR",
        "DEGREES", "EXP", "FLOOR", "HOUR", "LOG10", "LTRIM", "MINUTE", "MOD", "MONTH", "PI", "POWER", "QUARTER",
        "RADIANS", "RTRIM", "SECOND", "SIGN", "SIN", "SQRT", "TAN", "WEEK",
        "YEAR",
    )},
    "CEILING": "CEIL", "CONCAT": "||", "IFNULL": "COALESCE", "INSERT": "OVERLAY", "LCASE": "LOWER",
    "LENGTH": "CHAR_LENGTH", "LOCATE": "POSITION", "LOG": "LN", "UCASE": "UPPER",
}  # fmt: skip


def _escaped(call: ast.Expression) -> CallForm | None:
    """``{fn f(x)}``; the names are those of JDBC, in capital letters."""
    if isinstance(call, ast.TimestampAdd | ast.TimestampDiff):
        return as_call(call)
    name = call.name.last.text if isinstance(call, ast.FunctionCall) else type(call).__name__.upper()
    if name not in _JDBC or not isinstance(call, ast.FunctionCall):
        raise BindError("function-not-found", f"Function '{{fn {name}}}' is not defined", call.span)
    operands = cast("tuple[ast.Expression, ...]", call.args)
    if any(isinstance(arg, ast.Star | ast.NamedArgument | ast.TableArgument | ast.Descriptor) for arg in operands):
        raise BindError("argument-types", f"'{{fn {name}}}' takes values only", call.span)
    if name == "INSERT" and len(operands) == 4:
        text, start, length, replacement = operands
        operands = (text, replacement, start, length)
    return CallForm(_JDBC[name], operands)


def _difference(node: ast.IntervalDifference) -> CallForm | None:
    """``(a - b) DAY TO SECOND``; None where the brackets hold something else than a difference."""
    match node.operand:
        case ast.BinaryOp(ast.BinaryOperator.MINUS, left, right):
            pass
        case _:
            return None
    months = node.qualifier.start in (ast.TimeUnit.YEAR, ast.TimeUnit.QUARTER, ast.TimeUnit.MONTH)
    return CallForm("-", (left, right), (("unit", "MONTH" if months else "SECOND"),))


def _as_json_call(node: ast.Expression | ast.Argument) -> CallForm | None:
    if isinstance(node, ast.JsonExists | ast.JsonValue | ast.JsonQuery) and node.passing:
        raise NotSupportedYetError("PASSING", node.passing[0].span)
    match node:
        case ast.JsonExists(operand, path, on_error):
            options: Options = () if on_error is None else (("on_error", on_error.value),)
            return CallForm("JSON_EXISTS", (operand, path), options)
        case ast.JsonValue(operand, path, returning, on_empty, on_error):
            options = () if returning is None else (("returning", bind_cast_type(returning)),)
            return CallForm(
                "JSON_VALUE",
                _present(operand, path, *_defaults(on_empty, on_error)),
                options + _behaviors(on_empty, on_error),
            )
        case ast.JsonQuery(operand, path, returning, wrapper, on_empty, on_error):
            options = () if returning is None else (("returning", bind_cast_type(returning)),)
            if wrapper is not None:
                options += (("wrapper", wrapper.value),)
            return CallForm(
                "JSON_QUERY",
                _present(operand, path, *_defaults(on_empty, on_error)),
                options + _behaviors(on_empty, on_error),
            )
        case ast.JsonObject(entries, null_clause):
            operands = tuple(item for entry in entries for item in (entry.key, entry.value))
            formats = tuple(entry.format_json for entry in entries)
            return CallForm("JSON_OBJECT", operands, json_options(null_clause, formats))
        case ast.JsonArray(elements, null_clause):
            formats = tuple(element.format_json for element in elements)
            return CallForm(
                "JSON_ARRAY", tuple(element.value for element in elements), json_options(null_clause, formats)
            )
    return None


def json_options(null_clause: ast.JsonNullClause | None, formats: tuple[bool, ...]) -> Options:
    """``null_clause`` as written, and which values are ``FORMAT JSON`` (only when one is)."""
    options: Options = () if null_clause is None else (("null_clause", null_clause.value),)
    return (*options, ("format_json", formats)) if any(formats) else options


_UNARY = {
    ast.UnaryOperator.PLUS: "+",
    ast.UnaryOperator.MINUS: "-",
    ast.UnaryOperator.NOT: "NOT",
}


def _is_name(test: ast.IsTest, negated: bool) -> str:
    # Of a BOOLEAN, unknown and NULL are the same.
    word = "NULL" if test is ast.IsTest.UNKNOWN else test.value
    return f"IS NOT {word}" if negated else f"IS {word}"


def _present(*operands: ast.Expression | None) -> tuple[ast.Expression, ...]:
    return tuple(operand for operand in operands if operand is not None)


def _defaults(*behaviors: ast.JsonBehavior | None) -> tuple[ast.Expression | None, ...]:
    return tuple(None if behavior is None else behavior.value for behavior in behaviors)


def _behaviors(on_empty: ast.JsonBehavior | None, on_error: ast.JsonBehavior | None) -> Options:
    options: Options = ()
    if on_empty is not None:
        options += (("on_empty", on_empty.kind.value),)
    if on_error is not None:
        options += (("on_error", on_error.kind.value),)
    return options
