"""A kernel that reads JSON objects, one a message, into slots of 64 bits, a row for each column without structure.

Each object is looked at as a whole, by the rules of RFC 8259; those that need another reader are told.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from flowsql_compute.compiler.declare import device, kernel
from flowsql_compute.kernels.json.bytes import DEEPEST, PLAIN, number_end, string_end, word_end
from flowsql_compute.kernels.masks import lowest_place, same_mask

#: What a column takes: a whole number within limits; a text without escapes, or the digits of a number, as ranges
#: (start << 31 | length); a truth value.
INTEGER, TEXT, NUMBER, TRUTH = range(4)

_QUOTE, _COMMA, _COLON = 0x22, 0x2C, 0x3A
_OPEN_OBJECT, _CLOSE_OBJECT, _OPEN_ARRAY, _CLOSE_ARRAY = 0x7B, 0x7D, 0x5B, 0x5D
_MINUS, _ZERO, _NINE, _LETTER_N, _LETTER_T = 0x2D, 0x30, 0x39, 0x6E, 0x74
#: Digits of a whole number that cannot overflow.
_MOST_DIGITS = 18
_SIZE_BITS = 31
#: Rows of ``heads``, what stands before the values of an object: where it was seen last, its size, and the column.
_HEAD_START, _HEAD_SIZE, _HEAD_COLUMN = range(3)
HEADS: Final = 3
#: Members whose heads are kept, and bytes of such a head at most.
MOST_HEADS: Final = 64
_MOST_HEAD_BYTES = 64


@device(inline=True)
def _behind_blanks(data, at, end):
    while at < end and data[at] <= 0x20:
        code = data[at]
        if code != 0x20 and code != 0x0A and code != 0x0D and code != 0x09:
            break
        at += 1
    return at


@device
def _scalar_end(data, at, end):
    """Behind a value that is no object or array; -1 where it is wrong."""
    code = data[at]
    if code == _QUOTE:
        stop = string_end(data, at + 1, end)
        return (stop >> 2) + 1 if stop >= 0 else np.int64(-1)
    if code == _MINUS or _ZERO <= code <= _NINE:
        stop = number_end(data, at, end)
        return stop >> 2 if stop >= 0 else np.int64(-1)
    return word_end(data, at, end)


@device
def _nested_end(data, at, end):
    """Behind the object or array that begins at ``at``; -1 where it is wrong, or nested too deep."""
    # One bit a level: whether it is an object.
    objects = np.uint64(1) if data[at] == _OPEN_OBJECT else np.uint64(0)
    depth = np.int64(1)
    at += 1
    first = True
    while True:
        at = _behind_blanks(data, at, end)
        if at >= end:
            return np.int64(-1)
        in_object = (objects & np.uint64(1)) != np.uint64(0)
        closes = data[at] == (_CLOSE_OBJECT if in_object else _CLOSE_ARRAY)
        opened = False
        if not (first and closes):
            if in_object:
                if data[at] != _QUOTE:
                    return np.int64(-1)
                stop = string_end(data, at + 1, end)
                if stop < 0:
                    return np.int64(-1)
                at = _behind_blanks(data, (stop >> 2) + 1, end)
                if at >= end or data[at] != _COLON:
                    return np.int64(-1)
                at = _behind_blanks(data, at + 1, end)
                if at >= end:
                    return np.int64(-1)
            if data[at] == _OPEN_OBJECT or data[at] == _OPEN_ARRAY:
                if depth == DEEPEST:
                    return np.int64(-1)
                objects = objects << np.uint64(1)
                if data[at] == _OPEN_OBJECT:
                    objects |= np.uint64(1)
                depth += 1
                at += 1
                first = True
                opened = True
            else:
                at = _scalar_end(data, at, end)
                if at < 0:
                    return np.int64(-1)
        # Behind a value: containers end, or the next member comes.
        while not opened:
            at = _behind_blanks(data, at, end)
            if at >= end:
                return np.int64(-1)
            if data[at] == _COMMA:
                at += 1
                first = False
                break
            in_object = (objects & np.uint64(1)) != np.uint64(0)
            if data[at] != (_CLOSE_OBJECT if in_object else _CLOSE_ARRAY):
                return np.int64(-1)
            at += 1
            depth -= 1
            if depth == 0:
                return np.int64(at)
            objects = objects >> np.uint64(1)


@device
def _value_end(data, at, end):
    """Behind a value; -1 where it is wrong."""
    if data[at] == _OPEN_OBJECT or data[at] == _OPEN_ARRAY:
        return _nested_end(data, at, end)
    return _scalar_end(data, at, end)


@device
def _column(data, low, high, names, name_offsets, columns, guess):
    """The column of the name in [low, high); -1 if there is none. ``guess`` is looked at first."""
    for step in range(columns):
        column = guess + step
        if column >= columns:
            column -= columns
        start = np.int64(name_offsets[column])
        if high - low == name_offsets[column + 1] - start:
            same = True
            for at in range(high - low):
                same &= data[low + at] == names[start + at]
            if same:
                return np.int64(column)
    return np.int64(-1)


@device(inline=True)
def _is_again(data, at, end, start, size):
    """Whether the ``size`` bytes from ``start`` on, at most 64, stand at ``at`` once more, with a byte behind them."""
    if at + size >= end or at + 64 > data.size or start + 64 > data.size:
        return False
    different = ~same_mask(data, at, start)
    return different == np.uint64(0) or np.int64(lowest_place(different)) >= size


@kernel(
    "int64(uint8[::1], int32[::1], int64[::1], int64[::1], int64[::1], int32[::1], uint8[::1], int64[::1],"
    " int64[:, ::1], int64[:, ::1], uint8[:, ::1], uint8[::1])"
)
def read_objects(data, offsets, kinds, lows, highs, name_offsets, names, seen, heads, slots, valid, odd):
    """Put the members of the object in each message, ``data[offsets[i]:offsets[i + 1]]``, into column i of ``slots``.

    The columns' names stand in ``names`` from ``name_offsets`` on; ``kinds`` say what each takes, ``lows`` and
    ``highs`` the limits of whole numbers. What is not there or ``null`` stays 0 in ``valid``. ``odd`` is set where a
    message is not one object, or has a member twice, a name with escapes, or another value than its column takes.

    Messages of one topic mostly have the same members in the same order: the bytes between two values, as
    ``,"price":``, are first compared with those of a message before, and read only where they differ.

    Room: ``seen`` as many as columns, ``heads`` (HEADS, MOST_HEADS), ``slots`` and ``valid`` (columns, messages),
    ``odd`` messages; all zeros.

    Returns:
        How many are odd; their slots mean nothing.
    """
    count = np.int64(0)
    columns = kinds.size
    for row in range(odd.size):
        end = np.int64(offsets[row + 1])
        at = np.int64(offsets[row])
        plain = False
        found = np.int64(0)
        member = np.int64(0)
        while at < end:
            column = np.int64(-1)
            known = member < MOST_HEADS and heads[_HEAD_SIZE, member] > 0
            if known and _is_again(data, at, end, heads[_HEAD_START, member], heads[_HEAD_SIZE, member]):
                at += heads[_HEAD_SIZE, member]
                column = heads[_HEAD_COLUMN, member]
            else:
                begin = at
                at = _behind_blanks(data, at, end)
                if at >= end:
                    break
                opens = member == 0
                if not opens and data[at] == _CLOSE_OBJECT:
                    at += 1
                    plain = True
                    break
                if data[at] != (_OPEN_OBJECT if opens else _COMMA):
                    break
                at = _behind_blanks(data, at + 1, end)
                if opens and at < end and data[at] == _CLOSE_OBJECT:
                    at += 1
                    plain = True
                    break
                if at >= end or data[at] != _QUOTE:
                    break
                stop = string_end(data, at + 1, end)
                if stop < 0 or stop & 3 != PLAIN:
                    break
                column = _column(data, at + 1, stop >> 2, names, name_offsets, columns, found)
                at = _behind_blanks(data, (stop >> 2) + 1, end)
                if at >= end or data[at] != _COLON:
                    break
                at = _behind_blanks(data, at + 1, end)
                if at >= end:
                    break
                if member < MOST_HEADS and at - begin <= _MOST_HEAD_BYTES:
                    heads[_HEAD_START, member] = begin
                    heads[_HEAD_SIZE, member] = at - begin
                    heads[_HEAD_COLUMN, member] = column
            member += 1
            code = data[at]
            if column < 0:
                at = _value_end(data, at, end)
                if at < 0:
                    break
            else:
                if seen[column] == row + 1:
                    break
                seen[column] = row + 1
                found = column + 1 if column + 1 < columns else np.int64(0)
                kind = kinds[column]
                start = at
                if code == _LETTER_N:
                    at = word_end(data, at, end)
                    if at < 0:
                        break
                elif kind == INTEGER:
                    negative = code == _MINUS
                    if negative:
                        at += 1
                    begin = at
                    number = np.int64(0)
                    while at < end and at - begin <= _MOST_DIGITS and _ZERO <= data[at] <= _NINE:
                        number = number * 10 + (data[at] - _ZERO)
                        at += 1
                    digits = at - begin
                    if digits == 0 or digits > _MOST_DIGITS or (data[begin] == _ZERO and (digits > 1 or negative)):
                        break
                    # A fraction or an exponent is found where a comma should be.
                    if negative:
                        number = -number
                    if number < lows[column] or number > highs[column]:
                        break
                    slots[column, row] = number
                    valid[column, row] = 1
                elif kind == TEXT:
                    if code != _QUOTE:
                        break
                    stop = string_end(data, at + 1, end)
                    if stop < 0 or stop & 3 != PLAIN:
                        break
                    at = (stop >> 2) + 1
                    slots[column, row] = (start + 1) << _SIZE_BITS | (at - start - 2)
                    valid[column, row] = 1
                elif kind == NUMBER:
                    if code != _MINUS and not _ZERO <= code <= _NINE:
                        break
                    stop = number_end(data, at, end)
                    if stop < 0:
                        break
                    at = stop >> 2
                    slots[column, row] = start << _SIZE_BITS | (at - start)
                    valid[column, row] = 1
                else:
                    if code == _QUOTE:
                        break
                    at = word_end(data, at, end)
                    if at < 0:
                        break
                    slots[column, row] = 1 if code == _LETTER_T else 0
                    valid[column, row] = 1
        if not plain or _behind_blanks(data, at, end) != end:
            odd[row] = 1
            count += 1
    return count
