"""Orders of numbers in which NaN and the zeros have a place, as Flink compares constants and columns."""

from __future__ import annotations

import math
from typing import Any, Final

import pyarrow as pa

from flowsql_core.arrow import compute as pc

#: Options of a comparison in Java's total order.
TOTAL_ORDER: Final = (("order", "total"),)
_GREATEST_BITS = (1 << 63) - 1


def in_total_order(values: Any) -> Any:
    """Return what orders as the values do in Java's total order: -0.0 before 0.0, and NaN after everything."""
    if not pa.types.is_floating(values.type):
        return ordered(values, values)[0]
    numbers = pc.cast(values if isinstance(values, pa.Array) else pa.repeat(values, 1), pa.float64())
    bits = numbers.view(pa.int64())
    # Bits of negative numbers grow the other way.
    turned = pc.if_else(pc.less(bits, pa.scalar(0)), pc.bit_wise_xor(bits, pa.scalar(_GREATEST_BITS)), bits)
    made = pc.if_else(pc.is_nan(numbers), pa.scalar(_GREATEST_BITS), turned)
    return made if isinstance(values, pa.Array) else made[0]


def compared(call: Any, a: Any, b: Any, compare: Any, opposite: Any) -> Any:
    """Return one comparison, by way of the one that is its negation where the options of ``call`` ask for it."""
    if call.options != TOTAL_ORDER:
        return compare(*ordered(a, b))
    greater_wins = opposite in (pc.less, pc.less_equal)
    number = b if greater_wins else a
    if all(not isinstance(value, pa.Scalar) or _is_plain(value) for value in (a, b)):
        if isinstance(number, pa.Scalar):
            # Of a column's NaN the opposite is not TRUE.
            return pc.invert(opposite(a, b))
        if isinstance(a, pa.Scalar) or isinstance(b, pa.Scalar):
            return compare(a, b)
    return compare(in_total_order(a), in_total_order(b))


def _is_plain(number: pa.Scalar) -> bool:
    """Whether one number orders among all but NaN as in Java's total order."""
    value = number.as_py()
    return value is not None and math.isfinite(value) and value != 0


def ordered(a: Any, b: Any) -> tuple[Any, Any]:
    """Return both as Arrow orders them: booleans and untyped NULLs as bytes."""
    if pa.types.is_boolean(a.type) or pa.types.is_null(a.type):
        return pc.cast(a, pa.uint8()), pc.cast(b, pa.uint8())
    return a, b
