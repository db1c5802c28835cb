"""Packets of MySQL's protocol to places of events and of values: the binary log in row format.

Source: MySQL internals, "Replication Protocol" and ``libbinlogevents``; MariaDB Knowledge Base, "Replication Protocol".
"""

from __future__ import annotations

from typing import Final

import numpy as np

from flowsql_compute.compiler.declare import device, kernel
from flowsql_compute.kernels.wire.varints import little_word

#: What a row of ``events`` holds: type, seconds since 1970, size with its header, place in the log behind it, and where
#: the body begins and ends in the data.
TYPE, TIME, SIZE, NEXT, START, STOP = range(6)
#: Types that no event has: the server refused; it ended the stream; a packet of 16 MiB, which others complete.
REFUSED, ENDED, HUGE = 1000, 1001, 1002
#: Why :func:`walk_rows` cannot read: columns are missing in a row; an event has other columns; it ends too early.
PARTIAL, OTHER_COLUMNS, BROKEN = -1, -2, -3

_HEADER: Final = 19
_HUGE: Final = 0xFFFFFF


@kernel("int64(uint8[::1], int64, int64, int64[:, ::1], int64[::1])")
def scan_events(data, size, trailer, events, consumed):
    """Places of the events whose packets are whole in ``data[:size]``; returns how many.

    Args:
        trailer: bytes of the checksum behind each event.
        events: results, (room, 6). ``consumed``: one number, the bytes of the packets.
    """
    at = 0
    count = 0
    while at + 4 <= size and count < events.shape[0]:
        length = np.int64(data[at]) | np.int64(data[at + 1]) << 8 | np.int64(data[at + 2]) << 16
        start = at + 4
        if length == _HUGE:
            events[count, 0] = HUGE
            count += 1
            break
        if start + length > size:
            break
        at = start + length
        events[count, 4] = start
        events[count, 5] = at
        if length == 0 or data[start] == 254:
            events[count, 0] = ENDED
        elif data[start] != 0 or length < 1 + _HEADER:
            events[count, 0] = REFUSED
        else:
            events[count, 0] = data[start + 5]
            events[count, 1] = little_word(data, start + 1, 4)
            events[count, 2] = little_word(data, start + 10, 4)
            events[count, 3] = little_word(data, start + 14, 4)
            events[count, 4] = start + 1 + _HEADER
            events[count, 5] = at - trailer
        count += 1
    consumed[0] = at
    return count


@device
def _rows_start(data, at, columns, version, images):
    """Where the rows of an event begin whose body is at ``at``; an error of :func:`walk_rows` where they cannot be
    read."""
    at += 8
    if version == 2:
        at += little_word(data, at, 2)
    if data[at] < 251:
        found = np.int64(data[at])
        at += 1
    else:
        found = little_word(data, at + 1, 2)
        at += 3
    if found != columns:
        return np.int64(OTHER_COLUMNS)
    for _ in range(images):
        for column in range(columns):
            if not (data[at + (column >> 3)] >> (column & 7)) & 1:
                return np.int64(PARTIAL)
        at += (columns + 7) >> 3
    return np.int64(at)


@device
def _value_size(data, at, width):
    """Bytes of a value's length, and of the value, of a column of ``width``."""
    if width >= 0:
        return np.int64(0), np.int64(width)
    return np.int64(-width), little_word(data, at, -width)


@kernel(
    "int64(uint8[::1], int64[:, ::1], int64[:, ::1], int64[::1], int64[::1], boolean, int64[::1], int64[:, ::1],"
    " uint8[:, ::1])"
)
def walk_rows(data, events, shapes, widths, slots, fill, counts, ranges, valid):
    """Walk through all rows of events of one table; returns how many there are, or why they cannot be read.

    Args:
        events: places of events, as :func:`scan_events` has them. ``shapes``: version of each and the images of each of
            its rows (2: before and after an update).
        widths: bytes of each column's values; -n: a length of n bytes stands before each.
        slots: for each column where its values go; -1: nowhere.
        fill: False: count only.
        counts: result, rows of each event (images of updates count one by one).
        ranges: results, (slots, rows): start << 31 | length. ``valid``: whether there is a value.
    """
    rows = np.int64(0)
    columns = widths.size
    nulls = (columns + 7) >> 3
    for event in range(events.shape[0]):
        stop = events[event, 5]
        before = rows
        at = _rows_start(data, events[event, 4], columns, shapes[event, 0], shapes[event, 1])
        if at < 0:
            return at
        while at < stop:
            bits = at
            at += nulls
            for column in range(columns):
                slot = slots[column]
                if (data[bits + (column >> 3)] >> (column & 7)) & 1:
                    if fill and slot >= 0:
                        ranges[slot, rows] = 0
                        valid[slot, rows] = 0
                    continue
                head, size = _value_size(data, at, widths[column])
                at += head
                if fill and slot >= 0:
                    ranges[slot, rows] = (at << 31) | size
                    valid[slot, rows] = 1
                at += size
            rows += 1
        if at != stop:
            return np.int64(BROKEN)
        counts[event] = rows - before
    return rows


@kernel("void(uint8[::1], int64[::1], boolean, int64[::1])")
def words(data, ranges, big_endian, out):
    """Numbers of at most eight bytes without sign, of ranges; 0 of an empty one."""
    for row in range(ranges.size):
        at = ranges[row] >> 31
        size = ranges[row] & 0x7FFFFFFF
        if not big_endian:
            out[row] = little_word(data, at, size)
            continue
        word = np.uint64(0)
        for place in range(size):
            word = (word << np.uint64(8)) | np.uint64(data[at + place])
        out[row] = np.int64(word)


@device(inline=True)
def _group_size(digits):
    """Bytes of so many digits, at most nine."""
    return (digits + 1) // 2 if digits < 9 else 4


@device
def _group(data, at, size, flip, first):
    """A group of digits as a number. ``flip``: bits of a negative number; ``first``: it carries the sign."""
    word = np.int64(0)
    for place in range(size):
        byte = np.int64(data[at + place])
        if first and place == 0:
            byte ^= 128
        word = (word << 8) | (byte ^ flip)
    return word


@kernel("void(uint8[::1], int64[::1], int64, int64, int64[::1], int64[:, ::1])")
def decimal_words(data, ranges, precision, scale, powers, out):
    """DECIMALs of at most 38 digits as unscaled words of 128 bits: ``out[i]`` is the low and the high one.

    Args:
        powers: 10 to the power of 0 to 9.
    """
    mask = np.uint64(0xFFFFFFFF)
    whole = precision - scale
    for row in range(ranges.size):
        out[row, 0] = 0
        out[row, 1] = 0
        if not ranges[row] & 0x7FFFFFFF:
            continue
        at = ranges[row] >> 31
        negative = data[at] < 128
        flip = 255 if negative else 0
        first = True
        low = np.uint64(0)
        high = np.uint64(0)
        left = whole
        fraction = scale
        while left > 0 or fraction > 0:
            # Digits before the point begin with the odd group, those behind it end with it.
            if left > 0:
                digits = left % 9 if left % 9 else 9
                left -= digits
            else:
                digits = min(fraction, 9)
                fraction -= digits
            size = _group_size(digits)
            word = np.uint64(_group(data, at, size, flip, first))
            at += size
            first = False
            factor = np.uint64(powers[digits])
            bottom = (low & mask) * factor + word
            middle = (low >> np.uint64(32)) * factor + (bottom >> np.uint64(32))
            low = (middle << np.uint64(32)) | (bottom & mask)
            high = high * factor + (middle >> np.uint64(32))
        if negative:
            low = ~low + np.uint64(1)
            high = ~high
            if low == 0:
                high += np.uint64(1)
        out[row, 0] = np.int64(low)
        out[row, 1] = np.int64(high)


@kernel("void(uint8[::1], int64[::1], int64, int64, uint8[:, ::1], int64[::1])")
def decimal_texts(data, ranges, precision, scale, out, sizes):
    """DECIMALs as MySQL spells them: row i of ``out`` has room for a sign, a zero, a point and all digits."""
    whole = precision - scale
    for row in range(ranges.size):
        sizes[row] = 0
        if not ranges[row] & 0x7FFFFFFF:
            continue
        at = ranges[row] >> 31
        negative = data[at] < 128
        flip = 255 if negative else 0
        first = True
        end = 0
        if negative:
            out[row, 0] = 45
            end = 1
        digits_from = end
        left = whole
        fraction = scale
        while left > 0 or fraction > 0:
            if left > 0:
                digits = left % 9 if left % 9 else 9
                left -= digits
            else:
                digits = min(fraction, 9)
                fraction -= digits
                if fraction + digits == scale:
                    if end == digits_from:
                        out[row, end] = 48
                        end += 1
                    out[row, end] = 46
                    end += 1
                    digits_from = -1
            size = _group_size(digits)
            word = _group(data, at, size, flip, first)
            at += size
            first = False
            for place in range(digits):
                divisor = np.int64(1)
                for _ in range(digits - 1 - place):
                    divisor *= 10
                digit = word // divisor % 10
                if digit or end != digits_from:
                    out[row, end] = 48 + digit
                    end += 1
        if end == digits_from:
            out[row, end] = 48
            end += 1
        sizes[row] = end


@kernel("void(uint8[::1], int64[::1], int64[::1], uint8[::1], uint8[::1], uint8[::1])")
def clear_different(data, left, right, left_valid, right_valid, same):
    """``same[i]`` becomes 0 where ranges differ in their bytes, or one of them alone has a value."""
    for row in range(left.size):
        if left_valid[row] != right_valid[row]:
            same[row] = 0
        elif left_valid[row]:
            size = left[row] & 0x7FFFFFFF
            if size != right[row] & 0x7FFFFFFF:
                same[row] = 0
            else:
                a = left[row] >> 31
                b = right[row] >> 31
                for place in range(size):
                    if data[a + place] != data[b + place]:
                        same[row] = 0
                        break
