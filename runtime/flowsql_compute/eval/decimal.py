"""DECIMAL arithmetic on unscaled integers: int64 while a batch's numbers fit, Python integers where they do not.

Arrow's own decimal kernels raise on precision and wrap silently, so none is used. A result that does not fit its
precision becomes NULL; rounding is HALF_UP, as in Flink's ``DecimalDataUtils``.
"""

from __future__ import annotations

import decimal
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flowsql_compute.eval.columns import Bools, make_array, values_and_validity
from flowsql_core.errors import ExecutionError

Unscaled = npt.NDArray[Any]
_INT64_LIMIT = 2**63
_WORD = 2**64
_EXACT = decimal.Context(prec=77)


def unscaled(datum: Any) -> tuple[Unscaled, Bools | None]:
    """Unscaled integers of a DECIMAL or integer column or scalar, and validity.

    Returns:
        int64, or object (Python integers) when some number exceeds 64 bits; shape (n,) or () for a scalar. Zero
        under NULL. Validity bool (n,), None when all are valid; shape () for a NULL scalar.
    """
    if isinstance(datum, pa.Scalar):
        return _unscaled_scalar(datum)
    values, valid = values_and_validity(datum)
    if values.ndim == 2:
        values = _from_words(values, valid)
    elif values.dtype != np.int64:
        values = values.astype(np.int64)
    if valid is not None:
        values = np.where(valid, values, 0)
    return values, valid


def decimal_column(
    values: Unscaled, valid: Bools | None, type_: pa.DataType, n: int, *, within: bool = True
) -> pa.Array:
    """Return a DECIMAL column of unscaled integers.

    Args:
        within: numbers of more than the type's digits become NULL; else the values stay as they are.
    """
    if values.ndim == 0:
        values = np.broadcast_to(values, (n,))
    if valid is not None and valid.ndim == 0:
        valid = np.broadcast_to(valid, (n,))
    limit = 10**type_.precision
    if within and bound(values) >= limit:
        fits = (values < limit) & (values > -limit)
        fits = fits.astype(np.bool_)
        valid = fits if valid is None else valid & fits
        values = np.where(fits, values, 0)
    if values.dtype == object:
        values = _to_words(values)
    return make_array(values, valid, type_)


def merge_validity(a: Bools | None, b: Bools | None) -> Bools | None:
    """Valid where both are."""
    if a is None:
        return b
    return a if b is None else a & b


def bound(values: Unscaled) -> int:
    """The largest absolute value, exact; 0 of none."""
    if values.size == 0:
        return 0
    return max(-int(values.min()), int(values.max()))


def add(a: Unscaled, b: Unscaled) -> Unscaled:
    """``a + b``, exact."""
    if _narrow(a, b) and bound(a) + bound(b) < _INT64_LIMIT:
        return np.add(a, b)
    return np.asarray(a.astype(object) + b.astype(object), dtype=object)


def multiply(a: Unscaled, b: Unscaled) -> Unscaled:
    """``a * b``, exact."""
    if _narrow(a, b) and bound(a) * bound(b) < _INT64_LIMIT:
        return np.multiply(a, b)
    return np.asarray(a.astype(object) * b.astype(object), dtype=object)


def divide(a: Unscaled, b: Unscaled) -> Unscaled:
    """``a / b`` rounded HALF_UP to an integer; ``b`` holds no zero."""
    if _narrow(a, b) and 2 * bound(a) + bound(b) < _INT64_LIMIT:
        top, bottom = np.abs(a), np.abs(b)
        quotient = (2 * top + bottom) // (2 * bottom)
        return np.asarray(np.where((a < 0) != (b < 0), -quotient, quotient))
    wide_a, wide_b = a.astype(object), b.astype(object)
    top, bottom = np.abs(wide_a), np.abs(wide_b)
    quotient = (2 * top + bottom) // (2 * bottom)
    signs = np.where((wide_a < 0) != (wide_b < 0), -1, 1).astype(object)
    return np.asarray(quotient * signs, dtype=object)


def truncate_divide(a: Unscaled, b: Unscaled) -> Unscaled:
    """``a / b`` cut towards zero; ``b`` holds no zero."""
    if not _narrow(a, b) or bound(a) == _INT64_LIMIT:
        a, b = a.astype(object), b.astype(object)
    quotient = np.abs(a) // np.abs(b)
    signs = np.where((a < 0) != (b < 0), -1, 1)
    return np.asarray(quotient * (signs.astype(object) if quotient.dtype == object else signs))


def remainder(a: Unscaled, b: Unscaled) -> Unscaled:
    """Remainder with the sign of ``a``; ``b`` holds no zero."""
    if _narrow(a, b):
        return np.fmod(a, b)
    wide_a = a.astype(object)
    rest = np.abs(wide_a) % np.abs(b.astype(object))
    return np.asarray(np.where(wide_a < 0, -rest, rest), dtype=object)


def rescale(values: Unscaled, scale: int, new_scale: int) -> Unscaled:
    """The same numbers at another scale; digits that go are rounded HALF_UP."""
    if new_scale == scale:
        return values
    if new_scale > scale:
        return multiply(values, power_of_ten(new_scale - scale))
    return divide(values, power_of_ten(scale - new_scale))


def power_of_ten(exponent: int) -> Unscaled:
    """10 to the exponent, shape ()."""
    return np.array(10**exponent, dtype=np.int64 if exponent <= 18 else object)


def scale_of(type_: pa.DataType) -> int:
    """The scale of a DECIMAL, 0 of an integer."""
    return int(type_.scale) if pa.types.is_decimal(type_) else 0


def without_zeros(values: Unscaled, valid: Bools | None) -> Unscaled:
    """Divisors that are safe to divide by: 1 under NULL.

    Raises:
        ExecutionError: a divisor is zero where it is not NULL.
    """
    zero = values == 0
    if not np.any(zero):
        return values
    if valid is None or np.any(zero & valid):
        raise ExecutionError("division-by-zero", "Division by zero")
    return np.where(zero, 1, values)


def to_double(values: Unscaled, scale: int) -> npt.NDArray[np.float64]:
    """The nearest DOUBLE of each number."""
    if values.dtype == object or bound(values) >= 2**53 or scale > 22:
        # Both operands of a float division must be exact for a correctly rounded result.
        flat = [float(decimal.Decimal(int(v)).scaleb(-scale, _EXACT)) for v in np.atleast_1d(values)]
        return np.array(flat).reshape(values.shape)
    return np.asarray(values / float(10**scale))


def _narrow(a: Unscaled, b: Unscaled) -> bool:
    return a.dtype != object and b.dtype != object


def _unscaled_scalar(scalar: pa.Scalar) -> tuple[Unscaled, Bools | None]:
    if not scalar.is_valid:
        return np.array(0, dtype=np.int64), np.array(False)
    value = scalar.as_py()
    if isinstance(value, decimal.Decimal):
        value = int(value.scaleb(scalar.type.scale, _EXACT))
    return np.array(value, dtype=np.int64 if -_INT64_LIMIT <= value < _INT64_LIMIT else object), None


def _from_words(words: npt.NDArray[np.int64], valid: Bools | None) -> Unscaled:
    low, high = words[:, 0], words[:, 1]
    wide = high != (low >> 63)
    if valid is not None:
        wide &= valid
    if not wide.any():
        return low
    return np.asarray(high.astype(object) * _WORD + low.astype(np.uint64).astype(object), dtype=object)


def _to_words(values: Unscaled) -> npt.NDArray[np.int64]:
    words = np.empty((len(values), 2), dtype=np.int64)
    words[:, 0] = (values & (_WORD - 1)).astype(np.uint64).view(np.int64)
    words[:, 1] = (values >> 64).astype(np.int64)
    return words


def wide_context() -> decimal.Context:
    """A context in which no DECIMAL and no finite DOUBLE is rounded or out of range."""
    return decimal.Context(prec=400, Emin=-9999, Emax=9999)
