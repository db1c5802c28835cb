"""Kernels that cut plain rows of csv text into fields: no quotes, no escapes, as many fields as the table has columns.

They look at 64 bytes at a time for what ends a field, and at the eight bytes of a number or a time at once. Indexes are
unsigned, so that no index can count from the end.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from flowsql_compute.compiler.declare import device, kernel
from flowsql_compute.kernels.masks import count_ones, equal_mask, high_mask, highest_place, lowest_place
from flowsql_compute.kernels.memory import copy32

#: What is made of a field; the numbers are known to the kernels.
SKIP, TEXT, INTEGER, NUMBER, DATE, TIMESTAMP = range(6)

_U0: Final = np.uint64(0)
_U1: Final = np.uint64(1)
_U8: Final = np.uint64(8)
_ZEROS: Final = np.uint64(0x3030303030303030)
_FAILED: Final = -(1 << 63)


@device
def _word(data, at):
    """Eight bytes from a place on, the first one lowest: one load."""
    word = np.uint64(0)
    for byte in range(8):
        word |= np.uint64(data[at + np.uint64(byte)]) << np.uint64(8 * byte)
    return word


@device
def _eight_digits(digits):
    """The number that eight digit values make, the first one lowest."""
    pairs = (digits * np.uint64(2561)) >> np.uint64(8) & np.uint64(0x00FF00FF00FF00FF)
    fours = (pairs * np.uint64(6_553_601)) >> np.uint64(16) & np.uint64(0x0000FFFF0000FFFF)
    return (fours * np.uint64(42_949_672_960_001)) >> np.uint64(32)


@device
def _no_digits(values):
    """Not 0 where one of eight digit values is above 9."""
    return (values + np.uint64(0x7676767676767676) | values) & np.uint64(0x8080808080808080)


@device
def _two_digits(data, at):
    """A number of two digits; at least 100 if there is none."""
    tens = np.uint64(data[at]) - np.uint64(48)
    ones = np.uint64(data[at + np.uint64(1)]) - np.uint64(48)
    if tens > np.uint64(9) or ones > np.uint64(9):
        return np.int64(100)
    return np.int64(tens * np.uint64(10) + ones)


@device
def _integer(data, start, end):
    """``-?[0-9]{1,18}``, else _FAILED."""
    negative = data[start] == 45
    at = start + np.uint64(1) if negative else start
    length = end - at
    if length - np.uint64(1) > np.uint64(17):
        return np.int64(_FAILED)
    value = np.uint64(0)
    odd = np.uint64(0)
    while length > np.uint64(8):
        digits = _word(data, at) ^ _ZEROS
        odd |= _no_digits(digits)
        value = value * np.uint64(100_000_000) + _eight_digits(digits)
        at += np.uint64(8)
        length -= np.uint64(8)
    # What stands behind the number is shifted out, zeros come in before it.
    digits = (_word(data, at) ^ _ZEROS) << (np.uint64(64) - np.uint64(8) * length)
    if value != np.uint64(0):
        for _ in range(length):
            value *= np.uint64(10)
    value += _eight_digits(digits)
    if (odd | _no_digits(digits)) != np.uint64(0):
        return np.int64(_FAILED)
    return -np.int64(value) if negative else np.int64(value)


@device
def _days(data, start):
    """``yyyy-MM-dd`` of the years 1 to 9999 as days since 1970, else _FAILED."""
    head = _two_digits(data, start)
    tail = _two_digits(data, start + np.uint64(2))
    month = _two_digits(data, start + np.uint64(5))
    day = _two_digits(data, start + np.uint64(8))
    year = head * 100 + tail
    if head > 99 or tail > 99 or year < 1 or month < 1 or month > 12 or day < 1 or day > 31:
        return np.int64(_FAILED)
    if data[start + np.uint64(4)] != 45 or data[start + np.uint64(7)] != 45:
        return np.int64(_FAILED)
    if day > 28:
        longest = 31
        if month == 4 or month == 6 or month == 9 or month == 11:
            longest = 30
        elif month == 2:
            longest = 29 if year % 4 == 0 and (year % 100 != 0 or year % 400 == 0) else 28
        if day > longest:
            return np.int64(_FAILED)
    # Days of a calendar whose years begin in March.
    if month <= 2:
        year -= 1
        month += 12
    return 365 * year + year // 4 - year // 100 + year // 400 + (153 * (month - 3) + 2) // 5 + day - 719_469


@device
def _minute(data, start):
    """``yyyy-MM-dd HH:mm`` as minutes since 1970, else _FAILED."""
    days = _days(data, start)
    hour = _two_digits(data, start + np.uint64(11))
    minute = _two_digits(data, start + np.uint64(14))
    if days == _FAILED or hour > 23 or minute > 59:
        return np.int64(_FAILED)
    if data[start + np.uint64(10)] != 32 or data[start + np.uint64(13)] != 58:
        return np.int64(_FAILED)
    return (days * 24 + hour) * 60 + minute


@device
def _within_minute(data, start, end, digits, per_second):
    """``:ss`` with at most ``digits`` digits of a fraction, in units of 1 / per_second; or _FAILED."""
    length = np.int64(end - start)
    second = _two_digits(data, start + np.uint64(1))
    if data[start] != 58 or second > 59:
        return np.int64(_FAILED)
    value = second * per_second
    if length > 3:
        if length == 4 or length > 4 + digits or data[start + np.uint64(3)] != 46:
            return np.int64(_FAILED)
        unit = per_second
        at = start + np.uint64(4)
        while at < end:
            digit = np.uint64(data[at]) - np.uint64(48)
            if digit > np.uint64(9):
                return np.int64(_FAILED)
            unit //= 10
            value += unit * np.int64(digit)
            at += np.uint64(1)
    return value


@device
def _may_be_comment(byte):
    """Whether what begins so may be a comment or blanks before a row: ``#``, a blank or a line end."""
    return byte == 35 or byte == 32 or byte == 10 or byte == 13


@device
def _stop(start, row, field, progress):
    """Note where the odd row begins."""
    progress[0] = np.int64(start)
    progress[1] = np.int64(row)
    progress[2] = field
    return 1


@kernel(
    "int64(uint8[::1], int64, uint8, uint8, uint8, boolean, uint8[::1], int64, int64[::1], uint64[::1], int64[::1],"
    " int64[::1], int64[:, ::1], uint8[:, ::1], int64, int64[::1], int64[::1])"
)
def cut_fields(
    data, size, delimiter, quote, escape, comments, null, null_size, kinds, ahead, slots, precisions, values, marks,
    few_bad, bad, progress
):  # fmt: skip
    """Read the wanted fields of the rows of a block up to the first odd one.

    Odd are a row of another width than the table's, one that holds a quote, an escape or a carriage return that does
    not stand before a newline, with ``comments`` one that begins with a blank or ``#``, and see ``bad``.

    Args:
        data: the block, ended by a newline; ``size`` bytes of it count, zeros stand in the 80 behind them.
        quote: with ``escape`` the bytes that no plain row has; 255 where there is none.
        null: the text that stands for NULL, ``null_size`` bytes long; -1 where none does.
        kinds: what to make of each field of a row (SKIP, TEXT, ...), as many as a row has.
        ahead: from each field on, how many are SKIP before the next other one (or the end of the row).
        slots: where it goes: the row of ``values`` and ``marks``.
        precisions: of an INTEGER its bits, of a TIMESTAMP the digits of its fraction.
        values: TEXT: ``start << 32 | length``; INTEGER the number; NUMBER its digits without the point; DATE days;
            TIMESTAMP units of its precision. 0 for NULL.
        marks: 0 for NULL, else 1 + the digits behind the point of a NUMBER.
        bad: counts by field the texts that have not the plain form of its kind: up to ``few_bad`` rows with such are
            odd, behind these they become 0. The entry behind the fields becomes 1 where a byte is above 127.
        progress: the byte at which to begin, a row's start, and how many rows are there already; then where it
            stopped, how many there are now, and the field of which the text made the row odd; -1 if none did.

    Returns:
        1 at an odd row, 0 behind the last row.
    """
    width = np.uint64(kinds.size)
    begin = progress[0]
    row = np.uint64(progress[1])
    field = _U0
    start = np.uint64(begin)
    row_start = start
    progress[2] = -1
    if comments and _may_be_comment(data[start]):
        return 1
    last_head = _U0
    last_tail = _U0
    minute = np.int64(_FAILED)
    for base in range(begin, size, 64):
        ends = equal_mask(data, base, np.uint8(10))
        marked = ends | equal_mask(data, base, delimiter)
        high = high_mask(data, base)
        if high != _U0:
            bad[width] = 1
        odd = equal_mask(data, base, quote) | equal_mask(data, base, escape)
        returns = equal_mask(data, base, np.uint8(13))
        if returns != _U0:
            following = _U1 if data[np.uint64(base) + np.uint64(64)] == 10 else _U0
            odd |= returns & ~(ends >> _U1 | following << np.uint64(63))
        if odd != _U0:
            # The rows that end before are plain.
            before = (odd & (_U0 - odd)) - _U1
            marked &= before
            ends &= before
        while marked != _U0:
            passed = ahead[field]
            if passed != _U0:
                # Marks up to the row's end, or all; ``ends`` has only those that are still to come.
                in_row = marked & (ends ^ (ends - _U1))
                seen = count_ones(in_row)
                if seen <= passed:
                    marked ^= in_row
                    field += seen
                    start = np.uint64(base) + _U1 + highest_place(in_row)
                    if ends != _U0:
                        if field != width:
                            return _stop(row_start, row, np.int64(-1), progress)
                        ends &= ends - _U1
                        field = _U0
                        row += _U1
                        row_start = start
                        if comments and _may_be_comment(data[start]):
                            return _stop(row_start, row, np.int64(-1), progress)
                    elif field == width:
                        return _stop(row_start, row, np.int64(-1), progress)
                    continue
                field += passed
                if field == width:
                    return _stop(row_start, row, np.int64(-1), progress)
                while passed != _U1:
                    marked &= marked - _U1
                    passed -= _U1
                start = np.uint64(base) + _U1 + lowest_place(marked)
                marked &= marked - _U1
            place = lowest_place(marked)
            marked &= marked - _U1
            stop = np.uint64(base) + place
            ends_row = (ends >> place & _U1) != _U0
            kind = kinds[field]
            end = stop
            if ends_row and end > start and data[end - _U1] == 13:
                end -= _U1
            slot = np.uint64(slots[field])
            length = np.int64(end - start)
            is_null = length == null_size
            if is_null:
                for place in range(length):
                    if data[start + np.uint64(place)] != null[np.uint64(place)]:
                        is_null = False
                        break
            value = np.int64(0)
            mark = 1
            if is_null:
                mark = 0
            elif kind == TEXT:
                value = np.int64(start) << 32 | length
            elif kind == INTEGER:
                digits = (_word(data, start) ^ _ZEROS) << np.uint64(64 - 8 * length & 63)
                if length - 1 <= 7 and length > 0 and _no_digits(digits) == _U0:
                    value = np.int64(_eight_digits(digits))
                else:
                    value = _integer(data, start, end)
                bits = precisions[field]
                if bits < 64 and value >> (bits - 1) != value >> 63:
                    value = np.int64(_FAILED)
            elif kind == TIMESTAMP:
                places = precisions[field]
                per_second = 1_000 if places == 3 else 1_000_000 if places == 6 else 1
                if length < 19:
                    value = np.int64(_FAILED)
                else:
                    # Times of neighbours mostly stand in the same minute.
                    head = _word(data, start)
                    tail = _word(data, start + _U8)
                    if head != last_head or tail != last_tail:
                        last_head = head
                        last_tail = tail
                        minute = _minute(data, start)
                    within = _within_minute(data, start + np.uint64(16), end, places, per_second)
                    if minute == _FAILED or within == _FAILED:
                        value = np.int64(_FAILED)
                    else:
                        value = minute * (60 * per_second) + within
            elif kind == DATE:
                value = _days(data, start) if length == 10 else np.int64(_FAILED)
            else:
                # The point is left out and the digits behind it are counted.
                point = start
                while point < end and data[point] != 46:
                    point += _U1
                value = _integer(data, start, point)
                if point < end and value != _FAILED:
                    behind = np.int64(end - point) - 1
                    low = _integer(data, point + _U1, end)
                    if behind < 1 or low < 0 or data[point + _U1] == 45 or np.int64(end - start) > 18:
                        value = np.int64(_FAILED)
                    else:
                        mark = 1 + behind
                        for _ in range(behind):
                            value *= 10
                        value += -low if data[start] == 45 else low
                # A double tells -0.0 from 0.0.
                if value == 0 and data[start] == 45:
                    value = np.int64(_FAILED)
            if value == _FAILED:
                bad[field] += 1
                if bad[field] <= few_bad:
                    return _stop(row_start, row, np.int64(field), progress)
                value = np.int64(0)
            values[slot, row] = value
            marks[slot, row] = np.uint8(mark)
            start = stop + _U1
            field += _U1
            if ends_row:
                if field != width:
                    return _stop(row_start, row, np.int64(-1), progress)
                ends &= ends - _U1
                field = _U0
                row += _U1
                row_start = start
                if comments and _may_be_comment(data[start]):
                    return _stop(row_start, row, np.int64(-1), progress)
            elif field == width:
                return _stop(row_start, row, np.int64(-1), progress)
        if odd != _U0:
            return _stop(row_start, row, np.int64(-1), progress)
    progress[0] = size
    progress[1] = np.int64(row)
    return 0


@kernel("int64(int64[::1], int64, int32[::1])")
def text_offsets(bounds, rows, offsets):
    """Offsets (rows + 1) of the texts one behind the other; returns their bytes. ``bounds``: start << 32 | length."""
    total = np.int64(0)
    offsets[0] = 0
    for row in range(rows):
        total += bounds[np.uint64(row)] & 0x7FFFFFFF
        offsets[np.uint64(row + 1)] = np.int32(total)
    return total


@kernel("void(uint8[::1], int64[::1], int64, int32[::1], uint8[::1])")
def gather_texts(data, bounds, rows, offsets, out):
    """Copy the texts to where ``offsets`` puts them, 32 bytes at a time: both arrays have 32 bytes to spare."""
    for row in range(rows):
        source = bounds[np.uint64(row)] >> 32
        target = np.int64(offsets[np.uint64(row)])
        stop = np.int64(offsets[np.uint64(row + 1)])
        while target < stop:
            copy32(out, target, data, source)
            source += 32
            target += 32
