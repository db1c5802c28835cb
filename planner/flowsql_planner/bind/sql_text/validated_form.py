"""Trees as Flink's validator leaves them: the forms in which its catalog prints computed columns and views.

Functions of Calcite print bare, those of the newer function stack in back-ticks; a few calls are spelled out.
ALTER TABLE does not validate what it stores, so its computed columns keep the calls and quote more of their names.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar, cast

from flowsql_grammar import ast
from flowsql_planner.catalog.core_module import CORE_FUNCTIONS

N = TypeVar("N", bound=ast.Node)
#: How a stored expression is brought into Flink's form.
FlinkForm = Callable[[ast.Expression], ast.Expression]
_Change = Callable[[ast.FunctionCall], ast.Expression]

#: Written by Calcite's own operators although the newer function stack has them too.
_BARE = frozenset({"ARRAY_AGG", "COALESCE", "DEFAULT", "LIKE", "TRY_CAST"})
#: The newer function stack: its names are those that SHOW FUNCTIONS lists in capitals.
_NEWER = frozenset(name for name in CORE_FUNCTIONS if name.isupper()) - _BARE
#: Functions that Calcite's standard operator table has; only these print bare when nothing was validated.
_STANDARD_NAMES = """
    ABS ACOS ARRAY_AGG ASCII ASIN ATAN ATAN2 AVG CARDINALITY CBRT CEIL CEILING CHARACTER_LENGTH CHAR_LENGTH COALESCE
    COLLECT COS COT COUNT CUME_DIST CURRENT_CATALOG CURRENT_DATE CURRENT_TIME CURRENT_TIMESTAMP DAYOFMONTH DAYOFWEEK
    DAYOFYEAR DEGREES DENSE_RANK ELEMENT EXP FIRST_VALUE FLOOR GROUPING GROUPING_ID HOUR INITCAP LAG LAST_VALUE LEAD
    LISTAGG LN LOCALTIME LOCALTIMESTAMP LOG10 LOWER MAX MIN MINUTE MOD MONTH NTILE NULLIF OCTET_LENGTH PERCENT_RANK PI
    POWER QUARTER RADIANS RAND RAND_INTEGER RANK REPLACE ROUND ROW_NUMBER SECOND SIGN SIN SQRT STDDEV_POP STDDEV_SAMP
    SUBSTRING SUM TAN TRUNCATE UPPER VAR_POP VAR_SAMP WEEK YEAR
"""
_STANDARD = frozenset(_STANDARD_NAMES.split())
_PARTS = {
    "YEAR": ast.TimeUnit.YEAR,
    "QUARTER": ast.TimeUnit.QUARTER,
    "MONTH": ast.TimeUnit.MONTH,
    "WEEK": ast.TimeUnit.WEEK,
    "DAYOFYEAR": ast.TimeUnit.DOY,
    "DAYOFMONTH": ast.TimeUnit.DAY,
    "DAYOFWEEK": ast.TimeUnit.DOW,
    "HOUR": ast.TimeUnit.HOUR,
    "MINUTE": ast.TimeUnit.MINUTE,
    "SECOND": ast.TimeUnit.SECOND,
}
_OTHER_NAMES = {"CEILING": "CEIL", "TRANSLATE": "TRANSLATE3"}


def validated(node: N) -> N:
    """What CREATE TABLE and CREATE VIEW store."""
    return cast(N, _rewritten(node, _spelled_out))


def as_parsed(node: N) -> N:
    """What ALTER TABLE stores."""
    return cast(N, _rewritten(node, _quoted_unless_standard))


def _rewritten(node: ast.Node, change: _Change) -> ast.Node:
    layout = type(node).layout
    values: dict[str, object] = {name: _value(getattr(node, name), change) for name in layout.fields}
    values |= {name: getattr(node, name) for name in layout.details}
    make: Callable[..., ast.Node] = type(node)
    made = make(**values)
    if isinstance(made, ast.FunctionCall):
        return change(made)
    return _searched(made) if isinstance(made, ast.Case) else made


def _searched(case: ast.Case) -> ast.Case:
    """``CASE a WHEN 1 THEN`` as ``CASE WHEN a = 1 THEN``."""
    operand = case.operand
    if operand is None:
        return case
    branches = []
    for branch in case.branches:
        values = branch.conditions
        test: ast.Expression = (
            ast.InList(operand, values, span=branch.span)
            if len(values) > 1
            else ast.BinaryOp(ast.BinaryOperator.EQUAL, operand, values[0], span=branch.span)
        )
        branches.append(ast.When((test,), branch.result, span=branch.span))
    return ast.Case(None, tuple(branches), case.otherwise, span=case.span)


def _value(value: object, change: _Change) -> object:
    if isinstance(value, ast.Node):
        return _rewritten(value, change)
    return tuple(_value(item, change) for item in value) if isinstance(value, tuple) else value


def _spelled_out(call: ast.FunctionCall) -> ast.Expression:
    if len(call.name.parts) > 1:
        return call
    name = call.name.last.text.upper()
    # What is bound already has no argument but expressions in these calls.
    match cast("tuple[ast.Expression, ...]", call.args):
        case (operand,) if name in _PARTS:
            return ast.Extract(_PARTS[name], operand, span=call.span)
        case (first, second) if name == "NULLIF":
            same = ast.BinaryOp(ast.BinaryOperator.EQUAL, first, second, span=call.span)
            when = ast.When((same,), ast.NullLiteral(span=call.span), span=call.span)
            return ast.Case(None, (when,), first, span=call.span)
    name = _OTHER_NAMES.get(name, name)
    return _named(call, name, name in _NEWER)


def _quoted_unless_standard(call: ast.FunctionCall) -> ast.Expression:
    if len(call.name.parts) > 1:
        return call
    name = call.name.last.text.upper()
    return _named(call, name, name not in _STANDARD and not call.niladic)


def _named(call: ast.FunctionCall, text: str, quoted: bool) -> ast.FunctionCall:
    name = ast.Name(text, span=call.name.span, quoted=quoted)
    return replace(call, name=ast.Identifier((name,), span=call.name.span))
