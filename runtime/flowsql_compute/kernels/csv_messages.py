"""A kernel that reads csv rows, one a message, into slots of 64 bits: numbers, and where texts are.

64 bytes at a time are looked at for what ends a field.
"""

from __future__ import annotations

import numpy as np

from flowsql_compute.compiler.declare import device, kernel
from flowsql_compute.kernels.masks import equal_mask, lowest_place

#: What is made of a field: nothing; a range (start << 31 | length); a whole number within limits.
SKIP, TEXT, INTEGER = range(3)

_NEWLINE, _RETURN, _MINUS, _ZERO, _NINE = 0x0A, 0x0D, 0x2D, 0x30, 0x39
#: Digits of a whole number that cannot overflow.
_MOST_DIGITS = 18
_SIZE_BITS = 31


@device
def _field_end(data, at, end, delimiter, quote, escape):
    """The first of the three, or of line ends, from ``at`` on; ``end`` if there is none."""
    while at + 64 <= data.size:
        found = equal_mask(data, at, delimiter) | equal_mask(data, at, quote) | equal_mask(data, at, escape)
        found |= equal_mask(data, at, np.uint8(_NEWLINE)) | equal_mask(data, at, np.uint8(_RETURN))
        if found != 0:
            return min(at + np.int64(lowest_place(found)), end)
        at += 64
        if at >= end:
            return end
    while at < end:
        code = data[at]
        if code in (delimiter, quote, escape, np.uint8(_NEWLINE), np.uint8(_RETURN)):
            return at
        at += 1
    return end


@kernel(
    "int64(uint8[::1], int32[::1], uint8, uint8, uint8, uint8[::1], int64, int64[::1], int64[::1], int64[::1],"
    " int64[::1], int64[:, ::1], uint8[:, ::1], uint8[::1])"
)
def read_csv_messages(
    data, offsets, delimiter, quote, escape, null, null_size, kinds, columns, lows, highs, slots, valid, odd
):  # fmt: skip
    """Put the fields of the row in each message, ``data[offsets[i]:offsets[i + 1]]``, into column i of ``slots``.

    Field f is made into ``kinds[f]`` in row ``columns[f]`` of ``slots``, whole numbers within ``lows[f]`` and
    ``highs[f]``. A field that is ``null`` (``null_size`` bytes; -1: none is) stays 0 in ``valid``. ``quote`` and
    ``escape`` are 255 where there is none. ``odd`` is set where a message has another number of fields, quotes or line
    ends inside of a field, an escape, nothing at all, or another text than a whole number has.

    Room: ``slots`` and ``valid`` (columns, messages), ``odd`` messages; all zeros.

    Returns:
        How many are odd; their slots mean nothing.
    """
    count = np.int64(0)
    width = kinds.size
    for row in range(odd.size):
        at = np.int64(offsets[row])
        end = np.int64(offsets[row + 1])
        plain = False
        field = np.int64(0)
        reads = at < end
        while reads:
            quoted = at < end and data[at] == quote
            if quoted:
                at += 1
                start = at
                # Delimiters may stand between quotes.
                stop = _field_end(data, at, end, quote, quote, escape)
                if stop >= end or data[stop] != quote:
                    break
                at = stop + 1
                if at < end and data[at] != delimiter:
                    break
            else:
                start = at
                stop = _field_end(data, at, end, delimiter, quote, escape)
                if stop < end and data[stop] != delimiter:
                    break
                at = stop
            if field == width:
                break
            kind = kinds[field]
            if kind != SKIP:
                column = columns[field]
                length = stop - start
                is_null = length == null_size
                if is_null:
                    for step in range(length):
                        is_null &= data[start + step] == null[step]
                if is_null:
                    pass
                elif kind == TEXT:
                    slots[column, row] = start << _SIZE_BITS | length
                    valid[column, row] = 1
                else:
                    negative = length > 0 and data[start] == _MINUS
                    digits = length - 1 if negative else length
                    number = np.int64(0)
                    wrong = digits < 1 or digits > _MOST_DIGITS
                    if not wrong:
                        for place in range(stop - digits, stop):
                            code = data[place]
                            wrong |= code < _ZERO or code > _NINE
                            number = number * 10 + (np.int64(code) - _ZERO)
                    if negative:
                        number = -number
                    if wrong or number < lows[field] or number > highs[field]:
                        break
                    slots[column, row] = number
                    valid[column, row] = 1
            field += 1
            if at >= end:
                plain = field == width
                break
            at += 1
        if not plain:
            odd[row] = 1
            count += 1
    return count
