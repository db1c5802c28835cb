"""Expressions as EXPLAIN prints them: prefix in the first two sections, infix in the execution plan."""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from flowsql_compute.eval.not_null import only_declares
from flowsql_core.errors import InternalError
from flowsql_core.expr import Call, Case, Cast, Expr, InputRef, Literal, children
from flowsql_core.graph.constraints import Expectation
from flowsql_core.python_call import called_function
from flowsql_core.types import logical as t
from flowsql_planner.logical.internal_calls import OUTER, QUERY_CALLS

_INFIX: Final = frozenset({"=", "<>", "<", "<=", ">", ">=", "+", "-", "*", "/", "%", "AND", "OR", "LIKE", "||"})
_POSTFIX: Final = frozenset(
    {"IS NULL", "IS NOT NULL", "IS TRUE", "IS NOT TRUE", "IS FALSE", "IS NOT FALSE", "IS UNKNOWN", "IS NOT UNKNOWN"}
)
_CHARSET: Final = 'CHARACTER SET "UTF-16LE"'


class ExpressionPrinter:
    """Prints expressions over named columns. ``names`` None prints ``$0``, ``$1``.

    ``outer``: names of what a query reads of the row around it. ``query``: prints a query call with these operands.
    ``materialized``: functions take time attributes as plain timestamps, as in physical plans: it says so.
    """

    def __init__(
        self,
        names: Sequence[str] | None,
        infix: bool = False,
        outer: Sequence[str] = (),
        query: Callable[[Call, list[str]], str] | None = None,
        materialized: bool = False,
    ) -> None:
        self._names = names
        self._infix = infix
        self._outer = outer
        self._query = query
        self._materialized = materialized

    def print(self, expr: Expr) -> str:
        """The text of an expression."""
        # Long sums nest to the left, deeper than calls of Python may.
        spine: list[Expr] = []
        while below := children(expr):
            spine.append(expr)
            expr = below[0]
        text = self._leaf(expr)
        for node in reversed(spine):
            first, *others = children(node)
            texts = [text, *map(self.print, others)]
            if self._materialized:
                texts = [self._taken(node, child, own) for child, own in zip((first, *others), texts, strict=True)]
            text = self._node(node, texts)
        return text

    def _taken(self, node: Expr, operand: Expr, text: str) -> str:
        """An operand as functions take it: row times are cast, processing times are read from the clock."""
        if not t.is_time_attribute(operand.type):
            return text
        plain = t.without_attribute(operand.type)
        if isinstance(node, Cast) and node.type.same(plain):
            return text
        if t.is_proctime(operand.type):
            return f"PROCTIME_MATERIALIZE({text})"
        return f"CAST({text} AS {self._type(plain)})"

    def _leaf(self, expr: Expr) -> str:
        match expr:
            case InputRef(index=index):
                return f"${index}" if self._names is None else self._names[index]
            case Literal():
                return self._literal(expr)
        return self._node(expr, [])

    def _node(self, expr: Expr, args: list[str]) -> str:
        """A node whose operands have these texts."""
        match expr:
            case Cast(operand=operand, type=type_):
                if t.is_proctime(operand.type) and type_.same(t.without_attribute(operand.type)):
                    return f"PROCTIME_MATERIALIZE({args[0]})"
                if self._names is None and only_declares(expr):
                    return args[0]
                if self._names is None and not expr.safe:
                    return f"CAST({args[0]}):{self._type(type_)}"
                name = "TRY_CAST" if expr.safe else "CAST"
                return f"{name}({args[0]} AS {self._type(type_)})"
            case Case(is_if=True):
                return f"IF({', '.join(args)})"
            case Case(conditions=conditions):
                count = len(conditions)
                pairs = [part for pair in zip(args[:count], args[count : 2 * count], strict=True) for part in pair]
                return f"CASE({', '.join([*pairs, args[-1]])})"
            case Call():
                return self._call(expr, args)
        raise InternalError(f"an operand has operands: {expr}")

    def _type(self, type_: t.LogicalType) -> str:
        """Execution plans say nothing of character sets."""
        if self._infix:
            return calcite_type(type_.as_nullable()).replace(f" {_CHARSET}", "")
        return calcite_type(type_)

    def _call(self, expr: Call, args: list[str]) -> str:
        if self._infix and expr.function in _INFIX and len(args) > 1:
            return "(" + f" {expr.function} ".join(args) + ")"
        if self._infix and expr.function in _POSTFIX:
            return f"{args[0]} {expr.function}"
        if expr.function == OUTER:
            return self._outer[int(expr.option("slot"))]
        if self._query is not None and expr.function in QUERY_CALLS:
            return self._query(expr, args)
        python = called_function(expr)
        if python is not None:
            return f"{python.name}({', '.join(args)})"
        if expr.function == "FIELD":
            return f"{args[0]}.{expr.option('name')}"
        if expr.function == "EXTRACT":
            return f"EXTRACT({self._flag(expr.option('unit'))}, {', '.join(args)})"
        extra = [self._flag(value) for name, value in expr.options if isinstance(value, str) and name == "unit"]
        if expr.function in ("FLOOR", "CEIL"):
            return f"{expr.function}({', '.join(args + extra)})"
        return f"{expr.function}({', '.join(extra + args)})"

    def _flag(self, unit: object) -> str:
        return f"{unit}" if self._infix else f"FLAG({unit})"

    def _literal(self, literal: Literal) -> str:
        value, type_ = literal.value, literal.type
        if value is None:
            return f"null:{self._type(type_.as_nullable())}"
        text = literal_text(value, type_)
        if self._infix:
            match type_:
                case t.CharacterType():
                    return "'" + str(value).replace("'", "''") + "'"
                case t.DayTimeIntervalType() | t.YearMonthIntervalType():
                    return f"{text}:{_interval(type_)}"
                case _:
                    return text
        match type_:
            case t.CharType():
                return text
            case t.IntType() | t.BooleanType() | t.DateTimeType():
                return text
            case t.DayTimeIntervalType() | t.YearMonthIntervalType():
                return f"{text}:{_interval(type_)}"
            case _:
                return f"{text}:{calcite_type(type_.as_nullable())}"


def literal_text(value: object, type_: t.LogicalType) -> str:
    """A constant's value, without its type."""
    match type_:
        case t.CharacterType():
            return "_UTF-16LE'" + str(value).replace("'", "''") + "'"
        case t.BooleanType():
            return "true" if value else "false"
        case t.BinaryStringType():
            return f"X'{value.hex()}'" if isinstance(value, bytes) else str(value)
        case t.DateType():
            return _date(_int(value))
        case t.TimeType():
            total, millis = divmod(_int(value), 1000)
            text = f"{total // 3600:02d}:{total % 3600 // 60:02d}:{total % 60:02d}"
            return f"{text}.{millis:03d}".rstrip("0") if millis else text
        case t.TimestampType() | t.TimestampLtzType():
            seconds, nanos = divmod(_int(value), 1_000_000_000)
            days, second = divmod(seconds, 86_400)
            clock = f"{second // 3600:02d}:{second % 3600 // 60:02d}:{second % 60:02d}"
            return f"{_date(days)} {clock}" + (f".{nanos:09d}".rstrip("0") if nanos else "")
        case t.DecimalType() if isinstance(value, decimal.Decimal):
            return f"{value:f}"
        case t.ApproximateType() if isinstance(value, float):
            return _scientific(value)
        case _:
            return str(value)


def _date(epoch_day: int) -> str:
    """Any year, also those that ``datetime`` does not know: the calendar repeats every 400 years."""
    cycles = (epoch_day + _DAYS_BEFORE_1970) // _DAYS_OF_400_YEARS
    day = datetime.date.fromordinal(epoch_day + _DAYS_BEFORE_1970 - cycles * _DAYS_OF_400_YEARS + 1)
    year = day.year + 400 * cycles
    return f"{'-' if year < 0 else ''}{abs(year):04d}-{day.month:02d}-{day.day:02d}"


#: Between 0001-01-01 and 1970-01-01.
_DAYS_BEFORE_1970: Final = 719_162
_DAYS_OF_400_YEARS: Final = 146_097


def _int(value: object) -> int:
    assert isinstance(value, int)
    return value


def _scientific(value: float) -> str:
    mantissa, _, exponent = f"{value:.17g}".partition("e")
    if not exponent:
        exponent = str(decimal.Decimal(repr(value)).adjusted()) if value else "0"
        mantissa = f"{decimal.Decimal(repr(value)).scaleb(-int(exponent)).normalize():f}" if value else "0"
    return f"{mantissa}{'' if '.' in mantissa else '.0'}E{int(exponent)}"


def calcite_type(type_: t.LogicalType) -> str:
    """A type as plans print it."""
    match type_:
        case t.IntType():
            text = "INTEGER"
        case t.CharType(length=length):
            text = f"CHAR({length}) {_CHARSET}"
        case t.VarCharType(length=length):
            text = f"VARCHAR({length}) {_CHARSET}"
        case t.VarBinaryType(length=length):
            text = f"VARBINARY({length})"
        case t.TimestampLtzType(precision=precision) if not t.is_time_attribute(type_):
            text = f"TIMESTAMP_WITH_LOCAL_TIME_ZONE({precision})"
        case t.DayTimeIntervalType() | t.YearMonthIntervalType():
            text = _interval(type_)
        case t.ArrayType(element=element):
            text = f"{calcite_type(element)} ARRAY"
        case _:
            text = type_.as_nullable().text()
    return text if type_.nullable else f"{text} NOT NULL"


def record_type(schema: t.Schema, expanded: bool = True) -> str:
    """The row type of VALUES, and of rows taken apart; a ROW inside of another is not ``expanded``."""
    kind = "RecordType" if expanded else "RecordType:peek_no_expand"
    return f"{kind}({', '.join(f'{_plain(column.type)} {column.name}' for column in schema)})"


def _plain(type_: t.LogicalType) -> str:
    """A type without nullability and character set."""
    match type_:
        case t.ArrayType(element=element):
            return f"{_plain(element)} ARRAY"
        case t.MultisetType(element=element):
            return f"{_plain(element)} MULTISET"
        case t.MapType(key=key, value=value):
            return f"({_plain(key)}, {_plain(value)}) MAP"
        case t.RowType(fields=fields):
            return record_type(tuple(t.Column(field.name, field.type) for field in fields), expanded=False)
    return calcite_type(type_.as_nullable()).removesuffix(f" {_CHARSET}")


def _interval(type_: t.LogicalType) -> str:
    assert isinstance(type_, t.DayTimeIntervalType | t.YearMonthIntervalType)
    return f"INTERVAL {type_.resolution}"


def duration_text(ms: int) -> str:
    """A window's size: the largest unit that divides it (``10 min``, ``1 h``, ``500 ms``)."""
    for unit, length in (("d", 86_400_000), ("h", 3_600_000), ("min", 60_000), ("s", 1000)):
        if ms and ms % length == 0:
            return f"{ms // length} {unit}"
    return f"{ms} ms"


def expectations_text(expectations: Iterable[Expectation]) -> str:
    """Expectations of a table, as plans print them."""
    return ", ".join(f"{each.name}: {each.text} ON VIOLATION {each.action}" for each in expectations)


def target_columns(indexes: Iterable[int]) -> str:
    """``[2],[0]``: the columns that an INSERT lists."""
    return ",".join(f"[{index}]" for index in indexes)
