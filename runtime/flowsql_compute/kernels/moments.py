"""Kernel that reads moments of a fixed layout (``yyyy-MM-dd HH:mm:ss.SSS``) out of a string column."""

from __future__ import annotations

from typing import Final

import numpy as np

from flowsql_compute.compiler.declare import kernel

#: Kinds of pieces of a layout; the numbers are known to the kernel.
LITERAL, YEAR, MONTH, DAY, HOUR, MINUTE, SECOND, FRACTION = range(8)
#: What stands for a text that does not fit.
ODD: Final = -(1 << 63)


@kernel("int64(int32[::1], uint8[::1], int64[:, ::1], int64, int64, int64, int64[::1])")
def read_moments(offsets, data, layout, length, first_year, per_second, values):
    """Read one moment a row.

    Args:
        layout: one row a piece, in order: kind, bytes, and the byte itself of a LITERAL.
        length: the bytes of all pieces together.
        first_year: texts of earlier years do not fit, nor do days that a month does not have.
        per_second: units of the result in a second, at most 1 000 000; what is finer is cut off.
        values: (n,) units since 1970, ODD where the text does not fit. What is not in the layout is that of 1970-01-01
            00:00:00.

    Returns:
        The number of texts that do not fit.
    """
    odd = 0
    for row in range(values.size):
        at = np.uint64(offsets[row])
        values[row] = ODD
        if offsets[row + 1] - offsets[row] != length:
            odd += 1
            continue
        year = np.int64(1970)
        month = np.int64(1)
        day = np.int64(1)
        second = np.int64(0)
        units = np.int64(0)
        fits = True
        for piece in range(layout.shape[0]):
            kind = layout[piece, 0]
            if kind == LITERAL:
                fits &= data[at] == layout[piece, 2]
                at += np.uint64(1)
                continue
            number = np.int64(0)
            unit = per_second
            for _ in range(layout[piece, 1]):
                digit = np.uint64(data[at]) - np.uint64(48)
                fits &= digit <= np.uint64(9)
                number = number * 10 + np.int64(digit)
                if kind == FRACTION:
                    unit //= 10
                    units += unit * np.int64(digit)
                at += np.uint64(1)
            if kind == YEAR:
                year = number
            elif kind == MONTH:
                month = number
            elif kind == DAY:
                day = number
            elif kind == HOUR:
                fits &= number < 24
                second += number * 3600
            elif kind == MINUTE:
                fits &= number < 60
                second += number * 60
            elif kind == SECOND:
                fits &= number < 60
                second += number
        fits &= first_year <= year <= 9999 and 1 <= month <= 12 and 1 <= day <= 31
        if fits and day > 28:
            longest = 31
            if month == 4 or month == 6 or month == 9 or month == 11:
                longest = 30
            elif month == 2:
                longest = 29 if year % 4 == 0 and (year % 100 != 0 or year % 400 == 0) else 28
            fits = day <= longest
        if not fits:
            odd += 1
            continue
        # Days of a calendar whose years begin in March.
        if month <= 2:
            year -= 1
            month += 12
        days = 365 * year + year // 4 - year // 100 + year // 400 + (153 * (month - 3) + 2) // 5 + day - 719_469
        values[row] = (days * 86_400 + second) * per_second + units
    return odd
