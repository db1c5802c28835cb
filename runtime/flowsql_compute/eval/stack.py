"""Conditions over the rows of a partial match as programs of a stack machine; ``kernels/stack.py`` runs them.

The machine knows numbers, moments and truth values in one 64-bit word: comparisons, logic, CASE, COALESCE, arithmetic,
COUNT, SUM, AVG, MIN and MAX. A condition with anything else has no program.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any, Final

from flowsql_compute.kernels import stack as codes
from flowsql_core.expr import Call, Case, Cast, Expr, InputRef, Literal
from flowsql_core.graph.match_specs import PatternAggregate, PatternColumn, PatternExpression, PatternVariable
from flowsql_core.record import record
from flowsql_core.types import logical as t
from flowsql_core.types.arrow import timestamp_unit

_Op = tuple[int, int, int, int, int]

_RELATIONS: Final = {
    "<": codes.LESS, "<=": codes.LESS_EQUAL, ">": codes.GREATER, ">=": codes.GREATER_EQUAL,
    "=": codes.EQUAL, "<>": codes.NOT_EQUAL,
}  # fmt: skip
_ARITHMETIC: Final = {
    "+": (codes.ADD, codes.ADD_REAL), "-": (codes.SUBTRACT, codes.SUBTRACT_REAL),
    "*": (codes.MULTIPLY, codes.MULTIPLY_REAL), "/": (codes.DIVIDE, codes.DIVIDE_REAL),
}  # fmt: skip
#: What is asked of a truth value (2: NULL), and what it is answered with.
_TESTS: Final = {
    "IS NULL": (2, 1), "IS NOT NULL": (2, 0), "IS TRUE": (1, 1), "IS NOT TRUE": (1, 0), "IS FALSE": (0, 1),
    "IS NOT FALSE": (0, 0),
}  # fmt: skip
_UNIT_DIGITS: Final = {"ms": 3, "us": 6, "ns": 9}
#: Digits of a DECIMAL that fit a word.
_MOST_DIGITS: Final = 18


class _LackingError(Exception):
    """The machine has no such function or type."""


@record
class StackPrograms:
    """Programs of the conditions of a pattern.

    Attributes:
        ops: rows (code, and four arguments) of all programs.
        places: of each variable, where its program begins and ends; None: no program.
        columns: the stored columns that programs read, in the order of their numbers.
        sums: the stored columns of which sums and numbers of values before each row are wanted, likewise.
        depth: what the stack holds at most.
    """

    ops: tuple[_Op, ...]
    places: tuple[tuple[int, int] | None, ...]
    columns: tuple[int, ...]
    sums: tuple[int, ...]
    depth: int


def stack_programs(variables: Sequence[PatternVariable]) -> StackPrograms:
    """Programs of the conditions over earlier rows, of those that the machine can answer."""
    ops: list[_Op] = []
    places: list[tuple[int, int] | None] = []
    columns: list[int] = []
    sums: list[int] = []
    depth = 1
    for variable in variables:
        made = None if variable.path_condition is None else _written(variable.path_condition, len(ops), columns, sums)
        if made is None:
            places.append(None)
            continue
        places.append((len(ops), len(ops) + len(made.ops)))
        ops += made.ops
        columns, sums, depth = made.columns, made.sums, max(depth, made.deepest)
    return StackPrograms(tuple(ops), tuple(places), tuple(columns), tuple(sums), depth)


def _written(condition: PatternExpression, begin: int, columns: list[int], sums: list[int]) -> _Writer | None:
    writer = _Writer(condition, begin, [*columns], [*sums])
    try:
        writer.write(condition.expression)
    except _LackingError:
        return None
    return writer


class _Writer:
    """Writes one program; jumps go to places among the ops of all programs."""

    def __init__(self, condition: PatternExpression, begin: int, columns: list[int], sums: list[int]) -> None:
        self._reads = condition.reads
        self._begin = begin
        self.ops: list[_Op] = []
        self.columns = columns
        self.sums = sums
        self.depth = 0
        self.deepest = 1

    def write(self, expr: Expr) -> None:
        """Ops that put the value of an expression on the stack."""
        match expr:
            case InputRef(index=index):
                self._read(index, expr.type)
            case Literal():
                self._put(codes.CONST, _word(expr), 0 if expr.value is None else 1)
            case Cast():
                self._cast(expr)
            case Case():
                self._case(expr)
            case Call():
                self._call(expr)

    def _put(self, code: int, *arguments: int, grows: int = 1) -> int:
        """Add an op that changes the depth of the stack; where it stands."""
        a, b, c, d = (*arguments, 0, 0, 0, 0)[:4]
        self.ops.append((code, a, b, c, d))
        self.depth += grows
        self.deepest = max(self.deepest, self.depth)
        return len(self.ops) - 1

    def _land(self, *jumps: int) -> None:
        """Jumps go to what is written next."""
        for at in jumps:
            code, _, b, c, d = self.ops[at]
            self.ops[at] = (code, self._begin + len(self.ops), b, c, d)

    def _read(self, index: int, type_: t.LogicalType) -> None:
        match self._reads[index]:
            case PatternColumn(variable, column, first, offset):
                _kind(type_)
                of = -1 if variable is None else variable
                self._put(codes.LOAD, _number(self.columns, column), of, int(first), offset)
            case PatternAggregate(variable, call):
                self._aggregate(-1 if variable is None else variable, call.function, call.args, type_)
            case _:
                raise _LackingError

    def _aggregate(self, of: int, function: str, args: Sequence[InputRef], type_: t.LogicalType) -> None:
        if function == "COUNT" and not args:
            self._put(codes.COUNT_ROWS, 0, of)
            return
        if len(args) != 1 or function not in ("COUNT", "SUM", "AVG", "MIN", "MAX"):
            raise _LackingError
        argument, column = args[0].type, args[0].index
        real = _kind(argument)
        if function in ("MIN", "MAX"):
            code = codes.EXTREME_REAL if real else codes.EXTREME
            self._put(code, _number(self.columns, column), of, int(function == "MAX"))
        elif function == "COUNT":
            self._put(codes.COUNT, _number(self.sums, column), of)
        elif isinstance(argument, t.IntegerType):
            code = codes.SUM if function == "SUM" else codes.AVG
            self._put(code, _number(self.sums, column), of, _bits(type_))
        elif real:
            code = codes.SUM_REAL if function == "SUM" else codes.AVG_REAL
            self._put(code, _number(self.columns, column), of, _bits(type_))
        else:
            raise _LackingError

    def _call(self, call: Call) -> None:
        name, args = call.function, call.args
        if call.options:
            raise _LackingError
        if name in _RELATIONS:
            self._compare(codes.COMPARE, _RELATIONS[name], args[0], args[1])
        elif name in ("IS DISTINCT FROM", "IS NOT DISTINCT FROM"):
            self._compare(codes.SAME, codes.EQUAL, args[0], args[1])
            if name == "IS DISTINCT FROM":
                self._put(codes.NOT, grows=0)
        elif name in ("AND", "OR"):
            self._chain(args, codes.IF_FALSE if name == "AND" else codes.IF_TRUE, name == "OR", self.write)
        elif name == "IN":
            self._chain(
                args[1:],
                codes.IF_TRUE,
                True,
                lambda value: self._compare(codes.COMPARE, codes.EQUAL, args[0], value),
            )
        elif name == "NOT":
            self.write(args[0])
            self._put(codes.NOT, grows=0)
        elif name in _TESTS:
            _kind(args[0].type)
            self.write(args[0])
            self._put(codes.TEST, *_TESTS[name], grows=0)
        elif name == "COALESCE":
            self._coalesce(call)
        elif isinstance(call.type, t.NumericType):
            self._number(call)
        else:
            self._moved(call)

    def _compare(self, code: int, relation: int, left: Expr, right: Expr) -> None:
        if _form(left.type) != _form(right.type):
            raise _LackingError
        self.write(left)
        self.write(right)
        self._put(code + _kind(left.type), relation, grows=-1)

    def _chain(self, args: Sequence[Expr], leave: int, any_of: bool, write: Callable[[Expr], None]) -> None:
        """Operands from the left, until one decides."""
        write(args[0])
        jumps = []
        for arg in args[1:]:
            jumps.append(self._put(leave, grows=0))
            write(arg)
            self._put(codes.OR if any_of else codes.AND, grows=-1)
        self._land(*jumps)

    def _coalesce(self, call: Call) -> None:
        jumps: list[int] = []
        for arg in call.args:
            if _form(arg.type) != _form(call.type):
                raise _LackingError
            if jumps:
                self._put(codes.DROP, grows=-1)
            self.write(arg)
            jumps.append(self._put(codes.IF_KNOWN, grows=0))
        self._land(*jumps)

    def _case(self, case: Case) -> None:
        ends = []
        for condition, result in zip(case.conditions, case.results, strict=True):
            self.write(condition)
            other = self._put(codes.UNLESS, grows=-1)
            self._as(result, case.type)
            ends.append(self._put(codes.GO, grows=-1))
            self._land(other)
        self._as(case.otherwise, case.type)
        self._land(*ends)

    def _as(self, expr: Expr, type_: t.LogicalType) -> None:
        if _form(expr.type) != _form(type_) and not (isinstance(expr, Literal) and expr.value is None):
            raise _LackingError
        self.write(expr)

    def _number(self, call: Call) -> None:
        """Arithmetic: operands have the result's type already, but for DECIMAL."""
        name, args, type_ = call.function, call.args, call.type
        if name not in (*_ARITHMETIC, "MOD", "%", "ABS") or (isinstance(type_, t.DecimalType) and name in "/MOD%"):
            raise _LackingError
        real, bits = _kind(type_), _bits(type_)
        if len(args) == 1:
            if name == "+":
                self.write(args[0])
                return
            self._scaled(args[0], type_)
            whole, broken = (
                (codes.ABSOLUTE, codes.ABSOLUTE_REAL) if name == "ABS" else (codes.NEGATE, codes.NEGATE_REAL)
            )
            self._put(broken if real else whole, bits, grows=0)
            return
        if name in ("MOD", "%"):
            if not all(isinstance(arg.type, t.IntegerType) and _bits(arg.type) <= 64 for arg in args):
                raise _LackingError
            self.write(args[0])
            self.write(args[1])
            self._put(codes.MODULO, bits, grows=-1)
            return
        if name == "/" and real and isinstance(args[1], Literal | Cast) and not _not_zero(args[1]):
            # A constant zero is told as an error.
            raise _LackingError
        for arg in args:
            if isinstance(type_, t.DecimalType) and name == "*":
                _kind(arg.type)
                self.write(arg)
            else:
                self._scaled(arg, type_)
        if isinstance(type_, t.DecimalType) and name == "*" and type_.scale != _scale(args[0]) + _scale(args[1]):
            raise _LackingError
        self._put(_ARITHMETIC[name][real], bits, grows=-1)

    def _scaled(self, expr: Expr, type_: t.LogicalType) -> None:
        """An operand with as many digits behind the point as a DECIMAL result has; others as they are."""
        self.write(expr)
        if isinstance(type_, t.DecimalType):
            self._shift(type_.scale - _scale(expr))
        elif _form(expr.type) != _form(type_):
            raise _LackingError

    def _shift(self, digits: int) -> None:
        """Multiply by a power of ten."""
        if digits < 0:
            raise _LackingError
        if digits:
            self._put(codes.CONST, 10**digits, 1)
            self._put(codes.MULTIPLY, 64, grows=-1)

    def _moved(self, call: Call) -> None:
        """A moment and an interval of days and seconds."""
        name, args, type_ = call.function, call.args, call.type
        if name not in "+-" or len(args) != 2 or not isinstance(type_, t.TimestampType | t.TimestampLtzType):
            raise _LackingError
        moment, interval = args if isinstance(args[0].type, t.DateTimeType) else (args[1], args[0])
        if _form(moment.type) != _form(type_) or not isinstance(interval.type, t.DayTimeIntervalType):
            raise _LackingError
        unit = _UNIT_DIGITS[timestamp_unit(type_.precision)]
        if type_.precision != unit:
            # What is finer than the type's digits is cut.
            raise _LackingError
        self.write(moment)
        self.write(interval)
        self._shift(unit - 3)
        self._put(codes.ADD if name == "+" else codes.SUBTRACT, 64, grows=-1)

    def _cast(self, cast: Cast) -> None:
        source, target = cast.operand.type, cast.type
        if isinstance(cast.operand, Literal) and cast.operand.value is None:
            _kind(target)
            self._put(codes.CONST, 0, 0)
            return
        if _form(source) == _form(target) and not isinstance(source, t.DecimalType):
            if source.nullable and not target.nullable:
                # NULLs become a default.
                raise _LackingError
            if _fraction(source) > _fraction(target):
                raise _LackingError
            self.write(cast.operand)
            return
        if isinstance(source, t.IntegerType) and isinstance(target, t.IntegerType):
            if _bits(source) > _bits(target) and not _fits(cast.operand, _bits(target)):
                raise _LackingError
            self.write(cast.operand)
            return
        if isinstance(target, t.ApproximateType) and isinstance(source, t.IntegerType):
            self.write(cast.operand)
            self._put(codes.TO_REAL, _bits(target), grows=0)
            return
        if isinstance(target, t.DoubleType) and isinstance(source, t.FloatType):
            if isinstance(cast.operand, Literal):
                # The planner reads a written FLOAT as the shortest decimal that names it.
                raise _LackingError
            self.write(cast.operand)
            return
        if isinstance(target, t.DecimalType) and isinstance(source, t.IntegerType | t.DecimalType):
            _kind(target)
            whole = _DIGITS[_bits(source)] if isinstance(source, t.IntegerType) else source.precision - source.scale
            if whole <= target.precision - target.scale:
                self.write(cast.operand)
                self._shift(target.scale - _scale(cast.operand))
                return
        raise _LackingError


#: Decimal digits that integers of so many bits may have.
_DIGITS: Final = {8: 3, 16: 5, 32: 10, 64: 19}


def _number(known: list[int], column: int) -> int:
    if column not in known:
        known.append(column)
    return known.index(column)


def _bits(type_: t.LogicalType) -> int:
    match type_:
        case t.TinyIntType():
            return 8
        case t.SmallIntType():
            return 16
        case t.IntType() | t.FloatType():
            return 32
        case _:
            return 64


def _kind(type_: t.LogicalType) -> int:
    """0: a word that compares as an integer, 1: a real number.

    Raises:
        _LackingError: neither.
    """
    if t.is_proctime(type_):
        raise _LackingError
    match type_:
        case t.ApproximateType():
            return 1
        case t.DecimalType(precision=precision) if precision > _MOST_DIGITS:
            raise _LackingError
        case (
            t.IntegerType()
            | t.DecimalType()
            | t.BooleanType()
            | t.DateTimeType()
            | t.DayTimeIntervalType()
            | t.YearMonthIntervalType()
        ):
            return 0
    raise _LackingError


def _form(type_: t.LogicalType) -> tuple[Any, ...]:
    """Types of one form have the same words for equal values."""
    _kind(type_)
    match type_:
        case t.DecimalType(scale=scale):
            return ("DECIMAL", scale)
        case t.TimestampType(precision=precision) | t.TimestampLtzType(precision=precision):
            return (type(type_), timestamp_unit(precision))
        case _:
            return (type(type_),)


def _fraction(type_: t.LogicalType) -> int:
    """Digits behind a second."""
    match type_:
        case t.TimeType(precision=precision) | t.TimestampType(precision=precision):
            return precision
        case t.TimestampLtzType(precision=precision):
            return precision
    return 0


def _scale(expr: Expr) -> int:
    return expr.type.scale if isinstance(expr.type, t.DecimalType) else 0


def _fits(expr: Expr, bits: int) -> bool:
    """Whether a constant is an integer of so many bits."""
    half = 1 << (bits - 1)
    return isinstance(expr, Literal) and -half <= expr.value < half


def _not_zero(expr: Expr) -> bool:
    while isinstance(expr, Cast):
        expr = expr.operand
    return not isinstance(expr, Literal) or expr.value is None or expr.value != 0


def _word(literal: Literal) -> int:
    """A constant as a word; real numbers as their bits."""
    value, type_ = literal.value, literal.type
    if value is None:
        if not isinstance(type_, t.NullType):
            _kind(type_)
        return 0
    if isinstance(type_, t.FloatType):
        value = struct.unpack("<f", struct.pack("<f", value))[0]
    if _kind(type_):
        return int(struct.unpack("<q", struct.pack("<d", float(value)))[0])
    match type_:
        case t.DecimalType(scale=scale):
            return int(Decimal(value).scaleb(scale))
        case t.TimestampType(precision=precision) | t.TimestampLtzType(precision=precision):
            return int(value // 10 ** (9 - _UNIT_DIGITS[timestamp_unit(precision)]))
        case _:
            return int(value)
