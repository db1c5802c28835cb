"""Kernel that writes moments as texts, ``yyyy-MM-dd HH:mm:ss.SSS``."""

from __future__ import annotations

from typing import Final

import numpy as np

from flowsql_compute.compiler.declare import device, kernel
from flowsql_compute.kernels.calendar import date_of_day

#: Bytes of a text at most: date and time, a point with nine digits, a zone.
LONGEST: Final = 30

_ZERO, _DASH, _COLON, _POINT, _ZULU = 0x30, 0x2D, 0x3A, 0x2E, 0x5A
_DAY_SECONDS = 86_400
_SECOND_NANOS = 1_000_000_000


@device(inline=True)
def _two(out, at, number, behind):
    out[at] = _ZERO + number // 10
    out[at + 1] = _ZERO + number % 10
    out[at + 2] = behind


@kernel("int64(int64[::1], uint8[::1], int64, int64, boolean, boolean, int32[::1], uint8[::1])")
def write_moments(values, valid, per_second, separator, grouped, zulu, offsets, out):
    """Write one moment of the years 0 to 9999 a row, nothing where ``valid`` is 0.

    Args:
        values: (n,) units since 1970, of which a second has ``per_second``, at most 1 000 000 000.
        separator: the byte between date and time.
        grouped: fractions have 3, 6 or 9 digits; else none behind the last one that is not zero. No fraction: no point.
        zulu: whether a ``Z`` ends each text.
        offsets: (n + 1,) where each text begins in ``out``, which has room for LONGEST bytes a row.

    Returns:
        The bytes written.
    """
    at = np.int64(0)
    offsets[0] = 0
    for row in range(values.size):
        if valid[row] != 0:
            seconds = values[row] // per_second
            nanos = (values[row] - seconds * per_second) * (_SECOND_NANOS // per_second)
            days = seconds // _DAY_SECONDS
            second = seconds - days * _DAY_SECONDS
            code = date_of_day(days)
            year = code >> 9
            out[at] = _ZERO + year // 1000
            out[at + 1] = _ZERO + year // 100 % 10
            _two(out, at + 2, year % 100, _DASH)
            _two(out, at + 5, code >> 5 & 15, _DASH)
            _two(out, at + 8, code & 31, separator)
            _two(out, at + 11, second // 3600, _COLON)
            _two(out, at + 14, second // 60 % 60, _COLON)
            _two(out, at + 17, second % 60, _POINT)
            at += 19
            if nanos > 0:
                digits = np.int64(9)
                while digits > 1 and nanos % (1000 if grouped else 10) == 0:
                    nanos //= 1000 if grouped else 10
                    digits -= 3 if grouped else 1
                for place in range(digits):
                    out[at + digits - place] = _ZERO + nanos % 10
                    nanos //= 10
                at += digits + 1
            if zulu:
                out[at] = _ZULU
                at += 1
        offsets[row + 1] = at
    return at
