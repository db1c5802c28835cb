"""Numbers as Java 17 prints them. Needs nothing that takes time to load."""

from __future__ import annotations

import itertools
import math
from typing import Final

#: Bits of a DOUBLE's significand, and of a FLOAT's.
_DOUBLE, _FLOAT = 53, 24
#: Where integers are no longer told apart begins a range in which Java writes other digits than the shortest ones; its
#: end; and the smallest number with all bits, below which Java does so, too. So it does for powers of two.
_UNSURE: Final = {_DOUBLE: (2.0**53, 1e41, 2.0**-1022), _FLOAT: (2.0**24, 1e27, 2.0**-126)}
#: ``log10(2)``, with the digits that Java has for it.
_LOG_2: Final = 0.301029995663981


def java_double(value: float) -> str:
    """Return ``Double.toString`` of Java 17: plain from 1e-3 up to below 1e7, else ``1.0E10``.

    The digits are the shortest ones that name the number, with Java's exceptions.

    >>> java_double(1e10), java_double(100.0), java_double(0.00012), java_double(5e-324), java_double(2e23)
    ('1.0E10', '100.0', '1.2E-4', '4.9E-324', '1.9999999999999998E23')
    """
    return _java_notation(repr(value), value, _DOUBLE)


def java_float(value: float) -> str:
    """Return ``Float.toString`` of a value that a 4-byte float holds exactly.

    >>> java_float(1e-45), java_float(2.0**30)
    ('1.4E-45', '1.07374182E9')
    """
    import numpy as np

    number = np.float32(value)
    return _java_notation(str(number), float(number), _FLOAT)


def _java_notation(shortest: str, value: float, bits: int) -> str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0:
        return "-0.0" if math.copysign(1, value) < 0 else "0.0"
    sign = "-" if value < 0 else ""
    size = abs(value)
    whole_from, surely_from, subnormal_to = _UNSURE[bits]
    if whole_from <= size < surely_from or size < subnormal_to or math.frexp(size)[0] == 0.5:
        digits, point = _digits(size, bits)
    else:
        mantissa, _, exponent = shortest.lstrip("-").partition("e")
        whole, _, fraction = mantissa.partition(".")
        digits = (whole + fraction).lstrip("0")
        # Position of the decimal point after the first significant digit.
        point = int(exponent or 0) + (len(whole) if whole != "0" else -(len(fraction) - len(fraction.lstrip("0"))))
    digits = digits.rstrip("0") or "0"
    if -3 < point <= 7:
        if point <= 0:
            return f"{sign}0.{'0' * -point}{digits}"
        return f"{sign}{digits[:point].ljust(point, '0')}.{digits[point:] or '0'}"
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{point - 1}"


def _digits(size: float, bits: int) -> tuple[str, int]:
    """Return Java's digits of a positive number, and how many of them are before the point."""
    numerator, denominator = size.as_integer_ratio()
    exponent = math.frexp(size)[1] - 1
    if size < _UNSURE[bits][2]:
        bits = exponent + (1074 if bits == _DOUBLE else 149) + 1
    if denominator == 1 and exponent <= 62:
        # A whole number: digits that cannot matter are rounded away.
        unit = 10 ** _digits_of_power_of_two(exponent - bits - 1)
        text = str((numerator + unit // 2) // unit)
        return text, len(text) + len(str(unit)) - 1
    return _generated(size, numerator, denominator, exponent, bits)


def _digits_of_power_of_two(power: int) -> int:
    return int(power * _LOG_2) if power > 1 else 0


def _generated(size: float, numerator: int, denominator: int, exponent: int, bits: int) -> tuple[str, int]:
    """Digit after digit, until the rest is less than half of the distance to the next number."""
    odd_bits = (numerator // (numerator & -numerator)).bit_length()
    place = math.floor((math.frexp(size)[0] * 2 - 1.5) * 0.289529654 + 0.176091259 + exponent * _LOG_2)
    # rest / unit is the number without its power of ten, half / unit half of a distance.
    tiny = max(0, odd_bits - exponent - 1)
    fives, unit_fives = max(0, -place), max(0, place)
    twos = fives + tiny + exponent - (odd_bits - 1)
    unit_twos = unit_fives + tiny
    half_twos = fives + tiny + exponent - bits
    common = min(twos, unit_twos)
    twos, unit_twos, half_twos = twos - common, unit_twos - common, half_twos - common
    if odd_bits == 1:
        # Below a power of two numbers are nearer to one another; Java takes half of it on both sides.
        half_twos -= 1
    if half_twos < 0:
        twos, unit_twos, half_twos = twos - half_twos, unit_twos - half_twos, 0
    odd = numerator // (numerator & -numerator)
    rest = odd * 5**fives << twos
    unit = 5**unit_fives << unit_twos
    half = 5**fives << half_twos
    ten = unit * 10
    # Java reckons with ints, longs or big integers, of which the first two overflow.
    width = max(_size_in_bits(odd_bits + twos, fives), _size_in_bits(unit_twos + 1, unit_fives + 1))
    wrapped = _as_int if width < 32 else _as_long if width < 64 else int
    # Of big integers what is exactly as far as half the distance is near enough.
    wide = width >= 64
    digits: list[int] = []
    low = high = False
    for turn in itertools.count():
        digit, rest = divmod(rest, unit)
        rest, half = rest * 10, wrapped(half * 10)
        low = half <= 0 or rest < half
        high = half <= 0 or wrapped(rest + half) + wide > ten
        if not turn and digit == 0 and not high:
            place -= 1
        else:
            digits.append(digit)
        # With an exponent there is a digit after the point in any case.
        if (low or high) and (turn or -3 <= place < 8):
            break
    upwards = high and (not low or 2 * rest > ten or (2 * rest == ten and digits[-1] % 2 == 1))
    text = "".join(map(str, digits))
    if upwards:
        raised = str(int(text) + 1)
        if len(raised) > len(text):
            place += 1
        text = raised.zfill(len(text))
    return text, place + 1


def _as_int(number: int) -> int:
    return (number + 2**31) % 2**32 - 2**31


def _as_long(number: int) -> int:
    return (number + 2**63) % 2**64 - 2**63


def _size_in_bits(twos: int, fives: int) -> int:
    """Bits that Java reckons with for ``5 ** fives << twos``."""
    return twos + ((5**fives).bit_length() if 0 < fives < 27 else 0 if not fives else fives * 3)
