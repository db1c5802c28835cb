"""Arithmetic and mathematical functions. Integers wrap around, DECIMALs that overflow become NULL, as in Flink."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from decimal import ROUND_DOWN, ROUND_HALF_UP, Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from flowsql_compute.eval import decimal as exact
from flowsql_compute.eval.columns import make_array, make_strings, string_buffers, validity, values_and_validity
from flowsql_compute.eval.java.random import JavaRandom, first_below, first_doubles
from flowsql_compute.functions.registry import CUSTOM, NOT_NULL, Invocation, implicit_cast, scalar
from flowsql_compute.functions.time.arithmetic import (
    add_interval,
    difference_type,
    interval_sum_type,
    negate_interval,
    subtract_moments,
)
from flowsql_core.arrow import compute as pc
from flowsql_core.errors import ExecutionError
from flowsql_core.expr import Expr, Literal
from flowsql_core.types import logical as t
from flowsql_core.types.arrow import to_arrow
from flowsql_core.types.coerce import (
    divide_type,
    modulo_type,
    multiply_type,
    plus_minus_type,
    round_type,
)

TypeRule = Callable[[t.LogicalType, t.LogicalType], t.LogicalType | None]


def _numeric_rule(rule: TypeRule) -> Callable[[Sequence[Expr], dict[str, Any]], t.LogicalType | None]:
    def derive(args: Sequence[Expr], options: dict[str, Any]) -> t.LogicalType | None:
        return rule(args[0].type, args[1].type)

    return derive


def _to_result(args: tuple[Expr, ...], type_: t.LogicalType) -> tuple[Expr, ...]:
    """Operands in the result's type; DECIMAL kernels take integers and DECIMALs as they are."""
    if isinstance(type_, t.DecimalType):
        return args
    return tuple(implicit_cast(arg, type_) for arg in args)


@scalar("+(NUMERIC, NUMERIC) -> BIGINT", nulls=CUSTOM, returns=_numeric_rule(plus_minus_type), coerce=_to_result,
        spark=None)  # fmt: skip
def plus(call: Invocation, a: Any, b: Any) -> Any:
    """The sum."""
    if isinstance(call.type, t.DecimalType):
        return _decimal_sum(call, a, b, 1)
    return pc.add(a, b)


@scalar("+(DATETIME, INTERVAL) -> BIGINT", "+(INTERVAL, DATETIME) -> BIGINT", "+(INTERVAL, INTERVAL) -> BIGINT",
        nulls=CUSTOM, returns=interval_sum_type, spark=None)  # fmt: skip
def plus_interval(call: Invocation, a: Any, b: Any) -> Any:
    """A moment moved by an interval, or two intervals together."""
    return add_interval(call, a, b, 1)


@scalar("+(NUMERIC) -> $1", "+(INTERVAL) -> $1", spark="{0}")
def unary_plus(a: Any) -> Any:
    """The operand."""
    return a


@scalar("-(NUMERIC, NUMERIC) -> BIGINT", nulls=CUSTOM, returns=_numeric_rule(plus_minus_type), coerce=_to_result,
        spark=None)  # fmt: skip
def minus(call: Invocation, a: Any, b: Any) -> Any:
    """The difference."""
    if isinstance(call.type, t.DecimalType):
        return _decimal_sum(call, a, b, -1)
    return pc.subtract(a, b)


@scalar("-(DATETIME, INTERVAL) -> BIGINT", "-(INTERVAL, INTERVAL) -> BIGINT", nulls=CUSTOM, returns=interval_sum_type,
        spark=None)  # fmt: skip
def minus_interval(call: Invocation, a: Any, b: Any) -> Any:
    """A moment moved back by an interval, or the difference of two intervals."""
    return add_interval(call, a, b, -1)


@scalar("-(DATETIME, DATETIME) -> BIGINT", returns=difference_type, spark=None)
def minus_moment(call: Invocation, a: Any, b: Any) -> Any:
    """What lies between two moments, written ``(a - b) DAY TO SECOND``."""
    return subtract_moments(call, a, b)


@scalar("-(INTERVAL) -> $1", spark=None)
def unary_minus_interval(a: Any) -> Any:
    """The interval backwards."""
    return negate_interval(a)


@scalar("-(NUMERIC) -> $1", spark="(- {0})")
def unary_minus(call: Invocation, a: Any) -> Any:
    """The negated number; the smallest integer stays as it is."""
    if isinstance(call.type, t.DecimalType):
        values, valid = exact.unscaled(a)
        return exact.decimal_column(-values, valid, to_arrow(call.type), call.n)
    return pc.negate(a)


def _decimal_sum(call: Invocation, a: Any, b: Any, sign: int) -> pa.Array:
    type_ = to_arrow(call.type)
    (left, left_valid), (right, right_valid) = exact.unscaled(a), exact.unscaled(b)
    scale = max(exact.scale_of(a.type), exact.scale_of(b.type))
    left = exact.rescale(left, exact.scale_of(a.type), scale)
    right = exact.rescale(right, exact.scale_of(b.type), scale)
    made = exact.rescale(exact.add(left, right if sign > 0 else np.asarray(-right)), scale, type_.scale)
    return exact.decimal_column(made, exact.merge_validity(left_valid, right_valid), type_, call.n)


@scalar("*(NUMERIC, NUMERIC) -> BIGINT", nulls=CUSTOM, returns=_numeric_rule(multiply_type), coerce=_to_result,
        spark=None)  # fmt: skip
def times(call: Invocation, a: Any, b: Any) -> Any:
    """The product."""
    if not isinstance(call.type, t.DecimalType):
        return pc.multiply(a, b)
    type_ = to_arrow(call.type)
    (left, left_valid), (right, right_valid) = exact.unscaled(a), exact.unscaled(b)
    made = exact.multiply(left, right)
    made = exact.rescale(made, exact.scale_of(a.type) + exact.scale_of(b.type), type_.scale)
    return exact.decimal_column(made, exact.merge_validity(left_valid, right_valid), type_, call.n)


@scalar("*(INTERVAL, INTEGER) -> $1", "*(INTEGER, INTERVAL) -> $2", spark=None)
def times_interval(call: Invocation, a: Any, b: Any) -> Any:
    """An interval so many times."""
    type_ = to_arrow(call.type)
    return pc.multiply(pc.cast(a, type_, safe=False), pc.cast(b, type_, safe=False))


@scalar("/(NUMERIC, NUMERIC) -> BIGINT", nulls=CUSTOM, returns=_numeric_rule(divide_type), coerce=_to_result,
        raises=True, spark=None)  # fmt: skip
def divide(call: Invocation, a: Any, b: Any) -> Any:
    """Return the quotient; of integers cut towards zero. Fails on zero, except that of DOUBLE it is an infinity."""
    if isinstance(call.type, t.DecimalType):
        return _decimal_quotient(call, a, b)
    if isinstance(call.type, t.ApproximateType):
        return pc.divide(a, b)
    return _integer_quotient(a, b)


def _integer_quotient(a: Any, b: Any) -> Any:
    try:
        made = pc.divide(a, b)
    except pa.ArrowInvalid as error:
        raise ExecutionError("division-by-zero", "/ by zero") from error
    if isinstance(b, pa.Scalar) and b.as_py() != -1:
        return made
    # Arrow gives 0 for the smallest integer by -1; Java wraps to itself.
    return pc.if_else(pc.equal(b, pa.scalar(-1, b.type)), pc.negate(a), made)


def _decimal_quotient(call: Invocation, a: Any, b: Any) -> pa.Array:
    type_ = to_arrow(call.type)
    (left, left_valid), (right, right_valid) = exact.unscaled(a), exact.unscaled(b)
    valid = exact.merge_validity(left_valid, right_valid)
    right = exact.without_zeros(right, valid)
    shift = type_.scale - exact.scale_of(a.type) + exact.scale_of(b.type)
    if shift >= 0:
        left = exact.multiply(left, exact.power_of_ten(shift))
    else:
        right = exact.multiply(right, exact.power_of_ten(-shift))
    return exact.decimal_column(exact.divide(left, right), valid, type_, call.n)


def _whole_dividend(args: tuple[Expr, ...], type_: t.LogicalType) -> tuple[Expr, ...]:
    """Of a DECIMAL that is divided by an integer Flink takes the low 64 bits."""
    of_decimal = isinstance(type_, t.IntegerType) and isinstance(args[0].type, t.DecimalType)
    return (implicit_cast(args[0], t.BIGINT), args[1]) if of_decimal else args


@scalar("MOD(EXACT, EXACT) -> BIGINT", "%(EXACT, EXACT) -> BIGINT", nulls=CUSTOM, returns=_numeric_rule(modulo_type),
        coerce=_whole_dividend, raises=True, spark=None)  # fmt: skip
def mod(call: Invocation, a: Any, b: Any) -> Any:
    """Return the remainder with the sign of the first; of whole numbers in the type of the second. Fails on zero."""
    type_ = to_arrow(call.type)
    if not isinstance(call.type, t.DecimalType):
        wide = a.type if a.type.bit_width >= b.type.bit_width else b.type
        top, bottom = pc.cast(a, wide), pc.cast(b, wide)
        rest = pc.subtract(top, pc.multiply(_integer_quotient(top, bottom), bottom))
        return pc.cast(rest, type_)
    (left, left_valid), (right, right_valid) = exact.unscaled(a), exact.unscaled(b)
    valid = exact.merge_validity(left_valid, right_valid)
    scale = max(exact.scale_of(a.type), exact.scale_of(b.type))
    left = exact.rescale(left, exact.scale_of(a.type), scale)
    right = exact.without_zeros(exact.rescale(right, exact.scale_of(b.type), scale), valid)
    made = exact.rescale(exact.remainder(left, right), scale, type_.scale)
    return exact.decimal_column(made, valid, type_, call.n)


@scalar("ABS(NUMERIC) -> $1", spark=None)
def abs_(call: Invocation, a: Any) -> Any:
    """The absolute value; the smallest integer stays as it is."""
    if isinstance(call.type, t.DecimalType):
        values, valid = exact.unscaled(a)
        return exact.decimal_column(np.abs(values), valid, to_arrow(call.type), call.n)
    return pc.abs(a)


@scalar("SIGN(NUMERIC) -> $1", spark=None)
def sign(call: Invocation, a: Any) -> Any:
    """Return -1, 0 or 1 in the type of the argument; of a zero, and of NaN, the argument."""
    if isinstance(call.type, t.ApproximateType):
        return pc.if_else(pc.or_(pc.greater(a, 0.0), pc.less(a, 0.0)), pc.cast(pc.sign(a), a.type), a)
    if not isinstance(call.type, t.DecimalType):
        return pc.cast(pc.sign(a), a.type)
    values, valid = exact.unscaled(a)
    made = exact.multiply(np.sign(values), exact.power_of_ten(call.type.scale))
    # In Flink a type of at most 18 digits, all of a fraction, holds the 1 all the same.
    return exact.decimal_column(made, valid, to_arrow(call.type), call.n, within=call.type.precision > 18)


# Rounding


def _round_rule(args: Sequence[Expr], options: dict[str, Any]) -> t.LogicalType | None:
    digits: int | None = 0
    if len(args) == 2:
        digits = args[1].value if isinstance(args[1], Literal) else None
    return round_type(args[0].type, digits)


@scalar("ROUND(NUMERIC, [INTEGER]) -> $1", returns=_round_rule, spark=None)
def round_(call: Invocation, a: Any, digits: Any = None) -> Any:
    """Rounded half away from zero to ``digits`` after the point (before it, when negative)."""
    return _rounded(call, a, digits, exact.divide)


@scalar("TRUNCATE(NUMERIC, [INTEGER]) -> $1", returns=_round_rule, spark=None)
def truncate(call: Invocation, a: Any, digits: Any = None) -> Any:
    """Cut towards zero to ``digits`` after the point (before it, when negative)."""
    return _rounded(call, a, digits, exact.truncate_divide)


def _rounded(call: Invocation, a: Any, digits: Any, divide_by: Callable[[Any, Any], Any]) -> Any:
    if digits is None or isinstance(digits, pa.Scalar):
        wanted = 0 if digits is None else digits.as_py()
        return pa.nulls(call.n, to_arrow(call.type)) if wanted is None else _round_all(call, a, wanted, divide_by)
    # A column of digits: one pass for each distinct number of digits.
    column = pa.repeat(a, call.n) if isinstance(a, pa.Scalar) else a
    made = pa.nulls(call.n, to_arrow(call.type))
    for scalar_ in pc.unique(digits):
        if scalar_.is_valid:
            chosen = pc.coalesce(pc.equal(digits, scalar_), pa.scalar(False))
            made = pc.if_else(chosen, _round_all(call, column, scalar_.as_py(), divide_by), made)
    return made


def _round_all(call: Invocation, a: Any, digits: int, divide_by: Callable[[Any, Any], Any]) -> Any:
    type_ = to_arrow(call.type)
    # Further away from the point nothing changes any more.
    digits = min(max(digits, -_FARTHEST), _FARTHEST)
    match call.type:
        case t.DecimalType():
            values, valid = exact.unscaled(a)
            scale = exact.scale_of(a.type)
            if digits < scale:
                values = divide_by(values, exact.power_of_ten(scale - digits))
                scale = digits
            return exact.decimal_column(exact.rescale(values, scale, type_.scale), valid, type_, call.n)
        case t.IntegerType():
            if digits >= 0:
                return a
            values, valid = exact.unscaled(a)
            unit = exact.power_of_ten(-digits)
            made = exact.multiply(divide_by(values, unit), unit)
            wrapped = np.array([int(v) & (2**64 - 1) for v in made], dtype=np.uint64) if made.dtype == object else made
            return make_array(wrapped.astype(np.int64).astype(values_and_validity(a)[0].dtype), valid, type_)
    return _round_doubles(a, digits, type_, divide_by is exact.divide)


#: Digits on either side of the point that numbers of any type may have, and some more.
_FARTHEST = 400


def _round_doubles(a: pa.Array, digits: int, type_: pa.DataType, half_up: bool) -> pa.Array:
    """Java goes through the shortest decimal text of the double: half means its decimal half."""
    values, valid = values_and_validity(a)
    values = values.astype(np.float64)
    factor = float(f"1e{abs(digits)}")
    with np.errstate(all="ignore"):
        scaled = values * factor if digits >= 0 else values / factor
        whole = np.trunc(scaled)
        rest = np.abs(scaled - whole)
        made = np.where(rest >= 0.5, whole + np.sign(scaled), whole) if half_up else whole
        made = made / factor if digits >= 0 else made * factor
        # Near a tie, and where the product was inexact, the decimal text decides.
        unsure = (np.abs(rest - 0.5) < 1e-6) if half_up else (rest > 1 - 1e-6) | ((rest < 1e-6) & (rest > 0))
        unsure |= np.abs(scaled) > 2**50
    unsure &= np.isfinite(values)
    if not np.isfinite(factor):
        unsure = np.isfinite(values)
    made = np.where(np.isfinite(values), made, values)
    for row in np.flatnonzero(unsure):
        made[row] = _round_one(float(values[row]), digits, half_up)
    # Adding 0.0 turns -0.0 into 0.0: decimals have no other one.
    return make_array((made + 0.0).astype(np.float32 if pa.types.is_float32(type_) else np.float64), valid, type_)


def _round_one(value: float, digits: int, half_up: bool) -> float:
    number = Decimal(repr(value))
    if -number.as_tuple().exponent <= digits:  # type: ignore[operator]
        return value
    return float(number.quantize(Decimal(1).scaleb(-digits), rounding=ROUND_HALF_UP if half_up else ROUND_DOWN))


def _whole_rule(args: Sequence[Expr], options: dict[str, Any]) -> t.LogicalType | None:
    type_ = args[0].type
    if isinstance(type_, t.DecimalType):
        return t.DecimalType(precision=type_.precision, scale=0)
    return type_


@scalar("FLOOR(NUMERIC) -> $1", returns=_whole_rule, spark=None)
def floor(call: Invocation, a: Any) -> Any:
    """The greatest whole number that is not greater."""
    return _whole(call, a, -1)


@scalar("CEIL(NUMERIC) -> $1", returns=_whole_rule, aliases=("CEILING",), spark=None)
def ceil(call: Invocation, a: Any) -> Any:
    """The least whole number that is not less."""
    return _whole(call, a, 1)


def _whole(call: Invocation, a: Any, direction: int) -> Any:
    match call.type:
        case t.IntegerType():
            return a
        case t.DecimalType():
            values, valid = exact.unscaled(a)
            unit = exact.power_of_ten(exact.scale_of(a.type))
            made = -(-values // unit) if direction > 0 else values // unit
            return exact.decimal_column(np.asarray(made), valid, to_arrow(call.type), call.n)
    return pc.ceil(a) if direction > 0 else pc.floor(a)


# Powers, logarithms, trigonometry: all in DOUBLE


@scalar("POWER(DOUBLE, DOUBLE) -> DOUBLE", spark="POWER({0}, {1})")
def power(a: Any, b: Any) -> Any:
    """``a`` to the power of ``b``."""
    return pc.power(a, b)


@scalar("SQRT(DOUBLE) -> DOUBLE", spark="SQRT({0})")
def sqrt(a: Any) -> Any:
    """Return the square root; NaN of negative numbers, but infinity of minus infinity: it is a power in Flink."""
    return pc.power(a, pa.scalar(0.5))


@scalar("EXP(DOUBLE) -> DOUBLE", spark="EXP({0})")
def exp(a: Any) -> Any:
    """e to the power of the argument."""
    return pc.exp(a)


@scalar("LN(DOUBLE) -> DOUBLE", spark=None)
def ln(a: Any) -> Any:
    """The natural logarithm; minus infinity of 0, NaN of negative numbers."""
    return pc.ln(a)


@scalar("LOG10(DOUBLE) -> DOUBLE", spark=None)
def log10(a: Any) -> Any:
    """The logarithm to base 10."""
    return pc.log10(a)


@scalar("LOG2(DOUBLE) -> DOUBLE", spark=None)
def log2(a: Any) -> Any:
    """The logarithm to base 2."""
    return pc.log2(a)


@scalar("LOG(DOUBLE) -> DOUBLE", spark=None)
def log(a: Any) -> Any:
    """The natural logarithm."""
    return pc.ln(a)


@scalar("LOG(DOUBLE, DOUBLE) -> DOUBLE", spark=None)
def log_base(base: Any, a: Any) -> Any:
    """The logarithm of the second argument to the base of the first."""
    return pc.divide(pc.ln(a), pc.ln(base))


@scalar("SIN(DOUBLE) -> DOUBLE", spark="SIN({0})")
def sin(a: Any) -> Any:
    """The sine of radians."""
    return pc.sin(a)


@scalar("COS(DOUBLE) -> DOUBLE", spark="COS({0})")
def cos(a: Any) -> Any:
    """The cosine of radians."""
    return pc.cos(a)


@scalar("TAN(DOUBLE) -> DOUBLE", spark="TAN({0})")
def tan(a: Any) -> Any:
    """The tangent of radians."""
    return pc.tan(a)


@scalar("COT(DOUBLE) -> DOUBLE", spark="COT({0})")
def cot(a: Any) -> Any:
    """The cotangent of radians."""
    return pc.divide(pa.scalar(1.0), pc.tan(a))


@scalar("ASIN(DOUBLE) -> DOUBLE", spark="ASIN({0})")
def asin(a: Any) -> Any:
    """The arc sine; NaN outside of [-1, 1]."""
    return pc.asin(a)


@scalar("ACOS(DOUBLE) -> DOUBLE", spark="ACOS({0})")
def acos(a: Any) -> Any:
    """The arc cosine; NaN outside of [-1, 1]."""
    return pc.acos(a)


@scalar("ATAN(DOUBLE) -> DOUBLE", spark="ATAN({0})")
def atan(a: Any) -> Any:
    """The arc tangent."""
    return pc.atan(a)


@scalar("ATAN2(DOUBLE, DOUBLE) -> DOUBLE", spark="ATAN2({0}, {1})")
def atan2(y: Any, x: Any) -> Any:
    """The angle of the point (x, y)."""
    return pc.atan2(y, x)


@scalar("SINH(DOUBLE) -> DOUBLE", spark="SINH({0})")
def sinh(a: Any) -> Any:
    """The hyperbolic sine."""
    return _numpy_function(a, np.sinh)


@scalar("COSH(DOUBLE) -> DOUBLE", spark="COSH({0})")
def cosh(a: Any) -> Any:
    """The hyperbolic cosine."""
    return _numpy_function(a, np.cosh)


@scalar("TANH(DOUBLE) -> DOUBLE", spark="TANH({0})")
def tanh(a: Any) -> Any:
    """The hyperbolic tangent."""
    return _numpy_function(a, np.tanh)


@scalar("DEGREES(DOUBLE) -> DOUBLE", spark="DEGREES({0})")
def degrees(a: Any) -> Any:
    """Radians as degrees."""
    return _numpy_function(a, lambda radians: radians * (180.0 / math.pi))


@scalar("RADIANS(DOUBLE) -> DOUBLE", spark="RADIANS({0})")
def radians(a: Any) -> Any:
    """Degrees as radians."""
    return _numpy_function(a, lambda angle: angle / 180.0 * math.pi)


def _numpy_function(a: pa.Array, function: Callable[[Any], Any]) -> pa.Array:
    values, valid = values_and_validity(a)
    with np.errstate(all="ignore"):
        return make_array(function(values), valid, pa.float64())


@scalar("PI() -> DOUBLE", nulls=NOT_NULL, spark="PI()")
def pi() -> Any:
    """The circle number."""
    return pa.scalar(math.pi)


@scalar("E() -> DOUBLE", nulls=NOT_NULL, spark="E()")
def e() -> Any:
    """Euler's number."""
    return pa.scalar(math.e)


# Random numbers


@scalar("RAND([INT]) -> DOUBLE", deterministic=False, spark=None)
def rand(call: Invocation, seed: Any = None) -> Any:
    """A random number in [0, 1); of a constant seed a sequence, the same in every run, of others the first number."""
    if seed is None:
        return pa.array(np.random.default_rng(call.context.rng.getrandbits(63)).random(call.n))
    if isinstance(seed, pa.Scalar):
        if not seed.is_valid:
            return pa.nulls(call.n, pa.float64())
        return pa.array(_seeded(call, seed).doubles(call.n))
    seeds, valid = values_and_validity(seed)
    return make_array(first_doubles(seeds), valid, pa.float64())


@scalar("RAND_INTEGER(INT) -> INT", deterministic=False, spark=None)
def rand_integer(call: Invocation, limit: Any) -> Any:
    """A random integer in [0, limit)."""
    return _random_below(call, None, limit)


@scalar("RAND_INTEGER(INT, INT) -> INT", deterministic=False, spark=None)
def rand_integer_seeded(call: Invocation, seed: Any, limit: Any) -> Any:
    """A random integer in [0, limit) of a seeded sequence."""
    return _random_below(call, seed, limit)


def _random_below(call: Invocation, seed: Any, limit: Any) -> pa.Array:
    bounds, valid = _broadcast(limit, call.n)
    if isinstance(seed, pa.Scalar) and not seed.is_valid:
        return pa.nulls(call.n, pa.int32())
    seeds: Any = None
    if isinstance(seed, pa.Array):
        seeds, known = values_and_validity(seed)
        valid = known if valid is None else valid if known is None else valid & known
    if np.any(bounds[slice(None) if valid is None else valid] <= 0):
        raise ExecutionError("bad-argument", "bound must be positive")
    limits = np.maximum(bounds, 1)
    if seeds is not None:
        made = first_below(seeds, limits)
    elif seed is not None:
        made = _seeded(call, seed).below(limits)
    else:
        fraction = np.random.default_rng(call.context.rng.getrandbits(63)).random(call.n)
        made = (fraction * limits).astype(np.int32)
    return make_array(made, valid, pa.int32())


def _broadcast(datum: Any, n: int) -> tuple[Any, Any]:
    return values_and_validity(pa.repeat(datum, n) if isinstance(datum, pa.Scalar) else datum)


def _seeded(call: Invocation, seed: pa.Scalar) -> JavaRandom:
    """The generator of a constant seed, which goes on from batch to batch."""
    if "generator" not in call.memory:
        call.memory["generator"] = JavaRandom(seed.as_py())
    made: JavaRandom = call.memory["generator"]
    return made


# Number systems


@scalar("BIN(INTEGER) -> STRING", spark=None)
def bin_(a: Any) -> Any:
    """The integer in binary digits; negative ones as 64-bit two's complement."""
    return _based(a, 1)


@scalar("HEX(INTEGER) -> STRING", spark=None)
def hex_(a: Any) -> Any:
    """The integer in upper-case hexadecimal digits; negative ones as 64-bit two's complement."""
    return _based(a, 4)


def _based(a: pa.Array, bits: int) -> pa.Array:
    values, valid = values_and_validity(a)
    numbers = values.astype(np.int64).view(np.uint64)
    # Only as many digits as the greatest number has.
    count = max(1, -(-int(numbers.max() if len(numbers) else 0).bit_length() // bits))
    shifts = np.arange((count - 1) * bits, -1, -bits, dtype=np.uint64)
    digits = ((numbers[:, None] >> shifts) & np.uint64(2**bits - 1)).astype(np.uint8)
    matrix = digits + np.where(digits < 10, 48, 55).astype(np.uint8)
    text = pa.Array.from_buffers(pa.binary(count), len(a), [None, pa.py_buffer(np.ascontiguousarray(matrix))])
    shown = pc.utf8_ltrim(pc.cast(pc.cast(text, pa.binary()), pa.string()), characters="0")
    shown = pc.if_else(pc.equal(shown, ""), "0", shown)
    return shown if valid is None else pc.if_else(make_array(valid, None, pa.bool_()), shown, None)


@scalar("HEX(STRING) -> STRING", spark=None)
def hex_text(a: Any) -> Any:
    """The UTF-8 bytes in upper-case hexadecimal digits."""
    return hex_of_bytes(a)


def hex_of_bytes(a: pa.Array) -> pa.Array:
    """Upper-case hexadecimal text of a string or binary column's bytes."""
    offsets, data = string_buffers(a)
    used = data[offsets[0] : offsets[-1]]
    table = np.frombuffer(b"0123456789ABCDEF", dtype=np.uint8)
    pairs = np.empty((len(used), 2), dtype=np.uint8)
    pairs[:, 0], pairs[:, 1] = table[used >> 4], table[used & 15]
    return make_strings((offsets - offsets[0]).astype(np.int64) * 2, pairs.reshape(-1), validity(a), pa.string())
