"""Moments of 7 to 9 fractional digits as two values: microseconds, which hold all years, and nanoseconds below them.

What :mod:`far_moments` writes into expressions, and the kernels of it. A moment is NULL where its microseconds are; the
nanoseconds of such a row may be anything.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flowsql_compute.eval.columns import Bools, make_array, spread, values_and_validity
from flowsql_compute.eval.time.calendar import require_range
from flowsql_compute.functions.registry import CUSTOM, FunctionDef, Invocation
from flowsql_compute.functions.signature import parse_signature
from flowsql_compute.functions.spark_form import BY_KERNEL
from flowsql_core.arrow import compute as pc
from flowsql_core.types.arrow import to_arrow

#: Two moments, as microseconds and nanoseconds each, by the comparison in option ``op``.
COMPARE: Final = "$COMPARE_MOMENTS"
#: The moment in 64-bit nanoseconds; ExecutionError where it lies outside.
JOIN: Final = "$MOMENT"
#: Nanoseconds below the microseconds: of a column, of a text, and with the last digits cut (option ``step``).
BELOW: Final = "$NANOS"
BELOW_OF_TEXT: Final = "$NANOS_OF_TEXT"
CUT: Final = "$CUT_NANOS"
#: A text that ends with microseconds, with so many more ``digits`` behind it; a number of nanoseconds, and those below.
TEXT: Final = "$TEXT_WITH_NANOS"
ADD: Final = "$ADD_NANOS"

_Values = npt.NDArray[np.int64]


def part_definition(function: str) -> FunctionDef | None:
    """The kernel behind one of the names above; None: the name is none of them."""
    return _DEFINITIONS.get(function)


def _column(datum: Any, n: int) -> tuple[_Values, Bools | None]:
    values, valid = values_and_validity(spread(datum, n) if isinstance(datum, pa.Scalar) else datum)
    return values.astype(np.int64), valid


def _both(a: Bools | None, b: Bools | None) -> Bools | None:
    return a if b is None else b if a is None else a & b


def _compare(call: Invocation, coarse: Any, below: Any, other_coarse: Any, other_below: Any) -> pa.Array:
    (a, valid_a), (b, valid_b) = _column(coarse, call.n), _column(other_coarse, call.n)
    (c, _), (d, _) = _column(below, call.n), _column(other_below, call.n)
    valid = _both(valid_a, valid_b)
    equal = (a == b) & (c == d)
    less = (a < b) | ((a == b) & (c < d))
    match call.option("op"):
        case "=":
            made = equal
        case "<>":
            made = ~equal
        case "<":
            made = less
        case "<=":
            made = less | equal
        case ">":
            made = ~(less | equal)
        case ">=":
            made = ~less
        case op:
            known_a = np.ones(call.n, dtype=np.bool_) if valid_a is None else valid_a
            known_b = np.ones(call.n, dtype=np.bool_) if valid_b is None else valid_b
            made, valid = np.where(known_a & known_b, equal, known_a == known_b), None
            if op == "IS DISTINCT FROM":
                made = ~made
    return make_array(made, valid, pa.bool_())


def _join(call: Invocation, coarse: Any, below: Any) -> pa.Array:
    (micros, valid), (nanos, _) = _column(coarse, call.n), _column(below, call.n)
    target = to_arrow(call.type)
    known = micros if valid is None else np.where(valid, micros, 0)
    require_range(known // 1_000_000, target)
    return make_array(known * 1000 + nanos, valid, target)


def _below(call: Invocation, moment: Any) -> pa.Array:
    values, valid = _column(moment, call.n)
    return make_array((values % 1000).astype(np.int32), valid, pa.int32())


def _below_of_text(call: Invocation, text: Any) -> pa.Array:
    text = spread(text, call.n) if isinstance(text, pa.Scalar) else text
    fraction = pc.struct_field(pc.extract_regex(text, r"\.(?P<f>\d{1,9})$"), "f")
    digits = pc.utf8_slice_codeunits(pc.utf8_rpad(pc.fill_null(fraction, ""), 9, "0"), 6, call.option("precision"))
    return pc.cast(pc.utf8_rpad(digits, 3, "0"), pa.int32())


def _cut(call: Invocation, below: Any) -> pa.Array:
    values, valid = _column(below, call.n)
    return make_array((values - values % call.option("step")).astype(np.int32), valid, pa.int32())


def _text(call: Invocation, text: Any, below: Any) -> pa.Array:
    text = spread(text, call.n) if isinstance(text, pa.Scalar) else text
    nanos, _ = _column(below, call.n)
    shown = pc.utf8_lpad(pc.cast(pa.array(nanos), pa.string()), 3, "0")
    return pc.binary_join_element_wise(text, pc.utf8_slice_codeunits(shown, 0, call.option("digits")), "")


def _add(call: Invocation, number: Any, below: Any) -> pa.Array:
    (values, valid), (nanos, _) = _column(number, call.n), _column(below, call.n)
    return make_array(values + nanos, valid, pa.int64())


def _definition(signature: str, kernel: Callable[..., Any], raises: bool = False) -> FunctionDef:
    return FunctionDef(
        parse_signature(signature), kernel, CUSTOM, True, raises, False, True, None, None, None, None, BY_KERNEL, ""
    )  # fmt: skip


_DEFINITIONS: Final = {
    COMPARE: _definition("COMPARE(DATETIME, INTEGER, DATETIME, INTEGER) -> BOOLEAN", _compare),
    JOIN: _definition("JOIN(DATETIME, INTEGER) -> $1", _join, raises=True),
    BELOW: _definition("BELOW(DATETIME) -> INT", _below),
    BELOW_OF_TEXT: _definition("BELOW(STRING) -> INT", _below_of_text),
    CUT: _definition("CUT(INTEGER) -> INT", _cut),
    TEXT: _definition("TEXT(STRING, INTEGER) -> STRING", _text),
    ADD: _definition("ADD(INTEGER, INTEGER) -> BIGINT", _add),
}
