"""Numbers as Java prints them. Needs nothing that takes time to load."""

from __future__ import annotations

import math


def java_double(value: float) -> str:
    """``Double.toString``: shortest digits, plain from 1e-3 up to below 1e7, else ``1.0E10``.

    >>> java_double(1e10), java_double(100.0), java_double(0.00012)
    ('1.0E10', '100.0', '1.2E-4')
    """
    return _java_notation(repr(value), value)


def java_float(value: float) -> str:
    """``Float.toString`` of a value that a 4-byte float holds exactly."""
    import numpy as np

    return _java_notation(str(np.float32(value)), value)


def _java_notation(shortest: str, value: float) -> str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0:
        return "-0.0" if math.copysign(1, value) < 0 else "0.0"
    sign = "-" if value < 0 else ""
    mantissa, _, exponent = shortest.lstrip("-").partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    # Position of the decimal point behind the first significant digit.
    point = int(exponent or 0) + (len(whole) if whole != "0" else -(len(fraction) - len(fraction.lstrip("0"))))
    digits = digits.rstrip("0") or "0"
    if -3 < point <= 7:
        if point <= 0:
            return f"{sign}0.{'0' * -point}{digits}"
        return f"{sign}{digits[:point].ljust(point, '0')}.{digits[point:] or '0'}"
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{point - 1}"
