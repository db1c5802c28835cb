"""Kernels that write rows as lines of delimited text, a column at a time.

First every column adds the bytes of its fields to the sizes of the rows; then every column writes its fields, each with
the byte that follows it, where the cursor of the row stands. A field that is NULL is written as the given text.
``valid`` is 0 where a value is NULL, or empty when none is.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from flowsql_compute.compiler.declare import device, kernel

_U10: Final = np.uint64(10)
_U1: Final = np.uint64(1)
_U48: Final = np.uint64(48)


@device
def _magnitude(value):
    """The absolute value, of the smallest number too."""
    return np.uint64(-(value + 1)) + np.uint64(1) if value < 0 else np.uint64(value)


@device
def _count_digits(number):
    digits = 1
    while number >= np.uint64(10_000):
        number //= np.uint64(10_000)
        digits += 4
    if number >= np.uint64(1_000):
        return digits + 3
    if number >= np.uint64(100):
        return digits + 2
    return digits + 1 if number >= np.uint64(10) else digits


@device
def _put_digits(out, stop, count, number):
    """Write ``count`` digits that end before ``stop``."""
    place = np.uint64(stop)
    for _ in range(count):
        place -= _U1
        rest = number // _U10
        out[place] = np.uint8(number - rest * _U10 + _U48)
        number = rest


@device
def _put_null(out, cursor, null, after):
    """Write NULL's text and what follows; the place behind it."""
    for byte in null:
        out[np.uint64(cursor)] = byte
        cursor += 1
    out[np.uint64(cursor)] = after
    return cursor + 1


@kernel("void(int64[::1], uint8[::1], int64, int64[::1])")
def add_integer_sizes(values, valid, null_size, sizes):
    """Bytes of whole numbers."""
    for row in range(values.size):
        place = np.uint64(row)
        if valid.size and not valid[place]:
            sizes[place] += null_size
        else:
            value = values[place]
            sizes[place] += _count_digits(_magnitude(value)) + (value < 0)


@kernel("void(int64[::1], uint8[::1], uint8[::1], uint8, int64[::1], uint8[::1])")
def put_integers(values, valid, null, after, cursors, out):
    """Write whole numbers."""
    for row in range(values.size):
        place = np.uint64(row)
        cursor = cursors[place]
        if valid.size and not valid[place]:
            cursors[place] = _put_null(out, cursor, null, after)
            continue
        value = values[place]
        if value < 0:
            out[np.uint64(cursor)] = 45
            cursor += 1
        number = _magnitude(value)
        digits = _count_digits(number)
        cursor += digits
        _put_digits(out, cursor, digits, number)
        out[np.uint64(cursor)] = after
        cursors[place] = cursor + 1


@device
def _whole_seconds(value, per_second):
    """Rounded down. Division by what the compiler knows is a multiplication."""
    if per_second == 1_000:
        return value // 1_000
    if per_second == 1_000_000:
        return value // 1_000_000
    return value // 1_000_000_000 if per_second == 1_000_000_000 else value


@device
def _fraction_digits(fraction, digits, grouped):
    """Digits shown of a fraction of so many digits: none, 3, 6 or 9, or up to the last one that is not zero."""
    if fraction == 0:
        return 0
    while digits > 3 and fraction % 1_000 == 0:
        fraction //= 1_000
        digits -= 3
    if not grouped:
        while fraction % 10 == 0:
            fraction //= 10
            digits -= 1
    return digits


@kernel("void(int64[::1], uint8[::1], int64, int64, int64, boolean, int64, int64[::1])")
def add_timestamp_sizes(values, valid, null_size, digits, per_second, grouped, around, sizes):
    """Bytes of ``yyyy-MM-dd HH:mm:ss[.fff]`` and ``around`` more; ``grouped``: fractions have 3, 6 or 9 digits."""
    for row in range(values.size):
        place = np.uint64(row)
        if valid.size and not valid[place]:
            sizes[place] += null_size
            continue
        shown = (
            0
            if digits == 0
            else _fraction_digits(
                values[place] - _whole_seconds(values[place], per_second) * per_second, digits, grouped
            )
        )
        sizes[place] += 19 + around + (shown + 1 if shown else 0)


@kernel("void(int64[::1], uint8[::1], uint8[::1], int64, int64, boolean, uint8, uint8, uint8, int64[::1], uint8[::1])")
def put_timestamps(values, valid, null, digits, per_second, grouped, quote, zone, after, cursors, out):
    """Write timestamps of the years 1 to 9999; ``quote`` and ``zone`` are 0 where none is written."""
    # Neighbours mostly stand in the same minute: its text is copied.
    last_minute = np.int64(-(1 << 62))
    last_cursor = np.int64(0)
    for row in range(values.size):
        place = np.uint64(row)
        cursor = cursors[place]
        if valid.size and not valid[place]:
            cursors[place] = _put_null(out, cursor, null, after)
            continue
        value = values[place]
        seconds = _whole_seconds(value, per_second)
        fraction = value - seconds * per_second
        minutes = seconds // 60
        if quote:
            out[np.uint64(cursor)] = quote
            cursor += 1
        if minutes == last_minute:
            for at in range(17):
                out[np.uint64(cursor + at)] = out[np.uint64(last_cursor + at)]
        else:
            days = minutes // 1_440
            of_day = minutes - days * 1_440
            # Days of a calendar whose years begin in March.
            shifted = days + 719_468
            era = shifted // 146_097
            of_era = shifted - era * 146_097
            year_of_era = (of_era - of_era // 1_460 + of_era // 36_524 - of_era // 146_096) // 365
            of_year = of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
            march = (5 * of_year + 2) // 153
            month = march + 3 if march < 10 else march - 9
            _put_digits(out, cursor + 4, 4, np.uint64(year_of_era + era * 400 + (month <= 2)))
            out[np.uint64(cursor + 4)] = 45
            _put_digits(out, cursor + 7, 2, np.uint64(month))
            out[np.uint64(cursor + 7)] = 45
            _put_digits(out, cursor + 10, 2, np.uint64(of_year - (153 * march + 2) // 5 + 1))
            out[np.uint64(cursor + 10)] = 32
            _put_digits(out, cursor + 13, 2, np.uint64(of_day // 60))
            out[np.uint64(cursor + 13)] = 58
            _put_digits(out, cursor + 16, 2, np.uint64(of_day % 60))
            out[np.uint64(cursor + 16)] = 58
        last_minute = minutes
        last_cursor = cursor
        _put_digits(out, cursor + 19, 2, np.uint64(seconds - minutes * 60))
        cursor += 19
        shown = 0 if digits == 0 else _fraction_digits(fraction, digits, grouped)
        if shown:
            for _ in range(shown, digits):
                fraction //= 10
            out[np.uint64(cursor)] = 46
            cursor += 1 + shown
            _put_digits(out, cursor, shown, np.uint64(fraction))
        if zone:
            out[np.uint64(cursor)] = zone
            cursor += 1
        if quote:
            out[np.uint64(cursor)] = quote
            cursor += 1
        out[np.uint64(cursor)] = after
        cursors[place] = cursor + 1


@kernel("void(int32[::1], uint8[::1], uint8[::1], int64, uint8[::1], int64, uint8[::1], int64[::1])")
def add_text_sizes(offsets, data, valid, null_size, special, most, quoted, sizes):
    """Bytes of texts that hold nothing to double.

    Args:
        special: by byte, whether it makes quotes necessary.
        most: characters that a text may have without being looked at; more make quotes necessary. -1: never quotes.
        quoted: becomes 1 where quotes are needed.
    """
    for row in range(sizes.size):
        place = np.uint64(row)
        quoted[place] = 0
        if valid.size and not valid[place]:
            sizes[place] += null_size
            continue
        start = offsets[place]
        stop = offsets[np.uint64(row + 1)]
        if most >= 0:
            characters = 0
            if stop - start > 4 * most:
                # No character has more than four bytes.
                quoted[place] = 1
            for at in range(start, start if quoted[place] else stop):
                byte = data[np.uint64(at)]
                # The further bytes of a character are 10xxxxxx.
                characters += (byte & 0xC0) != 0x80
                if special[np.uint64(byte)] or characters > most:
                    quoted[place] = 1
                    break
        sizes[place] += stop - start + 2 * quoted[place]


@kernel("void(int32[::1], uint8[::1], uint8[::1], uint8[::1], uint8, uint8[::1], uint8, int64[::1], uint8[::1])")
def put_texts(offsets, data, valid, null, quote, quoted, after, cursors, out):
    """Write texts."""
    for row in range(cursors.size):
        place = np.uint64(row)
        cursor = cursors[place]
        if valid.size and not valid[place]:
            cursors[place] = _put_null(out, cursor, null, after)
            continue
        if quoted[place]:
            out[np.uint64(cursor)] = quote
            cursor += 1
        source = np.uint64(offsets[place])
        length = np.uint64(offsets[np.uint64(row + 1)]) - source
        target = np.uint64(cursor)
        for at in range(length):
            out[target + at] = data[source + at]
        cursor += np.int64(length)
        if quoted[place]:
            out[np.uint64(cursor)] = quote
            cursor += 1
        out[np.uint64(cursor)] = after
        cursors[place] = cursor + 1
